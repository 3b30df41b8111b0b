/** Settles a resolved or voided market: pays every holder and ends the market's complete sets. */
import type Database from "better-sqlite3";
import { MarketStatus } from "../../constants.ts";
import { FULL_PRICE_BPS } from "../../limits.ts";
import type { WriteOf } from "../../log/writes.ts";
import { assert } from "../../util/assert.ts";
import type { WriteContext } from "./context.ts";
import type { Entries } from "./entries.ts";

export function prepareSettlement(
  db: Database.Database,
  context: WriteContext,
  entries: Entries,
): (write: WriteOf<"settleMarket">) => void {
  const marketStatus = db.prepare("SELECT status FROM markets WHERE id = ?").pluck();
  const settleMarket = db.prepare(
    "UPDATE markets SET status = ?, resolution_note = ?, resolved_at = ?, settled_sets = ? WHERE id = ?",
  );
  const setPayout = db.prepare("UPDATE outcomes SET payout = ? WHERE id = ?");
  return ({ marketId, payouts, holders, status, note, at }) => {
    const { ledger } = context;
    const { first, count } = context.outcomesOf(marketId);
    assert(payouts.length === count, "each outcome has a payout");
    assert(
      payouts.reduce((sum, bps) => sum + bps, 0) === FULL_PRICE_BPS,
      "payouts add up to the price of a complete set",
    );
    assert(marketStatus.get(marketId) === MarketStatus.closed, "a market is closed before it is settled");
    const positions = ledger.holders(first, count);
    assert(positions.length === holders, "the gateway has counted the positions");
    positions.forEach((position) => {
      const userId = ledger.userOf(position);
      const outcomeId = ledger.outcomeOf(position);
      const quantity = ledger.quantity(position);
      const cost = ledger.cost(position);
      const payout = payouts[outcomeId - first];
      assert(payout !== undefined, "a holder's outcome belongs to the market");
      const amount = ledger.settle(position, payout);
      entries.add(userId, "settlement", amount, at, { marketId, outcomeId, quantity, cost });
      context.markPosition(position, at, quantity);
    });
    entries.flush();
    const sets = ledger.endSets(marketId);
    payouts.forEach((payout, i) => {
      setPayout.run(payout, first + i);
    });
    settleMarket.run(status, note, at, sets, marketId);
    context.markMarket(marketId);
  };
}
