/** Rows of orders, with what clients see of each. */
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
  /** 1: placed by PUT /quotes. */
  quote: number;
  builder_code: string | null;
}

export const ORDER_COLUMNS = `orders.id, client_order_id, outcomes.market_id, outcome_id, side, orders.price, orders.quantity,
  remaining, type, time_in_force, post_only, self_trade_prevention, orders.expires_at, orders.status, reason,
  orders.created_at, updated_at, orders.user_id, last_fill_id, quote,
  (SELECT code FROM builders WHERE builders.id = builder_id) AS builder_code`;

/** Reads one order of any user. */
export function prepareOrderRow(db: Database.Database): (orderId: number) => OrderRow | undefined {
  const row = db.prepare(
    `SELECT ${ORDER_COLUMNS} FROM orders JOIN outcomes ON outcomes.id = outcome_id WHERE orders.id = ?`,
  );
  return (orderId) => row.get(orderId) as OrderRow | undefined;
}
