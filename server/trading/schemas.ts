/**
 * The shapes of orders and of all requests that change them, of fills and of what the caller may still do. Prices are in
 * basis points, quantities in whole shares.
 */
import Type, { type TSchema } from "typebox";
import {
  ORDER_STATUSES,
  ORDER_TYPES,
  REASONS,
  ROLES,
  SELF_TRADE_PREVENTIONS,
  TIMES_IN_FORCE,
} from "../../engine/constants.ts";
import type { ShownTerm } from "../../engine/ring/order-terms.ts";
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
import { CLIENT_ORDER_ID } from "../http/text-schemas.ts";
import { MatchTypeSchema, OutcomeId, Price, Quantity, SideSchema } from "../markets/schemas.ts";
import { MAX_BATCH_OPERATIONS, MAX_CANCEL_AFTER_MS, MAX_QUOTES, MIN_CANCEL_AFTER_MS } from "./limits.ts";

const ClientOrderId = Type.String({ ...CLIENT_ORDER_ID.schema, description: "the caller's own id of the order" });

/** A term of an order: how the API shows it, and how a placement takes it. @param missing what stands in where it is missing */
const term = <S extends TSchema>(schema: S, missing: string, words: string) => ({
  shown: about(schema, words),
  given: Type.Optional(about(schema, `${missing}; ${words}`)),
});

const TERMS = {
  type: term(
    names([...new Set(ORDER_TYPES)]),
    "limit by default",
    "a market order never rests; without a price, its limit is 9999 for a buy and 1 for a sell",
  ),
  time_in_force: term(
    names(TIMES_IN_FORCE),
    "gtc by default, ioc for market orders",
    "gtc: rests until canceled; gtd: rests until expires_at; ioc: the unmatched rest is canceled immediately; fok: fills completely and immediately, or not at all",
  ),
  post_only: term(
    Type.Boolean(),
    "false by default",
    "true: rejected (post_only_would_cross) if it would match immediately",
  ),
  self_trade_prevention: term(
    names(SELF_TRADE_PREVENTIONS),
    "cancel_taker by default",
    "what happens when an order would match another order of the same user; the taker's setting applies",
  ),
} satisfies Record<ShownTerm, unknown>;

type Terms = typeof TERMS;

function termsAs<Use extends "shown" | "given">(use: Use): { [Name in keyof Terms]: Terms[Name][Use] } {
  return Object.fromEntries(Object.entries(TERMS).map(([name, uses]) => [name, uses[use]])) as ReturnType<
    typeof termsAs<Use>
  >;
}

const ValidUntil = about(
  Time,
  "ms since the Unix epoch: the engine rejects a request that reaches it later as too_late, so that a delayed request has no effect",
);

export const PlaceOrder = closed({
  market_id: Id,
  outcome_id: OutcomeId,
  side: SideSchema,
  price: Type.Optional(
    about(nullable(Price), "basis points; required for limit orders; for market orders, the worst acceptable price"),
  ),
  quantity: Quantity,
  ...termsAs("given"),
  client_order_id: Type.Optional(
    about(
      nullable(ClientOrderId),
      "unique among the caller's live orders and those of the last 24 hours: a repeat with the same body returns the first response and places nothing; with another body it is 40900",
    ),
  ),
  expires_at: Type.Optional(about(nullable(Time), "ms since the Unix epoch; required for gtd, not allowed otherwise")),
  valid_until: Type.Optional(nullable(ValidUntil)),
});

export const TIMESTAMPS_WORDS =
  "true: the response and the order's updates state when the order was received, matched, made durable and sent";

export const PlaceQuery = closed({ timestamps: Type.Optional(Type.Boolean({ description: TIMESTAMPS_WORDS })) });

/** The new price, the new total quantity (filled shares included), or both. */
const amendment = {
  price: Type.Optional(about(nullable(Price), "basis points; unchanged if missing")),
  quantity: Type.Optional(
    about(nullable(Quantity), "whole shares: the new total, filled shares included; unchanged if missing"),
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
      "ms since the Unix epoch: when all quotes expire; an unchanged quote keeps its place and gets this expiry too",
    ),
  ),
  valid_until: Type.Optional(
    about(
      nullable(Time),
      "ms since the Unix epoch: if the request reaches the engine later, it rejects the new quotes as too_late and keeps the standing ones",
    ),
  ),
});

/** The server checks each operation against its own schema when its turn comes: an invalid one doesn't affect the others. */
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
    description: `ms from now, at least ${MIN_CANCEL_AFTER_MS}; 0 stops the timer`,
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
    about(
      names(["active", "all", ...ORDER_STATUSES]),
      "active by default; all: finished orders too; or a single status",
    ),
  ),
});

export const FillsQuery = closed({ ...page, ...span, market_id: Type.Optional(Id), order_id: Type.Optional(Id) });

export const EventsQuery = closed({
  ...page,
  after: Type.Optional(about(Sequence, "returns updates after this sequence; all stored ones if missing")),
});

export const Fill = closed({
  id: Id,
  match_id: about(Id, "of the match, shared by all of its fills: the id of its trade"),
  price: about(Price, "basis points: what this order paid or received"),
  quantity: Quantity,
  role: about(names(ROLES), "maker: the order rested; taker: it matched on arrival"),
  match_type: MatchTypeSchema,
  fee: money("deducted from the seller's proceeds"),
  rebate: money("paid to the maker"),
  created_at: Time,
});

const Microseconds = Type.Integer({
  minimum: 0,
  maximum: Number.MAX_SAFE_INTEGER,
  description: "µs since the Unix epoch",
});

/** When the server received the order, and when the reported change was matched, made durable and sent. */
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
  price: about(nullable(Price), "basis points; null for a market order without a price"),
  quantity: Quantity,
  remaining: shares("not yet filled"),
  filled: shares("filled so far"),
  ...termsAs("shown"),
  expires_at: nullable(Time),
  status: about(
    names(ORDER_STATUSES),
    "queued, open, partially_filled, and finally filled, canceled, expired or rejected",
  ),
  reason: about(nullable(names(REASONS)), "of canceled, expired and rejected orders; null otherwise"),
  builder_code: about(nullable(Type.String()), "the integration that receives credit for its fills"),
  created_at: Time,
  updated_at: Time,
  trades: Type.Array(Fill, {
    description:
      "its fills; in order.updated, those that the event reports; always empty in the response to a placement",
  }),
  timestamps: Type.Optional(
    about(Timestamps, "in the response to a placement with timestamps=true, and in that order's updates"),
  ),
});

/** The result of each operation of a batch, or of each quote. */
export const Results = closed({
  results: Type.Array(
    closed({ code: Type.Integer(), msg: Type.String(), data: nullable(Order), trace_id: Type.Optional(Type.String()) }),
    { description: "one per operation or quote, in request order, each like the response to that operation alone" },
  ),
});

export const CancelTimer = closed({
  timeout_ms: Type.Integer({ minimum: 0, description: "as requested" }),
  fires_at: about(nullable(Time), "ms since the Unix epoch: when the server cancels all live orders; null: never"),
});

export const Canceled = closed({
  order_ids: Type.Array(Id, { description: "of the orders that this request canceled" }),
});

export const Limits = closed({
  kyc_tier: Type.Integer({ minimum: 0, maximum: 2 }),
  daily_activity: DailyActivity,
  live_orders: closed({
    used: Type.Integer({ minimum: 0, description: "accepted orders that are not yet finished" }),
    limit: Type.Integer({ minimum: 0, description: "maximum of used; the server rejects a further order with 42204" }),
  }),
  fees: closed({
    trading_fee: Type.Integer({ minimum: 0, description: "bps of the notional, for the seller" }),
    maker_rebate: Type.Integer({ minimum: 0, description: "bps of the notional, for orders placed with this token" }),
    merge_fee: Type.Integer({ minimum: 0, description: "bps of 1 USDC per merged complete set" }),
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
  fees: Type.Integer({ minimum: 0, description: "micro-USDC: trading fees of these fills" }),
});

/** The number of a frame of the private stream. */
export const FrameSequence = about(
  Sequence,
  "rises by exactly 1 per message and key; for balances and positions, the sequence of the last order.updated that they reflect",
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
