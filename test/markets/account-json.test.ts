/** The texts of balances and positions, which are written out by hand, beside those of JSON.stringify. */
import fc from "fast-check";
import { expect, test } from "vitest";
import { type BalanceView, balanceJson, type PositionView, positionJson } from "../../server/markets/views.ts";
import { EFFORT } from "../support/projects.ts";

const money = fc.maxSafeInteger();
const shares = fc.nat({ max: 2_000_000_000 });

test("a balance's text is that of JSON.stringify", () => {
  const balances: fc.Arbitrary<BalanceView> = fc.record({ available: money, held: money, total: money });
  fc.assert(
    fc.property(balances, (view) => {
      expect(balanceJson(view)).toBe(JSON.stringify(view));
    }),
  );
});

test("a position's text is that of JSON.stringify, with and without a price", () => {
  const price = fc.double({ min: 0, max: 10_000, noNaN: true }).map((value) => value + 0);
  const positions: fc.Arbitrary<PositionView> = fc.record({
    market_id: fc.nat(),
    outcome_id: fc.nat(),
    quantity: shares,
    held: shares,
    cost: money,
    average_price: fc.option(price),
    realized_pnl: money,
    market_value: fc.option(money),
    unrealized_pnl: fc.option(money),
  });
  const check = fc.property(positions, (view) => {
    expect(positionJson(view)).toBe(JSON.stringify(view));
  });
  fc.assert(check, { numRuns: 200 * EFFORT });
});
