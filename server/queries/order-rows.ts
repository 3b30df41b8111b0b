/** Rows of orders, as the API shows them (orders/order-json.ts). */
import type Database from "better-sqlite3";
import { TERMS_SQL } from "../../engine/ring/order-terms.ts";
import type { OrderView } from "../orders/order-json.ts";

export interface OrderRow extends OrderView {
  readonly userId: number;
  readonly lastFillId: number;
}

export const ORDER_COLUMNS = `orders.id, client_order_id AS clientOrderId, outcomes.market_id AS market,
  outcome_id AS outcome, ${TERMS_SQL} AS terms, orders.price, orders.quantity, remaining,
  orders.expires_at AS expiresAt, orders.status, reason, orders.created_at AS createdAt, updated_at AS updatedAt,
  (SELECT code FROM builders WHERE builders.id = builder_id) AS builderCode,
  orders.user_id AS userId, last_fill_id AS lastFillId`;

/** Reads one order of any user. */
export function prepareOrderRow(db: Database.Database): (orderId: number) => OrderRow | undefined {
  const row = db.prepare(
    `SELECT ${ORDER_COLUMNS} FROM orders JOIN outcomes ON outcomes.id = outcome_id WHERE orders.id = ?`,
  );
  return (orderId) => row.get(orderId) as OrderRow | undefined;
}
