/**
 * What clients ask for over the WebSocket and what the server tells them unasked: each operation with the schemas of its
 * request and answer, each event with that of its data. The hub, the API document and the tests read it; there is no
 * second list.
 */
import type { TSchema } from "typebox";
import * as S from "../http/schemas.ts";
import type { Channel } from "./types.ts";

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
    request: S.Subscription,
    answer: S.Subscriptions,
  },
  unsubscribe: {
    summary: "Hear a channel no longer; answers with the last sequence of each",
    request: S.Subscription,
    answer: S.Subscriptions,
  },
  ping: { summary: "Answers with the server's clock, behind all that was sent before", request: S.Ping, answer: S.Now },
  cancel_on_disconnect: {
    summary: "Tie the orders that come over the connection to it: they are canceled when it closes",
    request: S.CancelOnDisconnect,
    answer: S.Tied,
  },
  resume: {
    summary:
      "Hear the caller's order updates after a sequence again, then its balance and positions, then what happens",
    request: S.Resume,
    answer: S.Resumed,
  },
  auth: {
    summary: "Present a token: a fresh one of the same user, or any where the connection has none",
    request: S.PresentToken,
    answer: S.PresentedToken,
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
    data: S.Order,
  },
  "balance.updated": {
    summary: "The caller's balance as it is now, as of the order.updated of this sequence; with portfolio:read",
    channel: null,
    data: S.Balance,
  },
  "position.updated": {
    summary: "A position of the caller as it is now, as of the order.updated of this sequence; with portfolio:read",
    channel: null,
    data: S.Position,
  },
  "book.snapshot": { summary: "The book that a subscription begins with", channel: "book", data: S.OutcomeBook },
  "book.updated": {
    summary: "The levels of a book that one commit changed; its sequence follows the snapshot's or last one's by 1",
    channel: "book",
    data: S.BookChange,
  },
  "trade.created": { summary: "A match, from the taker's side", channel: "trades", data: S.Trade },
  "ticker.updated": {
    summary: "Last price, best prices and volume of an outcome, at most ten times a second",
    channel: "ticker",
    data: S.Ticker,
  },
  "market.updated": {
    summary: "A market is new, or its state or texts changed",
    channel: "markets",
    data: S.MarketSchema,
  },
  heartbeat: {
    summary: "Every 5 seconds: the last sequence of each subscription, so that what is missing shows",
    channel: null,
    data: S.Heartbeat,
  },
  "system.shutdown": {
    summary: "The exchange goes down: the connection is closed with 1001 after this",
    channel: null,
    data: S.Shutdown,
  },
};
