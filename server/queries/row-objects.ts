/** The API's objects of orders and fills, made of their rows. The hot responses are written by trading/order-json.ts. */
import {
  MATCH_TYPES,
  ORDER_STATUSES,
  ORDER_TYPES,
  OrderType,
  REASONS,
  ROLES,
  SELF_TRADE_PREVENTIONS,
  TIMES_IN_FORCE,
} from "../../engine/constants.ts";
import type { OrderRow } from "./order-rows.ts";
import type { FillRow, OrderObject } from "./types.ts";

/** A market order whose owner set no bound has no price, whatever price bounds it in the book. */
const shownPrice = (type: number, price: number): number | null => (type === OrderType.unboundMarket ? null : price);

export function orderObject(row: OrderRow, trades: object[]): OrderObject {
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

/** A fill as an order shows it among its trades. */
export function fillObject(row: FillRow): object {
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
