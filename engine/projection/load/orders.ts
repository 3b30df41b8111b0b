/**
 * Loads orders at startup: live orders in time priority, and the state of orders that a crash interrupted. Never writes.
 */
import type Database from "better-sqlite3";
import { OrderStatus } from "../../constants.ts";
import { assert } from "../../util/assert.ts";
import { MinHeap } from "../../util/min-heap.ts";

/** A live order's row; codes are those of constants.ts, flags are 0 or 1. */
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
  fingerprint: number | null,
  builderCode: string | null,
  quote: number,
  cancelOnDisconnect: number,
  priority: number | null,
];

const LIVE = `status < ${OrderStatus.filled}`;
/** `resting_orders` is complete up to this order. */
const ORDERS_LISTED = "(SELECT value FROM meta WHERE key = 'orders_listed')";
/** The index of `priority` in a LiveOrderRow. */
const PRIORITY = 21;

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

/**
 * Packs a live order's small columns into one 50-bit integer: reading a row costs per value, not per byte.
 *   outcome id from bit 30 | price 16..29 | status 12..15 | self-trade prevention 10..11 | time in force 8..9
 *   | side 6..7 | type 4..5 | post-only 3 | pat 2 | quote 1 | cancel on disconnect 0
 */
const PACKED = `(outcome_id << 30) | (price << 16) | (status << 12) | (self_trade_prevention << 10) |
  (time_in_force << 8) | (side << 6) | (type << 4) | (post_only << 3) | (pat << 2) | (quote << 1) | tied`;
const PACKED_CODES = 2 ** 16;
type PackedOrderRow = [
  id: number,
  userId: number,
  packed: number,
  quantity: number,
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

function unpackOrder(row: PackedOrderRow, builderCodes: ReadonlyMap<number, string>): LiveOrderRow {
  const [id, user, packed, quantity, remaining, createdAt, updatedAt, expiresAt, clientOrderId, fingerprint, ...rest] =
    row;
  const [builder, priority] = rest;
  const builderCode = builder === null ? null : builderCodes.get(builder);
  assert(builderCode !== undefined, "every order's builder has a code");
  const codes = packed % PACKED_CODES;
  const terms = (packed - codes) / PACKED_CODES;
  return [
    id,
    user,
    Math.floor(terms / 2 ** 14),
    (codes >> 6) & 3,
    (codes >> 4) & 3,
    (codes >> 8) & 3,
    (codes >> 10) & 3,
    (codes >> 3) & 1,
    (codes >> 2) & 1,
    terms % 2 ** 14,
    quantity,
    remaining,
    codes >> 12,
    expiresAt,
    clientOrderId,
    createdAt,
    updatedAt,
    fingerprint,
    builderCode,
    (codes >> 1) & 1,
    codes & 1,
    priority,
  ];
}

/**
 * Live orders by time priority: by id, except for those that an amend gave a later priority. Reads one snapshot, in a
 * transaction of this connection: the projector may write its lists at the same time.
 */
export function* loadLiveOrders(db: Database.Database): Generator<LiveOrderRow> {
  db.exec("BEGIN");
  try {
    yield* inPriority(readLiveOrders(db));
  } finally {
    db.exec("COMMIT");
  }
}

/** Live orders by id. Reads listed and unlisted orders separately, so that SQLite doesn't sort a million rows in memory. */
function* readLiveOrders(db: Database.Database): Generator<LiveOrderRow> {
  const codes = new Map(db.prepare("SELECT id, code FROM builders").raw().all() as [number, string][]);
  const columns = `id, user_id, ${PACKED}, quantity, remaining, created_at, updated_at, expires_at, client_order_id,
    fingerprint, builder_id, priority`;
  const parts = [
    `resting_orders CROSS JOIN orders ON id = order_id
     WHERE ${LIVE} AND order_id > ? AND order_id <= ${ORDERS_LISTED} ORDER BY order_id`,
    `orders WHERE ${LIVE} AND id > max(?, ${ORDERS_LISTED}) ORDER BY id`,
  ].map((part) => db.prepare(`SELECT ${columns} FROM ${part} LIMIT ${LIVE_CHUNK}`).raw());
  for (const part of parts) {
    let rows: PackedOrderRow[];
    let last = 0;
    do {
      rows = part.all(last) as PackedOrderRow[];
      for (const row of rows) yield unpackOrder(row, codes);
      last = rows.at(-1)?.[0] ?? last;
    } while (rows.length === LIVE_CHUNK);
  }
}

/** Reorders by priority. An amended order's priority exceeds its id, so it waits on a heap until its turn. */
function* inPriority(rows: Iterable<LiveOrderRow>): Generator<LiveOrderRow> {
  const later = new MinHeap<{ at: number; row: LiveOrderRow }>();
  for (const row of rows) {
    while ((later.peek()?.at ?? Number.POSITIVE_INFINITY) < row[0]) yield later.pop().row;
    const priority = row[PRIORITY];
    if (priority === null) yield row;
    else later.add({ at: Number(priority), row });
  }
  while (later.size > 0) yield later.pop().row;
}
