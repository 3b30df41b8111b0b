/**
 * The vocabulary of orders, fills and events as small integers, for records, books and database rows, with the words that
 * clients see. Never change a number: databases contain them.
 */

export const Side = { buy: 1, sell: 2 } as const;
export type Side = (typeof Side)[keyof typeof Side];

/** A market order without a price has its own code: its bound is not a price from its owner. */
export const OrderType = { limit: 0, market: 1, unboundMarket: 2 } as const;
export type OrderType = (typeof OrderType)[keyof typeof OrderType];
export const ORDER_TYPES = ["limit", "market", "market"] as const;

export const TimeInForce = { gtc: 0, gtd: 1, ioc: 2, fok: 3 } as const;
export type TimeInForce = (typeof TimeInForce)[keyof typeof TimeInForce];
export const TIMES_IN_FORCE = ["gtc", "gtd", "ioc", "fok"] as const;
/** The time in force of an order that rests until `expiresAt` (ms), or until it is canceled if that is 0. */
export const restingTimeInForce = (expiresAt: number): TimeInForce =>
  expiresAt === 0 ? TimeInForce.gtc : TimeInForce.gtd;

export const SelfTradePrevention = { cancelTaker: 0, cancelMaker: 1, cancelBoth: 2, decrement: 3 } as const;
export type SelfTradePrevention = (typeof SelfTradePrevention)[keyof typeof SelfTradePrevention];
export const SELF_TRADE_PREVENTIONS = ["cancel_taker", "cancel_maker", "cancel_both", "decrement"] as const;

/** From 2 on: SQLite stores 0 and 1 without a byte, and a row that grows when its order ends can split its page. */
export const OrderStatus = {
  queued: 2,
  open: 3,
  partiallyFilled: 4,
  filled: 5,
  canceled: 6,
  expired: 7,
  rejected: 8,
} as const;
export type OrderStatus = (typeof OrderStatus)[keyof typeof OrderStatus];
export const ORDER_STATUSES = [
  null,
  null,
  "queued",
  "open",
  "partially_filled",
  "filled",
  "canceled",
  "expired",
  "rejected",
] as const;

/** True for a status that never changes again. */
export function isFinal(status: number): boolean {
  return status >= OrderStatus.filled;
}

export const Reason = {
  none: 0,
  user: 1,
  postOnlyWouldCross: 2,
  fokUnfillable: 3,
  iocRemainder: 4,
  selfTrade: 5,
  marketClosed: 6,
  marketHalted: 7,
  cancelOnDisconnect: 8,
  operator: 9,
  tooLate: 10,
  expired: 11,
  cancelAfter: 12,
} as const;
export type Reason = (typeof Reason)[keyof typeof Reason];
export const REASONS = [
  null,
  "user",
  "post_only_would_cross",
  "fok_unfillable",
  "ioc_remainder",
  "self_trade",
  "market_closed",
  "market_halted",
  "cancel_on_disconnect",
  "operator",
  "too_late",
  "expired",
  "cancel_after",
] as const;

export const MatchType = { direct: 0, mint: 1, merge: 2 } as const;
export type MatchType = (typeof MatchType)[keyof typeof MatchType];
export const MATCH_TYPES = ["direct", "mint", "merge"] as const;

export const Role = { maker: 0, taker: 1 } as const;
export type Role = (typeof Role)[keyof typeof Role];
export const ROLES = ["maker", "taker"] as const;

export const MarketStatus = {
  proposed: 0,
  open: 1,
  halted: 2,
  closed: 3,
  resolved: 4,
  voided: 5,
  rejected: 6,
} as const;
export type MarketStatus = (typeof MarketStatus)[keyof typeof MarketStatus];
export const MARKET_STATUSES = ["proposed", "open", "halted", "closed", "resolved", "voided", "rejected"] as const;

/** The intervals of candles in minutes, by their names in the API. */
export const CANDLE_MINUTES = { "1m": 1, "5m": 5, "1h": 60, "1d": 1_440 } as const;
