/** Examples of WebSocket messages: requests and responses by operation; events by name. */
import type { JsonObject } from "./components.ts";
import * as example from "./samples.ts";

interface OperationExample {
  readonly request: JsonObject;
  readonly reply: object;
}

const success = (id: number, data: unknown): object => ({ id, code: 0, msg: "ok", data });
const RATE = { limit: 30, remaining: 29, reset: 60 };
const limited = (id: number, data: unknown): object => ({ ...success(id, data), rate_limit: RATE });
const BOOK_SUBSCRIPTION = { channel: "book", implied: false, market_id: 1, outcome_id: 1, sequence: 88 };

export const OPERATION_EXAMPLES: Readonly<Record<string, readonly OperationExample[]>> = {
  subscribe: [
    {
      request: { op: "subscribe", channel: "book", market_id: 1, outcome_id: 1, id: 1 },
      reply: success(1, { subscriptions: [BOOK_SUBSCRIPTION] }),
    },
    {
      request: { op: "subscribe", channel: "book", implied: true, market_id: 1, outcome_id: 1, id: 10 },
      reply: success(10, { subscriptions: [{ ...BOOK_SUBSCRIPTION, implied: true, sequence: 91 }] }),
    },
    {
      request: { op: "subscribe", channel: "trades", market_ids: [1], id: 2 },
      reply: success(2, {
        subscriptions: [{ channel: "trades", implied: false, market_id: 1, outcome_id: null, sequence: 12 }],
      }),
    },
    {
      request: { op: "subscribe", channel: "markets", id: 3 },
      reply: success(3, {
        subscriptions: [
          { channel: "markets", implied: false, market_id: null, outcome_id: null, sequence: example.THEN },
        ],
      }),
    },
    {
      request: { op: "subscribe", channel: "ticker", market_id: 1, outcome_id: 1, id: 4 },
      reply: success(4, { subscriptions: [{ ...BOOK_SUBSCRIPTION, channel: "ticker", sequence: example.THEN }] }),
    },
  ],
  unsubscribe: [
    {
      request: { op: "unsubscribe", channel: "book", market_id: 1, outcome_id: 1, id: 5 },
      reply: success(5, { subscriptions: [BOOK_SUBSCRIPTION] }),
    },
  ],
  ping: [{ request: { op: "ping", id: 6 }, reply: success(6, { now: example.THEN }) }],
  cancel_on_disconnect: [
    { request: { op: "cancel_on_disconnect", enabled: true, id: 7 }, reply: success(7, { enabled: true }) },
  ],
  resume: [
    {
      request: { op: "resume", sequence: 0, id: 8 },
      reply: { ...success(8, { after: 0, last: 3 }), rate_limit: { limit: 100, remaining: 99, reset: 60 } },
    },
  ],
  auth: [
    {
      request: { op: "auth", token: "pm_pat_Zm9vexampleexampleexampleexampleexample", id: 9 },
      reply: success(9, { user_id: 3, expires_at: example.FAR_OFF }),
    },
  ],
  "order.place": [
    {
      request: {
        op: "order.place",
        data: { market_id: 1, outcome_id: 1, side: 1, price: 4_200, quantity: 100, client_order_id: "mm-1-0001" },
        builder_code: "acme-terminal",
        id: 10,
      },
      reply: limited(10, { ...example.order, builder_code: "acme-terminal" }),
    },
  ],
  "order.amend": [
    {
      request: { op: "order.amend", data: { id: 7_001, quantity: 80 }, id: 11 },
      reply: limited(11, { ...example.restingOrder, quantity: 80, remaining: 80 }),
    },
  ],
  "order.cancel": [
    {
      request: { op: "order.cancel", data: { client_order_id: "mm-1-0001" }, id: 12 },
      reply: limited(12, example.restingOrder),
    },
  ],
  "order.cancel_all": [
    {
      request: { op: "order.cancel_all", data: { market_id: 1 }, id: 13 },
      reply: limited(13, { order_ids: [7_001] }),
    },
  ],
  "order.cancel_after": [
    {
      request: { op: "order.cancel_after", data: { timeout_ms: 30_000 }, id: 16 },
      reply: limited(16, { timeout_ms: 30_000, fires_at: example.THEN + 30_000 }),
    },
  ],
  "order.batch": [
    {
      request: {
        op: "order.batch",
        data: { operations: [{ op: "place", market_id: 1, outcome_id: 1, side: 1, price: 4_100, quantity: 50 }] },
        id: 14,
      },
      reply: limited(14, { results: [{ code: 0, msg: "ok", data: { ...example.order, client_order_id: null } }] }),
    },
  ],
  "quotes.replace": [
    {
      request: {
        op: "quotes.replace",
        data: { market_id: 1, quotes: [{ outcome_id: 1, side: 1, price: 4_100, quantity: 100 }] },
        id: 15,
      },
      reply: limited(15, { results: [{ code: 0, msg: "ok", data: { ...example.order, post_only: true } }] }),
    },
  ],
};

const eventOf = (event: string, sequence: number, data: unknown): object => ({
  event,
  sequence,
  ts: example.THEN,
  data,
});

export const EVENT_EXAMPLES: Readonly<Record<string, object>> = {
  "order.updated": eventOf("order.updated", 3, example.filledOrder),
  "balance.updated": eventOf("balance.updated", 3, example.balance),
  "position.updated": eventOf("position.updated", 3, example.position),
  "book.snapshot": { ...eventOf("book.snapshot", 88, example.book), snapshot: true },
  "book.updated": eventOf("book.updated", 89, {
    market_id: 1,
    outcome_id: 1,
    bids: [[4_150, 200]],
    asks: [[4_250, 0]],
  }),
  "trade.created": eventOf("trade.created", 13, example.trade),
  "ticker.updated": eventOf("ticker.updated", example.THEN + 1, {
    market_id: 1,
    outcome_id: 1,
    last_price: 4_200,
    best_bid: 4_150,
    best_ask: 4_250,
    implied_bid: 4_150,
    implied_ask: 4_250,
    volume: 1_340,
  }),
  "market.updated": eventOf("market.updated", example.THEN + 1, { ...example.market, status: "halted" }),
  heartbeat: eventOf("heartbeat", 4, { subscriptions: [BOOK_SUBSCRIPTION], orders: 3 }),
  "system.shutdown": eventOf("system.shutdown", 0, { reason: "restart", url: null }),
};
