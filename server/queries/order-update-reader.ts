/**
 * Reads a user's order updates by their numbers, each as order.updated sent it. Rows are linked, newest first; marks at
 * intervals (update_marks) let a read start near the number that it wants. To be called in a read transaction.
 */
import type Database from "better-sqlite3";
import type { FillReader } from "./fill-reader.ts";
import { MAX_PAGE_FILLS } from "./limits.ts";
import type { OrderRow } from "./order-rows.ts";
import { fillObject, orderObject } from "./row-objects.ts";
import type { UpdatesOptions, UpdatesPage } from "./types.ts";

type UpdateRow = Omit<OrderRow, "id" | "updated_at" | "user_id"> & {
  sequence: number;
  order_id: number;
  fills: number;
  placed_at: number;
};

/** Gives the user's order updates after a number, oldest first. */
export function prepareUpdates(db: Database.Database, fills: FillReader): (options: UpdatesOptions) => UpdatesPage {
  const markFrom = db
    .prepare("SELECT update_id FROM update_marks WHERE user_id = ? AND sequence >= ? ORDER BY sequence LIMIT 1")
    .pluck();
  const newestUpdate = prepareNewestUpdate(db);
  const oldestSequence = prepareOldestSequence(db, newestUpdate);
  const readRows = prepareUpdateRows(db);
  return ({ userId, after, limit }) => {
    const first = after === null ? oldestSequence(userId) : after + 1;
    const last = first + limit - 1;
    // One past the page's end, where there is one, shows that there are more.
    const start = markFrom.get(userId, last + 1) ?? newestUpdate(userId);
    const rows = readRows({ start, first, last: last + 1 });
    const found = rows[0]?.sequence ?? null;
    const isGone = after !== null && (found === null ? oldestSequence(userId) > after + 1 : found > first);
    const oldest = isGone ? oldestSequence(userId) : null;
    const count = countOfPage(rows, limit);
    const items = rows.slice(0, count).map((row) => updateItem(row, fills));
    return { items, oldest, hasMore: rows.length > count };
  };
}

/** The update as it was sent: the order's state at that moment, with the fills of that update alone. */
function updateItem(row: UpdateRow, fills: FillReader): UpdatesPage["items"][number] {
  const { sequence, created_at: at, placed_at, order_id, fills: fillCount, last_fill_id } = row;
  const order = { ...row, id: order_id, created_at: placed_at, updated_at: at, user_id: 0 };
  const trades = fillCount === 0 ? [] : fills.latestOfOrder(order_id, last_fill_id, fillCount);
  return { sequence, at, json: JSON.stringify(orderObject(order, trades.map(fillObject))) };
}

/** How many of the rows fit into a page: updates of large orders are long. */
function countOfPage(rows: readonly UpdateRow[], limit: number): number {
  let fills = 0;
  for (const [count, row] of rows.slice(0, limit).entries()) {
    fills += row.fills;
    if (fills > MAX_PAGE_FILLS && count > 0) return count;
  }
  return Math.min(rows.length, limit);
}

/** Reads the updates numbered @first to @last, oldest first, by way of the links from @start back. */
function prepareUpdateRows(db: Database.Database): (params: object) => UpdateRow[] {
  const rows = db.prepare(
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
  return (params) => (rows.all(params) as UpdateRow[]).reverse();
}

/** Finds the id of the user's newest update, 0 for none. */
function prepareNewestUpdate(db: Database.Database): (userId: number) => unknown {
  const newest = db
    .prepare(
      `SELECT coalesce(
         (SELECT max(id) FROM order_updates
          WHERE id > (SELECT value FROM meta WHERE key = 'newest_update') AND user_id = @userId),
         (SELECT update_id FROM newest_of_user WHERE user_id = @userId), 0)`,
    )
    .pluck();
  return (userId) => newest.get({ userId });
}

/** Finds the number of the user's oldest update that is kept, or of the first to come. */
function prepareOldestSequence(
  db: Database.Database,
  newestUpdate: (userId: number) => unknown,
): (userId: number) => number {
  const firstMark = db
    .prepare("SELECT update_id FROM update_marks WHERE user_id = ? ORDER BY sequence LIMIT 1")
    .pluck();
  const oldestLinked = db
    .prepare(
      `WITH RECURSIVE chain (link, number) AS (
         SELECT id, sequence FROM order_updates WHERE id = @start
         UNION ALL SELECT u.id, u.sequence FROM chain CROSS JOIN order_updates here ON here.id = link
           CROSS JOIN order_updates u ON u.id = here.previous_of_user)
       SELECT min(number) FROM chain`,
    )
    .pluck();
  const lastSequence = db
    .prepare("SELECT max(coalesce(update_sequence, 0)) FROM newest_of_user WHERE user_id = ?")
    .pluck();
  return (userId) => {
    const start = firstMark.get(userId) ?? newestUpdate(userId);
    return Number(oldestLinked.get({ start }) ?? Number(lastSequence.get(userId) ?? 0) + 1);
  };
}
