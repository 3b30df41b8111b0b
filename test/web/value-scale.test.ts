/** The geometry of the chart of a portfolio's value. */
import { describe, expect, test } from "vitest";
import {
  heightOf,
  nearest,
  type Point,
  pathOf,
  scaleOf,
  tickText,
} from "../../server/web/pages/portfolio/value-scale.ts";
import { Random } from "../support/random.ts";

const USDC = 1_000_000;
const lineOf = (...amounts: number[]): Point[] => amounts.map((amount, i) => [1_000 + i, amount * USDC]);
const labelsOf = (...amounts: number[]): string[] => {
  const scale = scaleOf(lineOf(...amounts));
  return scale.ticks.map((tick) => tickText(tick, scale));
};

describe("the axis", () => {
  test.for([
    [
      [12_320, 12_846],
      ["12.2K", "12.4K", "12.6K", "12.8K", "13.0K"],
    ],
    [
      [-3, 12],
      ["−5", "0", "5", "10", "15"],
    ],
    [[10_000], ["10.000K", "10.001K"]],
    [[0], ["0", "1"]],
    [
      [0, 2_400_000],
      ["0.0M", "1.0M", "2.0M", "3.0M"],
    ],
    [
      [-800, -120],
      ["−800", "−600", "−400", "−200", "0"],
    ],
  ] as const)("the axis of values of %j", ([amounts, labels]) => {
    expect(labelsOf(...amounts)).toEqual(labels);
  });

  test("the axis of values holds the line, with few ticks that all read differently", () => {
    const random = Random.printed("scales of a portfolio's value");
    for (let round = 0; round < 2_000; round++) {
      const size = 10 ** random.integer(0, 9);
      const middle = random.integer(-size, size) * 3;
      const line = lineOf(...Array.from({ length: random.integer(1, 5) }, () => middle + random.integer(0, size)));
      const scale = scaleOf(line);
      expect([scale.ticks.length >= 2, scale.ticks.length <= 6, scale.ticks.at(-1)]).toEqual([true, true, scale.high]);
      for (const [, amount] of line) {
        expect(heightOf(scale, amount)).toBeGreaterThanOrEqual(0);
        expect(heightOf(scale, amount)).toBeLessThanOrEqual(100);
      }
      const labels = scale.ticks.map((tick) => tickText(tick, scale));
      expect(new Set(labels).size, labels.join()).toBe(labels.length);
    }
  });
});

test("the line begins at the left edge and ends at the right one", () => {
  const line = lineOf(0, 10, 5);
  expect(pathOf(line, scaleOf(line))).toBe("M0.00 100.00L50.00 0.00L100.00 50.00");
});

test("a pointer is at the nearest point, wherever points are unevenly apart", () => {
  const line: Point[] = [
    [0, 1],
    [10, 2],
    [90, 3],
    [100, 4],
  ];
  expect([-1, 0, 0.04, 0.06, 0.49, 0.51, 0.96, 2].map((share) => nearest(line, share))).toEqual([
    0, 0, 0, 1, 1, 2, 3, 3,
  ]);
});
