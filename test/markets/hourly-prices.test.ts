/** The prices of the last week against a list of all trades. */
import { expect, test } from "vitest";
import { HourlyPrices } from "../../server/markets/hourly-prices.ts";
import { Random } from "../support/random.ts";

test.for([0.5, 3, 30, 300])("about every %d hours a trade", (gap) => {
  const random = Random.printed(`hourly prices, gap ${gap}`);
  for (let round = 0; round < 20; round++) {
    let hour = 490_000 + random.integer(0, 1_000);
    const trades: { hour: number; price: number }[] = [];
    const prices = new HourlyPrices(hour);
    for (let n = 0; n < 60; n++) {
      const trade = { hour, price: random.integer(1, 9_999) };
      trades.push(trade);
      prices.record(trade.hour, trade.price);
      const now = hour + random.integer(0, 3);
      const before = (moment: number): number | null => trades.findLast((each) => each.hour < moment)?.price ?? null;
      const hours = Array.from({ length: 7 * 24 - 4 }, (_, back) => now + 1 - back);
      expect(hours.map((each) => prices.before(each))).toEqual(hours.map(before));
      const steps = Array.from({ length: 42 }, (_, i) => before(now + 1 - 4 * (41 - i)));
      expect(prices.sparkline(now)).toEqual(steps.filter((price) => price !== null));
      hour += random.integer(0, Math.ceil(2 * gap));
    }
  }
});

test("a trade after a step back of the clock counts for the newest hour", () => {
  const prices = new HourlyPrices(1_000);
  prices.record(1_000, 4_000);
  prices.record(998, 5_000);
  expect([prices.before(1_000), prices.before(1_001), prices.before(5_000)]).toEqual([null, 5_000, 5_000]);
});
