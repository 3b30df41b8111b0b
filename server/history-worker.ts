/**
 * Reads of finished things, on a read-only connection in a pool thread: orders, fills, trades, transactions.
 * Each call is one read transaction. Look-up tables lag behind the tables they index (schema.ts): what lies beyond
 * them is scanned, some thousand rows at most.
 */
import type Database from "better-sqlite3";
import { workerData } from "piscina";
import {
  MATCH_TYPES,
  ORDER_STATUSES,
  ORDER_TYPES,
  REASONS,
  ROLES,
  SELF_TRADE_PREVENTIONS,
  TIMES_IN_FORCE,
} from "../engine/constants.ts";
import { openDatabase, openReadOnly } from "../engine/journal/database.ts";

export interface HistoryPage {
  /** Rows as the contract's objects, newest first. */
  items: object[];
  /** The id to continue below, or null at the end. */
  next: number | null;
}

interface PageOptions {
  userId: number;
  before: number;
  limit: number;
}

export interface OrdersOptions extends PageOptions {
  marketId?: number | undefined;
  outcomeId?: number | undefined;
  side?: number | undefined;
  clientOrderId?: string | undefined;
}

export interface FillsOptions extends PageOptions {
  marketId?: number | undefined;
  orderId?: number | undefined;
}

export interface TransactionsOptions extends PageOptions {
  type?: string | undefined;
  from?: number | undefined;
  to?: number | undefined;
}

const { path } = workerData as { path: string };
const db: Database.Database = openReadOnly(path);

/** Reads the tail beyond a look-up table first and then, for what is missing to the limit, through the table. */
function newestFirst(
  tailSql: string,
  indexedSql: string,
): { all(params: { limit: number; [name: string]: unknown }): unknown[] } {
  const tail = db.prepare(tailSql);
  const indexed = db.prepare(indexedSql);
  return {
    all(params) {
      const rows = tail.all(params);
      return rows.length === params.limit
        ? rows
        : rows.concat(indexed.all({ ...params, limit: params.limit - rows.length }));
    },
  };
}

const ORDER_COLUMNS = `orders.id, client_order_id, outcomes.market_id, outcome_id, side, price, quantity, remaining, type,
  time_in_force, post_only, self_trade_prevention, expires_at, status, reason, created_at, updated_at, user_id`;

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
}

interface FillRow {
  id: number;
  match_id: number;
  user_id: number;
  order_id: number;
  market_id: number;
  outcome_id: number;
  side: number;
  price: number;
  quantity: number;
  role: number;
  match_type: number;
  fee: number;
  rebate: number;
  balance_after: number;
  created_at: number;
}

function orderObject(row: OrderRow, trades: object[]): object {
  return {
    id: row.id,
    client_order_id: row.client_order_id,
    market_id: row.market_id,
    outcome_id: row.outcome_id,
    side: row.side,
    price: row.price,
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

/** Runs `read` in one read transaction, so that look-up tables and their tails fit each other. */
function snapshot<A extends unknown[], R>(read: (...args: A) => R): (...args: A) => R {
  return db.transaction(read);
}

const NO_FILL_FILTERS = { from: null, to: null, side: null, rebated: null };

const oneOrder = db.prepare(
  `SELECT ${ORDER_COLUMNS} FROM orders JOIN outcomes ON outcomes.id = outcome_id WHERE orders.id = ?`,
);
const ORDER_FILTERS = `(@marketId IS NULL OR outcomes.market_id = @marketId)
  AND (@outcomeId IS NULL OR outcome_id = @outcomeId) AND (@side IS NULL OR side = @side)
  AND (@clientOrderId IS NULL OR client_order_id = @clientOrderId)`;
const ordersOfUser = newestFirst(
  `SELECT ${ORDER_COLUMNS} FROM orders JOIN outcomes ON outcomes.id = outcome_id
   WHERE orders.id > (SELECT value FROM meta WHERE key = 'orders_indexed') AND orders.id < @before
     AND user_id = @userId AND ${ORDER_FILTERS} ORDER BY orders.id DESC LIMIT @limit`,
  `SELECT ${ORDER_COLUMNS} FROM (SELECT order_id, user_id AS owner FROM orders_by_user) AS listed
   JOIN orders ON orders.id = order_id JOIN outcomes ON outcomes.id = outcome_id
   WHERE owner = @userId AND order_id < @before AND ${ORDER_FILTERS} ORDER BY order_id DESC LIMIT @limit`,
);
const FILL_COLUMNS = `fills.id, match_id, user_id, order_id, outcomes.market_id, outcome_id, side, price, quantity, role,
  match_type, fee, rebate, balance_after, created_at`;
const fillsOfOrder = newestFirst(
  `SELECT ${FILL_COLUMNS} FROM fills JOIN outcomes ON outcomes.id = outcome_id
   WHERE fills.id > (SELECT value FROM meta WHERE key = 'fills_indexed') AND order_id = @orderId
   ORDER BY fills.id DESC LIMIT @limit`,
  `SELECT ${FILL_COLUMNS} FROM (SELECT fill_id, order_id AS filled FROM fills_by_order) AS listed
   JOIN fills ON fills.id = fill_id JOIN outcomes ON outcomes.id = outcome_id
   WHERE filled = @orderId ORDER BY fill_id DESC LIMIT @limit`,
);
const FILL_FILTERS = `(@marketId IS NULL OR outcomes.market_id = @marketId) AND (@orderId IS NULL OR order_id = @orderId)
  AND (@from IS NULL OR created_at >= @from) AND (@to IS NULL OR created_at <= @to)
  AND (@side IS NULL OR side = @side) AND (@rebated IS NULL OR rebate > 0)`;
const fillsOfUser = newestFirst(
  `SELECT ${FILL_COLUMNS} FROM fills JOIN outcomes ON outcomes.id = outcome_id
   WHERE fills.id > (SELECT value FROM meta WHERE key = 'fills_indexed') AND fills.id < @before
     AND user_id = @userId AND ${FILL_FILTERS} ORDER BY fills.id DESC LIMIT @limit`,
  `SELECT ${FILL_COLUMNS} FROM (SELECT fill_id, user_id AS owner FROM fills_by_user) AS listed
   JOIN fills ON fills.id = fill_id JOIN outcomes ON outcomes.id = outcome_id
   WHERE owner = @userId AND fill_id < @before AND ${FILL_FILTERS} ORDER BY fill_id DESC LIMIT @limit`,
);
const tradesOfMarket = newestFirst(
  `SELECT ${FILL_COLUMNS} FROM fills JOIN outcomes ON outcomes.id = outcome_id
   WHERE fills.id > (SELECT value FROM meta WHERE key = 'fills_indexed') AND fills.id < @before
     AND role = 1 AND outcomes.market_id = @marketId ORDER BY fills.id DESC LIMIT @limit`,
  `SELECT ${FILL_COLUMNS} FROM (SELECT fill_id, market_id AS traded FROM trades_by_market) AS listed
   JOIN fills ON fills.id = fill_id JOIN outcomes ON outcomes.id = outcome_id
   WHERE traded = @marketId AND fill_id < @before ORDER BY fill_id DESC LIMIT @limit`,
);
const entriesOfUser = db.prepare(
  `SELECT id, type, amount, balance_after, market_id, outcome_id, created_at FROM entries
   WHERE user_id = @userId AND id < @before AND (@type IS NULL OR type = @type)
     AND (@from IS NULL OR created_at >= @from) AND (@to IS NULL OR created_at <= @to)
   ORDER BY id DESC LIMIT @limit`,
);

/** The latest trades that an order is shown with; all of them are in the fills list. */
const MAX_TRADES_OF_ORDER = 1_000;

/** One order of the user with its trades; null where there is none. */
export const order = snapshot(({ userId, orderId }: { userId: number; orderId: number }): object | null => {
  const row = oneOrder.get(orderId) as OrderRow | undefined;
  if (row === undefined || row.user_id !== userId) return null;
  const found = fillsOfOrder.all({ ...NO_FILL_FILTERS, orderId, limit: MAX_TRADES_OF_ORDER }) as FillRow[];
  return orderObject(row, found.reverse().map(fillObject));
});

/** The user's orders of every state. */
export const orders = snapshot((options: OrdersOptions): HistoryPage => {
  const { marketId = null, outcomeId = null, side = null, clientOrderId = null, limit } = options;
  const params = { ...options, marketId, outcomeId, side, clientOrderId, limit: limit + 1 };
  const rows = ordersOfUser.all(params) as OrderRow[];
  return page(
    rows,
    limit,
    (row) => orderObject(row, []),
    ({ id }) => id,
  );
});

export const fills = snapshot((options: FillsOptions): HistoryPage => {
  const { marketId = null, orderId = null, limit } = options;
  const params = { ...options, ...NO_FILL_FILTERS, marketId, orderId, limit: limit + 1 };
  const rows = fillsOfUser.all(params) as FillRow[];
  const object = (row: FillRow): object => ({
    ...fillObject(row),
    order_id: row.order_id,
    market_id: row.market_id,
    outcome_id: row.outcome_id,
    side: row.side,
  });
  return page(rows, limit, object, ({ id }) => id);
});

export const trades = snapshot((options: { marketId: number; before: number; limit: number }): HistoryPage => {
  const rows = tradesOfMarket.all({ ...options, limit: options.limit + 1 }) as FillRow[];
  const object = (row: FillRow): object => ({
    id: row.match_id,
    market_id: row.market_id,
    outcome_id: row.outcome_id,
    side: row.side,
    price: row.price,
    quantity: row.quantity,
    match_type: MATCH_TYPES[row.match_type],
    created_at: row.created_at,
  });
  return page(rows, options.limit, object, ({ id }) => id);
});

interface TransactionRow {
  id: number;
  type: string;
  amount: number;
  balance_after: number;
  market_id: number | null;
  outcome_id: number | null;
  order_id: number | null;
  trade_id: number | null;
  created_at: number;
}

/** Ids of transactions: four to an entry, because one fill moves money up to three times. */
const TRANSACTIONS_PER_ENTRY = 4;
const TRADE_PART = 0;
const FEE_PART = 1;
const REBATE_PART = 2;

/** A fill's money, latest first: rebate, fee, and the shares' price. */
function fillTransactions(row: FillRow): TransactionRow[] {
  const notional = row.price * row.quantity * 100;
  const base = {
    market_id: row.market_id,
    outcome_id: row.outcome_id,
    order_id: row.order_id,
    trade_id: row.match_id,
    created_at: row.created_at,
  };
  const id = row.id * TRANSACTIONS_PER_ENTRY;
  const parts = [
    { id: id + TRADE_PART, type: "trade", amount: row.side === 1 ? -notional : notional },
    { id: id + FEE_PART, type: "fee", amount: -row.fee },
    { id: id + REBATE_PART, type: "rebate", amount: row.rebate },
  ];
  const found: TransactionRow[] = [];
  let after = row.balance_after;
  for (const part of parts.reverse()) {
    if (part.amount === 0) continue;
    found.push({ ...part, ...base, balance_after: after });
    after -= part.amount;
  }
  return found;
}

export const transactions = snapshot((options: TransactionsOptions): HistoryPage => {
  const { userId, limit, before, type = null, from = null, to = null } = options;
  // The entry that `before` lies in may still have a part of the wanted type, or any, below it.
  const offset = type === "fee" ? FEE_PART : type === "rebate" ? REBATE_PART : TRADE_PART;
  const below = Math.ceil((before - offset) / TRANSACTIONS_PER_ENTRY);
  const params = { userId, from, to, before: below, limit: limit + 1 };
  const found: TransactionRow[] = [];
  if (type === null || type === "trade" || type === "fee" || type === "rebate") {
    const side = type === "fee" ? 2 : null;
    const rebated = type === "rebate" ? 1 : null;
    const rows = fillsOfUser.all({ ...params, marketId: null, orderId: null, side, rebated }) as FillRow[];
    for (const row of rows) found.push(...fillTransactions(row).filter((part) => type === null || part.type === type));
  }
  if (type === null || !["trade", "fee", "rebate"].includes(type)) {
    for (const row of entriesOfUser.all({ ...params, type }) as TransactionRow[]) {
      found.push({ ...row, id: row.id * TRANSACTIONS_PER_ENTRY, order_id: null, trade_id: null });
    }
  }
  return page(
    found.filter(({ id }) => id < before).sort((a, b) => b.id - a.id),
    limit,
    (row) => row,
    ({ id }) => id,
  );
});

/** Shares traded by market and hour since `since`, for the 24-hour volumes at start. */
export const hourlyVolumes = snapshot(
  ({ since }: { since: number }): [marketId: number, hour: number, volume: number][] => {
    // Times rise with ids but for clock steps: bisect instead of reading the whole table.
    const at = db.prepare("SELECT id, created_at FROM fills WHERE id >= ? ORDER BY id LIMIT 1").raw();
    let low = 0;
    let high = Number(db.prepare("SELECT coalesce(max(id), 0) FROM fills").pluck().get()) + 1;
    while (low < high) {
      const middle = Math.floor((low + high) / 2);
      const row = at.get(middle) as [number, number] | undefined;
      if (row !== undefined && row[1] < since) low = row[0] + 1;
      else high = middle;
    }
    return db
      .prepare(
        `SELECT market_id, created_at / 3600000 AS hour, sum(quantity) FROM fills JOIN outcomes ON outcomes.id = outcome_id
       WHERE fills.id >= ? AND role = 1 GROUP BY 1, 2`,
      )
      .raw()
      .all(low) as [number, number, number][];
  },
);

/** Moves the WAL's bulk into the database file, on a connection that lives for this call only. */
export function checkpoint(): void {
  const writer = openDatabase(path, "full");
  writer.pragma("wal_checkpoint(PASSIVE)");
  writer.close();
}

function page<T>(rows: T[], limit: number, object: (row: T) => object, id: (row: T) => number): HistoryPage {
  const items = rows.slice(0, limit).map(object);
  return { items, next: rows.length > limit ? id(rows[limit - 1]!) : null };
}
