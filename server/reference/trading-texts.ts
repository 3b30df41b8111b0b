/** The documentation of orders, market data and proposals. */

import type { Static } from "typebox";
import type { PageQuery } from "../http/schemas.ts";
import type {
  BookQuery,
  Candles,
  CandlesQuery,
  Categories,
  Feed,
  FeedQuery,
  HistoryDays,
  HistoryQuery,
  MarketBook,
  MarketEventsQuery,
  MarketsQuery,
  NewMarket,
  Proposals,
  TradesQuery,
  WatchlistChange,
} from "../markets/schemas.ts";
import type {
  AmendOrder,
  BuilderStats,
  CancelAfter,
  Canceled,
  CancelQuery,
  CancelTimer,
  EventsQuery,
  FillsQuery,
  OrderEvent,
  OrdersQuery,
  PlaceOrder,
  PlaceQuery,
  Quotes,
  Results,
} from "../trading/schemas.ts";

import type { OperationTexts } from "./operation-text.ts";
import * as example from "./samples.ts";

const REFUSED_LATER =
  "What only the book can decide (a post-only order that would cross, a FOK that can't fill, a self-trade) is no HTTP error: " +
  "the order ends `canceled` or `rejected` with a `reason`, in `order.updated`.";

export const ORDER_TEXTS: OperationTexts = {
  "POST /orders": {
    id: "placeOrder",
    tag: "Orders",
    description: `The response is 202 once the order is durable: every order with a 202 survives a crash. It always shows the order as \`queued\` with empty \`trades\`; \`order.updated\` on the WebSocket reports what follows. ${REFUSED_LATER} A buy holds price × 100 × quantity micro-USDC, a sell holds the shares.`,
    errors: [404, 409, 422],
    query: { timestamps: false } satisfies Static<typeof PlaceQuery>,
    body: {
      market_id: 1,
      outcome_id: 1,
      side: 1,
      price: 4_200,
      quantity: 100,
      client_order_id: "mm-1-0001",
    } satisfies Static<typeof PlaceOrder>,
    response: example.order,
  },
  "GET /orders": {
    id: "listOrders",
    tag: "Orders",
    query: { market_id: 1, side: 1, status: "active", limit: 10 } satisfies Static<typeof OrdersQuery>,
    response: example.pageOf(example.restingOrder),
  },
  "DELETE /orders": {
    id: "cancelOrders",
    tag: "Orders",
    description: "`order.updated` reports the end of each order. Works in a halted market.",
    query: { market_id: 1, side: 1 } satisfies Static<typeof CancelQuery>,
    response: { order_ids: [7_001] } satisfies Static<typeof Canceled>,
  },
  "POST /orders/batch": {
    id: "runBatch",
    tag: "Orders",
    description: "Counts as one request for the rate limits. A rejected operation doesn't affect the others.",
    body: {
      operations: [
        { op: "place", market_id: 1, outcome_id: 1, side: 1, price: 4_100, quantity: 50 },
        { op: "amend", id: 7_001, quantity: 80 },
        { op: "cancel", client_order_id: "mm-1-0001" },
      ],
    },
    response: {
      results: [
        {
          code: 0,
          msg: "ok",
          data: { ...example.order, id: 7_002, client_order_id: null, price: 4_100, quantity: 50 },
        },
        { code: 0, msg: "ok", data: { ...example.restingOrder, quantity: 80, remaining: 80 } },
        { code: 40900, msg: "the order is finished", data: null },
      ],
    } satisfies Static<typeof Results>,
  },
  "POST /orders/cancel-after": {
    id: "cancelAfter",
    tag: "Orders",
    description:
      "A dead man's switch: if the caller stops renewing the timer, all of its live orders are canceled with the reason `cancel_after`, whether its connections are open or not. There is one timer per account; each call resets it. It survives restarts of the exchange: orders due in the meantime are canceled before any matching.",
    body: { timeout_ms: 30_000 } satisfies Static<typeof CancelAfter>,
    response: { timeout_ms: 30_000, fires_at: example.THEN + 30_000 } satisfies Static<typeof CancelTimer>,
  },
  "GET /orders/:id": { id: "getOrder", tag: "Orders", params: { id: 7_001 }, response: example.filledOrder },
  "GET /orders/by-client-id/:client_order_id": {
    id: "getOrderByClientId",
    tag: "Orders",
    description:
      "For a client that got no response to a placement: an order means that it succeeded, 4040 that it has placed no order (yet). Finds live orders of any age, and orders placed in the last 24 hours.",
    params: { client_order_id: "mm-1-0001" },
    response: example.filledOrder,
  },
  "DELETE /orders/by-client-id/:client_order_id": {
    id: "cancelOrderByClientId",
    tag: "Orders",
    description: "Like cancel by id; works even before the response to the placement arrives.",
    errors: [409],
    params: { client_order_id: "mm-1-0001" },
    response: example.restingOrder,
  },
  "DELETE /orders/:id": {
    id: "cancelOrder",
    tag: "Orders",
    description: "Returns the order's current state. Another user's order is 4040. Works in a halted market.",
    errors: [409],
    params: { id: 7_001 },
    response: example.restingOrder,
  },
  "PATCH /orders/:id": {
    id: "amendOrder",
    tag: "Orders",
    description:
      "The id stays the same. Every change except a smaller quantity at the same price loses the time priority. A post-only order that would cross at the new price stays unchanged: 40900. Needs funds for the worst case in which fills are in flight.",
    errors: [409, 422],
    params: { id: 7_001 },
    body: { price: 4_200, quantity: 80 } satisfies Static<typeof AmendOrder>,
    response: { ...example.restingOrder, quantity: 80, remaining: 80 },
  },
  "PUT /quotes/:market_id": {
    id: "replaceQuotes",
    tag: "Orders",
    description:
      "A quote is an order placed by this route. No other order matches between the removal of the old quotes and the entry of the new ones; an empty list removes all. `expires_at` and `valid_until` apply to all: an unchanged quote with a new expiry keeps its place; after `valid_until`, the new quotes are rejected and nothing else changes.",
    errors: [409, 422],
    params: { market_id: 1 },
    body: {
      quotes: [
        { outcome_id: 1, side: 1, price: 4_100, quantity: 100 },
        { outcome_id: 2, side: 1, price: 5_700, quantity: 100 },
      ],
      expires_at: example.FAR_OFF,
    } satisfies Static<typeof Quotes>,
    response: {
      results: [
        { code: 0, msg: "ok", data: { ...example.order, client_order_id: null, price: 4_100, post_only: true } },
        {
          code: 0,
          msg: "ok",
          data: { ...example.order, id: 7_002, client_order_id: null, outcome_id: 2, price: 5_700, post_only: true },
        },
      ],
    } satisfies Static<typeof Results>,
  },
  "GET /me/fills": {
    id: "listFills",
    tag: "Orders",
    query: { market_id: 1, limit: 10 } satisfies Static<typeof FillsQuery>,
    response: example.pageOf(example.ownFill),
  },
  "GET /me/events": {
    id: "listOrderEvents",
    tag: "Orders",
    description: "The same sequences and data as on the WebSocket, even across restarts and crashes.",
    errors: [404],
    query: { after: 0, limit: 10 } satisfies Static<typeof EventsQuery>,
    response: example.pageOf<Static<typeof OrderEvent>>({
      event: "order.updated",
      sequence: 1,
      ts: example.filledOrder.updated_at,
      data: example.filledOrder,
    }),
  },
  "GET /builders/:code/stats": {
    id: "getBuilderStats",
    tag: "Orders",
    params: { code: "acme-terminal" },
    response: {
      code: "acme-terminal",
      orders: 12,
      fills: 9,
      volume: 360,
      notional: 151_200_000,
      fees: 2_268_000,
    } satisfies Static<typeof BuilderStats>,
  },
};

export const PROPOSAL_TEXTS: OperationTexts = {
  "POST /markets/proposals": {
    id: "proposeMarket",
    tag: "Proposals",
    errors: [404, 409],
    body: {
      question: "Will the ECB cut its deposit rate by 30 June?",
      outcomes: ["Yes", "No"],
      category: "economics",
      closes_at: example.FAR_OFF,
      slug: "ecb-cut-by-june",
    } satisfies Static<typeof NewMarket>,
    response: example.proposedMarket,
  },
  "GET /markets/proposals": {
    id: "listProposals",
    tag: "Proposals",
    query: { limit: 10 } satisfies Static<typeof PageQuery>,
    response: example.pageOf({ market: example.proposedMarket, decision: null }) satisfies Static<typeof Proposals>,
  },
};

export const MARKET_TEXTS: OperationTexts = {
  "GET /markets": {
    id: "listMarkets",
    tag: "Markets",
    query: { status: "open", sort: "volume", limit: 10 } satisfies Static<typeof MarketsQuery>,
    response: example.pageOf(example.market),
  },
  "GET /markets/:id": { id: "getMarket", tag: "Markets", params: { id: 1 }, response: example.market },
  "GET /markets/:id/trades": {
    id: "listTrades",
    tag: "Markets",
    params: { id: 1 },
    query: { outcome_id: 1, limit: 10 } satisfies Static<typeof TradesQuery>,
    response: example.pageOf(example.trade),
  },
  "GET /markets/:id/pictures/:hash": {
    id: "getMarketPicture",
    tag: "Markets",
    description:
      "The path stands in the market's `picture`; it never gives another picture, so that clients can keep it.",
    params: { id: 1, hash: "5f1c2d3e4a5b69788796a5b4c3d2e1f0" },
    response: "RIFF…",
  },
  "GET /markets/:id/history": {
    id: "listHistory",
    tag: "Markets",
    params: { id: 1 },
    query: { limit: 10 } satisfies Static<typeof HistoryQuery>,
    response: {
      items: [
        {
          ...{ date: "2026-11-24", rows: 104_800, bytes: 416_537, sha256: example.SHA_256 },
          ...{ first_at: 1_795_478_400_000_000, last_at: 1_795_564_799_841_124, complete: true },
          jsonl: { bytes: 827_937, sha256: example.SHA_256 },
        },
      ],
      next_cursor: null,
      missing: [{ from: "2026-11-20", to: "2026-11-22" }],
    } satisfies Static<typeof HistoryDays>,
  },
  "GET /markets/:id/history/:file": {
    id: "getHistoryFile",
    tag: "Markets",
    description:
      "Parquet, or JSON lines in gzip, of the market's levels, trades and states; never of users or orders. Replaced every hour " +
      "while its day isn't over, then the same for ever.",
    params: { id: 1, file: "2026-11-24.parquet" },
    response: "PAR1…",
  },
  "GET /markets/:id/candles": {
    id: "listCandles",
    tag: "Markets",
    params: { id: 1 },
    query: {
      outcome_id: 1,
      interval: "1h",
      from: example.THEN,
      to: example.THEN + 3_600_000,
    } satisfies Static<typeof CandlesQuery>,
    response: {
      market_id: 1,
      outcome_id: 1,
      interval: "1h",
      items: [
        [example.THEN, 4_200, 4_250, 4_150, 4_200, 340],
        [example.THEN + 3_600_000, 4_200, 4_200, 4_200, 4_200, 0],
      ],
    } satisfies Static<typeof Candles>,
  },
  "GET /markets/:id/orderbook": {
    id: "getMarketBook",
    tag: "Markets",
    params: { id: 1 },
    query: { depth: 2 } satisfies Static<typeof BookQuery>,
    response: {
      market_id: 1,
      ts: example.book.ts,
      outcomes: [
        { outcome_id: 1, sequence: 88, bids: example.book.bids, asks: example.book.asks },
        { outcome_id: 2, sequence: 41, bids: [[5_750, 250]], asks: [[5_850, 300]] },
      ],
    } satisfies Static<typeof MarketBook>,
  },
  "GET /orderbook/:market_id/:outcome_id": {
    id: "getBook",
    tag: "Markets",
    description:
      "Best prices first. Apply the WebSocket's `book.updated` from this sequence on to keep the book current.",
    params: { market_id: 1, outcome_id: 1 },
    query: { depth: 2, implied: true } satisfies Static<typeof BookQuery>,
    response: { ...example.book, implied: { bids: [[4_150, 300]], asks: [[4_250, 250]] } },
  },
  "GET /events": {
    id: "listEvents",
    tag: "Markets",
    query: { limit: 10 } satisfies Static<typeof MarketEventsQuery>,
    response: example.pageOf(example.event),
  },
  "GET /events/:id": { id: "getEvent", tag: "Markets", params: { id: 1 }, response: example.event },
  "GET /me/watchlist": { id: "getWatchlist", tag: "Account", response: example.watchlist },
  "PATCH /me/watchlist": {
    id: "changeWatchlist",
    tag: "Account",
    errors: [404, 409],
    body: { add: [{ kind: "market", id: 1 }], remove: [] } satisfies Static<typeof WatchlistChange>,
    response: example.watchlist,
  },
  "GET /categories": {
    id: "listCategories",
    tag: "Markets",
    response: { items: [{ category: "economics", open: 1 }] } satisfies Static<typeof Categories>,
  },
  "GET /feed": {
    id: "getFeed",
    tag: "Markets",
    query: { kind: "market", page: 1, size: 10 } satisfies Static<typeof FeedQuery>,
    response: { items: [{ kind: "market", ...example.market }], page: 1, size: 10, total: 1 } satisfies Static<
      typeof Feed
    >,
  },
};
