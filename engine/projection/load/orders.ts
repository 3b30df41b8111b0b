/**
 * Loads orders at startup: live orders in time priority, and the state of orders that a crash interrupted. Never writes.
 */
import type Database from "better-sqlite3";
import { OrderStatus } from "../../constants.ts";
import { TERM_BITS, TERMS_SQL } from "../../ring/order-terms.ts";
import { FLAG_TEXT } from "../../ring/records.ts";
import { assert } from "../../util/assert.ts";
import { MinHeap } from "../../util/min-heap.ts";

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

/** Orders with a client order id, from id `first` on, placed at or after `since` (ms), oldest first. */
export function loadClientOrders(
  db: Database.Database,
  first: number,
  since: number,
): IterableIterator<[id: number, userId: number, clientOrderId: string, createdAt: number]> {
  return db
    .prepare(
      `SELECT id, user_id, client_order_id, created_at FROM orders
       WHERE id >= ? AND client_order_id IS NOT NULL AND created_at >= ? ORDER BY id`,
    )
    .raw()
    .iterate(first, since) as IterableIterator<[number, number, string, number]>;
}

const STATUS_BITS = 4;
const TERMS_SHIFT = 8;
const CODE_BITS = STATUS_BITS + TERM_BITS - TERMS_SHIFT;
const PRICE_BITS = 14;
/**
 * A row's small columns packed into two integers below 2^53, because reading a row costs per value and not per byte:
 *   outcome id | status | terms without the kind's bits;   quantity | price
 */
const CODES_SQL = `(outcome_id << ${CODE_BITS}) | (status << ${TERM_BITS - TERMS_SHIFT}) | (${TERMS_SQL} >> ${TERMS_SHIFT})`;
const AMOUNT_SQL = `(quantity << ${PRICE_BITS}) | price`;
type PackedOrder = readonly [
  id: number,
  userId: number,
  codes: number,
  amount: number,
  remaining: number,
  createdAt: number,
  updatedAt: number,
  expiresAt: number | null,
  clientOrderId: string | null,
  fingerprint: number | null,
  builderId: number | null,
  priority: number | null,
];
/** Rows per query: reading them one by one takes a tenth longer. */
const LIVE_CHUNK = 100;

function unpackOrder(row: PackedOrder, builderCodes: ReadonlyMap<number, string>): LiveOrder {
  const [id, user, packed, amount, remaining, createdAt, updatedAt, expiresAt, clientOrderId, fingerprint, ...rest] =
    row;
  const [builder, priority] = rest;
  const builderCode = builder === null ? null : builderCodes.get(builder);
  assert(builderCode !== undefined, "every order's builder has a code");
  const codes = packed % 2 ** CODE_BITS;
  const price = amount % 2 ** PRICE_BITS;
  const texts = clientOrderId === null && builderCode === null ? 0 : FLAG_TEXT;
  return {
    id,
    user,
    outcome: (packed - codes) / 2 ** CODE_BITS,
    terms: ((codes << TERMS_SHIFT) & (2 ** TERM_BITS - 1)) | texts,
    price,
    quantity: (amount - price) / 2 ** PRICE_BITS,
    remaining,
    status: codes >>> (TERM_BITS - TERMS_SHIFT),
    expiresAt: expiresAt ?? 0,
    clientOrderId,
    builderCode,
    fingerprint,
    createdAt,
    updatedAt,
    priority: priority ?? id,
  };
}

/**
 * Live orders by time priority: by id, except for those that an amend gave a later priority. Reads one snapshot, in a
 * transaction of this connection: the projector may write its lists at the same time.
 */
export function* loadLiveOrders(db: Database.Database): Generator<LiveOrder> {
  db.exec("BEGIN");
  try {
    yield* inPriority(readLiveOrders(db));
  } finally {
    db.exec("COMMIT");
  }
}

/** Live orders by id. Reads listed and unlisted orders separately, so that SQLite doesn't sort a million rows in memory. */
function* readLiveOrders(db: Database.Database): Generator<LiveOrder> {
  const codes = new Map(db.prepare("SELECT id, code FROM builders").raw().all() as [number, string][]);
  const columns = `id, user_id, ${CODES_SQL}, ${AMOUNT_SQL}, remaining, created_at, updated_at, expires_at, client_order_id,
    fingerprint, builder_id, priority`;
  const parts = [
    `resting_orders CROSS JOIN orders ON id = order_id
     WHERE ${LIVE} AND order_id > ? AND order_id <= ${ORDERS_LISTED} ORDER BY order_id`,
    `orders WHERE ${LIVE} AND id > max(?, ${ORDERS_LISTED}) ORDER BY id`,
  ].map((part) => db.prepare(`SELECT ${columns} FROM ${part} LIMIT ${LIVE_CHUNK}`).raw());
  for (const part of parts) {
    let rows: PackedOrder[];
    let last = 0;
    do {
      rows = part.all(last) as PackedOrder[];
      for (const row of rows) yield unpackOrder(row, codes);
      last = rows.at(-1)?.[0] ?? last;
    } while (rows.length === LIVE_CHUNK);
  }
}

/** Reorders by priority. An amended order's priority exceeds its id, so it waits on a heap until its turn. */
function* inPriority(orders: Iterable<LiveOrder>): Generator<LiveOrder> {
  const later = new MinHeap<{ at: number; order: LiveOrder }>();
  for (const order of orders) {
    while ((later.peek()?.at ?? Number.POSITIVE_INFINITY) < order.id) yield later.pop().order;
    if (order.priority === order.id) yield order;
    else later.add({ at: order.priority, order });
  }
  while (later.size > 0) yield later.pop().order;
}
