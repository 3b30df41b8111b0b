/**
 * The messages of the WebSocket: each operation with the schemas of its request and response, each event with the schema
 * of its data. The hub, the API document and the tests read these tables; there is no second list.
 */
import Type, { type TSchema } from "typebox";
import { MAX_TOKEN_LENGTH } from "../accounts/limits.ts";
import { about, closed, Id, Now, names, nullable, Rate, Sequence, Time } from "../http/schemas.ts";
import { ImpliedAsk, ImpliedBid, Levels, MarketSchema, OutcomeBook, Price, Trade } from "../markets/schemas.ts";
import { CancelOrder, FrameSequence, Order, TIMESTAMPS_WORDS } from "../trading/schemas.ts";
import { Balance, Position } from "../wallet/schemas.ts";
import { MAX_WS_SUBSCRIPTIONS } from "./limits.ts";
import { CHANNELS, type Channel } from "./types.ts";

export const SocketTicket = closed({
  ticket: Type.String({ description: "opens one connection" }),
  expires_at: Time,
});

const id = Type.Optional(
  about(nullable(Type.Integer({ minimum: 0, maximum: Number.MAX_SAFE_INTEGER })), "repeated in the response"),
);

/** Without a market, the channel markets covers all of them; without an outcome, a channel covers all of the market's. */
export const Subscription = closed({
  op: Type.String(),
  channel: names(CHANNELS),
  market_id: Type.Optional(Id),
  market_ids: Type.Optional(Type.Array(Id, { minItems: 1, maxItems: MAX_WS_SUBSCRIPTIONS })),
  outcome_id: Type.Optional(Id),
  implied: Type.Optional(
    about(
      Type.Boolean(),
      "book only; true: the book with mint and merge liquidity, a separate channel with its own sequence",
    ),
  ),
  id,
});

/** A fresh token for the connection: of the same user, or of any user if the connection had none. */
export const PresentToken = closed({
  op: Type.String(),
  token: Type.String({ minLength: 1, maxLength: MAX_TOKEN_LENGTH }),
  id,
});

const SubscriptionState = closed({
  channel: names(CHANNELS),
  implied: about(Type.Boolean(), "book only: the book with mint and merge liquidity"),
  market_id: nullable(Id),
  outcome_id: nullable(Id),
  sequence: Sequence,
});

/** The response to subscribe and unsubscribe. */
export const Subscriptions = closed({ subscriptions: Type.Array(SubscriptionState) });

/** orders: the sequence of the last order.updated; null if the connection receives none. */
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

/** Responses to operations of the connection. */
const Resumed = closed({
  after: about(Sequence, "as requested: the replay begins after this sequence"),
  last: about(Sequence, "of the latest order.updated"),
});

const PresentedToken = closed({
  user_id: Id,
  expires_at: about(nullable(Time), "when the token expires; null: never"),
});

const Tied = closed({ enabled: Type.Boolean() });

/** A change of a book. */
const BookChange = closed({
  market_id: Id,
  outcome_id: Id,
  bids: about(Levels, "[price in basis points, new quantity] of each changed level; quantity 0 removes the level"),
  asks: about(Levels, "like bids"),
  implied: Type.Optional(
    about(
      closed({ bids: Levels, asks: Levels }),
      "only for implied books: changes of the part that mint and merge provide",
    ),
  ),
});

export const Shutdown = closed({
  reason: about(
    Type.Union([Type.Literal("restart"), Type.Literal("standby")]),
    "restart: the same server comes back; standby: another one goes on",
  ),
  url: about(Type.Union([Type.String(), Type.Null()]), "where to connect next; null: where this connection went"),
});
export type Shutdown = Type.Static<typeof Shutdown>;

/** Events that a new subscription may begin with. */
const SNAPSHOTS: readonly string[] = ["book.snapshot", "ticker.updated", "market.updated"];
const Snapshot = Type.Literal(true, {
  description: "the state at the start of a subscription; its sequence is that of the last message so far",
});

/** An event: a message that answers no operation. @param data the schema of its data */
export function frameOf(event: string, data: TSchema) {
  const fields = { event: Type.Literal(event), sequence: FrameSequence, ts: Time };
  return closed(
    SNAPSHOTS.includes(event) ? { ...fields, snapshot: Type.Optional(Snapshot), data } : { ...fields, data },
  );
}

/** The response to an operation. @param data the schema of its data on success */
export function acknowledgementOf(data: TSchema) {
  return closed({
    id: nullable(Type.Integer()),
    code: Type.Integer(),
    msg: Type.String({ minLength: 1 }),
    data: nullable(data),
    trace_id: Type.Optional(Type.String({ minLength: 1 })),
    rate_limit: Type.Optional(nullable(Rate)),
    retry_after: Type.Optional(
      about(
        Type.Integer({ minimum: 1 }),
        "for 42900, 42901 and 50300: seconds until the server accepts the next request",
      ),
    ),
  });
}

/** An operation of a route; the route's own schemas validate `data`. */
export const RouteOperation = closed({
  op: Type.String(),
  data: Type.Optional(Type.Object({})),
  builder_code: Type.Optional(about(nullable(Type.String()), "the integration that receives credit for the fills")),
  timestamps: Type.Optional(about(Type.Boolean(), TIMESTAMPS_WORDS)),
  id,
});

/** An operation's route. */
export interface OperationRoute {
  readonly template: string;
  /** The field of its data that is the path's parameter; the rest is the route's query or body. Null: the path has none. */
  readonly param: string | null;
  /** The operation takes `timestamps`, which is the route's query. */
  readonly timestamps: boolean;
  /** The operation's data names what it means in either of two ways, of which the other one has a route of its own. */
  readonly either: { readonly template: string; readonly param: string; readonly data: TSchema } | null;
}

const ofRoute = (template: string, options: Partial<OperationRoute> = {}): OperationRoute => {
  return { template, param: null, timestamps: false, either: null, ...options };
};

export const ROUTE_OPERATIONS: ReadonlyMap<string, OperationRoute> = new Map([
  ["order.place", ofRoute("POST /orders", { timestamps: true })],
  [
    "order.cancel",
    ofRoute("DELETE /orders/:id", {
      param: "id",
      either: {
        template: "DELETE /orders/by-client-id/:client_order_id",
        param: "client_order_id",
        data: CancelOrder,
      },
    }),
  ],
  ["order.cancel_all", ofRoute("DELETE /orders")],
  ["order.cancel_after", ofRoute("POST /orders/cancel-after")],
  ["order.amend", ofRoute("PATCH /orders/:id", { param: "id" })],
  ["order.batch", ofRoute("POST /orders/batch")],
  ["quotes.replace", ofRoute("PUT /quotes/:market_id", { param: "market_id" })],
]);

/** An operation of the connection itself. */
interface ConnectionOperation {
  readonly summary: string;
  readonly request: TSchema;
  /** The schema of `data` on success. */
  readonly reply: TSchema;
}

export const CONNECTION_OPERATIONS = {
  subscribe: {
    summary: "Subscribe to a channel; books, tickers and single markets begin with their current state",
    request: Subscription,
    reply: Subscriptions,
  },
  unsubscribe: {
    summary: "Unsubscribe from a channel; returns the last sequence of each subscription",
    request: Subscription,
    reply: Subscriptions,
  },
  ping: { summary: "Returns the server's clock, after all messages sent before", request: Ping, reply: Now },
  cancel_on_disconnect: {
    summary: "Cancel the orders placed over this connection when it closes",
    request: CancelOnDisconnect,
    reply: Tied,
  },
  resume: {
    summary:
      "Replay the caller's order updates after a sequence, then balance and positions, then continue live; 40900 while another " +
      "replay runs on the connection",
    request: Resume,
    reply: Resumed,
  },
  auth: {
    summary: "Present a token: a fresh one of the same user, or any user's if the connection has none",
    request: PresentToken,
    reply: PresentedToken,
  },
} as const satisfies Readonly<Record<string, ConnectionOperation>>;

interface SocketEvent {
  readonly summary: string;
  /** The channel that carries it; null for events without a subscription. */
  readonly channel: Channel | null;
  readonly data: TSchema;
}

export const SOCKET_EVENTS: Readonly<Record<string, SocketEvent>> = {
  "order.updated": {
    summary:
      "An order of the caller changed; sent without a subscription, with the scope portfolio:read or orders:write",
    channel: null,
    data: Order,
  },
  "balance.updated": {
    summary: "The caller's current balance, as of the order.updated with this sequence; with portfolio:read",
    channel: null,
    data: Balance,
  },
  "position.updated": {
    summary: "A current position of the caller, as of the order.updated with this sequence; with portfolio:read",
    channel: null,
    data: Position,
  },
  "book.snapshot": { summary: "The book at the start of a subscription", channel: "book", data: OutcomeBook },
  "book.updated": {
    summary:
      "The levels of a book that one commit changed; its sequence is 1 above the previous update's or the snapshot's",
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
    summary: "A market is new, or its status or texts changed",
    channel: "markets",
    data: MarketSchema,
  },
  heartbeat: {
    summary: "Every 5 seconds: the last sequence of each subscription, so that clients can detect gaps",
    channel: null,
    data: Heartbeat,
  },
  "system.shutdown": {
    summary: "The exchange is shutting down: it closes the connection with 1001 after this event",
    channel: null,
    data: Shutdown,
  },
};
