/* Orders and market data of the exchange in binary: structs, readers and writers. C99 and C++, no dependency.
   Generated from sbe.xml by "npm run sbe"; docs/sbe.md describes the protocol. */
#ifndef EXCHANGE_SBE_H
#define EXCHANGE_SBE_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#if defined(__BYTE_ORDER__) && __BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__
#error "the structs are little endian: swap the bytes of each field"
#endif

#define EXCHANGE_ASSERT(name, holds) typedef char name[(holds) ? 1 : -1]

#define EXCHANGE_SCHEMA_ID 1
#define EXCHANGE_SCHEMA_VERSION 2
#define EXCHANGE_NULL_U8 UINT8_MAX
#define EXCHANGE_NULL_U16 UINT16_MAX
#define EXCHANGE_NULL_U32 UINT32_MAX
#define EXCHANGE_NULL_U64 UINT64_MAX
#define EXCHANGE_NULL_I64 INT64_MIN

/* Template ids. */
enum {
  EXCHANGE_TEMPLATE_PLACE_ORDER = 1,
  EXCHANGE_TEMPLATE_CANCEL_ORDER = 2,
  EXCHANGE_TEMPLATE_AMEND_ORDER = 3,
  EXCHANGE_TEMPLATE_CANCEL_ALL = 4,
  EXCHANGE_TEMPLATE_CANCEL_AFTER = 5,
  EXCHANGE_TEMPLATE_CANCEL_ON_DISCONNECT = 6,
  EXCHANGE_TEMPLATE_REPLACE_QUOTES = 7,
  EXCHANGE_TEMPLATE_BATCH = 8,
  EXCHANGE_TEMPLATE_SUBSCRIBE = 9,
  EXCHANGE_TEMPLATE_UNSUBSCRIBE = 10,
  EXCHANGE_TEMPLATE_RESUME = 11,
  EXCHANGE_TEMPLATE_PING = 12,
  EXCHANGE_TEMPLATE_AUTHENTICATE = 13,
  EXCHANGE_TEMPLATE_REJECTED = 101,
  EXCHANGE_TEMPLATE_ORDER_ACCEPTED = 102,
  EXCHANGE_TEMPLATE_DONE = 103,
  EXCHANGE_TEMPLATE_ORDERS_CANCELED = 104,
  EXCHANGE_TEMPLATE_CANCEL_AFTER_SET = 105,
  EXCHANGE_TEMPLATE_CANCEL_ON_DISCONNECT_SET = 106,
  EXCHANGE_TEMPLATE_SUBSCRIPTIONS = 107,
  EXCHANGE_TEMPLATE_RESUMED = 108,
  EXCHANGE_TEMPLATE_PONG = 109,
  EXCHANGE_TEMPLATE_AUTHENTICATED = 110,
  EXCHANGE_TEMPLATE_ORDER_TIMESTAMPS = 111,
  EXCHANGE_TEMPLATE_ORDER_UPDATED = 201,
  EXCHANGE_TEMPLATE_BALANCE_UPDATED = 202,
  EXCHANGE_TEMPLATE_POSITION_UPDATED = 203,
  EXCHANGE_TEMPLATE_BOOK_SNAPSHOT = 211,
  EXCHANGE_TEMPLATE_BOOK_UPDATED = 212,
  EXCHANGE_TEMPLATE_TRADE_CREATED = 213,
  EXCHANGE_TEMPLATE_TICKER_UPDATED = 214,
  EXCHANGE_TEMPLATE_MARKET_UPDATED = 215,
  EXCHANGE_TEMPLATE_HEARTBEAT = 216,
  EXCHANGE_TEMPLATE_SHUTDOWN = 217
};

/* Side: side. */
enum {
  EXCHANGE_SIDE_BUY = 1,
  EXCHANGE_SIDE_SELL = 2
};

/* OrderType: limit where null. */
enum {
  EXCHANGE_ORDER_TYPE_LIMIT = 0,
  EXCHANGE_ORDER_TYPE_MARKET = 1
};

/* TimeInForce: where null gtc, or ioc of a market order. */
enum {
  EXCHANGE_TIME_IN_FORCE_GTC = 0,
  EXCHANGE_TIME_IN_FORCE_GTD = 1,
  EXCHANGE_TIME_IN_FORCE_IOC = 2,
  EXCHANGE_TIME_IN_FORCE_FOK = 3
};

/* OrderTerms: order type and time in force together: type * 16 + time in force. */
enum {
  EXCHANGE_ORDER_TERMS_LIMIT_GTC = 0,
  EXCHANGE_ORDER_TERMS_LIMIT_GTD = 1,
  EXCHANGE_ORDER_TERMS_LIMIT_IOC = 2,
  EXCHANGE_ORDER_TERMS_LIMIT_FOK = 3,
  EXCHANGE_ORDER_TERMS_MARKET_IOC = 18,
  EXCHANGE_ORDER_TERMS_MARKET_FOK = 19
};

/* SelfTradePrevention: cancelTaker where null. */
enum {
  EXCHANGE_SELF_TRADE_PREVENTION_CANCEL_TAKER = 0,
  EXCHANGE_SELF_TRADE_PREVENTION_CANCEL_MAKER = 1,
  EXCHANGE_SELF_TRADE_PREVENTION_CANCEL_BOTH = 2,
  EXCHANGE_SELF_TRADE_PREVENTION_DECREMENT = 3
};

/* OrderStatus: numbers as in the engine's records. */
enum {
  EXCHANGE_ORDER_STATUS_QUEUED = 2,
  EXCHANGE_ORDER_STATUS_OPEN = 3,
  EXCHANGE_ORDER_STATUS_PARTIALLY_FILLED = 4,
  EXCHANGE_ORDER_STATUS_FILLED = 5,
  EXCHANGE_ORDER_STATUS_CANCELED = 6,
  EXCHANGE_ORDER_STATUS_EXPIRED = 7,
  EXCHANGE_ORDER_STATUS_REJECTED = 8
};

/* Reason: of canceled, expired and rejected orders. */
enum {
  EXCHANGE_REASON_NONE = 0,
  EXCHANGE_REASON_USER = 1,
  EXCHANGE_REASON_POST_ONLY_WOULD_CROSS = 2,
  EXCHANGE_REASON_FOK_UNFILLABLE = 3,
  EXCHANGE_REASON_IOC_REMAINDER = 4,
  EXCHANGE_REASON_SELF_TRADE = 5,
  EXCHANGE_REASON_MARKET_CLOSED = 6,
  EXCHANGE_REASON_MARKET_HALTED = 7,
  EXCHANGE_REASON_CANCEL_ON_DISCONNECT = 8,
  EXCHANGE_REASON_BY_OPERATOR = 9,
  EXCHANGE_REASON_TOO_LATE = 10,
  EXCHANGE_REASON_EXPIRED = 11,
  EXCHANGE_REASON_CANCEL_AFTER = 12
};

/* MatchType. */
enum {
  EXCHANGE_MATCH_TYPE_DIRECT = 0,
  EXCHANGE_MATCH_TYPE_MINT = 1,
  EXCHANGE_MATCH_TYPE_MERGE = 2
};

/* ShutdownReason: restart: the same server comes back; standby: another one goes on. */
enum {
  EXCHANGE_SHUTDOWN_REASON_RESTART = 0,
  EXCHANGE_SHUTDOWN_REASON_STANDBY = 1
};

/* Role. */
enum {
  EXCHANGE_ROLE_MAKER = 0,
  EXCHANGE_ROLE_TAKER = 1
};

/* MarketStatus. */
enum {
  EXCHANGE_MARKET_STATUS_PROPOSED = 0,
  EXCHANGE_MARKET_STATUS_OPEN = 1,
  EXCHANGE_MARKET_STATUS_HALTED = 2,
  EXCHANGE_MARKET_STATUS_CLOSED = 3,
  EXCHANGE_MARKET_STATUS_RESOLVED = 4,
  EXCHANGE_MARKET_STATUS_VOIDED = 5,
  EXCHANGE_MARKET_STATUS_REJECTED = 6
};

/* Channel. */
enum {
  EXCHANGE_CHANNEL_BOOK = 0,
  EXCHANGE_CHANNEL_IMPLIED_BOOK = 1,
  EXCHANGE_CHANNEL_TRADES = 2,
  EXCHANGE_CHANNEL_TICKER = 3,
  EXCHANGE_CHANNEL_MARKETS = 4
};

/* Switch. */
enum {
  EXCHANGE_SWITCH_OFF = 0,
  EXCHANGE_SWITCH_ON = 1
};

/* OrderFlags: bits. */
enum {
  EXCHANGE_ORDER_FLAGS_POST_ONLY = 1,
  EXCHANGE_ORDER_FLAGS_TIMESTAMPS = 2
};

#pragma pack(push, 1)

/* Before each block. */
struct exchange_message_header {
  uint16_t block_length;
  uint16_t template_id;
  uint16_t schema_id;
  uint16_t version;
  uint32_t message_length; /* from this header's first byte to the next one's */
  uint16_t index; /* responses: the place in a batch or in quotes, from 0; may be null */
  uint16_t rate_remaining; /* responses that the limits count: requests left, 65534 for more; may be null */
  uint64_t id; /* requests, responses: the client's number; events: the sequence; may be null */
};
EXCHANGE_ASSERT(exchange_message_header_length, sizeof(struct exchange_message_header) == 24);
/* Null where null is allowed, otherwise 0. */
#define EXCHANGE_MESSAGE_HEADER_INIT { 0, 0, 0, 0, 0, EXCHANGE_NULL_U16, EXCHANGE_NULL_U16, EXCHANGE_NULL_U64 }

/* PlaceOrder (1): order.place. Words 0..3 are words 3..6 of the engine's command; the two times are the values of its doubles 6 and 7. clientOrderId n and the text of n's decimal digits name the same order. Behind the block: text8 client_order_text, text8 builder_code. */
struct exchange_place_order {
  uint32_t outcome_id; /* number of an outcome; unique across all markets */
  uint32_t price; /* basis points; may be null */
  uint32_t quantity; /* shares, 1..1000000000 */
  uint32_t market_id; /* number of a market */
  uint64_t expires_at; /* milliseconds since the Unix epoch; may be null */
  uint64_t valid_until; /* milliseconds since the Unix epoch; may be null */
  uint64_t client_order_id; /* the client's number of an order; all 64 bits count; may be null */
  uint8_t side; /* Side */
  uint8_t order_type; /* OrderType; may be null */
  uint8_t time_in_force; /* TimeInForce; may be null */
  uint8_t self_trade_prevention; /* SelfTradePrevention; may be null */
  uint8_t flags; /* OrderFlags */
  uint8_t padding;
  uint16_t padding2;
};
EXCHANGE_ASSERT(exchange_place_order_length, sizeof(struct exchange_place_order) == 48);
/* Null where null is allowed, otherwise 0. */
#define EXCHANGE_PLACE_ORDER_INIT { 0, EXCHANGE_NULL_U32, 0, 0, EXCHANGE_NULL_U64, EXCHANGE_NULL_U64, EXCHANGE_NULL_U64, 0, EXCHANGE_NULL_U8, EXCHANGE_NULL_U8, EXCHANGE_NULL_U8, 0, 0, 0 }

/* CancelOrder (2): order.cancel. Exactly one of the three names the order. Behind the block: text8 client_order_text. */
struct exchange_cancel_order {
  uint64_t order_id; /* may be null */
  uint64_t client_order_id; /* the client's number of an order; all 64 bits count; may be null */
};
EXCHANGE_ASSERT(exchange_cancel_order_length, sizeof(struct exchange_cancel_order) == 16);
/* Null where null is allowed, otherwise 0. */
#define EXCHANGE_CANCEL_ORDER_INIT { EXCHANGE_NULL_U64, EXCHANGE_NULL_U64 }

/* AmendOrder (3): order.amend. quantity: the new total; null leaves a field as it is. */
struct exchange_amend_order {
  uint64_t order_id; /* number of an order, match, fill, user; below 2^53 */
  uint64_t valid_until; /* milliseconds since the Unix epoch; may be null */
  uint32_t price; /* basis points; may be null */
  uint32_t quantity; /* shares; may be null */
};
EXCHANGE_ASSERT(exchange_amend_order_length, sizeof(struct exchange_amend_order) == 24);
/* Null where null is allowed, otherwise 0. */
#define EXCHANGE_AMEND_ORDER_INIT { 0, EXCHANGE_NULL_U64, EXCHANGE_NULL_U32, EXCHANGE_NULL_U32 }

/* CancelAll (4): order.cancel_all. Null filters match every order; side null: both. Behind the block: text8 client_order_text. */
struct exchange_cancel_all {
  uint64_t client_order_id; /* the client's number of an order; all 64 bits count; may be null */
  uint32_t market_id; /* may be null */
  uint32_t outcome_id; /* may be null */
  uint8_t side; /* Side; may be null */
  uint8_t padding;
  uint16_t padding2;
  uint32_t padding3;
};
EXCHANGE_ASSERT(exchange_cancel_all_length, sizeof(struct exchange_cancel_all) == 24);
/* Null where null is allowed, otherwise 0. */
#define EXCHANGE_CANCEL_ALL_INIT { EXCHANGE_NULL_U64, EXCHANGE_NULL_U32, EXCHANGE_NULL_U32, EXCHANGE_NULL_U8, 0, 0, 0 }

/* CancelAfter (5): order.cancel_after. 1000..300000, 0 ends the timer. */
struct exchange_cancel_after {
  uint32_t timeout; /* a span */
  uint32_t padding;
};
EXCHANGE_ASSERT(exchange_cancel_after_length, sizeof(struct exchange_cancel_after) == 8);
/* Null where null is allowed, otherwise 0. */
#define EXCHANGE_CANCEL_AFTER_INIT { 0, 0 }

/* CancelOnDisconnect (6): cancel_on_disconnect. */
struct exchange_cancel_on_disconnect {
  uint8_t enabled; /* Switch */
  uint8_t padding;
  uint16_t padding2;
  uint32_t padding3;
};
EXCHANGE_ASSERT(exchange_cancel_on_disconnect_length, sizeof(struct exchange_cancel_on_disconnect) == 8);
/* Null where null is allowed, otherwise 0. */
#define EXCHANGE_CANCEL_ON_DISCONNECT_INIT { 0, 0, 0, 0 }

/* ReplaceQuotes (7): quotes.replace. Up to 100 quotes. Behind the block: group quotes of struct exchange_quote, text8 builder_code. */
struct exchange_replace_quotes {
  uint64_t expires_at; /* milliseconds since the Unix epoch; may be null */
  uint64_t valid_until; /* milliseconds since the Unix epoch; may be null */
  uint32_t market_id; /* number of a market */
  uint32_t padding;
};
EXCHANGE_ASSERT(exchange_replace_quotes_length, sizeof(struct exchange_replace_quotes) == 24);
/* Null where null is allowed, otherwise 0. */
#define EXCHANGE_REPLACE_QUOTES_INIT { EXCHANGE_NULL_U64, EXCHANGE_NULL_U64, 0, 0 }

/* An entry of replace_quotes.quotes. */
struct exchange_quote {
  uint32_t outcome_id; /* number of an outcome; unique across all markets */
  uint32_t price; /* basis points, 1..9999, as wide as the engine's record */
  uint32_t quantity; /* shares, 1..1000000000 */
  uint8_t side; /* Side */
  uint8_t padding;
  uint16_t padding2;
};
EXCHANGE_ASSERT(exchange_quote_length, sizeof(struct exchange_quote) == 16);
/* Null where null is allowed, otherwise 0. */
#define EXCHANGE_QUOTE_INIT { 0, 0, 0, 0, 0, 0 }

/* Batch (8): order.batch. The next count messages of the same frame (1..50 of templates 1..3) are its operations. */
struct exchange_batch {
  uint16_t count;
  uint16_t padding;
  uint32_t padding2;
};
EXCHANGE_ASSERT(exchange_batch_length, sizeof(struct exchange_batch) == 8);
/* Null where null is allowed, otherwise 0. */
#define EXCHANGE_BATCH_INIT { 0, 0, 0 }

/* Subscribe (9): subscribe. No markets: all of them, for the channel markets alone. Behind the block: group markets of struct exchange_subscribed_market.
   Unsubscribe (10): unsubscribe. Behind the block: group markets of struct exchange_subscribed_market. */
struct exchange_subscription {
  uint8_t channel; /* Channel */
  uint8_t padding;
  uint16_t padding2;
  uint32_t outcome_id; /* may be null */
};
EXCHANGE_ASSERT(exchange_subscription_length, sizeof(struct exchange_subscription) == 8);
/* Null where null is allowed, otherwise 0. */
#define EXCHANGE_SUBSCRIPTION_INIT { 0, 0, 0, EXCHANGE_NULL_U32 }

/* An entry of subscribe.markets, unsubscribe.markets. */
struct exchange_subscribed_market {
  uint32_t market_id; /* number of a market */
};
EXCHANGE_ASSERT(exchange_subscribed_market_length, sizeof(struct exchange_subscribed_market) == 4);
/* Null where null is allowed, otherwise 0. */
#define EXCHANGE_SUBSCRIBED_MARKET_INIT { 0 }

/* Resume (11): resume. */
struct exchange_resume {
  uint64_t sequence; /* number of a message of its stream */
};
EXCHANGE_ASSERT(exchange_resume_length, sizeof(struct exchange_resume) == 8);
/* Null where null is allowed, otherwise 0. */
#define EXCHANGE_RESUME_INIT { 0 }

/* Rejected (101): an error: the envelope's code and msg, and trace_id where the code is a 5xx's. Behind the block: text16 message, text8 trace_id. */
struct exchange_rejected {
  uint32_t code; /* as in the JSON envelope: 0 or an error code */
  uint32_t retry_after; /* may be null */
  uint32_t rate_limit; /* may be null */
  uint32_t rate_reset; /* may be null */
};
EXCHANGE_ASSERT(exchange_rejected_length, sizeof(struct exchange_rejected) == 16);
/* Null where null is allowed, otherwise 0. */
#define EXCHANGE_REJECTED_INIT { 0, EXCHANGE_NULL_U32, EXCHANGE_NULL_U32, EXCHANGE_NULL_U32 }

/* OrderAccepted (102): response to PlaceOrder, CancelOrder, AmendOrder, and of each quote: the order at that moment. Behind the block: text8 client_order_text, text8 builder_code.
   OrderUpdated (201): order.updated; updatedAt is also the ts of the JSON frame. Behind the block: group fills of struct exchange_fill, text8 client_order_text, text8 builder_code. */
struct exchange_order {
  uint64_t order_id; /* number of an order, match, fill, user; below 2^53 */
  uint64_t updated_at; /* milliseconds since the Unix epoch */
  uint64_t created_at; /* milliseconds since the Unix epoch */
  uint64_t expires_at; /* milliseconds since the Unix epoch; may be null */
  uint64_t client_order_id; /* the client's number of an order; all 64 bits count; may be null */
  uint32_t market_id; /* number of a market */
  uint32_t outcome_id; /* number of an outcome; unique across all markets */
  uint32_t quantity; /* shares, 1..1000000000 */
  uint32_t remaining; /* shares, 1..1000000000 */
  uint16_t price; /* basis points; may be null */
  uint8_t side; /* Side */
  uint8_t order_terms; /* OrderTerms */
  uint8_t self_trade_prevention; /* SelfTradePrevention; may be null */
  uint8_t status; /* OrderStatus */
  uint8_t reason; /* Reason */
  uint8_t flags; /* OrderFlags */
};
EXCHANGE_ASSERT(exchange_order_length, sizeof(struct exchange_order) == 64);
/* Null where null is allowed, otherwise 0. */
#define EXCHANGE_ORDER_INIT { 0, 0, 0, EXCHANGE_NULL_U64, EXCHANGE_NULL_U64, 0, 0, 0, 0, EXCHANGE_NULL_U16, 0, 0, EXCHANGE_NULL_U8, 0, 0, 0 }

/* Done (103): the last response to a Batch or ReplaceQuotes: count results were sent, of which rejected failed. */
struct exchange_done {
  uint32_t count;
  uint32_t rejected;
};
EXCHANGE_ASSERT(exchange_done_length, sizeof(struct exchange_done) == 8);
/* Null where null is allowed, otherwise 0. */
#define EXCHANGE_DONE_INIT { 0, 0 }

/* An entry of orders_canceled.orders. */
struct exchange_canceled_order {
  uint64_t order_id; /* number of an order, match, fill, user; below 2^53 */
};
EXCHANGE_ASSERT(exchange_canceled_order_length, sizeof(struct exchange_canceled_order) == 8);
/* Null where null is allowed, otherwise 0. */
#define EXCHANGE_CANCELED_ORDER_INIT { 0 }

/* CancelAfterSet (105): response to CancelAfter. */
struct exchange_cancel_after_set {
  uint64_t fires_at; /* milliseconds since the Unix epoch; may be null */
  uint32_t timeout; /* a span */
  uint32_t padding;
};
EXCHANGE_ASSERT(exchange_cancel_after_set_length, sizeof(struct exchange_cancel_after_set) == 16);
/* Null where null is allowed, otherwise 0. */
#define EXCHANGE_CANCEL_AFTER_SET_INIT { EXCHANGE_NULL_U64, 0, 0 }

/* CancelOnDisconnectSet (106): response to CancelOnDisconnect. */
struct exchange_cancel_on_disconnect_set {
  uint8_t enabled; /* Switch */
  uint8_t padding;
  uint16_t padding2;
  uint32_t padding3;
};
EXCHANGE_ASSERT(exchange_cancel_on_disconnect_set_length, sizeof(struct exchange_cancel_on_disconnect_set) == 8);
/* Null where null is allowed, otherwise 0. */
#define EXCHANGE_CANCEL_ON_DISCONNECT_SET_INIT { 0, 0, 0, 0 }

/* An entry of subscriptions.subscriptions, heartbeat.subscriptions. */
struct exchange_subscribed {
  uint64_t sequence; /* number of a message of its stream */
  uint32_t market_id; /* may be null */
  uint32_t outcome_id; /* may be null */
  uint8_t channel; /* Channel */
  uint8_t padding;
  uint16_t padding2;
};
EXCHANGE_ASSERT(exchange_subscribed_length, sizeof(struct exchange_subscribed) == 20);
/* Null where null is allowed, otherwise 0. */
#define EXCHANGE_SUBSCRIBED_INIT { 0, EXCHANGE_NULL_U32, EXCHANGE_NULL_U32, 0, 0, 0 }

/* Resumed (108): response to Resume. */
struct exchange_resumed {
  uint64_t after; /* number of a message of its stream */
  uint64_t last; /* number of a message of its stream */
};
EXCHANGE_ASSERT(exchange_resumed_length, sizeof(struct exchange_resumed) == 16);
/* Null where null is allowed, otherwise 0. */
#define EXCHANGE_RESUMED_INIT { 0, 0 }

/* Pong (109): response to Ping. */
struct exchange_pong {
  uint64_t now; /* milliseconds since the Unix epoch */
};
EXCHANGE_ASSERT(exchange_pong_length, sizeof(struct exchange_pong) == 8);
/* Null where null is allowed, otherwise 0. */
#define EXCHANGE_PONG_INIT { 0 }

/* Authenticated (110): response to Authenticate. */
struct exchange_authenticated {
  uint64_t user_id; /* number of an order, match, fill, user; below 2^53 */
  uint64_t expires_at; /* milliseconds since the Unix epoch; may be null */
};
EXCHANGE_ASSERT(exchange_authenticated_length, sizeof(struct exchange_authenticated) == 16);
/* Null where null is allowed, otherwise 0. */
#define EXCHANGE_AUTHENTICATED_INIT { 0, EXCHANGE_NULL_U64 }

/* OrderTimestamps (111): behind the OrderAccepted or OrderUpdated of an order placed with the flag timestamps, with the same id. */
struct exchange_order_timestamps {
  uint64_t order_id; /* number of an order, match, fill, user; below 2^53 */
  uint64_t received; /* microseconds since the Unix epoch */
  uint64_t matched; /* microseconds since the Unix epoch */
  uint64_t durable; /* microseconds since the Unix epoch */
  uint64_t sent; /* microseconds since the Unix epoch */
};
EXCHANGE_ASSERT(exchange_order_timestamps_length, sizeof(struct exchange_order_timestamps) == 40);
/* Null where null is allowed, otherwise 0. */
#define EXCHANGE_ORDER_TIMESTAMPS_INIT { 0, 0, 0, 0, 0 }

/* An entry of order_updated.fills. */
struct exchange_fill {
  uint64_t fill_id; /* number of an order, match, fill, user; below 2^53 */
  uint64_t match_id; /* number of an order, match, fill, user; below 2^53 */
  int64_t fee; /* micro-USDC */
  int64_t rebate; /* micro-USDC */
  uint64_t created_at; /* milliseconds since the Unix epoch */
  uint32_t quantity; /* shares, 1..1000000000 */
  uint16_t price; /* basis points, 1..9999 */
  uint8_t role; /* Role */
  uint8_t match_type; /* MatchType */
};
EXCHANGE_ASSERT(exchange_fill_length, sizeof(struct exchange_fill) == 48);
/* Null where null is allowed, otherwise 0. */
#define EXCHANGE_FILL_INIT { 0, 0, 0, 0, 0, 0, 0, 0, 0 }

/* BalanceUpdated (202): balance.updated; id: the last OrderUpdated that it reflects. */
struct exchange_balance_updated {
  uint64_t ts; /* milliseconds since the Unix epoch */
  int64_t available; /* micro-USDC */
  int64_t held; /* micro-USDC */
  int64_t total; /* micro-USDC */
};
EXCHANGE_ASSERT(exchange_balance_updated_length, sizeof(struct exchange_balance_updated) == 32);
/* Null where null is allowed, otherwise 0. */
#define EXCHANGE_BALANCE_UPDATED_INIT { 0, 0, 0, 0 }

/* PositionUpdated (203): position.updated; average_price = cost / quantity / 100, unrealized_pnl = marketValue - cost. */
struct exchange_position_updated {
  uint64_t ts; /* milliseconds since the Unix epoch */
  int64_t cost; /* micro-USDC */
  int64_t realized_pnl; /* micro-USDC */
  int64_t market_value; /* micro-USDC; may be null */
  uint64_t quantity; /* shares, a sum */
  uint64_t held; /* shares, a sum */
  uint32_t market_id; /* number of a market */
  uint32_t outcome_id; /* number of an outcome; unique across all markets */
};
EXCHANGE_ASSERT(exchange_position_updated_length, sizeof(struct exchange_position_updated) == 56);
/* Null where null is allowed, otherwise 0. */
#define EXCHANGE_POSITION_UPDATED_INIT { 0, 0, 0, EXCHANGE_NULL_I64, 0, 0, 0, 0 }

/* BookSnapshot (211): book.snapshot; best level first; bookTs: ts of the REST book. Behind the block: group bids of struct exchange_level, group asks of struct exchange_level, group implied_bids of struct exchange_level, group implied_asks of struct exchange_level. */
struct exchange_book_snapshot {
  uint64_t ts; /* milliseconds since the Unix epoch */
  uint64_t book_ts; /* milliseconds since the Unix epoch */
  uint32_t market_id; /* number of a market */
  uint32_t outcome_id; /* number of an outcome; unique across all markets */
  uint8_t implied; /* Switch */
  uint8_t padding;
  uint16_t padding2;
  uint32_t padding3;
};
EXCHANGE_ASSERT(exchange_book_snapshot_length, sizeof(struct exchange_book_snapshot) == 32);
/* Null where null is allowed, otherwise 0. */
#define EXCHANGE_BOOK_SNAPSHOT_INIT { 0, 0, 0, 0, 0, 0, 0, 0 }

/* An entry of book_snapshot.bids, book_snapshot.asks, book_snapshot.implied_bids, book_snapshot.implied_asks, book_updated.bids, book_updated.asks, book_updated.implied_bids, book_updated.implied_asks. */
struct exchange_level {
  uint64_t quantity; /* shares, a sum */
  uint16_t price; /* basis points, 1..9999 */
  uint16_t padding;
};
EXCHANGE_ASSERT(exchange_level_length, sizeof(struct exchange_level) == 12);
/* Null where null is allowed, otherwise 0. */
#define EXCHANGE_LEVEL_INIT { 0, 0, 0 }

/* BookUpdated (212): book.updated; quantity: the level's new one, 0 removes it. Behind the block: group bids of struct exchange_level, group asks of struct exchange_level, group implied_bids of struct exchange_level, group implied_asks of struct exchange_level. */
struct exchange_book_updated {
  uint64_t ts; /* milliseconds since the Unix epoch */
  uint32_t market_id; /* number of a market */
  uint32_t outcome_id; /* number of an outcome; unique across all markets */
  uint8_t implied; /* Switch */
  uint8_t padding;
  uint16_t padding2;
  uint32_t padding3;
};
EXCHANGE_ASSERT(exchange_book_updated_length, sizeof(struct exchange_book_updated) == 24);
/* Null where null is allowed, otherwise 0. */
#define EXCHANGE_BOOK_UPDATED_INIT { 0, 0, 0, 0, 0, 0, 0 }

/* TradeCreated (213): trade.created; created_at = ts. */
struct exchange_trade_created {
  uint64_t ts; /* milliseconds since the Unix epoch */
  uint64_t match_id; /* number of an order, match, fill, user; below 2^53 */
  uint32_t market_id; /* number of a market */
  uint32_t outcome_id; /* number of an outcome; unique across all markets */
  uint32_t quantity; /* shares, 1..1000000000 */
  uint16_t price; /* basis points, 1..9999 */
  uint8_t side; /* Side */
  uint8_t match_type; /* MatchType */
};
EXCHANGE_ASSERT(exchange_trade_created_length, sizeof(struct exchange_trade_created) == 32);
/* Null where null is allowed, otherwise 0. */
#define EXCHANGE_TRADE_CREATED_INIT { 0, 0, 0, 0, 0, 0, 0, 0 }

/* TickerUpdated (214): ticker.updated; snapshot: the state at the start of a subscription, under the sequence of the message that may have brought it before. */
struct exchange_ticker_updated {
  uint64_t ts; /* milliseconds since the Unix epoch */
  uint64_t volume; /* shares, a sum */
  uint32_t market_id; /* number of a market */
  uint32_t outcome_id; /* number of an outcome; unique across all markets */
  uint16_t last_price; /* basis points; may be null */
  uint16_t best_bid; /* basis points; may be null */
  uint16_t best_ask; /* basis points; may be null */
  uint16_t implied_bid; /* basis points; may be null */
  uint16_t implied_ask; /* basis points; may be null */
  uint8_t snapshot; /* Switch */
  uint8_t padding;
  uint32_t padding2;
};
EXCHANGE_ASSERT(exchange_ticker_updated_length, sizeof(struct exchange_ticker_updated) == 40);
/* Null where null is allowed, otherwise 0. */
#define EXCHANGE_TICKER_UPDATED_INIT { 0, 0, 0, 0, EXCHANGE_NULL_U16, EXCHANGE_NULL_U16, EXCHANGE_NULL_U16, EXCHANGE_NULL_U16, EXCHANGE_NULL_U16, 0, 0, 0 }

/* MarketUpdated (215): market.updated; market: the market as JSON, as in REST. allMarkets: the sequence is that of the channel without a market; snapshot: as in TickerUpdated. Behind the block: text16 market. */
struct exchange_market_updated {
  uint64_t ts; /* milliseconds since the Unix epoch */
  uint32_t market_id; /* number of a market */
  uint8_t status; /* MarketStatus */
  uint8_t channel; /* Channel */
  uint8_t all_markets; /* Switch */
  uint8_t snapshot; /* Switch */
};
EXCHANGE_ASSERT(exchange_market_updated_length, sizeof(struct exchange_market_updated) == 16);
/* Null where null is allowed, otherwise 0. */
#define EXCHANGE_MARKET_UPDATED_INIT { 0, 0, 0, 0, 0, 0 }

/* Heartbeat (216): heartbeat; orders: the last OrderUpdated, null where none are sent. Behind the block: group subscriptions of struct exchange_subscribed. */
struct exchange_heartbeat {
  uint64_t ts; /* milliseconds since the Unix epoch */
  uint64_t orders; /* may be null */
};
EXCHANGE_ASSERT(exchange_heartbeat_length, sizeof(struct exchange_heartbeat) == 16);
/* Null where null is allowed, otherwise 0. */
#define EXCHANGE_HEARTBEAT_INIT { 0, EXCHANGE_NULL_U64 }

/* Shutdown (217): system.shutdown, with where to connect next (null: as before); the connection closes with 1001. Behind the block: text16 url (since version 2). */
struct exchange_shutdown {
  uint64_t ts; /* milliseconds since the Unix epoch */
  uint8_t reason; /* ShutdownReason; since version 2, null before */
  uint8_t padding;
  uint16_t padding2;
  uint32_t padding3;
};
EXCHANGE_ASSERT(exchange_shutdown_length, sizeof(struct exchange_shutdown) == 16);
/* Null where null is allowed, otherwise 0. */
#define EXCHANGE_SHUTDOWN_INIT { 0, 0, 0, 0, 0 }

#pragma pack(pop)

/* Reading. Structs are copied out of the frame, whose numbers needn't be aligned. */

/* One message of a frame; valid as long as the frame's bytes. */
struct exchange_message {
  struct exchange_message_header header;
  const uint8_t *block;
  const uint8_t *end;
};

/* What follows a block: its groups, then its texts, in the order of the schema. */
struct exchange_body {
  const uint8_t *at;
  const uint8_t *end;
  uint16_t version;
};

struct exchange_group {
  const uint8_t *at;
  uint16_t entry_length;
  uint16_t count;
};

/* Not terminated by a 0; length 0 stands for null. */
struct exchange_text {
  const char *bytes;
  size_t length;
};

/* Reads the message at *offset of a frame, and moves *offset behind it. Returns 1, 0 at the frame's end, and -1 for bytes
   that are no message. Skip messages with a schema_id or a template_id that you don't know. */
static inline int exchange_next(const void *frame, size_t length, size_t *offset, struct exchange_message *message) {
  const uint8_t *start = (const uint8_t *)frame + *offset;
  size_t left = length - *offset;
  uint32_t message_length;
  if (left == 0) return 0;
  if (left < sizeof message->header) return -1;
  memcpy(&message->header, start, sizeof message->header);
  message_length = message->header.message_length;
  if (message_length % 8 != 0 || message_length > left) return -1;
  if (message_length < sizeof message->header + message->header.block_length) return -1;
  message->block = start + sizeof message->header;
  message->end = start + message_length;
  *offset += message_length;
  return 1;
}

/* Copies what the sender's version has of a struct, and leaves the rest null. */
static inline void exchange_copy(void *into, const void *absent, size_t size, const uint8_t *bytes, size_t length) {
  memcpy(into, absent, size);
  memcpy(into, bytes, length < size ? length : size);
}

static inline struct exchange_body exchange_body_of(const struct exchange_message *message) {
  struct exchange_body body;
  body.at = message->block + message->header.block_length;
  body.end = message->end;
  body.version = message->header.version;
  return body;
}

/* 1 where the sender's version has the next group or text: ask before reading one that is marked "since version". */
static inline int exchange_has(const struct exchange_body *body, uint16_t since) {
  return body->version >= since;
}

/* Reads the next group's size; its entries follow by exchange_next_..., all of them before the next group or text.
   Returns 0, or -1 for bytes that are no group. */
static inline int exchange_next_group(struct exchange_body *body, struct exchange_group *group) {
  uint16_t sizes[2];
  if ((size_t)(body->end - body->at) < sizeof sizes) return -1;
  memcpy(sizes, body->at, sizeof sizes);
  group->at = body->at + sizeof sizes;
  group->entry_length = sizes[0];
  group->count = sizes[1];
  if ((size_t)(body->end - group->at) < (size_t)sizes[0] * sizes[1]) return -1;
  body->at = group->at + (size_t)sizes[0] * sizes[1];
  return 0;
}

static inline int exchange_next_entry(struct exchange_group *group, void *into, const void *absent, size_t size) {
  if (group->count == 0) return 0;
  exchange_copy(into, absent, size, group->at, group->entry_length);
  group->at += group->entry_length;
  group->count--;
  return 1;
}

static inline int exchange_next_text(struct exchange_body *body, size_t prefix, struct exchange_text *text) {
  size_t left = (size_t)(body->end - body->at);
  if (left < prefix) return -1;
  text->length = prefix == 1 ? body->at[0] : (size_t)(body->at[0] | body->at[1] << 8);
  if (left - prefix < text->length) return -1;
  text->bytes = (const char *)body->at + prefix;
  body->at += prefix + text->length;
  return 0;
}

/* Read the next text. Return 0, or -1 for bytes that are no text. */
static inline int exchange_next_text8(struct exchange_body *body, struct exchange_text *text) {
  return exchange_next_text(body, 1, text);
}

static inline int exchange_next_text16(struct exchange_body *body, struct exchange_text *text) {
  return exchange_next_text(body, 2, text);
}

/* Blocks of messages, and entries: exchange_next_... returns 1, or 0 behind a group's last entry. */

static inline struct exchange_place_order exchange_read_place_order(const struct exchange_message *message) {
  static const struct exchange_place_order absent = { EXCHANGE_NULL_U32, EXCHANGE_NULL_U32, EXCHANGE_NULL_U32, EXCHANGE_NULL_U32, EXCHANGE_NULL_U64, EXCHANGE_NULL_U64, EXCHANGE_NULL_U64, EXCHANGE_NULL_U8, EXCHANGE_NULL_U8, EXCHANGE_NULL_U8, EXCHANGE_NULL_U8, 0, 0, 0 };
  struct exchange_place_order block;
  exchange_copy(&block, &absent, sizeof block, message->block, message->header.block_length);
  return block;
}

static inline struct exchange_cancel_order exchange_read_cancel_order(const struct exchange_message *message) {
  static const struct exchange_cancel_order absent = { EXCHANGE_NULL_U64, EXCHANGE_NULL_U64 };
  struct exchange_cancel_order block;
  exchange_copy(&block, &absent, sizeof block, message->block, message->header.block_length);
  return block;
}

static inline struct exchange_amend_order exchange_read_amend_order(const struct exchange_message *message) {
  static const struct exchange_amend_order absent = { EXCHANGE_NULL_U64, EXCHANGE_NULL_U64, EXCHANGE_NULL_U32, EXCHANGE_NULL_U32 };
  struct exchange_amend_order block;
  exchange_copy(&block, &absent, sizeof block, message->block, message->header.block_length);
  return block;
}

static inline struct exchange_cancel_all exchange_read_cancel_all(const struct exchange_message *message) {
  static const struct exchange_cancel_all absent = { EXCHANGE_NULL_U64, EXCHANGE_NULL_U32, EXCHANGE_NULL_U32, EXCHANGE_NULL_U8, 0, 0, 0 };
  struct exchange_cancel_all block;
  exchange_copy(&block, &absent, sizeof block, message->block, message->header.block_length);
  return block;
}

static inline struct exchange_cancel_after exchange_read_cancel_after(const struct exchange_message *message) {
  static const struct exchange_cancel_after absent = { EXCHANGE_NULL_U32, 0 };
  struct exchange_cancel_after block;
  exchange_copy(&block, &absent, sizeof block, message->block, message->header.block_length);
  return block;
}

static inline struct exchange_cancel_on_disconnect exchange_read_cancel_on_disconnect(const struct exchange_message *message) {
  static const struct exchange_cancel_on_disconnect absent = { EXCHANGE_NULL_U8, 0, 0, 0 };
  struct exchange_cancel_on_disconnect block;
  exchange_copy(&block, &absent, sizeof block, message->block, message->header.block_length);
  return block;
}

static inline struct exchange_replace_quotes exchange_read_replace_quotes(const struct exchange_message *message) {
  static const struct exchange_replace_quotes absent = { EXCHANGE_NULL_U64, EXCHANGE_NULL_U64, EXCHANGE_NULL_U32, 0 };
  struct exchange_replace_quotes block;
  exchange_copy(&block, &absent, sizeof block, message->block, message->header.block_length);
  return block;
}

static inline int exchange_next_quote(struct exchange_group *group, struct exchange_quote *entry) {
  static const struct exchange_quote absent = { EXCHANGE_NULL_U32, EXCHANGE_NULL_U32, EXCHANGE_NULL_U32, EXCHANGE_NULL_U8, 0, 0 };
  return exchange_next_entry(group, entry, &absent, sizeof *entry);
}

static inline struct exchange_batch exchange_read_batch(const struct exchange_message *message) {
  static const struct exchange_batch absent = { EXCHANGE_NULL_U16, 0, 0 };
  struct exchange_batch block;
  exchange_copy(&block, &absent, sizeof block, message->block, message->header.block_length);
  return block;
}

static inline struct exchange_subscription exchange_read_subscription(const struct exchange_message *message) {
  static const struct exchange_subscription absent = { EXCHANGE_NULL_U8, 0, 0, EXCHANGE_NULL_U32 };
  struct exchange_subscription block;
  exchange_copy(&block, &absent, sizeof block, message->block, message->header.block_length);
  return block;
}

static inline int exchange_next_subscribed_market(struct exchange_group *group, struct exchange_subscribed_market *entry) {
  static const struct exchange_subscribed_market absent = { EXCHANGE_NULL_U32 };
  return exchange_next_entry(group, entry, &absent, sizeof *entry);
}

static inline struct exchange_resume exchange_read_resume(const struct exchange_message *message) {
  static const struct exchange_resume absent = { EXCHANGE_NULL_U64 };
  struct exchange_resume block;
  exchange_copy(&block, &absent, sizeof block, message->block, message->header.block_length);
  return block;
}

static inline struct exchange_rejected exchange_read_rejected(const struct exchange_message *message) {
  static const struct exchange_rejected absent = { EXCHANGE_NULL_U32, EXCHANGE_NULL_U32, EXCHANGE_NULL_U32, EXCHANGE_NULL_U32 };
  struct exchange_rejected block;
  exchange_copy(&block, &absent, sizeof block, message->block, message->header.block_length);
  return block;
}

static inline struct exchange_order exchange_read_order(const struct exchange_message *message) {
  static const struct exchange_order absent = { EXCHANGE_NULL_U64, EXCHANGE_NULL_U64, EXCHANGE_NULL_U64, EXCHANGE_NULL_U64, EXCHANGE_NULL_U64, EXCHANGE_NULL_U32, EXCHANGE_NULL_U32, EXCHANGE_NULL_U32, EXCHANGE_NULL_U32, EXCHANGE_NULL_U16, EXCHANGE_NULL_U8, EXCHANGE_NULL_U8, EXCHANGE_NULL_U8, EXCHANGE_NULL_U8, EXCHANGE_NULL_U8, 0 };
  struct exchange_order block;
  exchange_copy(&block, &absent, sizeof block, message->block, message->header.block_length);
  return block;
}

static inline struct exchange_done exchange_read_done(const struct exchange_message *message) {
  static const struct exchange_done absent = { EXCHANGE_NULL_U32, EXCHANGE_NULL_U32 };
  struct exchange_done block;
  exchange_copy(&block, &absent, sizeof block, message->block, message->header.block_length);
  return block;
}

static inline int exchange_next_canceled_order(struct exchange_group *group, struct exchange_canceled_order *entry) {
  static const struct exchange_canceled_order absent = { EXCHANGE_NULL_U64 };
  return exchange_next_entry(group, entry, &absent, sizeof *entry);
}

static inline struct exchange_cancel_after_set exchange_read_cancel_after_set(const struct exchange_message *message) {
  static const struct exchange_cancel_after_set absent = { EXCHANGE_NULL_U64, EXCHANGE_NULL_U32, 0 };
  struct exchange_cancel_after_set block;
  exchange_copy(&block, &absent, sizeof block, message->block, message->header.block_length);
  return block;
}

static inline struct exchange_cancel_on_disconnect_set exchange_read_cancel_on_disconnect_set(const struct exchange_message *message) {
  static const struct exchange_cancel_on_disconnect_set absent = { EXCHANGE_NULL_U8, 0, 0, 0 };
  struct exchange_cancel_on_disconnect_set block;
  exchange_copy(&block, &absent, sizeof block, message->block, message->header.block_length);
  return block;
}

static inline int exchange_next_subscribed(struct exchange_group *group, struct exchange_subscribed *entry) {
  static const struct exchange_subscribed absent = { EXCHANGE_NULL_U64, EXCHANGE_NULL_U32, EXCHANGE_NULL_U32, EXCHANGE_NULL_U8, 0, 0 };
  return exchange_next_entry(group, entry, &absent, sizeof *entry);
}

static inline struct exchange_resumed exchange_read_resumed(const struct exchange_message *message) {
  static const struct exchange_resumed absent = { EXCHANGE_NULL_U64, EXCHANGE_NULL_U64 };
  struct exchange_resumed block;
  exchange_copy(&block, &absent, sizeof block, message->block, message->header.block_length);
  return block;
}

static inline struct exchange_pong exchange_read_pong(const struct exchange_message *message) {
  static const struct exchange_pong absent = { EXCHANGE_NULL_U64 };
  struct exchange_pong block;
  exchange_copy(&block, &absent, sizeof block, message->block, message->header.block_length);
  return block;
}

static inline struct exchange_authenticated exchange_read_authenticated(const struct exchange_message *message) {
  static const struct exchange_authenticated absent = { EXCHANGE_NULL_U64, EXCHANGE_NULL_U64 };
  struct exchange_authenticated block;
  exchange_copy(&block, &absent, sizeof block, message->block, message->header.block_length);
  return block;
}

static inline struct exchange_order_timestamps exchange_read_order_timestamps(const struct exchange_message *message) {
  static const struct exchange_order_timestamps absent = { EXCHANGE_NULL_U64, EXCHANGE_NULL_U64, EXCHANGE_NULL_U64, EXCHANGE_NULL_U64, EXCHANGE_NULL_U64 };
  struct exchange_order_timestamps block;
  exchange_copy(&block, &absent, sizeof block, message->block, message->header.block_length);
  return block;
}

static inline int exchange_next_fill(struct exchange_group *group, struct exchange_fill *entry) {
  static const struct exchange_fill absent = { EXCHANGE_NULL_U64, EXCHANGE_NULL_U64, EXCHANGE_NULL_I64, EXCHANGE_NULL_I64, EXCHANGE_NULL_U64, EXCHANGE_NULL_U32, EXCHANGE_NULL_U16, EXCHANGE_NULL_U8, EXCHANGE_NULL_U8 };
  return exchange_next_entry(group, entry, &absent, sizeof *entry);
}

static inline struct exchange_balance_updated exchange_read_balance_updated(const struct exchange_message *message) {
  static const struct exchange_balance_updated absent = { EXCHANGE_NULL_U64, EXCHANGE_NULL_I64, EXCHANGE_NULL_I64, EXCHANGE_NULL_I64 };
  struct exchange_balance_updated block;
  exchange_copy(&block, &absent, sizeof block, message->block, message->header.block_length);
  return block;
}

static inline struct exchange_position_updated exchange_read_position_updated(const struct exchange_message *message) {
  static const struct exchange_position_updated absent = { EXCHANGE_NULL_U64, EXCHANGE_NULL_I64, EXCHANGE_NULL_I64, EXCHANGE_NULL_I64, EXCHANGE_NULL_U64, EXCHANGE_NULL_U64, EXCHANGE_NULL_U32, EXCHANGE_NULL_U32 };
  struct exchange_position_updated block;
  exchange_copy(&block, &absent, sizeof block, message->block, message->header.block_length);
  return block;
}

static inline struct exchange_book_snapshot exchange_read_book_snapshot(const struct exchange_message *message) {
  static const struct exchange_book_snapshot absent = { EXCHANGE_NULL_U64, EXCHANGE_NULL_U64, EXCHANGE_NULL_U32, EXCHANGE_NULL_U32, EXCHANGE_NULL_U8, 0, 0, 0 };
  struct exchange_book_snapshot block;
  exchange_copy(&block, &absent, sizeof block, message->block, message->header.block_length);
  return block;
}

static inline int exchange_next_level(struct exchange_group *group, struct exchange_level *entry) {
  static const struct exchange_level absent = { EXCHANGE_NULL_U64, EXCHANGE_NULL_U16, 0 };
  return exchange_next_entry(group, entry, &absent, sizeof *entry);
}

static inline struct exchange_book_updated exchange_read_book_updated(const struct exchange_message *message) {
  static const struct exchange_book_updated absent = { EXCHANGE_NULL_U64, EXCHANGE_NULL_U32, EXCHANGE_NULL_U32, EXCHANGE_NULL_U8, 0, 0, 0 };
  struct exchange_book_updated block;
  exchange_copy(&block, &absent, sizeof block, message->block, message->header.block_length);
  return block;
}

static inline struct exchange_trade_created exchange_read_trade_created(const struct exchange_message *message) {
  static const struct exchange_trade_created absent = { EXCHANGE_NULL_U64, EXCHANGE_NULL_U64, EXCHANGE_NULL_U32, EXCHANGE_NULL_U32, EXCHANGE_NULL_U32, EXCHANGE_NULL_U16, EXCHANGE_NULL_U8, EXCHANGE_NULL_U8 };
  struct exchange_trade_created block;
  exchange_copy(&block, &absent, sizeof block, message->block, message->header.block_length);
  return block;
}

static inline struct exchange_ticker_updated exchange_read_ticker_updated(const struct exchange_message *message) {
  static const struct exchange_ticker_updated absent = { EXCHANGE_NULL_U64, EXCHANGE_NULL_U64, EXCHANGE_NULL_U32, EXCHANGE_NULL_U32, EXCHANGE_NULL_U16, EXCHANGE_NULL_U16, EXCHANGE_NULL_U16, EXCHANGE_NULL_U16, EXCHANGE_NULL_U16, EXCHANGE_NULL_U8, 0, 0 };
  struct exchange_ticker_updated block;
  exchange_copy(&block, &absent, sizeof block, message->block, message->header.block_length);
  return block;
}

static inline struct exchange_market_updated exchange_read_market_updated(const struct exchange_message *message) {
  static const struct exchange_market_updated absent = { EXCHANGE_NULL_U64, EXCHANGE_NULL_U32, EXCHANGE_NULL_U8, EXCHANGE_NULL_U8, EXCHANGE_NULL_U8, EXCHANGE_NULL_U8 };
  struct exchange_market_updated block;
  exchange_copy(&block, &absent, sizeof block, message->block, message->header.block_length);
  return block;
}

static inline struct exchange_heartbeat exchange_read_heartbeat(const struct exchange_message *message) {
  static const struct exchange_heartbeat absent = { EXCHANGE_NULL_U64, EXCHANGE_NULL_U64 };
  struct exchange_heartbeat block;
  exchange_copy(&block, &absent, sizeof block, message->block, message->header.block_length);
  return block;
}

static inline struct exchange_shutdown exchange_read_shutdown(const struct exchange_message *message) {
  static const struct exchange_shutdown absent = { EXCHANGE_NULL_U64, EXCHANGE_NULL_U8, 0, 0, 0 };
  struct exchange_shutdown block;
  exchange_copy(&block, &absent, sizeof block, message->block, message->header.block_length);
  return block;
}

/* Writing: begin a message, add its groups and texts in the order of the schema, and end it. All return 0, or -1 when
   the frame is full: its length is then that of the whole messages before. */

struct exchange_frame {
  uint8_t *bytes;
  size_t capacity;
  /* Bytes of whole messages: what to send. */
  size_t length;
  /* End of the message that was begun; 0 once it failed. */
  size_t end;
};

static inline struct exchange_frame exchange_frame_in(void *bytes, size_t capacity) {
  struct exchange_frame frame;
  frame.bytes = (uint8_t *)bytes;
  frame.capacity = capacity;
  frame.length = 0;
  frame.end = 0;
  return frame;
}

static inline int exchange_add(struct exchange_frame *frame, const void *bytes, size_t length) {
  if (frame->end == 0 || length > frame->capacity - frame->end) {
    frame->end = 0;
    return -1;
  }
  if (length > 0) memcpy(frame->bytes + frame->end, bytes, length);
  frame->end += length;
  return 0;
}

static inline int exchange_begin(struct exchange_frame *frame, uint16_t template_id, uint64_t id, const void *block,
    size_t block_length) {
  struct exchange_message_header header = EXCHANGE_MESSAGE_HEADER_INIT;
  header.block_length = (uint16_t)block_length;
  header.template_id = template_id;
  header.schema_id = EXCHANGE_SCHEMA_ID;
  header.version = EXCHANGE_SCHEMA_VERSION;
  header.id = id;
  if (frame->capacity - frame->length < sizeof header) {
    frame->end = 0;
    return -1;
  }
  memcpy(frame->bytes + frame->length, &header, sizeof header);
  frame->end = frame->length + sizeof header;
  return exchange_add(frame, block, block_length);
}

static inline int exchange_add_group(struct exchange_frame *frame, const void *entries, uint16_t entry_length,
    uint16_t count) {
  uint16_t sizes[2];
  sizes[0] = entry_length;
  sizes[1] = count;
  if (exchange_add(frame, sizes, sizeof sizes) < 0) return -1;
  return exchange_add(frame, entries, (size_t)entry_length * count);
}

/* Adds a text of up to 254 bytes; 0 bytes are null. */
static inline int exchange_add_text8(struct exchange_frame *frame, const char *bytes, uint8_t length) {
  if (exchange_add(frame, &length, 1) < 0) return -1;
  return exchange_add(frame, bytes, length);
}

static inline int exchange_add_text16(struct exchange_frame *frame, const char *bytes, uint16_t length) {
  if (exchange_add(frame, &length, sizeof length) < 0) return -1;
  return exchange_add(frame, bytes, length);
}

static inline int exchange_end(struct exchange_frame *frame) {
  static const uint8_t zeros[8] = { 0 };
  uint32_t message_length;
  if (frame->end == 0) return -1;
  if (exchange_add(frame, zeros, (8 - (frame->end - frame->length) % 8) % 8) < 0) return -1;
  message_length = (uint32_t)(frame->end - frame->length);
  memcpy(frame->bytes + frame->length + offsetof(struct exchange_message_header, message_length), &message_length,
      sizeof message_length);
  frame->length = frame->end;
  return 0;
}

static inline int exchange_begin_place_order(struct exchange_frame *frame, uint64_t id,
    const struct exchange_place_order *block) {
  return exchange_begin(frame, EXCHANGE_TEMPLATE_PLACE_ORDER, id, block, sizeof *block);
}

static inline int exchange_begin_cancel_order(struct exchange_frame *frame, uint64_t id,
    const struct exchange_cancel_order *block) {
  return exchange_begin(frame, EXCHANGE_TEMPLATE_CANCEL_ORDER, id, block, sizeof *block);
}

static inline int exchange_begin_amend_order(struct exchange_frame *frame, uint64_t id,
    const struct exchange_amend_order *block) {
  return exchange_begin(frame, EXCHANGE_TEMPLATE_AMEND_ORDER, id, block, sizeof *block);
}

static inline int exchange_begin_cancel_all(struct exchange_frame *frame, uint64_t id,
    const struct exchange_cancel_all *block) {
  return exchange_begin(frame, EXCHANGE_TEMPLATE_CANCEL_ALL, id, block, sizeof *block);
}

static inline int exchange_begin_cancel_after(struct exchange_frame *frame, uint64_t id,
    const struct exchange_cancel_after *block) {
  return exchange_begin(frame, EXCHANGE_TEMPLATE_CANCEL_AFTER, id, block, sizeof *block);
}

static inline int exchange_begin_cancel_on_disconnect(struct exchange_frame *frame, uint64_t id,
    const struct exchange_cancel_on_disconnect *block) {
  return exchange_begin(frame, EXCHANGE_TEMPLATE_CANCEL_ON_DISCONNECT, id, block, sizeof *block);
}

static inline int exchange_begin_replace_quotes(struct exchange_frame *frame, uint64_t id,
    const struct exchange_replace_quotes *block) {
  return exchange_begin(frame, EXCHANGE_TEMPLATE_REPLACE_QUOTES, id, block, sizeof *block);
}

static inline int exchange_begin_batch(struct exchange_frame *frame, uint64_t id,
    const struct exchange_batch *block) {
  return exchange_begin(frame, EXCHANGE_TEMPLATE_BATCH, id, block, sizeof *block);
}

static inline int exchange_begin_subscribe(struct exchange_frame *frame, uint64_t id,
    const struct exchange_subscription *block) {
  return exchange_begin(frame, EXCHANGE_TEMPLATE_SUBSCRIBE, id, block, sizeof *block);
}

static inline int exchange_begin_unsubscribe(struct exchange_frame *frame, uint64_t id,
    const struct exchange_subscription *block) {
  return exchange_begin(frame, EXCHANGE_TEMPLATE_UNSUBSCRIBE, id, block, sizeof *block);
}

static inline int exchange_begin_resume(struct exchange_frame *frame, uint64_t id,
    const struct exchange_resume *block) {
  return exchange_begin(frame, EXCHANGE_TEMPLATE_RESUME, id, block, sizeof *block);
}

static inline int exchange_begin_ping(struct exchange_frame *frame, uint64_t id) {
  return exchange_begin(frame, EXCHANGE_TEMPLATE_PING, id, NULL, 0);
}

static inline int exchange_begin_authenticate(struct exchange_frame *frame, uint64_t id) {
  return exchange_begin(frame, EXCHANGE_TEMPLATE_AUTHENTICATE, id, NULL, 0);
}

static inline int exchange_begin_rejected(struct exchange_frame *frame, uint64_t id,
    const struct exchange_rejected *block) {
  return exchange_begin(frame, EXCHANGE_TEMPLATE_REJECTED, id, block, sizeof *block);
}

static inline int exchange_begin_order_accepted(struct exchange_frame *frame, uint64_t id,
    const struct exchange_order *block) {
  return exchange_begin(frame, EXCHANGE_TEMPLATE_ORDER_ACCEPTED, id, block, sizeof *block);
}

static inline int exchange_begin_done(struct exchange_frame *frame, uint64_t id,
    const struct exchange_done *block) {
  return exchange_begin(frame, EXCHANGE_TEMPLATE_DONE, id, block, sizeof *block);
}

static inline int exchange_begin_orders_canceled(struct exchange_frame *frame, uint64_t id) {
  return exchange_begin(frame, EXCHANGE_TEMPLATE_ORDERS_CANCELED, id, NULL, 0);
}

static inline int exchange_begin_cancel_after_set(struct exchange_frame *frame, uint64_t id,
    const struct exchange_cancel_after_set *block) {
  return exchange_begin(frame, EXCHANGE_TEMPLATE_CANCEL_AFTER_SET, id, block, sizeof *block);
}

static inline int exchange_begin_cancel_on_disconnect_set(struct exchange_frame *frame, uint64_t id,
    const struct exchange_cancel_on_disconnect_set *block) {
  return exchange_begin(frame, EXCHANGE_TEMPLATE_CANCEL_ON_DISCONNECT_SET, id, block, sizeof *block);
}

static inline int exchange_begin_subscriptions(struct exchange_frame *frame, uint64_t id) {
  return exchange_begin(frame, EXCHANGE_TEMPLATE_SUBSCRIPTIONS, id, NULL, 0);
}

static inline int exchange_begin_resumed(struct exchange_frame *frame, uint64_t id,
    const struct exchange_resumed *block) {
  return exchange_begin(frame, EXCHANGE_TEMPLATE_RESUMED, id, block, sizeof *block);
}

static inline int exchange_begin_pong(struct exchange_frame *frame, uint64_t id,
    const struct exchange_pong *block) {
  return exchange_begin(frame, EXCHANGE_TEMPLATE_PONG, id, block, sizeof *block);
}

static inline int exchange_begin_authenticated(struct exchange_frame *frame, uint64_t id,
    const struct exchange_authenticated *block) {
  return exchange_begin(frame, EXCHANGE_TEMPLATE_AUTHENTICATED, id, block, sizeof *block);
}

static inline int exchange_begin_order_timestamps(struct exchange_frame *frame, uint64_t id,
    const struct exchange_order_timestamps *block) {
  return exchange_begin(frame, EXCHANGE_TEMPLATE_ORDER_TIMESTAMPS, id, block, sizeof *block);
}

static inline int exchange_begin_order_updated(struct exchange_frame *frame, uint64_t id,
    const struct exchange_order *block) {
  return exchange_begin(frame, EXCHANGE_TEMPLATE_ORDER_UPDATED, id, block, sizeof *block);
}

static inline int exchange_begin_balance_updated(struct exchange_frame *frame, uint64_t id,
    const struct exchange_balance_updated *block) {
  return exchange_begin(frame, EXCHANGE_TEMPLATE_BALANCE_UPDATED, id, block, sizeof *block);
}

static inline int exchange_begin_position_updated(struct exchange_frame *frame, uint64_t id,
    const struct exchange_position_updated *block) {
  return exchange_begin(frame, EXCHANGE_TEMPLATE_POSITION_UPDATED, id, block, sizeof *block);
}

static inline int exchange_begin_book_snapshot(struct exchange_frame *frame, uint64_t id,
    const struct exchange_book_snapshot *block) {
  return exchange_begin(frame, EXCHANGE_TEMPLATE_BOOK_SNAPSHOT, id, block, sizeof *block);
}

static inline int exchange_begin_book_updated(struct exchange_frame *frame, uint64_t id,
    const struct exchange_book_updated *block) {
  return exchange_begin(frame, EXCHANGE_TEMPLATE_BOOK_UPDATED, id, block, sizeof *block);
}

static inline int exchange_begin_trade_created(struct exchange_frame *frame, uint64_t id,
    const struct exchange_trade_created *block) {
  return exchange_begin(frame, EXCHANGE_TEMPLATE_TRADE_CREATED, id, block, sizeof *block);
}

static inline int exchange_begin_ticker_updated(struct exchange_frame *frame, uint64_t id,
    const struct exchange_ticker_updated *block) {
  return exchange_begin(frame, EXCHANGE_TEMPLATE_TICKER_UPDATED, id, block, sizeof *block);
}

static inline int exchange_begin_market_updated(struct exchange_frame *frame, uint64_t id,
    const struct exchange_market_updated *block) {
  return exchange_begin(frame, EXCHANGE_TEMPLATE_MARKET_UPDATED, id, block, sizeof *block);
}

static inline int exchange_begin_heartbeat(struct exchange_frame *frame, uint64_t id,
    const struct exchange_heartbeat *block) {
  return exchange_begin(frame, EXCHANGE_TEMPLATE_HEARTBEAT, id, block, sizeof *block);
}

static inline int exchange_begin_shutdown(struct exchange_frame *frame, uint64_t id,
    const struct exchange_shutdown *block) {
  return exchange_begin(frame, EXCHANGE_TEMPLATE_SHUTDOWN, id, block, sizeof *block);
}

#endif
