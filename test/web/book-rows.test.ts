/** The rows of a book: grouped by price without making it look better than it is, with sums and own shares. */
import { describe, expect, test } from "vitest";
import { dayChanges } from "../../server/web/market-facts.ts";
import { bookRows, groupPrice, ordersByPrice } from "../../server/web/trading/book-rows.ts";
import { type Candle, type ChartData, withOpposite } from "../../server/web/trading/candles.ts";
import type { Order, Outcome } from "../../server/web/types.ts";
import { Random } from "../support/random.ts";

const HOUR = 3_600_000;

describe("rows of a book", () => {
  test("rows of a book keep every share and the own ones, in groups that look no better than their levels", () => {
    const random = Random.printed("groups of a book");
    for (let round = 0; round < 300; round++) {
      const side = random.pick(["bids", "asks"] as const);
      const sign = side === "asks" ? 1 : -1;
      const step = random.pick([1, 10, 50, 100, 500]);
      const prices = [...new Set(Array.from({ length: 40 }, () => random.integer(1, 9_999)))];
      prices.sort((a, b) => sign * (a - b));
      const levels = prices.map((price) => ({
        price,
        quantity: random.integer(1, 900),
        implied: random.integer(0, 1),
      }));
      const own = new Map(levels.filter(() => random.chance(0.2)).map(({ price }) => [price, 1]));
      const rows = bookRows(levels, step, side, own);
      const sum = (of: readonly { quantity: number }[]) => of.reduce((total, { quantity }) => total + quantity, 0);
      expect(sum(rows)).toBe(sum(levels));
      expect(rows.at(-1)?.total).toBe(sum(levels));
      expect(rows.reduce((total, row) => total + row.own, 0)).toBe(own.size);
      expect(rows.map(({ price }) => price)).toEqual([...new Set(prices.map((each) => groupPrice(each, step, side)))]);
      for (const { price } of levels) expect(sign * (groupPrice(price, step, side) - price)).toBeGreaterThanOrEqual(0);
      rows.reduce((before, row) => {
        expect(row.total).toBe(before + row.quantity);
        return row.total;
      }, 0);
    }
  });

  test("the user's orders in a book are by price, best first; market orders have none", () => {
    const order = (id: number, side: number, price: number | null) => ({ id, side, price }) as Order;
    const orders = [order(1, 2, 60), order(2, 2, 55), order(3, 1, 40), order(4, 2, 60), order(5, 2, null)];
    const ids = (side: "bids" | "asks") =>
      [...ordersByPrice(orders, side)].map(([price, each]) => [price, ...each.map(({ id }) => id)]);
    expect(ids("asks")).toEqual([
      [55, 2],
      [60, 1, 4],
    ]);
    expect(ids("bids")).toEqual([[40, 3]]);
  });
});

describe("a chart's candles", () => {
  const outcomes = [{ id: 1 }, { id: 2 }] as Outcome[];
  const yes: Candle[] = [[0, 4_000, 4_500, 3_900, 4_400, 7]];
  const data = (candles: [number, Candle[]][]): ChartData => ({
    candles: new Map(candles),

    step: HOUR,
  });

  test("candles of two outcomes: one that never traded is 100 % minus the other", () => {
    const found = withOpposite(outcomes, data([[1, yes], [2, []]])).candles; // biome-ignore format: one line
    expect(found.get(1)).toEqual(yes);
    expect(found.get(2)).toEqual([[0, 6_000, 6_100, 5_500, 5_600, 0]]);
    const both = data([[1, yes], [2, yes]]); // biome-ignore format: one line
    expect(withOpposite(outcomes, both).candles.get(2)).toEqual(yes);
    const three = [...outcomes, { id: 3 } as Outcome];
    expect(withOpposite(three, data([[1, yes], [2, []]])).candles.get(2)).toEqual([]); // biome-ignore format: one line
  });

  test("a day's change is that of the price 24 hours before; of two outcomes, the second moves against the first", () => {
    const outcomesOf = (
      ...prices: (readonly [last: number | null, before: number | null])[]
    ): { outcomes: Outcome[] } => ({
      outcomes: prices.map(([last_price, price_24h_ago]) => ({ last_price, price_24h_ago }) as Outcome),
    });
    expect(dayChanges(outcomesOf([5_000, 4_700], [5_100, 5_000]))).toEqual([300, -300]);
    expect(dayChanges(outcomesOf([5_000, null], [4_600, 5_000]))).toEqual([400, -400]);
    expect(dayChanges(outcomesOf([null, null], [null, null]))).toEqual([null, null]);
    expect(dayChanges(outcomesOf([5_000, 4_700], [100, 100], [200, null]))).toEqual([300, 0, null]);
  });
});
