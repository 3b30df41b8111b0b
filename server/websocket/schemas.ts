/**
 * What clients ask for over the WebSocket and what the server tells them unasked: each operation with the schemas of its
 * request and answer, each event with that of its data. The hub, the API document and the tests read it; there is no
 * second list.
 */

/**
 * What clients ask for over the WebSocket and what the server tells them unasked: each operation with the schemas of its
 * request and answer, each event with that of its data. The hub, the API document and the tests read it; there is no
 * second list.
 */
import Type, { type TSchema } from "typebox";
import { MAX_TOKEN_LENGTH } from "../accounts/limits.ts";
import { about, closed, Id, Now, names, nullable, Rate, Sequence, Time } from "../http/schemas.ts";
import { ImpliedAsk, ImpliedBid, Levels, MarketSchema, OutcomeBook, Price, Trade } from "../markets/schemas.ts";
import { FrameSequence, Order, TIMESTAMPS_WORDS } from "../trading/schemas.ts";
import { Balance, Position } from "../wallet/schemas.ts";
import { MAX_WS_SUBSCRIPTIONS } from "./limits.ts";
import { CHANNELS, type Channel } from "./types.ts";

export const SocketTicket = closed({
  ticket: Type.String({ description: "good for one connection" }),
  expires_at: Time,
});

const id = Type.Optional(
  about(nullable(Type.Integer({ minimum: 0, maximum: Number.MAX_SAFE_INTEGER })), "comes back with the answer"),
);

/** Without a market: of the channel markets, all of them. Without an outcome: all of the market's. */
export const Subscription = closed({
  op: Type.String(),
  channel: names(CHANNELS),
  market_id: Type.Optional(Id),
  market_ids: Type.Optional(Type.Array(Id, { minItems: 1, maxItems: MAX_WS_SUBSCRIPTIONS })),
  outcome_id: Type.Optional(Id),
  implied: Type.Optional(
    about(
      Type.Boolean(),
      "of book: true for the book with mint and merge liquidity, a channel of its own with its own sequence",
    ),
  ),
  id,
});

/** A fresh token for the connection: of the same user, or of any where it had none. */
export const PresentToken = closed({
  op: Type.String(),
  token: Type.String({ minLength: 1, maxLength: MAX_TOKEN_LENGTH }),
  id,
});

const SubscriptionState = closed({
  channel: names(CHANNELS),
  implied: about(Type.Boolean(), "of book: the one with mint and merge liquidity"),
  market_id: nullable(Id),
  outcome_id: nullable(Id),
  sequence: Sequence,
});

/** Answers subscribe and unsubscribe. */
export const Subscriptions = closed({ subscriptions: Type.Array(SubscriptionState) });

/** orders: the number of the last order.updated, null where none are heard. */
export const Heartbeat = closed({ subscriptions: Type.Array(SubscriptionState), orders: nullable(Sequence) });

export const Ticker = closed({
  market_id: Id,
  outcome_id: Id,
  last_price: nullable(Price),
  best_bid: nullable(Price),
  best_ask: nullable(Price),
  implied_bid: ImpliedBid,
  implied_ask: ImpliedAsk,
  volume: Type.Integer({ minimum: 0, description: "shares" }),
});

/** Replays the order updates after a number. */
export const Resume = closed({ op: Type.String(), sequence: Sequence, id });

export const Ping = closed({ op: Type.String(), id });

export const CancelOnDisconnect = closed({ op: Type.String(), enabled: Type.Boolean(), id });

/** Answers to operations of the connection. */
const Resumed = closed({
  after: about(Sequence, "as asked for: what is told begins behind it"),
  last: about(Sequence, "of the last order.updated so far"),
});

const PresentedToken = closed({ user_id: Id, expires_at: about(nullable(Time), "of the token; null: never") });

const Tied = closed({ enabled: Type.Boolean() });

/** What changed of a book. */
const BookChange = closed({
  market_id: Id,
  outcome_id: Id,
  bids: about(Levels, "[price BPS, new quantity] of each level that changed; quantity 0: the level is gone"),
  asks: about(Levels, "as bids"),
  implied: Type.Optional(
    about(
      closed({ bids: Levels, asks: Levels }),
      "of the book with mint and merge alone: what changed of the part that they offer, as bids and asks",
    ),
  ),
});

const Shutdown = Type.Null();

/** Every message that the server sends unasked. @param data of the event */
export function frameOf(event: string, data: TSchema) {
  return closed({ event: Type.Literal(event), sequence: FrameSequence, ts: Time, data });
}

/** The answer to an operation. @param data of its success */
export function acknowledgementOf(data: TSchema) {
  return closed({
    id: nullable(Type.Integer()),
    code: Type.Integer(),
    msg: Type.String({ minLength: 1 }),
    data: nullable(data),
    trace_id: Type.Optional(Type.String({ minLength: 1 })),
    rate_limit: Type.Optional(nullable(Rate)),
    retry_after: Type.Optional(
      about(Type.Integer({ minimum: 1 }), "of 42900, 42901 and 50300: seconds until the next will be accepted"),
    ),
  });
}

/** An operation of a route: `data` is checked by the route's own schemas. */
export const RouteOperation = closed({
  op: Type.String(),
  data: Type.Optional(Type.Object({})),
  builder_code: Type.Optional(about(nullable(Type.String()), "the integration that the fills are credited to")),
  timestamps: Type.Optional(about(Type.Boolean(), TIMESTAMPS_WORDS)),
  id,
});

/** An operation's route, and what of its data are path parameters; the rest is the route's query or body. */
export interface OperationRoute {
  readonly template: string;
  readonly param: string | null;
}

export const ROUTE_OPERATIONS: ReadonlyMap<string, OperationRoute> = new Map([
  ["order.place", { template: "POST /orders", param: null }],
  ["order.cancel", { template: "DELETE /orders/:id", param: "id" }],
  ["order.cancel_all", { template: "DELETE /orders", param: null }],
  ["order.cancel_after", { template: "POST /orders/cancel-after", param: null }],
  ["order.amend", { template: "PATCH /orders/:id", param: "id" }],
  ["order.batch", { template: "POST /orders/batch", param: null }],
  ["quotes.replace", { template: "PUT /quotes/:market_id", param: "market_id" }],
]);

/** An operation of the connection itself. */
interface ConnectionOperation {
  readonly summary: string;
  readonly request: TSchema;
  /** Of `data` of its success. */
  readonly answer: TSchema;
}

export const CONNECTION_OPERATIONS = {
  subscribe: {
    summary: "Hear a channel from now on; books, tickers and single markets begin with their state",
    request: Subscription,
    answer: Subscriptions,
  },
  unsubscribe: {
    summary: "Hear a channel no longer; answers with the last sequence of each",
    request: Subscription,
    answer: Subscriptions,
  },
  ping: { summary: "Answers with the server's clock, behind all that was sent before", request: Ping, answer: Now },
  cancel_on_disconnect: {
    summary: "Tie the orders that come over the connection to it: they are canceled when it closes",
    request: CancelOnDisconnect,
    answer: Tied,
  },
  resume: {
    summary:
      "Hear the caller's order updates after a sequence again, then its balance and positions, then what happens",
    request: Resume,
    answer: Resumed,
  },
  auth: {
    summary: "Present a token: a fresh one of the same user, or any where the connection has none",
    request: PresentToken,
    answer: PresentedToken,
  },
} as const satisfies Readonly<Record<string, ConnectionOperation>>;

interface SocketEvent {
  readonly summary: string;
  /** What brings it; null where nobody subscribes to it. */
  readonly channel: Channel | null;
  readonly data: TSchema;
}

export const SOCKET_EVENTS: Readonly<Record<string, SocketEvent>> = {
  "order.updated": {
    summary: "An order of the caller changed; without subscribing, with the scope portfolio:read or orders:write",
    channel: null,
    data: Order,
  },
  "balance.updated": {
    summary: "The caller's balance as it is now, as of the order.updated of this sequence; with portfolio:read",
    channel: null,
    data: Balance,
  },
  "position.updated": {
    summary: "A position of the caller as it is now, as of the order.updated of this sequence; with portfolio:read",
    channel: null,
    data: Position,
  },
  "book.snapshot": { summary: "The book that a subscription begins with", channel: "book", data: OutcomeBook },
  "book.updated": {
    summary: "The levels of a book that one commit changed; its sequence follows the snapshot's or last one's by 1",
    channel: "book",
    data: BookChange,
  },
  "trade.created": { summary: "A match, from the taker's side", channel: "trades", data: Trade },
  "ticker.updated": {
    summary: "Last price, best prices and volume of an outcome, at most ten times a second",
    channel: "ticker",
    data: Ticker,
  },
  "market.updated": {
    summary: "A market is new, or its state or texts changed",
    channel: "markets",
    data: MarketSchema,
  },
  heartbeat: {
    summary: "Every 5 seconds: the last sequence of each subscription, so that what is missing shows",
    channel: null,
    data: Heartbeat,
  },
  "system.shutdown": {
    summary: "The exchange goes down: the connection is closed with 1001 after this",
    channel: null,
    data: Shutdown,
  },
};
