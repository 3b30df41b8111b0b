/** Writes orders and fills as JSON text, field by field: the hot answers are made of these, never of objects. */
import {
  MATCH_TYPES,
  ORDER_STATUSES,
  ORDER_TYPES,
  REASONS,
  ROLES,
  SELF_TRADE_PREVENTIONS,
  TIMES_IN_FORCE,
} from "../engine/constants.ts";
import { FLAG_POST_ONLY, FLAG_TEXT, selfTradePreventionOf, sideOf, timeInForceOf, typeOf } from "../engine/records.ts";
import type { OrderStore } from "./order-store.ts";

const quoted = (names: readonly (string | null)[]): readonly string[] => names.map((name) => JSON.stringify(name));
const STATUS_JSON = quoted(ORDER_STATUSES);
const REASON_JSON = quoted(REASONS);
const TYPE_JSON = quoted(ORDER_TYPES);
const TIME_IN_FORCE_JSON = quoted(TIMES_IN_FORCE);
const SELF_TRADE_JSON = quoted(SELF_TRADE_PREVENTIONS);
const MATCH_TYPE_JSON = quoted(MATCH_TYPES);
const ROLE_JSON = quoted(ROLES);

/**
 * The live order in `slot` as the contract's order object, with the state given.
 * @param trades JSON texts of its fills, joined by commas
 */
export function orderJson(
  store: OrderStore,
  slot: number,
  status: number,
  reason: number,
  remaining: number,
  updatedAt: number,
  trades: string,
): string {
  const packed = store.packed[slot]!;
  const quantity = store.quantities[slot]!;
  const expires = store.expiresAt[slot]!;
  return `{"id":${store.ids[slot]},"client_order_id":${
    (packed & FLAG_TEXT) === 0 ? "null" : `"${store.texts.read(slot)}"`
  },"market_id":${store.markets[slot]},"outcome_id":${store.outcomes[slot]},"side":${sideOf(packed)},"price":${
    store.prices[slot]
  },"quantity":${quantity},"remaining":${remaining},"filled":${quantity - remaining},"type":${
    TYPE_JSON[typeOf(packed)]
  },"time_in_force":${TIME_IN_FORCE_JSON[timeInForceOf(packed)]},"post_only":${
    (packed & FLAG_POST_ONLY) !== 0
  },"self_trade_prevention":${SELF_TRADE_JSON[selfTradePreventionOf(packed)]},"expires_at":${
    expires === 0 ? "null" : expires
  },"status":${STATUS_JSON[status]},"reason":${REASON_JSON[reason]},"created_at":${
    store.createdAt[slot]
  },"updated_at":${updatedAt},"trades":[${trades}]}`;
}

/** One side of a match, as `order.updated` and `GET /orders/:id` show it. */
export function fillJson(
  id: number,
  matchId: number,
  price: number,
  quantity: number,
  role: number,
  matchType: number,
  fee: number,
  rebate: number,
  at: number,
): string {
  return `{"id":${id},"match_id":${matchId},"price":${price},"quantity":${quantity},"role":${ROLE_JSON[role]},"match_type":${MATCH_TYPE_JSON[matchType]},"fee":${fee},"rebate":${rebate},"created_at":${at}}`;
}

/** A match from its taker's side. */
export function tradeJson(
  matchId: number,
  marketId: number,
  outcomeId: number,
  side: number,
  price: number,
  quantity: number,
  matchType: number,
  at: number,
): string {
  return `{"id":${matchId},"market_id":${marketId},"outcome_id":${outcomeId},"side":${side},"price":${price},"quantity":${quantity},"match_type":${MATCH_TYPE_JSON[matchType]},"created_at":${at}}`;
}
