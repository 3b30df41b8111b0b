/**
 * Blocks and entries that the server sends, as 32-bit words, generated from sbe.xml by `npm run sbe`.
 * `at` is the first word's index. Null is -1, of money NULL_MONEY.
 */

/** The block of Rejected. */
export class Rejected {
  /** As in the JSON envelope: 0 or an error code. */
  code = 0;
  retryAfter = 0;
  rateLimit = 0;
  rateReset = 0;
}

export function writeRejected(words: Int32Array, at: number, from: Rejected): void {
  words[at] = from.code;
  words[at + 1] = from.retryAfter;
  words[at + 2] = from.rateLimit;
  words[at + 3] = from.rateReset;
}

/** The block of OrderAccepted, OrderUpdated. */
export class Order {
  /** Number of an order, match, fill, user; below 2^53. */
  orderId = 0;
  /** Milliseconds since the Unix epoch. */
  updatedAt = 0;
  /** Milliseconds since the Unix epoch. */
  createdAt = 0;
  /** Milliseconds since the Unix epoch. */
  expiresAt = 0;
  clientOrderIdLow = 0;
  clientOrderIdHigh = 0;
  /** Number of a market. */
  marketId = 0;
  /** Number of an outcome; unique across all markets. */
  outcomeId = 0;
  /** Shares, 1..1000000000. */
  quantity = 0;
  /** Shares, 1..1000000000. */
  remaining = 0;
  /** Basis points. */
  price = 0;
  side = 0;
  orderTerms = 0;
  selfTradePrevention = 0;
  status = 0;
  reason = 0;
  flags = 0;
}

export function writeOrder(words: Int32Array, at: number, from: Order): void {
  words[at] = from.orderId;
  words[at + 1] = from.orderId * 2 ** -32;
  words[at + 2] = from.updatedAt;
  words[at + 3] = from.updatedAt * 2 ** -32;
  words[at + 4] = from.createdAt;
  words[at + 5] = from.createdAt * 2 ** -32;
  words[at + 6] = from.expiresAt;
  words[at + 7] = Math.floor(from.expiresAt * 2 ** -32);
  words[at + 8] = from.clientOrderIdLow;
  words[at + 9] = from.clientOrderIdHigh;
  words[at + 10] = from.marketId;
  words[at + 11] = from.outcomeId;
  words[at + 12] = from.quantity;
  words[at + 13] = from.remaining;
  words[at + 14] = (from.price & 0xffff) | ((from.side & 0xff) << 16) | (from.orderTerms << 24);
  words[at + 15] =
    (from.selfTradePrevention & 0xff) | ((from.status & 0xff) << 8) | ((from.reason & 0xff) << 16) | (from.flags << 24);
}

/** The block of Done. */
export class Done {
  count = 0;
  rejected = 0;
}

export function writeDone(words: Int32Array, at: number, from: Done): void {
  words[at] = from.count;
  words[at + 1] = from.rejected;
}

/** The entry of OrdersCanceled.orders. */
export class CanceledOrder {
  /** Number of an order, match, fill, user; below 2^53. */
  orderId = 0;
}

export function writeCanceledOrder(words: Int32Array, at: number, from: CanceledOrder): void {
  words[at] = from.orderId;
  words[at + 1] = from.orderId * 2 ** -32;
}

/** The block of CancelAfterSet. */
export class CancelAfterSet {
  /** Milliseconds since the Unix epoch. */
  firesAt = 0;
  /** A span. */
  timeout = 0;
}

export function writeCancelAfterSet(words: Int32Array, at: number, from: CancelAfterSet): void {
  words[at] = from.firesAt;
  words[at + 1] = Math.floor(from.firesAt * 2 ** -32);
  words[at + 2] = from.timeout;
  words[at + 3] = 0;
}

/** The block of CancelOnDisconnectSet. */
export class CancelOnDisconnectSet {
  enabled = 0;
}

export function writeCancelOnDisconnectSet(words: Int32Array, at: number, from: CancelOnDisconnectSet): void {
  words[at] = from.enabled & 0xff;
  words[at + 1] = 0;
}

/** The entry of Subscriptions.subscriptions, Heartbeat.subscriptions. */
export class Subscribed {
  /** Number of a message of its stream. */
  sequence = 0;
  marketId = 0;
  outcomeId = 0;
  channel = 0;
}

export function writeSubscribed(words: Int32Array, at: number, from: Subscribed): void {
  words[at] = from.sequence;
  words[at + 1] = from.sequence * 2 ** -32;
  words[at + 2] = from.marketId;
  words[at + 3] = from.outcomeId;
  words[at + 4] = from.channel & 0xff;
}

/** The block of Resumed. */
export class Resumed {
  /** Number of a message of its stream. */
  after = 0;
  /** Number of a message of its stream. */
  last = 0;
}

export function writeResumed(words: Int32Array, at: number, from: Resumed): void {
  words[at] = from.after;
  words[at + 1] = from.after * 2 ** -32;
  words[at + 2] = from.last;
  words[at + 3] = from.last * 2 ** -32;
}

/** The block of Pong. */
export class Pong {
  /** Milliseconds since the Unix epoch. */
  now = 0;
}

export function writePong(words: Int32Array, at: number, from: Pong): void {
  words[at] = from.now;
  words[at + 1] = from.now * 2 ** -32;
}

/** The block of Authenticated. */
export class Authenticated {
  /** Number of an order, match, fill, user; below 2^53. */
  userId = 0;
  /** Milliseconds since the Unix epoch. */
  expiresAt = 0;
}

export function writeAuthenticated(words: Int32Array, at: number, from: Authenticated): void {
  words[at] = from.userId;
  words[at + 1] = from.userId * 2 ** -32;
  words[at + 2] = from.expiresAt;
  words[at + 3] = Math.floor(from.expiresAt * 2 ** -32);
}

/** The block of OrderTimestamps. */
export class OrderTimestamps {
  /** Number of an order, match, fill, user; below 2^53. */
  orderId = 0;
  /** Microseconds since the Unix epoch. */
  received = 0;
  /** Microseconds since the Unix epoch. */
  matched = 0;
  /** Microseconds since the Unix epoch. */
  durable = 0;
  /** Microseconds since the Unix epoch. */
  sent = 0;
}

export function writeOrderTimestamps(words: Int32Array, at: number, from: OrderTimestamps): void {
  words[at] = from.orderId;
  words[at + 1] = from.orderId * 2 ** -32;
  words[at + 2] = from.received;
  words[at + 3] = from.received * 2 ** -32;
  words[at + 4] = from.matched;
  words[at + 5] = from.matched * 2 ** -32;
  words[at + 6] = from.durable;
  words[at + 7] = from.durable * 2 ** -32;
  words[at + 8] = from.sent;
  words[at + 9] = from.sent * 2 ** -32;
}

/** The entry of OrderUpdated.fills. */
export class Fill {
  /** Number of an order, match, fill, user; below 2^53. */
  fillId = 0;
  /** Number of an order, match, fill, user; below 2^53. */
  matchId = 0;
  /** Micro-USDC. */
  fee = 0;
  /** Micro-USDC. */
  rebate = 0;
  /** Milliseconds since the Unix epoch. */
  createdAt = 0;
  /** Shares, 1..1000000000. */
  quantity = 0;
  /** Basis points, 1..9999. */
  price = 0;
  role = 0;
  matchType = 0;
}

export function writeFill(words: Int32Array, at: number, from: Fill): void {
  words[at] = from.fillId;
  words[at + 1] = from.fillId * 2 ** -32;
  words[at + 2] = from.matchId;
  words[at + 3] = from.matchId * 2 ** -32;
  words[at + 4] = from.fee;
  words[at + 5] = Math.floor(from.fee * 2 ** -32);
  words[at + 6] = from.rebate;
  words[at + 7] = Math.floor(from.rebate * 2 ** -32);
  words[at + 8] = from.createdAt;
  words[at + 9] = from.createdAt * 2 ** -32;
  words[at + 10] = from.quantity;
  words[at + 11] = (from.price & 0xffff) | ((from.role & 0xff) << 16) | (from.matchType << 24);
}

/** The block of BalanceUpdated. */
export class BalanceUpdated {
  /** Milliseconds since the Unix epoch. */
  ts = 0;
  /** Micro-USDC. */
  available = 0;
  /** Micro-USDC. */
  held = 0;
  /** Micro-USDC. */
  total = 0;
}

export function writeBalanceUpdated(words: Int32Array, at: number, from: BalanceUpdated): void {
  words[at] = from.ts;
  words[at + 1] = from.ts * 2 ** -32;
  words[at + 2] = from.available;
  words[at + 3] = Math.floor(from.available * 2 ** -32);
  words[at + 4] = from.held;
  words[at + 5] = Math.floor(from.held * 2 ** -32);
  words[at + 6] = from.total;
  words[at + 7] = Math.floor(from.total * 2 ** -32);
}

/** The block of PositionUpdated. */
export class PositionUpdated {
  /** Milliseconds since the Unix epoch. */
  ts = 0;
  /** Micro-USDC. */
  cost = 0;
  /** Micro-USDC. */
  realizedPnl = 0;
  /** Micro-USDC. */
  marketValue = 0;
  /** Shares, a sum. */
  quantity = 0;
  /** Shares, a sum. */
  held = 0;
  /** Number of a market. */
  marketId = 0;
  /** Number of an outcome; unique across all markets. */
  outcomeId = 0;
}

export function writePositionUpdated(words: Int32Array, at: number, from: PositionUpdated): void {
  words[at] = from.ts;
  words[at + 1] = from.ts * 2 ** -32;
  words[at + 2] = from.cost;
  words[at + 3] = Math.floor(from.cost * 2 ** -32);
  words[at + 4] = from.realizedPnl;
  words[at + 5] = Math.floor(from.realizedPnl * 2 ** -32);
  words[at + 6] = from.marketValue;
  words[at + 7] = Math.floor(from.marketValue * 2 ** -32);
  words[at + 8] = from.quantity;
  words[at + 9] = from.quantity * 2 ** -32;
  words[at + 10] = from.held;
  words[at + 11] = from.held * 2 ** -32;
  words[at + 12] = from.marketId;
  words[at + 13] = from.outcomeId;
}

/** The block of BookSnapshot. */
export class BookSnapshot {
  /** Milliseconds since the Unix epoch. */
  ts = 0;
  /** Milliseconds since the Unix epoch. */
  bookTs = 0;
  /** Number of a market. */
  marketId = 0;
  /** Number of an outcome; unique across all markets. */
  outcomeId = 0;
  implied = 0;
}

export function writeBookSnapshot(words: Int32Array, at: number, from: BookSnapshot): void {
  words[at] = from.ts;
  words[at + 1] = from.ts * 2 ** -32;
  words[at + 2] = from.bookTs;
  words[at + 3] = from.bookTs * 2 ** -32;
  words[at + 4] = from.marketId;
  words[at + 5] = from.outcomeId;
  words[at + 6] = from.implied & 0xff;
  words[at + 7] = 0;
}

/** The entry of BookSnapshot.bids, BookSnapshot.asks, BookSnapshot.impliedBids, BookSnapshot.impliedAsks, BookUpdated.bids, BookUpdated.asks, BookUpdated.impliedBids, BookUpdated.impliedAsks. */
export class Level {
  /** Shares, a sum. */
  quantity = 0;
  /** Basis points, 1..9999. */
  price = 0;
}

export function writeLevel(words: Int32Array, at: number, from: Level): void {
  words[at] = from.quantity;
  words[at + 1] = from.quantity * 2 ** -32;
  words[at + 2] = from.price & 0xffff;
}

/** The block of BookUpdated. */
export class BookUpdated {
  /** Milliseconds since the Unix epoch. */
  ts = 0;
  /** Number of a market. */
  marketId = 0;
  /** Number of an outcome; unique across all markets. */
  outcomeId = 0;
  implied = 0;
}

export function writeBookUpdated(words: Int32Array, at: number, from: BookUpdated): void {
  words[at] = from.ts;
  words[at + 1] = from.ts * 2 ** -32;
  words[at + 2] = from.marketId;
  words[at + 3] = from.outcomeId;
  words[at + 4] = from.implied & 0xff;
  words[at + 5] = 0;
}

/** The block of TradeCreated. */
export class TradeCreated {
  /** Milliseconds since the Unix epoch. */
  ts = 0;
  /** Number of an order, match, fill, user; below 2^53. */
  matchId = 0;
  /** Number of a market. */
  marketId = 0;
  /** Number of an outcome; unique across all markets. */
  outcomeId = 0;
  /** Shares, 1..1000000000. */
  quantity = 0;
  /** Basis points, 1..9999. */
  price = 0;
  side = 0;
  matchType = 0;
}

export function writeTradeCreated(words: Int32Array, at: number, from: TradeCreated): void {
  words[at] = from.ts;
  words[at + 1] = from.ts * 2 ** -32;
  words[at + 2] = from.matchId;
  words[at + 3] = from.matchId * 2 ** -32;
  words[at + 4] = from.marketId;
  words[at + 5] = from.outcomeId;
  words[at + 6] = from.quantity;
  words[at + 7] = (from.price & 0xffff) | ((from.side & 0xff) << 16) | (from.matchType << 24);
}

/** The block of TickerUpdated. */
export class TickerUpdated {
  /** Milliseconds since the Unix epoch. */
  ts = 0;
  /** Shares, a sum. */
  volume = 0;
  /** Number of a market. */
  marketId = 0;
  /** Number of an outcome; unique across all markets. */
  outcomeId = 0;
  /** Basis points. */
  lastPrice = 0;
  /** Basis points. */
  bestBid = 0;
  /** Basis points. */
  bestAsk = 0;
  /** Basis points. */
  impliedBid = 0;
  /** Basis points. */
  impliedAsk = 0;
  snapshot = 0;
}

export function writeTickerUpdated(words: Int32Array, at: number, from: TickerUpdated): void {
  words[at] = from.ts;
  words[at + 1] = from.ts * 2 ** -32;
  words[at + 2] = from.volume;
  words[at + 3] = from.volume * 2 ** -32;
  words[at + 4] = from.marketId;
  words[at + 5] = from.outcomeId;
  words[at + 6] = (from.lastPrice & 0xffff) | (from.bestBid << 16);
  words[at + 7] = (from.bestAsk & 0xffff) | (from.impliedBid << 16);
  words[at + 8] = (from.impliedAsk & 0xffff) | ((from.snapshot & 0xff) << 16);
  words[at + 9] = 0;
}

/** The block of MarketUpdated. */
export class MarketUpdated {
  /** Milliseconds since the Unix epoch. */
  ts = 0;
  /** Number of a market. */
  marketId = 0;
  status = 0;
  channel = 0;
  allMarkets = 0;
  snapshot = 0;
}

export function writeMarketUpdated(words: Int32Array, at: number, from: MarketUpdated): void {
  words[at] = from.ts;
  words[at + 1] = from.ts * 2 ** -32;
  words[at + 2] = from.marketId;
  words[at + 3] =
    (from.status & 0xff) | ((from.channel & 0xff) << 8) | ((from.allMarkets & 0xff) << 16) | (from.snapshot << 24);
}

/** The block of Heartbeat. */
export class Heartbeat {
  /** Milliseconds since the Unix epoch. */
  ts = 0;
  orders = 0;
}

export function writeHeartbeat(words: Int32Array, at: number, from: Heartbeat): void {
  words[at] = from.ts;
  words[at + 1] = from.ts * 2 ** -32;
  words[at + 2] = from.orders;
  words[at + 3] = Math.floor(from.orders * 2 ** -32);
}

/** The block of Shutdown. */
export class Shutdown {
  /** Milliseconds since the Unix epoch. */
  ts = 0;
  reason = 0;
}

export function writeShutdown(words: Int32Array, at: number, from: Shutdown): void {
  words[at] = from.ts;
  words[at + 1] = from.ts * 2 ** -32;
  words[at + 2] = from.reason & 0xff;
  words[at + 3] = 0;
}
