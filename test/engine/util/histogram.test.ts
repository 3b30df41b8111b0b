/** The histogram against a plain count, and across threads. */
import fc from "fast-check";
import { expect, test } from "vitest";
import { createHistogram, Histogram, logBounds } from "../../../engine/util/histogram.ts";

const counts = (histogram: Histogram): number[] => histogram.cumulated().map(({ count }) => count);

test("each value counts at its bound and all higher ones", () => {
  const values = fc.array(fc.oneof(fc.integer({ min: -5, max: 5_000 }), fc.double({ min: 0, max: 100, noNaN: true })));
  const bounds = fc.uniqueArray(fc.integer({ min: 0, max: 3_000 }), { minLength: 1, maxLength: 12 });
  fc.assert(
    fc.property(values, bounds, (observed, unsorted) => {
      const rising = unsorted.toSorted((a, b) => a - b);
      const histogram = new Histogram(createHistogram(rising));
      for (const value of observed) histogram.observe(value);
      const expected = [...rising, Number.POSITIVE_INFINITY].map((bound) => ({
        bound,
        count: observed.filter((value) => value <= bound).length,
      }));
      expect(histogram.cumulated()).toEqual(expected);
      expect(histogram.sum).toBeCloseTo(
        observed.reduce((a, b) => a + b, 0),
        6,
      );
    }),
  );
});

test("another thread's histogram on the same memory sees the observations", () => {
  const memory = createHistogram([10, 20]);
  const [writer, reader] = [new Histogram(memory), new Histogram(structuredClone(memory))];
  for (const value of [10, 11, 21, 1_000]) writer.observe(value);
  expect(counts(reader)).toEqual([1, 2, 4]);
  expect(reader.sum).toBe(1_042);
});

test("bounds rise", () => {
  for (const bounds of [[], [1, 1], [2, 1]]) expect(() => createHistogram(bounds)).toThrow("bounds rise");
  expect(logBounds(10, 200)).toEqual([10, 15, 20, 30, 50, 70, 100, 150, 200]);
});
