/**
 * The full comparison: the database with the committed state, row by row, and the gateway's memory with both. Each step
 * makes its own small checks; these are for recoveries and quiet moments.
 */
import type Database from "better-sqlite3";
import { ORDER_STATUSES, REASONS, Side } from "../../engine/constants.ts";
import { projectAll } from "../../engine/projection/follow.ts";
import type { ProjectorSizes } from "../../engine/projection/parts.ts";
import { Projector } from "../../engine/projection/projector.ts";
import { differingTables, hashTables } from "../../engine/projection/table-hashes.ts";
import { verifyDatabase } from "../../engine/projection/verify.ts";
import * as R from "../../engine/ring/records.ts";
import { loadSqlite } from "../../engine/util/sqlite.ts";
import { reportJson } from "../../server/orders/order-json.ts";
import { prepareFills } from "../../server/queries/fill-reader.ts";
import { prepareUpdates } from "../../server/queries/order-update-reader.ts";
import { ensure } from "../engine/book/harness.ts";
import { notional } from "../support/reference.ts";
import type { Committed } from "./committed.ts";
import type { CommittedOrder, Update } from "./committed-rows.ts";
import { same } from "./executed.ts";
import type { Life } from "./life.ts";

type Row = readonly (number | string | null)[];

/** How far the rows that never change were compared already. */
export interface Compared {
  fills: number;
  entries: number;
  /** By user. */
  readonly updates: Map<number, number>;
}

/** Compares all orders, money and markets; of append-only tables, the rows that are new since `compared`. */
export function compareDatabase(life: Life, record: Committed, compared: Compared): void {
  const db = life.database;
  compareOrders(db, record);
  compareAppended(db, record, compared);
  compareUpdates(life, record, compared);
  compareMoney(db, record);
}

/** The tables of a rebuild from the log alone are those that the lives' projectors left, byte for byte. */
export function compareRebuild(life: Life, template: Buffer, sizes: ProjectorSizes): void {
  const bytes = Buffer.from(template);
  // In memory there is no WAL.
  bytes.fill(1, 18, 20);
  const db = new (loadSqlite())(bytes);
  const { exchange } = life.database.prepare("SELECT exchange FROM projection").get() as { exchange: number };
  db.prepare("UPDATE projection SET exchange = ?").run(exchange);
  projectAll(new Projector(db, life.journal, { ...sizes, checksHashes: true }), life.journal);
  const differing = differingTables(hashTables(db), hashTables(life.tables.db));
  db.close();
  same(differing, [], "tables that a rebuild has otherwise");
}

/** Every invariant in SQL. */
export function verify(db: Database.Database): void {
  const broken = verifyDatabase(db).filter(({ ok }) => !ok);
  same(broken, [], "invariants of the database");
}

function sameRow(actual: Row, expected: Row, what: string): void {
  for (let i = 0; i < expected.length; i++) if (actual[i] !== expected[i]) same(actual, expected, what);
}

const ORDER_COLUMNS = `orders.id, user_id, outcome_id, side, type, time_in_force, self_trade_prevention, post_only, pat, quote,
  price, quantity, remaining, status, reason, tied, coalesce(priority, orders.id), coalesce(expires_at, 0), created_at, updated_at,
  client_order_id, (SELECT code FROM builders WHERE builders.id = builder_id)`;

function rowOf(order: CommittedOrder): Row {
  const { terms, flags, text } = order;
  const flag = (bit: number): number => ((flags & bit) === 0 ? 0 : 1);
  return [
    order.id, order.user, order.outcome, order.side, terms & 0xf, (terms >>> 4) & 0xf,
    (terms >>> 8) & 0xf, flag(R.FLAG_POST_ONLY), flag(R.FLAG_PAT), flag(R.FLAG_QUOTE),
    order.price, order.quantity, order.remaining, order.status, order.reason, order.tied ? 1 : 0, order.priority,
    order.expiresAt, order.createdAt, order.updatedAt, text.clientOrderId, text.builderCode,
  ]; // biome-ignore format: one row
}

function compareOrders(db: Database.Database, record: Committed): void {
  const count = db.prepare("SELECT count(*) FROM orders").pluck().get();
  same(count, record.orders.size, "orders");
  const changed = [...record.changedOrders];
  record.changedOrders.clear();
  const find = db.prepare(
    `SELECT ${ORDER_COLUMNS} FROM (SELECT key AS place, value AS of FROM json_each(?))
       CROSS JOIN orders ON orders.id = of ORDER BY place`,
  );
  const rows = find.raw().all(JSON.stringify(changed)) as Row[];
  for (const [i, id] of changed.entries()) sameRow(rows[i]!, rowOf(record.orders.get(id)!), `order ${id}`);
}

function compareAppended(db: Database.Database, record: Committed, compared: Compared): void {
  const fills = db.prepare(
    `SELECT id, match_id, user_id, order_id, outcome_id, side, price, quantity, role, match_type, fee, rebate,
       balance_after, created_at FROM fills WHERE id > ? ORDER BY id`,
  );
  compared.fills = compareList(
    fills.raw().all(lastId(record.fills, compared.fills)) as Row[],
    record.fills,
    compared.fills,
    "fill",
  );
  const entries = db.prepare(
    `SELECT id, user_id, type, amount, balance_after, market_id, outcome_id, reference, created_at FROM entries
     WHERE id > ? ORDER BY id`,
  );
  const since = lastId(record.entries, compared.entries);
  compared.entries = compareList(entries.raw().all(since) as Row[], record.entries, compared.entries, "entry");
}

/** Each user's new order updates, as `resume` reads them from the log. */
function compareUpdates({ database, journal }: Life, record: Committed, { updates }: Compared): void {
  const read = prepareUpdates(database, journal, prepareFills(database), reportJson);
  for (const [userId, account] of record.accounts) {
    let after = updates.get(userId) ?? 0;
    while (after < account.updates.length) {
      const page = read({ userId, after, limit: 100 });
      ensure(page.oldest === null && page.items.length > 0, `user ${userId}: updates after ${after} are kept`);
      for (const { sequence, at, order } of page.items) compareUpdate(account.updates[after++]!, sequence, at, order);
      ensure(page.hasMore === after < account.updates.length, `user ${userId}: more updates follow ${after}`);
    }
    updates.set(userId, after);
  }
}

function compareUpdate(expected: Update, sequence: number, at: number, json: string): void {
  const { id, price, quantity, remaining, status, reason, trades, updated_at } = JSON.parse(json);
  same(
    [sequence, id, price ?? expected.price, quantity, remaining, status, reason, trades.length, at, updated_at],
    [
      ...[expected.sequence, expected.order, expected.price, expected.quantity, expected.remaining],
      ...[ORDER_STATUSES[expected.status], REASONS[expected.reason], expected.fills, expected.at, expected.at],
    ],
    `update ${sequence} of user ${expected.user}`,
  );
  if (expected.fills > 0) same(trades.at(-1).id, expected.lastFill, `the last fill of update ${sequence}`);
}

const lastId = (rows: readonly Row[], count: number): number => (count === 0 ? 0 : Number(rows[count - 1]![0]));

/** Compares the rows after the first `from`; returns the total number of rows. */
function compareList(actual: readonly Row[], expected: readonly Row[], from: number, what: string): number {
  same(actual.length, expected.length - from, `rows: ${what}`);
  actual.forEach((row, i) => {
    sameRow(row, expected[from + i]!, `${what} ${String(row[0])}`);
  });
  return expected.length;
}

function compareMoney(db: Database.Database, record: Committed): void {
  const accounts = db
    .prepare("SELECT user_id, balance, activity_day, activity_used FROM accounts ORDER BY user_id")
    .raw();
  const expected = [...record.accounts].map(([user, { balance, day, used }]) => [user, balance, day, used]);
  same(
    accounts.all(),
    expected.sort(([a], [b]) => a! - b!),
    "accounts",
  );
  const positions = db
    .prepare("SELECT * FROM positions WHERE quantity > 0 OR cost <> 0 OR realized_pnl <> 0")
    .raw()
    .all();
  const holdings = [...record.accounts].flatMap(([user, account]) =>
    [...account.holdings].map(([outcome, { quantity, cost, realized }]) => [user, outcome, quantity, cost, realized]),
  );
  const byKey = (a: readonly number[], b: readonly number[]): number => a[0]! - b[0]! || a[1]! - b[1]!;
  const used = holdings.filter(([, , quantity, cost, realized]) => quantity! > 0 || cost !== 0 || realized !== 0);
  same((positions as number[][]).sort(byKey), used.sort(byKey), "positions");
  const markets = [...record.markets.values()].map(({ id, status, sets }) => [id, status, sets]);
  same(db.prepare("SELECT id, status, sets FROM markets ORDER BY id").raw().all(), markets, "markets");
  const outcomes = [...record.outcomes].map(([id, { lastPrice, volume, payout }]) => [id, lastPrice, volume, payout]);
  same(db.prepare("SELECT id, last_price, volume, payout FROM outcomes ORDER BY id").raw().all(), outcomes, "outcomes");
  const withdrawals = [...record.withdrawals].map(([id, { user, amount, status }]) => [id, user, amount, status]);
  same(
    db.prepare("SELECT id, user_id, amount, status FROM withdrawals ORDER BY id").raw().all(),
    withdrawals,
    "withdrawals",
  );
  const totals = db.prepare("SELECT last_entry_id, last_order_id, order_updates FROM totals").raw().get();
  same(totals, [record.lastEntry, record.lastOrder, record.updates.length], "counters");
}

/** The idle gateway: it knows the committed state, and holds what live orders need. */
export function compareGateway(life: Life, record: Committed): void {
  const { ledger, store } = life.exchange;
  record.expectBalanced(ledger.totals);
  const held = new Map<number, number>();
  const heldShares = new Map<string, number>();
  const liveOf = new Map<number, number>();
  same(store.liveCount, record.live.size, "live orders");
  for (const order of record.live.values()) {
    const { id, user, outcome, side, price, remaining, status } = order;
    const slot = store.find(id);
    const known = [
      store.users[slot],
      store.prices[slot],
      store.remaining[slot],
      store.quantities[slot],
      store.statuses[slot],
    ];
    same(known, [user, price, remaining, order.quantity, status], `the gateway's order ${id}`);
    add(liveOf, user, 1);
    if (side === Side.buy) add(held, user, notional(price, remaining));
    else add(heldShares, `${user} ${outcome}`, remaining);
  }
  for (const [user, account] of record.accounts) {
    same(ledger.balance(user), account.balance, `the gateway's balance of user ${user}`);
    same(ledger.held(user), (held.get(user) ?? 0) + account.setAside, `what is held of user ${user}`);
    same(store.liveOf(user), liveOf.get(user) ?? 0, `live orders of user ${user}`);
    const day = account.day;
    same(ledger.activity(user, day), account.used + (held.get(user) ?? 0), `activity of user ${user}`);
    same(life.exchange.updates.sequenceOf(user), account.updates.length, `the last update of user ${user}`);
    for (const [outcome, holding] of account.holdings) {
      const position = ledger.findPosition(user, outcome);
      const known =
        position === 0 ? [0, 0, 0] : [ledger.quantity(position), ledger.cost(position), ledger.realizedPnl(position)];
      same(known, [holding.quantity, holding.cost, holding.realized], `the gateway's position ${user} ${outcome}`);
      const shares = position === 0 ? 0 : ledger.heldQuantity(position);
      same(shares, heldShares.get(`${user} ${outcome}`) ?? 0, `shares held of ${user} ${outcome}`);
    }
  }
  for (const { id, status } of record.markets.values()) {
    same(life.exchange.registry.get(id)?.status, status, `the status of market ${id}`);
  }
}

function add<K>(sums: Map<K, number>, key: K, amount: number): void {
  sums.set(key, (sums.get(key) ?? 0) + amount);
}

/** The engines' books and the gateway's mirror of them are the reference's, and nothing in them would match. */
export function compareBooks(life: Life, record: Committed): void {
  for (const { executed, stage } of life.engines) {
    executed.expectUncrossed();
    executed.compareBooks(stage.matcher, (market) => life.canTrade(market));
    for (const book of executed.books.values()) {
      for (const outcome of book.outcomes) {
        for (const side of [1, 2] as const) {
          const levels = new Map<number, number>();
          const queue = book.resting(outcome, side);
          queue.forEach(({ terms, price, remaining }, i) => {
            add(levels, price, remaining);
            const before = queue[i - 1];
            // Orders at a price rest in the order on record, even if a recovery put them there.
            const isInTurn =
              before === undefined ||
              before.price !== price ||
              record.live.get(before.terms.id)!.priority < record.live.get(terms.id)!.priority;
            ensure(isInTurn, `order ${before?.terms.id} precedes order ${terms.id}`);
          });
          const shown = life.exchange.registry.outcome(outcome)?.book?.levels(side, 10_000) ?? [];
          same(shown, [...levels], `the gateway's book of ${outcome}`);
        }
      }
    }
  }
}

/** A client order id of a live order names it. */
export function compareNames(life: Life, record: Committed): void {
  for (const { id, user, text } of record.live.values()) {
    if (text.clientOrderId === null) continue;
    ensure(life.exchange.clientOrderIds.find(user, text.clientOrderId) === id, `order ${id} is found by its name`);
  }
}
