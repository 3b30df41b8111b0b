/**
 * Loads the ledger at startup: balances, positions, collateral and the tables' counters. The projector and the gateway
 * each load their own. Asserts the invariants of the sums while it reads. Never writes.
 */
import type Database from "better-sqlite3";
import { addsUp, type Ledger } from "../../ledger.ts";
import { MICRO_PER_SHARE } from "../../limits.ts";
import { assert } from "../../util/assert.ts";
import { ACCOUNTS, POSITIONS, rowsOf } from "../tables.ts";
import { loadMarkets, loadOutcomes, type MarketRow, type OutcomeRow } from "./markets.ts";

export interface LedgerState {
  /** The last batch. */
  batch: number;
  lastEntryId: number;
  lastOrderId: number;
  orderUpdates: number;
  /** resting_orders is complete up to this order. */
  ordersListed: number;
  /** The time of the last commit, ms. */
  at: number;
  markets: MarketRow[];
  outcomes: OutcomeRow[];
}

interface TotalsRow {
  readonly deposits: number;
  readonly withdrawals: number;
  readonly users_total: number;
  readonly collateral: number;
  readonly house: number;
  readonly sequence: number;
  readonly last_entry_id: number;
  readonly last_order_id: number;
  readonly order_updates: number;
  readonly at: number;
}

/** Fills `ledger` with balances, positions and collateral; returns the counters and markets. */
export function loadLedger(db: Database.Database, ledger: Ledger): LedgerState {
  const totals = db.prepare("SELECT * FROM totals").get() as TotalsRow;
  const { deposits, withdrawals, users_total: usersTotal, collateral, house } = totals;
  ledger.restoreTotals({ deposits, withdrawals, usersTotal, collateral, house });
  assert(addsUp(ledger.totals), "deposits - withdrawals = balances + collateral + house");
  restoreAccounts(db, ledger);
  restorePositions(db, ledger);
  const markets = loadMarkets(db);
  restoreSets(markets, ledger);

  const ordersListed = Number(db.prepare("SELECT value FROM meta WHERE key = 'orders_listed'").pluck().get());
  assert(Number.isSafeInteger(ordersListed), "meta says which orders are listed");
  const lastOrderId = Number(db.prepare("SELECT coalesce(max(id), 0) FROM orders").pluck().get());
  assert(lastOrderId === totals.last_order_id, "the last order's id is that of totals");
  const lastEntryId = Number(
    db
      .prepare("SELECT max(coalesce((SELECT max(id) FROM fills), 0), coalesce((SELECT max(id) FROM entries), 0))")
      .pluck()
      .get(),
  );
  assert(lastEntryId === totals.last_entry_id, "the last fill's or entry's id is that of totals");
  return {
    batch: totals.sequence,
    lastEntryId,
    lastOrderId,
    orderUpdates: totals.order_updates,
    ordersListed,
    at: totals.at,
    markets,
    outcomes: loadOutcomes(db),
  };
}

function restoreAccounts(db: Database.Database, ledger: Ledger): void {
  let sum = 0;
  const { at } = ACCOUNTS;
  for (const row of rowsOf(db, ACCOUNTS)) {
    const balance = row[at.balance]!;
    const activity = { activityDay: row[at.activity_day]!, activityUsed: row[at.activity_used]! };
    ledger.restoreAccount(row[at.user_id]!, { balance, ...activity, fees: row[at.fees]!, rebates: row[at.rebates]! });
    sum += balance;
  }
  assert(sum === ledger.totals.usersTotal, "the accounts' balances add up to the sum on record");
}

function restorePositions(db: Database.Database, ledger: Ledger): void {
  const { at } = POSITIONS;
  for (const row of rowsOf(db, POSITIONS)) {
    const [user, outcome] = [row[at.user_id]!, row[at.outcome_id]!];
    ledger.restorePosition(user, outcome, row[at.quantity]!, row[at.cost]!, row[at.realized_pnl]!);
  }
}

function restoreSets(markets: readonly MarketRow[], ledger: Ledger): void {
  let collateral = 0;
  for (const market of markets) {
    ledger.restoreSets(market.id, market.sets);
    collateral += market.sets * MICRO_PER_SHARE;
  }
  assert(collateral === ledger.totals.collateral, "the markets' collateral adds up to the sum on record");
}
