/** Writes orders and fills as JSON text, field by field: the hot responses consist of these texts, never of objects. */
import {
  MATCH_TYPES,
  ORDER_STATUSES,
  ORDER_TYPES,
  OrderStatus,
  OrderType,
  REASONS,
  Reason,
  ROLES,
  SELF_TRADE_PREVENTIONS,
  TIMES_IN_FORCE,
} from "../../engine/constants.ts";
import type { EngineEvent } from "../../engine/ring/engine-event.ts";
import { FLAG_POST_ONLY, selfTradePreventionOf, sideOf, timeInForceOf, typeOf } from "../../engine/ring/records.ts";
import { IN_FLIGHT, type OrderStore } from "./order-store.ts";
import type { Placement } from "./types.ts";

const quoted = (names: readonly (string | null)[]): readonly string[] => names.map((name) => JSON.stringify(name));
const STATUS_JSON = quoted(ORDER_STATUSES);
const REASON_JSON = quoted(REASONS);
const TYPE_JSON = quoted(ORDER_TYPES);
const TIME_IN_FORCE_JSON = quoted(TIMES_IN_FORCE);
const SELF_TRADE_JSON = quoted(SELF_TRADE_PREVENTIONS);
const MATCH_TYPE_JSON = quoted(MATCH_TYPES);
const ROLE_JSON = quoted(ROLES);

/** What changes of an order. */
interface OrderState {
  /** An OrderStatus, and a Reason. */
  readonly status: number;
  readonly reason: number;
  readonly remaining: number;
  /** ms */
  readonly updatedAt: number;
}

/**
 * The live order in `slot` as the contract's order object, in the given state. Client order ids and builder codes contain
 * nothing that JSON would escape.
 * @param trades JSON texts of its fills, joined by commas
 */
export function orderJson(
  store: OrderStore,
  slot: number,
  { status, reason, remaining, updatedAt }: OrderState,
  trades: string,
): string {
  const packed = store.terms[slot]!;
  const quantity = store.quantities[slot]!;
  const expires = store.expiresAt[slot]!;
  const clientOrderId = store.clientOrderId(slot);
  const builderCode = store.builderCode(slot);
  return `{"id":${store.ids[slot]},"client_order_id":${
    clientOrderId === null ? "null" : `"${clientOrderId}"`
  },"market_id":${store.markets[slot]},"outcome_id":${store.outcomes[slot]},"side":${sideOf(packed)},"price":${
    // A market order whose owner set no bound has no price, whatever price bounds it in the book.
    typeOf(packed) === OrderType.unboundMarket ? "null" : store.prices[slot]
  },"quantity":${quantity},"remaining":${remaining},"filled":${quantity - remaining},"type":${
    TYPE_JSON[typeOf(packed)]
  },"time_in_force":${TIME_IN_FORCE_JSON[timeInForceOf(packed)]},"post_only":${
    (packed & FLAG_POST_ONLY) !== 0
  },"self_trade_prevention":${SELF_TRADE_JSON[selfTradePreventionOf(packed)]},"expires_at":${
    expires === 0 ? "null" : expires
  },"status":${STATUS_JSON[status]},"reason":${REASON_JSON[reason]},"builder_code":${
    builderCode === null ? "null" : `"${builderCode}"`
  },"created_at":${store.createdAt[slot]},"updated_at":${updatedAt},"trades":[${trades}]}`;
}

/** Adds timestamps to a text of `orderJson`. */
export function withTimestamps(orderText: string, timestamps: string): string {
  return `${orderText.slice(0, -1)},"timestamps":${timestamps}}`;
}

/** The live order in `slot` as it stands; one in flight as it was requested. */
export function liveOrderJson(store: OrderStore, slot: number): string {
  const status = store.statuses[slot] === IN_FLIGHT ? OrderStatus.queued : store.statuses[slot]!;
  const [remaining, updatedAt] = [store.remaining[slot]!, store.updatedAt[slot]!];
  return orderJson(store, slot, { status, reason: Reason.none, remaining, updatedAt }, "");
}

/** The response to the first request of a placement, whatever has become of the order since. */
export function firstAnswerJson(
  orderId: number,
  order: Placement,
  builderCode: string | null,
  createdAt: number,
): string {
  return JSON.stringify({
    id: orderId,
    client_order_id: order.clientOrderId,
    market_id: order.marketId,
    outcome_id: order.outcomeId,
    side: order.side,
    price: order.price,
    quantity: order.quantity,
    remaining: order.quantity,
    filled: 0,
    type: ORDER_TYPES[order.type],
    time_in_force: TIMES_IN_FORCE[order.timeInForce],
    post_only: order.postOnly,
    self_trade_prevention: SELF_TRADE_PREVENTIONS[order.selfTradePrevention],
    expires_at: order.expiresAt,
    status: ORDER_STATUSES[OrderStatus.queued],
    reason: null,
    builder_code: builderCode,
    created_at: createdAt,
    updated_at: createdAt,
    trades: [],
  });
}

/** One side of a match, as `order.updated` and `GET /orders/:id` show it. @param fill orderFilled @param fee micro-USDC */
export function fillJson(fill: EngineEvent, fee: number, rebate: number): string {
  const { fillId, matchId, price, quantity, role, matchType, time } = fill;
  return `{"id":${fillId},"match_id":${matchId},"price":${price},"quantity":${quantity},"role":${ROLE_JSON[role]},"match_type":${MATCH_TYPE_JSON[matchType]},"fee":${fee},"rebate":${rebate},"created_at":${time}}`;
}
