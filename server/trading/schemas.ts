/**
 * The shapes of orders and of all requests that change them, of fills and of what the caller may still do. Prices are in
 * basis points, quantities in whole shares.
 */
import Type from "typebox";
import {
  ORDER_STATUSES,
  ORDER_TYPES,
  REASONS,
  ROLES,
  SELF_TRADE_PREVENTIONS,
  TIMES_IN_FORCE,
} from "../../engine/constants.ts";
import { DailyActivity } from "../accounts/schemas.ts";
import {
  about,
  closed,
  Id,
  Money,
  money,
  names,
  nullable,
  page,
  rateState,
  Sequence,
  shares,
  span,
  Time,
} from "../http/schemas.ts";
import { MatchTypeSchema, OutcomeId, Price, Quantity, SideSchema } from "../markets/schemas.ts";
import { MAX_BATCH_OPERATIONS, MAX_CANCEL_AFTER_MS, MAX_QUOTES, MIN_CANCEL_AFTER_MS } from "./limits.ts";

export const CLIENT_ORDER_ID_PATTERN = "^[A-Za-z0-9._:-]{1,64}$";

const ClientOrderId = Type.String({
  pattern: CLIENT_ORDER_ID_PATTERN,
  description: "the caller's own name of the order",
});

const ORDER_TYPE_WORDS = "a market order never rests; without a price its bound is 9999 to buy, 1 to sell";

const OrderTypeSchema = about(names([...new Set(ORDER_TYPES)]), ORDER_TYPE_WORDS);

const TIME_IN_FORCE_WORDS =
  "gtc: rests until it is canceled; gtd: until expires_at; ioc: what doesn't match at once is canceled; fok: all at once or nothing";

const TimeInForceSchema = about(names(TIMES_IN_FORCE), TIME_IN_FORCE_WORDS);

const SELF_TRADE_WORDS = "what becomes of an order that would meet another one of its owner: the taker's choice rules";

const SelfTradeSchema = about(names(SELF_TRADE_PREVENTIONS), SELF_TRADE_WORDS);

const PostOnly = Type.Boolean({ description: "true: rejected (post_only_would_cross) where it would match at once" });

const ValidUntil = about(
  Time,
  "ms since the Unix epoch: what reaches the engine later is rejected as too_late, so that a slow request cannot act any more",
);

export const PlaceOrder = closed({
  market_id: Id,
  outcome_id: OutcomeId,
  side: SideSchema,
  price: Type.Optional(about(nullable(Price), "basis points; required for limit orders, the bound of market orders")),
  quantity: Quantity,
  type: Type.Optional(about(OrderTypeSchema, `limit by default; ${ORDER_TYPE_WORDS}`)),
  time_in_force: Type.Optional(
    about(TimeInForceSchema, `gtc by default, ioc for market orders; ${TIME_IN_FORCE_WORDS}`),
  ),
  post_only: Type.Optional(PostOnly),
  client_order_id: Type.Optional(
    about(
      nullable(ClientOrderId),
      "unique among the caller's live orders and those of the last 24 hours: the same body again is answered as at first and places nothing, another body is 40900",
    ),
  ),
  self_trade_prevention: Type.Optional(about(SelfTradeSchema, `cancel_taker by default; ${SELF_TRADE_WORDS}`)),
  expires_at: Type.Optional(about(nullable(Time), "ms since the Unix epoch; required for gtd, and for it alone")),
  valid_until: Type.Optional(nullable(ValidUntil)),
});

export const TIMESTAMPS_WORDS =
  "the answer and the order's updates carry when they were received, matched, durable, sent";

export const PlaceQuery = closed({ timestamps: Type.Optional(Type.Boolean({ description: TIMESTAMPS_WORDS })) });

/** The new price, the new total quantity (what is filled included), or both. */
const amendment = {
  price: Type.Optional(about(nullable(Price), "basis points; as it is where missing")),
  quantity: Type.Optional(
    about(nullable(Quantity), "whole shares: the new total, what is filled included; as it is where missing"),
  ),
  valid_until: Type.Optional(nullable(ValidUntil)),
};

export const AmendOrder = closed(amendment);

export const Quotes = closed({
  quotes: Type.Array(closed({ outcome_id: Id, side: SideSchema, price: Price, quantity: Quantity }), {
    maxItems: MAX_QUOTES,
  }),
  expires_at: Type.Optional(
    about(
      nullable(Time),
      "ms since the Unix epoch: when all of them end; one that stays keeps its place and ends then too",
    ),
  ),
  valid_until: Type.Optional(
    about(
      nullable(Time),
      "ms since the Unix epoch: of what reaches the engine later the new quotes are rejected as too_late, and those that stand stay",
    ),
  ),
});

/** Each is checked by its own schema when its turn comes, so that one that is wrong doesn't spoil the others. */
export const BatchOperation = Type.Object({});

export const Batch = closed({
  operations: Type.Array(BatchOperation, { minItems: 1, maxItems: MAX_BATCH_OPERATIONS }),
});

/** Names an order by `id` or by `client_order_id`. */
export const CancelOrder = closed({ id: Type.Optional(Id), client_order_id: Type.Optional(ClientOrderId) });

/** By `op`. */
export const BatchOperations = {
  place: closed({ op: Type.String(), ...PlaceOrder.properties }),
  cancel: closed({ op: Type.String(), ...CancelOrder.properties }),
  amend: closed({ op: Type.String(), id: Id, ...amendment }),
};

export const CancelAfter = closed({
  timeout_ms: Type.Integer({
    minimum: 0,
    maximum: MAX_CANCEL_AFTER_MS,
    description: `ms from now, ${MIN_CANCEL_AFTER_MS} or more; 0 ends the timer`,
  }),
});

const orderFilters = {
  market_id: Type.Optional(Id),
  outcome_id: Type.Optional(Id),
  side: Type.Optional(SideSchema),
  client_order_id: Type.Optional(ClientOrderId),
};

export const CancelQuery = closed(orderFilters);

export const OrdersQuery = closed({
  ...page,
  ...orderFilters,
  ...span,
  status: Type.Optional(
    about(names(["active", "all", ...ORDER_STATUSES]), "active by default; all: finished ones too; or a single state"),
  ),
});

export const FillsQuery = closed({ ...page, ...span, market_id: Type.Optional(Id), order_id: Type.Optional(Id) });

export const EventsQuery = closed({
  ...page,
  after: Type.Optional(about(Sequence, "the sequence to go on behind; all that is kept where missing")),
});

export const Fill = closed({
  id: Id,
  match_id: about(Id, "one a match, shared by all of its fills: the id of its trade"),
  price: about(Price, "basis points: what this order paid or got"),
  quantity: Quantity,
  role: about(names(ROLES), "maker: it rested; taker: it came in and matched"),
  match_type: MatchTypeSchema,
  fee: money("taken from a seller's proceeds"),
  rebate: money("given to the maker"),
  created_at: Time,
});

const Microseconds = Type.Integer({
  minimum: 0,
  maximum: Number.MAX_SAFE_INTEGER,
  description: "µs since the Unix epoch",
});

/** When the order was received, and what is told of it was matched, durable and sent. */
const Timestamps = closed({
  received: Microseconds,
  matched: Microseconds,
  durable: Microseconds,
  sent: Microseconds,
});

export const Order = closed({
  id: Id,
  client_order_id: nullable(ClientOrderId),
  market_id: Id,
  outcome_id: OutcomeId,
  side: SideSchema,
  price: about(nullable(Price), "basis points; null for a market order without a bound"),
  quantity: Quantity,
  remaining: shares("not filled yet"),
  filled: shares("filled so far"),
  type: OrderTypeSchema,
  time_in_force: TimeInForceSchema,
  post_only: PostOnly,
  self_trade_prevention: SelfTradeSchema,
  expires_at: nullable(Time),
  status: about(
    names(ORDER_STATUSES),
    "queued, open, partially_filled, and in the end one of filled, canceled, expired, rejected",
  ),
  reason: about(nullable(names(REASONS)), "of canceled, expired and rejected, null otherwise"),
  builder_code: about(nullable(Type.String()), "the integration that its fills are credited to"),
  created_at: Time,
  updated_at: Time,
  trades: Type.Array(Fill, {
    description: "its fills; in order.updated those that the event reports; in the answer to a placement none, always",
  }),
  timestamps: Type.Optional(
    about(Timestamps, "in the answer to a placement that asked for it, and in what is told of the order then"),
  ),
});

/** What each operation of a batch, or each quote, came to. */
export const Results = closed({
  results: Type.Array(
    closed({ code: Type.Integer(), msg: Type.String(), data: nullable(Order), trace_id: Type.Optional(Type.String()) }),
    { description: "one for each operation or quote, in their order, each as the answer to it alone would be" },
  ),
});

export const CancelTimer = closed({
  timeout_ms: Type.Integer({ minimum: 0, description: "as asked for" }),
  fires_at: about(nullable(Time), "ms since the Unix epoch: when all live orders are canceled; null: never"),
});

export const Canceled = closed({ order_ids: Type.Array(Id, { description: "of the orders that it ended" }) });

export const Limits = closed({
  kyc_tier: Type.Integer({ minimum: 0, maximum: 2 }),
  daily_activity: DailyActivity,
  live_orders: closed({
    used: Type.Integer({ minimum: 0, description: "orders accepted and not yet final" }),
    limit: Type.Integer({ minimum: 0, description: "what used may come to; one more order is refused with 42204" }),
  }),
  fees: closed({
    trading_fee: Type.Integer({ minimum: 0, description: "BPS of the notional, of a seller" }),
    maker_rebate: Type.Integer({ minimum: 0, description: "BPS of the notional, of orders placed with this token" }),
    merge_fee: Type.Integer({ minimum: 0, description: "BPS of 1 USDC for each complete set that is merged" }),
  }),
  rate_limits: Type.Array(
    closed({
      route: Type.String({ description: "method and path" }),
      scope: names(["user", "address", "identifier", "known_address"]),
      ...rateState,
    }),
  ),
});

export const BuilderStats = closed({
  code: Type.String(),
  orders: Type.Integer({ minimum: 0 }),
  fills: Type.Integer({ minimum: 0 }),
  volume: Type.Integer({ minimum: 0, description: "shares" }),
  notional: Money,
  fees: Type.Integer({ minimum: 0, description: "trading fees of these fills, micro-USDC" }),
});

/** A frame of the private stream. */
export const FrameSequence = about(
  Sequence,
  "rises by exactly 1 a message and key; of balances and positions the last order.updated that they reflect",
);

export const OrderEvent = closed({
  event: Type.Literal("order.updated"),
  sequence: FrameSequence,
  ts: Time,
  data: Order,
});

export const OwnFill = closed({
  ...Fill.properties,
  order_id: Id,
  market_id: Id,
  outcome_id: OutcomeId,
  side: SideSchema,
  builder_code: nullable(Type.String()),
});
