/**
 * Blocks and entries that clients send, as 32-bit words, generated from sbe.xml by `npm run sbe`.
 * `at` is the first word's index. Null is -1, of money NULL_MONEY.
 * A number of 64 bits beyond 2^53 is inexact, yet never between -1 and 2^53.
 */

/** The block of PlaceOrder. */
export class PlaceOrder {
  /** Number of an outcome; unique across all markets. */
  outcomeId = 0;
  /** Basis points. */
  price = 0;
  /** Shares, 1..1000000000. */
  quantity = 0;
  /** Number of a market. */
  marketId = 0;
  /** Milliseconds since the Unix epoch. */
  expiresAt = 0;
  /** Milliseconds since the Unix epoch. */
  validUntil = 0;
  clientOrderIdLow = 0;
  clientOrderIdHigh = 0;
  side = 0;
  orderType = 0;
  timeInForce = 0;
  selfTradePrevention = 0;
  flags = 0;
}

export function readPlaceOrder(words: Int32Array, at: number, into: PlaceOrder): void {
  into.outcomeId = words[at]! >>> 0;
  into.price = ((words[at + 1]! + 1) >>> 0) - 1;
  into.quantity = words[at + 2]! >>> 0;
  into.marketId = words[at + 3]! >>> 0;
  into.expiresAt = words[at + 5]! * 2 ** 32 + (words[at + 4]! >>> 0);
  into.validUntil = words[at + 7]! * 2 ** 32 + (words[at + 6]! >>> 0);
  into.clientOrderIdLow = words[at + 8]!;
  into.clientOrderIdHigh = words[at + 9]!;
  into.side = words[at + 10]! & 0xff;
  into.orderType = (((words[at + 10]! >>> 8) + 1) & 0xff) - 1;
  into.timeInForce = (((words[at + 10]! >>> 16) + 1) & 0xff) - 1;
  into.selfTradePrevention = (((words[at + 10]! >>> 24) + 1) & 0xff) - 1;
  into.flags = words[at + 11]! & 0xff;
}

/** The block of CancelOrder. */
export class CancelOrder {
  orderId = 0;
  clientOrderIdLow = 0;
  clientOrderIdHigh = 0;
}

export function readCancelOrder(words: Int32Array, at: number, into: CancelOrder): void {
  into.orderId = words[at + 1]! * 2 ** 32 + (words[at]! >>> 0);
  into.clientOrderIdLow = words[at + 2]!;
  into.clientOrderIdHigh = words[at + 3]!;
}

/** The block of AmendOrder. */
export class AmendOrder {
  /** Number of an order, match, fill, user; below 2^53. */
  orderId = 0;
  /** Milliseconds since the Unix epoch. */
  validUntil = 0;
  /** Basis points. */
  price = 0;
  /** Shares. */
  quantity = 0;
}

export function readAmendOrder(words: Int32Array, at: number, into: AmendOrder): void {
  into.orderId = words[at + 1]! * 2 ** 32 + (words[at]! >>> 0);
  into.validUntil = words[at + 3]! * 2 ** 32 + (words[at + 2]! >>> 0);
  into.price = ((words[at + 4]! + 1) >>> 0) - 1;
  into.quantity = ((words[at + 5]! + 1) >>> 0) - 1;
}

/** The block of CancelAll. */
export class CancelAll {
  clientOrderIdLow = 0;
  clientOrderIdHigh = 0;
  marketId = 0;
  outcomeId = 0;
  side = 0;
}

export function readCancelAll(words: Int32Array, at: number, into: CancelAll): void {
  into.clientOrderIdLow = words[at]!;
  into.clientOrderIdHigh = words[at + 1]!;
  into.marketId = ((words[at + 2]! + 1) >>> 0) - 1;
  into.outcomeId = ((words[at + 3]! + 1) >>> 0) - 1;
  into.side = ((words[at + 4]! + 1) & 0xff) - 1;
}

/** The block of CancelAfter. */
export class CancelAfter {
  /** A span. */
  timeout = 0;
}

export function readCancelAfter(words: Int32Array, at: number, into: CancelAfter): void {
  into.timeout = words[at]! >>> 0;
}

/** The block of CancelOnDisconnect. */
export class CancelOnDisconnect {
  enabled = 0;
}

export function readCancelOnDisconnect(words: Int32Array, at: number, into: CancelOnDisconnect): void {
  into.enabled = words[at]! & 0xff;
}

/** The block of ReplaceQuotes. */
export class ReplaceQuotes {
  /** Milliseconds since the Unix epoch. */
  expiresAt = 0;
  /** Milliseconds since the Unix epoch. */
  validUntil = 0;
  /** Number of a market. */
  marketId = 0;
}

export function readReplaceQuotes(words: Int32Array, at: number, into: ReplaceQuotes): void {
  into.expiresAt = words[at + 1]! * 2 ** 32 + (words[at]! >>> 0);
  into.validUntil = words[at + 3]! * 2 ** 32 + (words[at + 2]! >>> 0);
  into.marketId = words[at + 4]! >>> 0;
}

/** The entry of ReplaceQuotes.quotes. */
export class Quote {
  /** Number of an outcome; unique across all markets. */
  outcomeId = 0;
  /** Basis points, 1..9999, as wide as the engine's record. */
  price = 0;
  /** Shares, 1..1000000000. */
  quantity = 0;
  side = 0;
}

export function readQuote(words: Int32Array, at: number, into: Quote): void {
  into.outcomeId = words[at]! >>> 0;
  into.price = words[at + 1]! >>> 0;
  into.quantity = words[at + 2]! >>> 0;
  into.side = words[at + 3]! & 0xff;
}

/** The block of Batch. */
export class Batch {
  count = 0;
}

export function readBatch(words: Int32Array, at: number, into: Batch): void {
  into.count = words[at]! & 0xffff;
}

/** The block of Subscribe, Unsubscribe. */
export class Subscription {
  channel = 0;
  outcomeId = 0;
}

export function readSubscription(words: Int32Array, at: number, into: Subscription): void {
  into.channel = words[at]! & 0xff;
  into.outcomeId = ((words[at + 1]! + 1) >>> 0) - 1;
}

/** The entry of Subscribe.markets, Unsubscribe.markets. */
export class SubscribedMarket {
  /** Number of a market. */
  marketId = 0;
}

export function readSubscribedMarket(words: Int32Array, at: number, into: SubscribedMarket): void {
  into.marketId = words[at]! >>> 0;
}

/** The block of Resume. */
export class Resume {
  /** Number of a message of its stream. */
  sequence = 0;
}

export function readResume(words: Int32Array, at: number, into: Resume): void {
  into.sequence = words[at + 1]! * 2 ** 32 + (words[at]! >>> 0);
}
