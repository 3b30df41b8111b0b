/**
 * Reads the database's state at start: the ledger that journal and gateway each need, and what only the gateway needs
 * (users, tokens, markets, live orders). Asserts the invariants while it reads. Nothing here writes.
 */
import type Database from "better-sqlite3";
import { check } from "../check.ts";
import { OrderStatus } from "../constants.ts";
import { isBalanced, type Ledger } from "../ledger.ts";
import { MICRO_PER_SHARE } from "../limits.ts";

export interface MarketRow {
  id: number;
  slug: string;
  question: string;
  description: string | null;
  category: string | null;
  eventId: number | null;
  status: number;
  sets: number;
  opensAt: number | null;
  closesAt: number | null;
  createdAt: number;
  firstOutcomeId: number;
  outcomes: number;
}

export interface OutcomeRow {
  id: number;
  marketId: number;
  position: number;
  name: string;
  lastPrice: number | null;
  volume: number;
}

export interface LedgerState {
  sequence: number;
  lastEntryId: number;
  lastOrderId: number;
  orderUpdates: number;
  /** Up to which order resting_orders is complete. */
  ordersListed: number;
  at: number;
  markets: MarketRow[];
  outcomes: OutcomeRow[];
}

/** Fills `ledger` with balances, positions and collateral, and answers counters and markets. */
export function loadLedger(db: Database.Database, ledger: Ledger): LedgerState {
  const totals = db.prepare("SELECT * FROM totals").get() as Record<string, number>;
  const meta = new Map(db.prepare("SELECT key, value FROM meta").raw().all() as [string, number][]);
  Object.assign(ledger.totals, {
    deposits: totals["deposits"],
    withdrawals: totals["withdrawals"],
    usersTotal: totals["users_total"],
    collateral: totals["collateral"],
    house: totals["house"],
  });
  check(isBalanced(ledger.totals), "the database's sums balance");

  let usersTotal = 0;
  for (const row of db.prepare("SELECT user_id, balance, activity_day, activity_used FROM accounts").raw().iterate()) {
    const [user, balance, day, used] = row as [number, number, number, number];
    ledger.restoreAccount(user, balance, day, used);
    usersTotal += balance;
  }
  check(usersTotal === ledger.totals.usersTotal, "the accounts' balances come to the sum on record");

  for (const row of db.prepare("SELECT * FROM positions").raw().iterate()) {
    const [user, outcome, quantity, cost, realizedPnl] = row as [number, number, number, number, number];
    ledger.restorePosition(user, outcome, quantity, cost, realizedPnl);
  }

  const markets = db
    .prepare(
      `SELECT m.id, slug, question, description, category, event_id AS eventId, status, sets, opens_at AS opensAt,
       closes_at AS closesAt, created_at AS createdAt, min(o.id) AS firstOutcomeId, count(*) AS outcomes
       FROM markets m JOIN outcomes o ON o.market_id = m.id GROUP BY m.id`,
    )
    .all() as MarketRow[];
  let collateral = 0;
  for (const market of markets) {
    ledger.restoreSets(market.id, market.sets);
    collateral += market.sets * MICRO_PER_SHARE;
  }
  check(collateral === ledger.totals.collateral, "the markets' collateral comes to the sum on record");
  const outcomes = db
    .prepare("SELECT id, market_id AS marketId, position, name, last_price AS lastPrice, volume FROM outcomes")
    .all() as OutcomeRow[];

  const lastOrderId = Number(db.prepare("SELECT coalesce(max(id), 0) FROM orders").pluck().get());
  check(lastOrderId === totals["last_order_id"], "no order is missing at the end");
  const lastEntryId = Number(
    db
      .prepare("SELECT max(coalesce((SELECT max(id) FROM fills), 0), coalesce((SELECT max(id) FROM entries), 0))")
      .pluck()
      .get(),
  );
  check(lastEntryId === totals["last_entry_id"], "no fill or entry is missing at the end");
  return {
    sequence: totals["sequence"]!,
    lastEntryId,
    lastOrderId,
    orderUpdates: totals["order_updates"]!,
    ordersListed: meta.get("orders_listed")!,
    at: totals["at"]!,
    markets,
    outcomes,
  };
}

export interface UserRow {
  id: number;
  email: string;
  role: string;
  kycTier: number;
  createdAt: number;
}

export interface TokenRow {
  id: number;
  userId: number;
  tokenHash: string;
  scopes: string;
  expiresAt: number | null;
}

export interface EventRow {
  id: number;
  slug: string;
  title: string;
  category: string | null;
  closesAt: number | null;
  createdAt: number;
}

export function loadUsers(db: Database.Database): UserRow[] {
  return db
    .prepare("SELECT id, email, role, kyc_tier AS kycTier, created_at AS createdAt FROM users")
    .all() as UserRow[];
}

export function loadTokens(db: Database.Database): TokenRow[] {
  return db
    .prepare(
      `SELECT id, user_id AS userId, token_hash AS tokenHash, scopes, expires_at AS expiresAt
       FROM personal_access_tokens WHERE revoked_at IS NULL`,
    )
    .all() as TokenRow[];
}

export function loadEvents(db: Database.Database): EventRow[] {
  return db
    .prepare("SELECT id, slug, title, category, closes_at AS closesAt, created_at AS createdAt FROM events")
    .all() as EventRow[];
}

/** id, user, outcome, side, type, tif, stp, post-only, pat, price, quantity, remaining, status, expires, client id, created, updated */
export type LiveOrderRow = [
  id: number,
  userId: number,
  outcomeId: number,
  side: number,
  type: number,
  timeInForce: number,
  selfTradePrevention: number,
  postOnly: number,
  pat: number,
  price: number,
  quantity: number,
  remaining: number,
  status: number,
  expiresAt: number | null,
  clientOrderId: string | null,
  createdAt: number,
  updatedAt: number,
];

const LIVE = `status < ${OrderStatus.filled}`;

/** Live orders in the order of their time priority. */
export function* loadLiveOrders(db: Database.Database): Generator<LiveOrderRow> {
  const columns = `id, user_id, outcome_id, side, type, time_in_force, self_trade_prevention, post_only, pat, price,
    quantity, remaining, status, expires_at, client_order_id, created_at, updated_at, coalesce(priority, id) AS rank`;
  const rows = db
    .prepare(
      `SELECT ${columns} FROM orders WHERE ${LIVE} AND id IN (SELECT order_id FROM resting_orders)
       UNION ALL
       SELECT ${columns} FROM orders WHERE ${LIVE} AND id > (SELECT value FROM meta WHERE key = 'orders_listed')
       ORDER BY rank`,
    )
    .raw()
    .iterate();
  // An order can be listed and lie beyond what meta says only if a crash came between; it counts once.
  let last = 0;
  for (const row of rows) {
    const order = row as unknown as LiveOrderRow;
    if (order[0] === last) continue;
    last = order[0];
    yield order;
  }
}
