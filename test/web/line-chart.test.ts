/** The geometry of the feed's chart. */
import { describe, expect, test } from "vitest";
import { heightOf, type Point, pathOf, scaleOf, spread, weekOf } from "../../server/web/pages/feed/line-chart.ts";
import { Random } from "../support/random.ts";

const lineOf = (...prices: number[]): Point[] => prices.map((price, i) => [1_000 + i, price]);

describe("the scale", () => {
  test.for([
    [[3_400, 2_100, 700], [0, 40], 10],
    [[9_900, 9_300], [90, 100], 5],
    [[5_000], [50, 55], 5],
    [[1], [0, 5], 5],
    [[9_999, 1], [0, 100], 25],
    [[4_990, 6_010], [45, 65], 5],
  ] as const)("the chart's scale of %j", ([prices, [low, high], step]) => {
    const scale = scaleOf([lineOf(...prices)]);
    expect([scale.low, scale.high, (scale.ticks[1] ?? 0) - scale.low]).toEqual([low, high, step]);
  });

  test("the chart's scale holds every line, with few ticks", () => {
    const random = Random.printed("scales of the feed's chart");
    for (let round = 0; round < 500; round++) {
      const lines = Array.from({ length: random.integer(1, 4) }, () =>
        lineOf(...Array.from({ length: random.integer(1, 5) }, () => random.integer(1, 9_999))),
      );
      const scale = scaleOf(lines);
      expect([scale.ticks.length >= 2, scale.ticks.length <= 6, scale.ticks.at(-1)]).toEqual([true, true, scale.high]);
      for (const [, price] of lines.flat()) {
        const height = heightOf(scale, price / 100);
        expect([price, height >= 0, height <= 100]).toEqual([price, true, true]);
      }
    }
  });
});

test("a week ends now, with the present chance in place of the last price", () => {
  const now = 1_000_000_000;
  const hours = 3_600_000;
  expect(weekOf([3_000, 4_000, 5_000], 5_100, now)).toEqual([
    [now - 8 * hours, 3_000],
    [now - 4 * hours, 4_000],
    [now, 5_100],
  ]);
  expect(weekOf([], 5_100, now)).toEqual([]);
});

test("a path covers the width", () => {
  const line = lineOf(1_000, 3_000, 2_000);
  expect(pathOf(line, scaleOf([line]), 1_000, 1_002)).toBe("M0.00 66.67L50.00 0.00L100.00 33.33");
});

test("labels that would overlap move apart, and keep their order", () => {
  expect(spread([50, 10, 52, 51], 6)).toEqual([50, 10, 62, 56]);
  expect(spread([], 6)).toEqual([]);
});
