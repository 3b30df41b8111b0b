/**
 * Reads of finished things, on a read-only connection in a pool thread: orders, fills, trades, candles, transactions.
 * Each call is one read transaction. A user's orders and fills and a market's trades are chains of rows, newest first
 * (engine/projection/row-links.ts): a page is read from the row that it goes on below, or from the chain's end.
 */
import { fsyncSync } from "node:fs";
import { workerData } from "node:worker_threads";
import type Database from "better-sqlite3";
import {
  MATCH_TYPES,
  ORDER_STATUSES,
  ORDER_TYPES,
  REASONS,
  ROLES,
  SELF_TRADE_PREVENTIONS,
  TIMES_IN_FORCE,
} from "../../engine/constants.ts";
import { MAX_PAGE_FILLS, MAX_ROWS_WALKED } from "../../engine/limits.ts";
import { openDatabase, openReadOnly } from "../../engine/projection/database.ts";
import { firstIdSince } from "../../engine/projection/load/orders.ts";
import { type HistoryPage, type OwnPageOptions, takePage } from "../http/paging.ts";
import { shownPrice } from "../trading/order-json.ts";
import type { EndedOrder } from "../trading/types.ts";
import { prepareCandles } from "./candle-reader.ts";
import { type FillFilters, prepareLedger } from "./ledger-reader.ts";
import { prepareOperatorReads } from "./operator-reader.ts";
import { prepareTrail } from "./trail-reader.ts";
import type {
  DoneRequest,
  FillRow,
  FillsOptions,
  KeyLookup,
  OrderObject,
  OrdersOptions,
  SearchTable,
  TradesOptions,
  UpdatesOptions,
  UpdatesPage,
} from "./types.ts";

/** When rows were made: ms, both included. */
export interface Span {
  from?: number | undefined;
  to?: number | undefined;
}

const { path } = workerData as { path: string };
const db: Database.Database = openReadOnly(path);

/**
 * Where a page of a chain starts: an order or fill, 0 where the chain has none below `before`. Usually `before` is itself
 * of the chain, as the last row of the page before; else the walk starts at the chain's newest row.
 */
function chainStart(newestSql: string, rowSql: string): (owner: number, before: number) => number {
  const newest = db.prepare(newestSql).pluck();
  const row = db.prepare(rowSql).pluck();
  return (owner, before) => Number(row.get({ id: before, owner }) ?? newest.get({ owner }) ?? 0);
}

/**
 * The rows of a chain from @start down to @floor, @walk of them at most: `columns` of those below @before that pass
 * `filters`, @limit at most, and the last one that the walk may look at, whether it fits or not.
 * @param newer what is joined to orders
 */
function chainRows(
  table: "orders" | "fills",
  link: string,
  columns: string,
  filters: string,
  newer: ReturnType<typeof newerStates> | null = null,
): Database.Statement {
  return db.prepare(
    `WITH RECURSIVE ${newer === null ? "" : `${newer.table},`} chain (link, step) AS (
       SELECT @start, 1 WHERE @start >= @floor
       UNION ALL SELECT ${table}.${link}, step + 1 FROM chain CROSS JOIN ${table} ON ${table}.id = link
         WHERE ${table}.${link} > 0 AND ${table}.${link} >= @floor AND step < @walk)
     SELECT ${columns}, step, (${filters}) AS fits FROM chain CROSS JOIN ${table} ON ${table}.id = link
       CROSS JOIN outcomes ON outcomes.id = outcome_id ${newer?.join ?? ""}
     WHERE fits OR step = @walk LIMIT @limit`,
  );
}

interface Walked {
  readonly id: number;
  readonly step: number;
  readonly fits: number;
}

/** The whole of a chain, as far as the limit of rows goes. */
const UNBOUNDED = { floor: 0, walk: Number.MAX_SAFE_INTEGER, before: Number.MAX_SAFE_INTEGER };

/** A page of a walk; where the walk ended before the page was full and the chain before the walk, it goes on behind it. */
function takeWalked<T extends Walked>(rows: readonly T[], limit: number, object: (row: T) => object): HistoryPage {
  const fitting = rows.filter(({ fits }) => fits === 1);
  const page = takePage(fitting, limit, object, ({ id }) => id);
  return page.next === null ? { ...page, next: endOfWalk(rows) } : page;
}

/** The row behind which nothing was looked at; null where the chain or the page's limit ended the walk. */
function endOfWalk(rows: readonly Walked[]): number | null {
  const last = rows.at(-1);
  return last?.step === MAX_ROWS_WALKED ? last.id : null;
}

/**
 * Ids rise with times but for what several engine threads hand over a little out of turn: rows so near to a bound are
 * looked at one by one.
 */
const TIME_SLACK_MS = 10_000;
/** Rows of everybody below an id among which one of the owner's is looked for, so that its chain is entered there. */
const ENTRY_SPAN = 20_000;

type Rows = "orders" | "fills" | "entries";
interface AnySpan {
  readonly from?: number | null | undefined;
  readonly to?: number | null | undefined;
}

/** The ids from `floor` to below `ceiling` have all rows that were made then. */
function idsOf(table: Rows, { from, to }: AnySpan): [number, number] {
  return [
    from == null ? 0 : firstIdSince(db, table, from - TIME_SLACK_MS),
    to == null ? Number.MAX_SAFE_INTEGER : firstIdSince(db, table, to + TIME_SLACK_MS + 1),
  ];
}

/** @param owned of the table's rows those of @owner */
function chainWalk(
  table: "orders" | "fills",
  startOf: ReturnType<typeof chainStart>,
  owned: string,
): (owner: number, before: number, span: AnySpan) => object {
  const near = db
    .prepare(
      `SELECT ${table}.id FROM ${table} JOIN outcomes ON outcomes.id = outcome_id
       WHERE ${table}.id < @ceiling AND ${table}.id >= @ceiling - ${ENTRY_SPAN} AND ${owned} ORDER BY ${table}.id DESC LIMIT 1`,
    )
    .pluck();
  return (owner, before, { from = null, to = null }) => {
    const [floor, ceiling] = idsOf(table, { from, to });
    const first = startOf(owner, before);
    const start = first < ceiling ? first : Number(near.get({ owner, ceiling }) ?? first);
    return { start, floor, before, owner, from, to, walk: MAX_ROWS_WALKED };
  };
}

/**
 * What orders came to since their rows were written (engine/projection/write-behind.ts), of those that `filter` takes. As the
 * view current_orders has it, but for few: that one would first gather all that changed.
 */
const newerStates = (filter: string) => ({
  table: `newer AS MATERIALIZED (
    SELECT order_id, max(id) AS update_id, max(last_fill_id) AS fill_id FROM order_updates
    WHERE id > (SELECT value FROM meta WHERE key = 'orders_told') AND ${filter} GROUP BY order_id)`,
  join: "LEFT JOIN newer ON newer.order_id = orders.id LEFT JOIN order_updates u ON u.id = newer.update_id",
});
const ORDER_COLUMNS = `orders.id, client_order_id, outcomes.market_id, outcome_id, side, orders.price, orders.quantity,
  coalesce(u.remaining, orders.remaining) AS remaining, type, time_in_force, post_only, self_trade_prevention, orders.expires_at,
  coalesce(u.status, orders.status) AS status, coalesce(u.reason, orders.reason) AS reason, orders.created_at,
  coalesce(u.created_at, updated_at) AS updated_at, orders.user_id,
  max(orders.last_fill_id, coalesce(newer.fill_id, 0)) AS last_fill_id,
  (SELECT code FROM builders WHERE builders.id = builder_id) AS builder_code`;

interface OrderRow {
  id: number;
  client_order_id: string | null;
  market_id: number;
  outcome_id: number;
  side: number;
  price: number;
  quantity: number;
  remaining: number;
  type: number;
  time_in_force: number;
  post_only: number;
  self_trade_prevention: number;
  expires_at: number | null;
  status: number;
  reason: number;
  created_at: number;
  updated_at: number;
  user_id: number;
  last_fill_id: number;
  builder_code: string | null;
}

function orderObject(row: OrderRow, trades: object[]): OrderObject {
  return {
    id: row.id,
    client_order_id: row.client_order_id,
    market_id: row.market_id,
    outcome_id: row.outcome_id,
    side: row.side,
    price: shownPrice(row.type, row.price),
    quantity: row.quantity,
    remaining: row.remaining,
    filled: row.quantity - row.remaining,
    type: ORDER_TYPES[row.type],
    time_in_force: TIMES_IN_FORCE[row.time_in_force],
    post_only: row.post_only === 1,
    self_trade_prevention: SELF_TRADE_PREVENTIONS[row.self_trade_prevention],
    expires_at: row.expires_at,
    status: ORDER_STATUSES[row.status],
    reason: REASONS[row.reason],
    builder_code: row.builder_code,
    created_at: row.created_at,
    updated_at: row.updated_at,
    trades,
  };
}

function fillObject(row: FillRow): object {
  return {
    id: row.id,
    match_id: row.match_id,
    price: row.price,
    quantity: row.quantity,
    role: ROLES[row.role],
    match_type: MATCH_TYPES[row.match_type],
    fee: row.fee,
    rebate: row.rebate,
    created_at: row.created_at,
  };
}

/** Runs `read` in one read transaction, so that a chain's end and its rows fit each other. */
function snapshot<A extends unknown[], R>(read: (...args: A) => R): (...args: A) => R {
  return db.transaction(read);
}

const NO_FILL_FILTERS: Required<FillFilters> = { marketId: null, from: null, to: null, side: null, rebated: null };

const newerOfOne = newerStates("order_id = @orderId");
const oneOrder = db.prepare(
  `WITH ${newerOfOne.table}
   SELECT ${ORDER_COLUMNS} FROM orders JOIN outcomes ON outcomes.id = outcome_id ${newerOfOne.join}
   WHERE orders.id = @orderId`,
);
const endedOrderRow = db.prepare(
  `SELECT user_id AS userId, fingerprint, created_at AS createdAt,
     (SELECT code FROM builders WHERE builders.id = builder_id) AS builderCode FROM orders WHERE id = ?`,
);
const builderRow = db.prepare("SELECT code, orders, fills, volume, notional, fees FROM builders WHERE code = ?");
const ordersStart = chainStart(
  `SELECT coalesce(
     (SELECT max(id) FROM orders WHERE id > (SELECT value FROM meta WHERE key = 'newest_order') AND user_id = @owner),
     (SELECT order_id FROM newest_of_user WHERE user_id = @owner))`,
  "SELECT previous_of_user FROM orders WHERE id = @id AND user_id = @owner",
);
const ordersOfUser = chainRows(
  "orders",
  "previous_of_user",
  ORDER_COLUMNS,
  `orders.id < @before AND (@marketId IS NULL OR outcomes.market_id = @marketId)
   AND (@outcomeId IS NULL OR outcome_id = @outcomeId) AND (@side IS NULL OR side = @side)
   AND (@clientOrderId IS NULL OR client_order_id = @clientOrderId)
   AND (@status IS NULL OR coalesce(u.status, orders.status) = @status)
   AND (@from IS NULL OR orders.created_at >= @from) AND (@to IS NULL OR orders.created_at <= @to)`,
  newerStates("user_id = @owner"),
);
const ordersWalk = chainWalk("orders", ordersStart, "user_id = @owner");
const FILL_COLUMNS = `fills.id, match_id, user_id, order_id, outcomes.market_id, outcome_id, side, price, quantity, role,
  match_type, fee, rebate, balance_after, created_at,
  (SELECT code FROM builders WHERE builders.id = builder_id) AS builder_code`;
const fillsOfOrder = chainRows(
  "fills",
  "previous_of_order",
  FILL_COLUMNS,
  `order_id = @orderId AND fills.id < @before AND (@marketId IS NULL OR outcomes.market_id = @marketId)
   AND (@from IS NULL OR created_at >= @from) AND (@to IS NULL OR created_at <= @to)`,
);
const EVERY_FILL = { ...UNBOUNDED, marketId: null, from: null, to: null };
const FILL_TAIL = "fills.id > (SELECT value FROM meta WHERE key = 'newest_fill')";
const fillsStart = chainStart(
  `SELECT coalesce((SELECT max(id) FROM fills WHERE ${FILL_TAIL} AND user_id = @owner),
     (SELECT fill_id FROM newest_of_user WHERE user_id = @owner))`,
  `SELECT previous_of_user FROM fills WHERE id = @id AND user_id = @owner
   UNION ALL SELECT last_fill_id FROM entries WHERE id = @id AND user_id = @owner
   UNION ALL SELECT id FROM fills WHERE id = @id - 1 AND user_id = @owner`,
);
const fillsOfUser = chainRows(
  "fills",
  "previous_of_user",
  FILL_COLUMNS,
  `fills.id < @before AND (@marketId IS NULL OR outcomes.market_id = @marketId)
   AND (@from IS NULL OR created_at >= @from) AND (@to IS NULL OR created_at <= @to)
   AND (@side IS NULL OR side = @side) AND (@rebated IS NULL OR rebate > 0)`,
);
const fillsWalk = chainWalk("fills", fillsStart, "user_id = @owner");
const tradesStart = chainStart(
  `SELECT coalesce(
     (SELECT max(fills.id) FROM fills JOIN outcomes ON outcomes.id = outcome_id
      WHERE ${FILL_TAIL} AND role = 1 AND market_id = @owner),
     (SELECT fill_id FROM newest_of_market WHERE market_id = @owner))`,
  `SELECT previous_of_market FROM fills JOIN outcomes ON outcomes.id = outcome_id
   WHERE fills.id = @id AND role = 1 AND market_id = @owner`,
);
const tradesOfMarket = chainRows(
  "fills",
  "previous_of_market",
  FILL_COLUMNS,
  `fills.id < @before AND (@outcomeId IS NULL OR outcome_id = @outcomeId)
   AND (@from IS NULL OR created_at >= @from) AND (@to IS NULL OR created_at <= @to)`,
);
const tradesWalk = chainWalk("fills", tradesStart, "role = 1 AND market_id = @owner");

const updateMarkFrom = db
  .prepare("SELECT update_id FROM update_marks WHERE user_id = ? AND sequence >= ? ORDER BY sequence LIMIT 1")
  .pluck();
const newestUpdate = db
  .prepare(
    `SELECT coalesce(
       (SELECT max(id) FROM order_updates
        WHERE id > (SELECT value FROM meta WHERE key = 'newest_update') AND user_id = @userId),
       (SELECT update_id FROM newest_of_user WHERE user_id = @userId), 0)`,
  )
  .pluck();
/** From @start back to number @first, newest first. */
const updateChain = db.prepare(
  `WITH RECURSIVE chain (link, number) AS (
     SELECT id, sequence FROM order_updates WHERE id = @start
     UNION ALL SELECT u.id, u.sequence FROM chain CROSS JOIN order_updates here ON here.id = link
       CROSS JOIN order_updates u ON u.id = here.previous_of_user WHERE number > @first)
   SELECT u.sequence, u.order_id, u.price, u.quantity, u.remaining, u.status, u.reason, u.fills, u.last_fill_id,
     u.created_at, orders.client_order_id, outcomes.market_id, orders.outcome_id, side, type, post_only,
    iif(quote = 1 AND u.expires_at IS NOT NULL, u.expires_at > 0, time_in_force) AS time_in_force,
     self_trade_prevention, iif(u.expires_at IS NULL, orders.expires_at, nullif(u.expires_at, 0)) AS expires_at,
    orders.created_at AS placed_at,
     (SELECT code FROM builders WHERE builders.id = builder_id) AS builder_code
   FROM chain CROSS JOIN order_updates u ON u.id = link CROSS JOIN orders ON orders.id = u.order_id
     CROSS JOIN outcomes ON outcomes.id = orders.outcome_id
   WHERE u.sequence >= @first AND u.sequence <= @last`,
);

/** The latest trades that an order is shown with; all of them are in the fills list. */
const MAX_TRADES_OF_ORDER = 1_000;

/** One order of the user with its trades; null where there is none. */
export const order = snapshot(({ userId, orderId }: { userId: number; orderId: number }): OrderObject | null => {
  const row = oneOrder.get({ orderId }) as OrderRow | undefined;
  if (row === undefined || row.user_id !== userId) return null;
  const params = { ...EVERY_FILL, start: row.last_fill_id, orderId, limit: MAX_TRADES_OF_ORDER };
  const found = fillsOfOrder.all(params) as FillRow[];
  return orderObject(row, found.reverse().map(fillObject));
});

/** What a repeat of an order's placement must know of it; null where there is no such order. In the order of the ids. */
export const endedOrders = snapshot(({ orderIds }: { orderIds: readonly number[] }): (EndedOrder | null)[] => {
  return orderIds.map((id) => (endedOrderRow.get(id) as EndedOrder | undefined) ?? null);
});

export const builder = snapshot(({ code }: { code: string }): object | null => {
  return (builderRow.get(code) as object | undefined) ?? null;
});

/** The user's orders of every state. */
export const orders = snapshot((options: OrdersOptions): HistoryPage => {
  const { userId, marketId = null, outcomeId = null, side = null, clientOrderId = null, status = null } = options;
  const { before, limit } = options;
  const filters = { marketId, outcomeId, side, clientOrderId, status };
  const params = { ...ordersWalk(userId, before, options), ...filters, limit: limit + 1 };
  return takeWalked(ordersOfUser.all(params) as (OrderRow & Walked)[], limit, (row) => orderObject(row, []));
});

export const fills = snapshot((options: FillsOptions): HistoryPage => {
  const { userId, before, limit, orderId = null, marketId = null, from = null, to = null } = options;
  const page = { userId, before, limit, marketId, from, to };
  const rows = orderId === null ? walkFills(page) : fillRowsOfOrder(page, orderId);
  return takeWalked(rows, limit, (row) => ({
    ...fillObject(row),
    order_id: row.order_id,
    market_id: row.market_id,
    outcome_id: row.outcome_id,
    side: row.side,
    builder_code: row.builder_code,
  }));
});

function walkFills({ userId, before, limit, ...filters }: OwnPageOptions & FillFilters): (FillRow & Walked)[] {
  const params = { ...NO_FILL_FILTERS, ...filters, ...fillsWalk(userId, before, filters) };
  return fillsOfUser.all({ ...params, limit: limit + 1 }) as (FillRow & Walked)[];
}

/** One more than the page has, where there is one; and the fill behind which nothing was looked at, or null. */
function fillRowsOfUser(options: OwnPageOptions & FillFilters): { rows: FillRow[]; end: number | null } {
  const rows = walkFills(options);
  return { rows: rows.filter(({ fits }) => fits === 1), end: endOfWalk(rows) };
}

function fillRowsOfOrder(
  { userId, before, limit, ...filters }: OwnPageOptions & FillFilters,
  orderId: number,
): (FillRow & Walked)[] {
  const row = oneOrder.get({ orderId }) as OrderRow | undefined;
  if (row === undefined || row.user_id !== userId) return [];
  const params = {
    ...EVERY_FILL,
    ...filters,
    before,
    walk: MAX_ROWS_WALKED,
    start: startInOrder(row, before),
    orderId,
  };
  return fillsOfOrder.all({ ...params, limit: limit + 1 }) as (FillRow & Walked)[];
}

const fillOfOrder = db.prepare("SELECT previous_of_order FROM fills WHERE id = ? AND order_id = ?").pluck();

/** Usually the page before ended with a fill of the order, and this one begins behind it. */
const startInOrder = ({ id, last_fill_id }: OrderRow, before: number): number =>
  Number(fillOfOrder.get(before, id) ?? last_fill_id);

export const trades = snapshot((options: TradesOptions): HistoryPage => {
  const { marketId, outcomeId = null, before, limit } = options;
  const params = { ...tradesWalk(marketId, before, options), outcomeId, limit: limit + 1 };
  return takeWalked(tradesOfMarket.all(params) as (FillRow & Walked)[], limit, (row) => ({
    id: row.match_id,
    market_id: row.market_id,
    outcome_id: row.outcome_id,
    side: row.side,
    price: row.price,
    quantity: row.quantity,
    match_type: MATCH_TYPES[row.match_type],
    created_at: row.created_at,
  }));
});

/** The JSON array of an outcome's candles. */
export const candles = snapshot(prepareCandles(db));

type UpdateRow = Omit<OrderRow, "id" | "updated_at" | "user_id"> & {
  sequence: number;
  order_id: number;
  fills: number;
  placed_at: number;
};

/** What an order update told. */
function updateItem(row: UpdateRow): UpdatesPage["items"][number] {
  const { sequence, created_at: at, placed_at, order_id, fills, last_fill_id } = row;
  const order = { ...row, id: order_id, created_at: placed_at, updated_at: at, user_id: 0 };
  const params = { ...EVERY_FILL, start: last_fill_id, orderId: order_id };
  const told = fills === 0 ? [] : (fillsOfOrder.all({ ...params, limit: fills }) as FillRow[]);
  return { sequence, at, json: JSON.stringify(orderObject(order, told.reverse().map(fillObject))) };
}

/** How many of the rows a page takes: updates of large orders are long. */
function countOfPage(rows: readonly UpdateRow[], limit: number): number {
  let fills = 0;
  for (let count = 0; count < Math.min(rows.length, limit); count++) {
    fills += rows[count]!.fills;
    if (fills > MAX_PAGE_FILLS && count > 0) return count;
  }
  return Math.min(rows.length, limit);
}

/** The user's order updates after a number, oldest first. */
export const updates = snapshot(({ userId, after, limit }: UpdatesOptions): UpdatesPage => {
  const first = after === null ? oldestUpdate(userId) : after + 1;
  const last = first + limit - 1;
  // One past the page's end, if it is there, shows that there are more.
  const start = updateMarkFrom.get(userId, last + 1) ?? newestUpdate.get({ userId });
  const rows = (updateChain.all({ start, first, last: last + 1 }) as UpdateRow[]).reverse();
  const found = rows[0]?.sequence ?? null;
  const isGone = after !== null && (found === null ? hasUpdatesAfter(userId, after) : found > first);
  const oldest = isGone ? oldestUpdate(userId) : null;
  const count = countOfPage(rows, limit);
  return { items: rows.slice(0, count).map(updateItem), oldest, hasMore: rows.length > count };
});

const firstMark = db.prepare("SELECT update_id FROM update_marks WHERE user_id = ? ORDER BY sequence LIMIT 1").pluck();
const chainEnd = db
  .prepare(
    `WITH RECURSIVE chain (link, number) AS (
       SELECT id, sequence FROM order_updates WHERE id = @start
       UNION ALL SELECT u.id, u.sequence FROM chain CROSS JOIN order_updates here ON here.id = link
         CROSS JOIN order_updates u ON u.id = here.previous_of_user)
     SELECT min(number) FROM chain`,
  )
  .pluck();
const lastUpdateSequence = db
  .prepare("SELECT max(coalesce(update_sequence, 0)) FROM newest_of_user WHERE user_id = ?")
  .pluck();

/** The number of the user's oldest update that is kept, or of the first to come. */
function oldestUpdate(userId: number): number {
  const start = firstMark.get(userId) ?? newestUpdate.get({ userId });
  return Number(chainEnd.get({ start }) ?? Number(lastUpdateSequence.get(userId) ?? 0) + 1);
}

function hasUpdatesAfter(userId: number, sequence: number): boolean {
  return oldestUpdate(userId) > sequence + 1;
}

/** What moved the user's money. */
const ledger = prepareLedger(db, fillRowsOfUser, (span) => idsOf("entries", span));
export const transactions = snapshot(ledger.transactions);
export const transactionLines = snapshot(ledger.transactionLines);
export const deposits = snapshot(ledger.deposits);
export const payment = snapshot(ledger.payment);
export const withdrawals = snapshot(ledger.withdrawals);
export const withdrawal = snapshot(ledger.withdrawal);
export const settlements = snapshot(ledger.settlements);

const keptKey = db.prepare(
  `SELECT request, subject, fee, created_at AS createdAt FROM idempotency_keys
   WHERE user_id = @userId AND key = @key AND created_at > @since`,
);
const keptKeys = db.prepare(
  "SELECT count(*) AS count, min(created_at) AS oldest FROM idempotency_keys WHERE user_id = @userId AND created_at > @since",
);
export const idempotencyKey = snapshot((options: { userId: number; key: string; since: number }): KeyLookup => {
  const { userId, since } = options;
  const found = (keptKey.get(options) as DoneRequest | undefined) ?? null;
  return { found, ...(keptKeys.get({ userId, since }) as { count: number; oldest: number | null }) };
});

/** Shares traded by market and hour since `since`, for the 24-hour volumes at start. */
export const hourlyVolumes = snapshot(
  ({ since }: { since: number }): [marketId: number, hour: number, volume: number][] => {
    return db
      .prepare(
        `SELECT market_id, created_at / 3600000 AS hour, sum(quantity) FROM fills JOIN outcomes ON outcomes.id = outcome_id
       WHERE fills.id >= ? AND role = 1 GROUP BY 1, 2`,
      )
      .raw()
      .all(firstIdSince(db, "fills", since)) as [number, number, number][];
  },
);

const operatorReads = prepareOperatorReads(db);
export const applications = snapshot(operatorReads.applications);
export const application = snapshot(operatorReads.application);
export const audits = snapshot(operatorReads.audits);
export const trail = snapshot(prepareTrail(db));

/** Ids alone: nothing is ranked. */
const found = {
  markets: db.prepare("SELECT rowid FROM market_words WHERE market_words MATCH ?").pluck(),
  events: db.prepare("SELECT rowid FROM event_words WHERE event_words MATCH ?").pluck(),
};
const newest = {
  markets: db.prepare("SELECT coalesce(max(id), 0) FROM markets").pluck(),
  events: db.prepare("SELECT coalesce(max(id), 0) FROM events").pluck(),
};

/** @param words at least one, as `searchWords` makes them: nothing in them means anything to the index */
export const search = snapshot(({ table, words }: { table: SearchTable; words: readonly string[] }): Uint32Array => {
  const bits = new Uint32Array((Number(newest[table].get()) >>> 5) + 1);
  const query = words.map((word) => `"${word}"*`).join(" ");
  for (const id of found[table].iterate(query) as IterableIterator<number>) bits[id >>> 5]! |= 1 << (id & 31);
  return bits;
});

/**
 * Moves the WAL's bulk into the database file, on a connection that lives for this call only. SQLite syncs the file when
 * nothing is left in the WAL; syncing it here too leaves little to whoever moves the rest.
 * @param file the database file, open
 */
export function checkpoint({ file }: { file: number }): void {
  const writer = openDatabase(path, "full");
  writer.pragma("wal_checkpoint(PASSIVE)");
  writer.close();
  fsyncSync(file);
}
