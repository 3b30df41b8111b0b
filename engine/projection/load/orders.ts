/**
 * Loads orders at startup: live orders, and the state of orders that a crash interrupted. Never writes.
 */
import type Database from "better-sqlite3";
import { OrderStatus } from "../../constants.ts";
import { TERM_BITS, TERMS_SQL } from "../../ring/order-terms.ts";
import { FLAG_TEXT } from "../../ring/records.ts";
import { assert } from "../../util/assert.ts";

/** A live order as its row has it; codes are those of constants.ts. */
export interface LiveOrder {
  readonly id: number;
  readonly user: number;
  readonly outcome: number;
  /** ring/order-terms.ts, with the flag of orders that have texts. */
  readonly terms: number;
  readonly price: number;
  readonly quantity: number;
  readonly remaining: number;
  readonly status: number;
  /** ms; 0 for never. */
  readonly expiresAt: number;
  readonly clientOrderId: string | null;
  readonly builderCode: string | null;
  readonly fingerprint: number | null;
  readonly createdAt: number;
  readonly updatedAt: number;
  /** Its id, or what an amend gave it. */
  readonly priority: number;
}

const LIVE = `status < ${OrderStatus.filled}`;
/** `resting_orders` is complete up to this order. */
const ORDERS_LISTED = "(SELECT value FROM meta WHERE key = 'orders_listed')";

/** The number of each user's last order update. */
export function loadUpdateSequences(db: Database.Database): [userId: number, sequence: number][] {
  return db.prepare("SELECT user_id, update_sequence FROM newest_of_user").raw().all() as [number, number][];
}

/** The first id whose row was created at or after `since` (ms), or one past the last id. */
export function firstIdSince(db: Database.Database, table: "orders" | "fills" | "entries", since: number): number {
  // Times rise with ids except for clock steps, so bisect instead of scanning the table.
  const at = db.prepare(`SELECT id, created_at FROM ${table} WHERE id >= ? ORDER BY id LIMIT 1`).raw();
  let low = 0;
  let high = Number(db.prepare(`SELECT coalesce(max(id), 0) FROM ${table}`).pluck().get()) + 1;
  while (low < high) {
    const middle = Math.floor((low + high) / 2);
    const row = at.get(middle) as [number, number] | undefined;
    if (row !== undefined && row[1] < since) low = row[0] + 1;
    else high = middle;
  }
  return low;
}

/** True where the tables may have more than `count` live orders, or orders from id `firstNamed` on. */
export function hasManyOrders(db: Database.Database, count: number, firstNamed: number): boolean {
  const hasMore = (rows: string, ...parameters: number[]): boolean =>
    Number(
      db
        .prepare(`SELECT count(*) FROM (SELECT 1 FROM ${rows} LIMIT ${count + 1})`)
        .pluck()
        .get(...parameters),
    ) > count;
  return (
    hasMore("resting_orders") ||
    hasMore(`orders WHERE id > ${ORDERS_LISTED}`) ||
    hasMore("orders WHERE id >= ?", firstNamed)
  );
}

/** Rows per query of `readColumns`: with a tenth or ten times as many, reading takes a fifth longer. */
const COLUMN_ROWS = 512;
type Columns = readonly [ids: readonly number[], ...others: (readonly unknown[])[]];

/**
 * Reads the rows of `part` in chunks, each column as one list: a value that crosses from SQLite by itself takes several
 * times as long as its text.
 * @param columns the first is the id
 * @param part what stands behind FROM: its first parameter is the id that the ids exceed, and it sorts by id
 */
function* readColumns(
  db: Database.Database,
  columns: readonly string[],
  part: string,
  first: number,
  ...parameters: number[]
): Generator<Columns> {
  const names = columns.map((_, i) => `c${i}`);
  const rows = `SELECT ${columns.map((column, i) => `${column} AS c${i}`)} FROM ${part} LIMIT ${COLUMN_ROWS}`;
  const query = db.prepare(`SELECT ${names.map((name) => `json_group_array(${name})`)} FROM (${rows})`).raw();
  let last = first - 1;
  for (;;) {
    const lists = (query.get(last, ...parameters) as string[]).map((text) => JSON.parse(text)) as unknown as Columns;
    const [ids] = lists;
    for (const id of ids) {
      assert(id > last, "an aggregate has the rows in the order of its subquery");
      last = id;
    }
    if (ids.length > 0) yield lists;
    if (ids.length < COLUMN_ROWS) return;
  }
}

/** Orders with a client order id, from id `first` on, placed at or after `since` (ms), oldest first. */
export function* loadClientOrders(
  db: Database.Database,
  first: number,
  since: number,
): Generator<[id: number, userId: number, clientOrderId: string, createdAt: number]> {
  const columns = ["id", "user_id", "client_order_id", "created_at"];
  const part = "orders WHERE id > ? AND client_order_id IS NOT NULL AND created_at >= ? ORDER BY id";
  for (const lists of readColumns(db, columns, part, first, since)) {
    const [ids, users, names, times] = lists as [number[], number[], string[], number[]];
    for (let i = 0; i < ids.length; i++) yield [ids[i]!, users[i]!, names[i]!, times[i]!];
  }
}

const STATUS_BITS = 4;
const TERMS_SHIFT = 8;
const CODE_BITS = STATUS_BITS + TERM_BITS - TERMS_SHIFT;
const PRICE_BITS = 14;
/**
 * A row's small columns packed into two integers below 2^53, because reading a row costs per value:
 *   outcome id | status | terms without the kind's bits;   quantity | price
 */
const CODES_SQL = `(outcome_id << ${CODE_BITS}) | (status << ${TERM_BITS - TERMS_SHIFT}) | (${TERMS_SQL} >> ${TERMS_SHIFT})`;
const AMOUNT_SQL = `(quantity << ${PRICE_BITS}) | price`;
type LiveColumns = readonly [
  ids: number[],
  users: number[],
  codes: number[],
  amounts: number[],
  remainings: number[],
  createdAts: number[],
  updatedAts: number[],
  expiresAts: (number | null)[],
  clientOrderIds: (string | null)[],
  fingerprints: (number | null)[],
  builderIds: (number | null)[],
  priorities: (number | null)[],
];
const LIVE_COLUMNS = [
  "id",
  "user_id",
  CODES_SQL,
  AMOUNT_SQL,
  "remaining",
  "created_at",
  "updated_at",
  "expires_at",
  "client_order_id",
  "fingerprint",
  "builder_id",
  "priority",
];

function unpackOrder(lists: LiveColumns, i: number, builderCodes: ReadonlyMap<number, string>): LiveOrder {
  const [ids, users, codes, amounts, remainings, createdAts, updatedAts, expiresAts, clientOrderIds, ...rest] = lists;
  const [fingerprints, builderIds, priorities] = rest;
  const builder = builderIds[i]!;
  const builderCode = builder === null ? null : builderCodes.get(builder);
  assert(builderCode !== undefined, "every order's builder has a code");
  const [id, clientOrderId, packed, amount] = [ids[i]!, clientOrderIds[i]!, codes[i]!, amounts[i]!];
  const code = packed % 2 ** CODE_BITS;
  const price = amount % 2 ** PRICE_BITS;
  const texts = clientOrderId === null && builderCode === null ? 0 : FLAG_TEXT;
  return {
    id,
    user: users[i]!,
    outcome: (packed - code) / 2 ** CODE_BITS,
    terms: ((code << TERMS_SHIFT) & (2 ** TERM_BITS - 1)) | texts,
    price,
    quantity: (amount - price) / 2 ** PRICE_BITS,
    remaining: remainings[i]!,
    status: code >>> (TERM_BITS - TERMS_SHIFT),
    expiresAt: expiresAts[i] ?? 0,
    clientOrderId,
    builderCode,
    fingerprint: fingerprints[i]!,
    createdAt: createdAts[i]!,
    updatedAt: updatedAts[i]!,
    priority: priorities[i] ?? id,
  };
}

/** Live orders by id. Reads one snapshot, in a transaction of this connection: the projector may write its lists meanwhile. */
export function* loadLiveOrders(db: Database.Database): Generator<LiveOrder> {
  db.exec("BEGIN");
  try {
    yield* readLiveOrders(db);
  } finally {
    db.exec("COMMIT");
  }
}

/** Reads listed and unlisted orders separately, so that SQLite doesn't sort a million rows in memory. */
function* readLiveOrders(db: Database.Database): Generator<LiveOrder> {
  const codes = new Map(db.prepare("SELECT id, code FROM builders").raw().all() as [number, string][]);
  const parts = [
    `resting_orders CROSS JOIN orders ON id = order_id
     WHERE order_id > ? AND ${LIVE} AND order_id <= ${ORDERS_LISTED} ORDER BY order_id`,
    `orders WHERE id > max(?, ${ORDERS_LISTED}) AND ${LIVE} ORDER BY id`,
  ];
  for (const part of parts) {
    for (const lists of readColumns(db, LIVE_COLUMNS, part, 1)) {
      const live = lists as unknown as LiveColumns;
      for (let i = 0; i < live[0].length; i++) yield unpackOrder(live, i, codes);
    }
  }
}
