/**
 * Rows of orders in their current state. A row may lag behind its order (write-behind, engine/projection/write-behind.ts):
 * what changed since is in the order's newest update, which is joined here.
 */
import type Database from "better-sqlite3";

export interface OrderRow {
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

export const ORDER_COLUMNS = `orders.id, client_order_id, outcomes.market_id, outcome_id, side, orders.price, orders.quantity,
  coalesce(u.remaining, orders.remaining) AS remaining, type, time_in_force, post_only, self_trade_prevention, orders.expires_at,
  coalesce(u.status, orders.status) AS status, coalesce(u.reason, orders.reason) AS reason, orders.created_at,
  coalesce(u.created_at, updated_at) AS updated_at, orders.user_id,
  max(orders.last_fill_id, coalesce(newer.fill_id, 0)) AS last_fill_id,
  (SELECT code FROM builders WHERE builders.id = builder_id) AS builder_code`;

/**
 * The states that orders reached since their rows were written, of those that pass `filter`. The view current_orders has
 * the same, but first gathers every order that changed.
 */
export const newerStates = (filter: string) => ({
  table: `newer AS MATERIALIZED (
    SELECT order_id, max(id) AS update_id, max(last_fill_id) AS fill_id FROM order_updates
    WHERE id > (SELECT value FROM meta WHERE key = 'orders_told') AND ${filter} GROUP BY order_id)`,
  join: "LEFT JOIN newer ON newer.order_id = orders.id LEFT JOIN order_updates u ON u.id = newer.update_id",
});

/** Reads one order of any user. */
export function prepareOrderRow(db: Database.Database): (orderId: number) => OrderRow | undefined {
  const newer = newerStates("order_id = @orderId");
  const row = db.prepare(
    `WITH ${newer.table}
     SELECT ${ORDER_COLUMNS} FROM orders JOIN outcomes ON outcomes.id = outcome_id ${newer.join}
     WHERE orders.id = @orderId`,
  );
  return (orderId) => row.get({ orderId }) as OrderRow | undefined;
}
