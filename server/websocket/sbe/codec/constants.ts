/** Numbers of the binary protocol, generated from sbe.xml by `npm run sbe`. */
export const SCHEMA_ID = 1;
export const SCHEMA_VERSION = 2;

export const NULL_MONEY = -(2 ** 63);

export const Template = {
  placeOrder: 1,
  cancelOrder: 2,
  amendOrder: 3,
  cancelAll: 4,
  cancelAfter: 5,
  cancelOnDisconnect: 6,
  replaceQuotes: 7,
  batch: 8,
  subscribe: 9,
  unsubscribe: 10,
  resume: 11,
  ping: 12,
  authenticate: 13,
  rejected: 101,
  orderAccepted: 102,
  done: 103,
  ordersCanceled: 104,
  cancelAfterSet: 105,
  cancelOnDisconnectSet: 106,
  subscriptions: 107,
  resumed: 108,
  pong: 109,
  authenticated: 110,
  orderTimestamps: 111,
  orderUpdated: 201,
  balanceUpdated: 202,
  positionUpdated: 203,
  bookSnapshot: 211,
  bookUpdated: 212,
  tradeCreated: 213,
  tickerUpdated: 214,
  marketUpdated: 215,
  heartbeat: 216,
  shutdown: 217,
} as const;

/** Bytes; a later version's are longer. */
export const BlockLength = {
  placeOrder: 48,
  cancelOrder: 16,
  amendOrder: 24,
  cancelAll: 24,
  cancelAfter: 8,
  cancelOnDisconnect: 8,
  replaceQuotes: 24,
  batch: 8,
  subscribe: 8,
  unsubscribe: 8,
  resume: 8,
  ping: 0,
  authenticate: 0,
  rejected: 16,
  orderAccepted: 64,
  done: 8,
  ordersCanceled: 0,
  cancelAfterSet: 16,
  cancelOnDisconnectSet: 8,
  subscriptions: 0,
  resumed: 16,
  pong: 8,
  authenticated: 16,
  orderTimestamps: 40,
  orderUpdated: 64,
  balanceUpdated: 32,
  positionUpdated: 56,
  bookSnapshot: 32,
  bookUpdated: 24,
  tradeCreated: 32,
  tickerUpdated: 40,
  marketUpdated: 16,
  heartbeat: 16,
  shutdown: 16,
} as const;

/** Bytes of a group's entry. */
export const EntryLength = {
  quote: 16,
  subscribedMarket: 4,
  canceledOrder: 8,
  subscribed: 20,
  fill: 48,
  level: 12,
} as const;

export const ShutdownReason = {
  restart: 0,
  standby: 1,
} as const;

export const Channel = {
  book: 0,
  impliedBook: 1,
  trades: 2,
  ticker: 3,
  markets: 4,
} as const;

export const OrderFlags = {
  postOnly: 1,
  timestamps: 2,
} as const;
