/** The public routes of market data: markets, events, trades, order books, the feed. */
import type { Static } from "typebox";
import { MARKET_STATUSES, MarketStatus } from "../engine/constants.ts";
import { DEFAULT_FEED_SIZE, DEFAULT_PAGE_LIMIT } from "../engine/limits.ts";
import { type BookView, bookJson, marketBooksJson } from "./book-json.ts";
import { notFound } from "./errors.ts";
import type { Exchange } from "./exchange.ts";
import { type History, historyPage } from "./history.ts";
import type { Market } from "./market-registry.ts";
import { decodeCursor, encodeCursor, pageJson, readPage } from "./paging.ts";
import { pathId, type Route, route } from "./route.ts";
import * as S from "./schemas.ts";
import { eventView, marketView, marketVolume } from "./views.ts";

/** Whom no messages are for: what waits for them waits for commits only. */
const NOBODY = 0;

export interface MarketRouteContext {
  readonly exchange: Exchange;
  readonly history: History;
}

export function createMarketRoutes({ exchange, history }: MarketRouteContext): Route[] {
  const { registry, ledger } = exchange;
  const feed = createFeed(exchange);
  const findMarket = (text: string): Market => {
    const market = registry.findBySlug(text) ?? registry.get(pathId(text, "market"));
    if (market === undefined) throw notFound("market");
    return market;
  };
  return [
    route({
      method: "GET",
      path: "/markets",
      summary: "Markets, the open ones by default, newest first",
      query: S.MarketsQuery,
      response: S.pageOf(S.MarketSchema),
      handler({ query }) {
        return listMarkets(exchange, query as Static<typeof S.MarketsQuery>);
      },
    }),
    route({
      method: "GET",
      path: "/markets/:id",
      summary: "A market by id or slug",
      response: S.MarketSchema,
      handler: ({ params }) => JSON.stringify(marketView(findMarket(params[0]), ledger)),
    }),
    route({
      method: "GET",
      path: "/markets/:id/trades",
      summary: "A market's trades, newest first: one per match, from the taker's side",
      query: S.PageQuery,
      response: S.pageOf(S.Trade),
      handler({ params, query }) {
        const page = query as Static<typeof S.PageQuery>;
        const { before, limit } = readPage(page);
        const { id, newestTrade } = findMarket(params[0]);
        const below = page.cursor === undefined ? null : before;
        const recent = registry.recentTrades.page(id, newestTrade, below, limit);
        if (recent !== null) return pageJson(recent.items, recent.next);
        return storedTrades(exchange, history, id, before, limit);
      },
    }),
    route({
      method: "GET",
      path: "/markets/:id/orderbook",
      summary: "The order books of all outcomes of a market",
      query: S.BookQuery,
      response: S.MarketBook,
      handler: ({ params, query }) => marketBooksJson(registry, findMarket(params[0]), query as BookView),
    }),
    route({
      method: "GET",
      path: "/orderbook/:market_id/:outcome_id",
      summary: "The order book of one outcome",
      query: S.BookQuery,
      response: S.OutcomeBook,
      handler({ params, query }) {
        const market = findMarket(params[0]);
        const outcome = market.outcomes[pathId(params[1], "outcome") - market.firstOutcomeId];
        if (outcome === undefined) throw notFound("outcome");
        return bookJson(registry, market, outcome, query as BookView);
      },
    }),
    route({
      method: "GET",
      path: "/feed",
      summary: "Open markets and events in one list, by the volume of the last 24 hours",
      query: S.FeedQuery,
      response: S.Feed,
      handler({ query, now }) {
        const { page = 1, size = DEFAULT_FEED_SIZE } = query as Static<typeof S.FeedQuery>;
        return feed(page, size, now);
      },
    }),
    route({
      method: "GET",
      path: "/time",
      summary: "The server's clock",
      response: S.Now,
      rateClass: "default",
      handler: ({ now }) => `{"now":${now}}`,
    }),
  ];
}

/**
 * A page of the database, given when memory has caught up with it: the next page, or the same again, may come of memory,
 * and must not lack what this one shows.
 */
async function storedTrades(
  { reads }: Exchange,
  history: History,
  marketId: number,
  before: number,
  limit: number,
): Promise<string> {
  const page = await historyPage(history.trades(marketId, before, limit));
  await new Promise<void>((resolve) => reads.afterCommitted(NOBODY, Date.now(), resolve));
  return page;
}

/** The key that a sort puts first when it is largest; ids break ties, newest first. */
const MARKET_SORT_KEYS: Record<string, (market: Market) => number> = {
  created_at: (market) => market.id,
  volume: (market) => marketVolume(market),
  // Soonest first; those without an end come last.
  closes_at: (market) => -(market.closesAt ?? Number.MAX_SAFE_INTEGER),
};

function listMarkets({ registry, ledger }: Exchange, query: Static<typeof S.MarketsQuery>): string {
  const { status = "open", category, event_id, q, sort = "created_at", limit = DEFAULT_PAGE_LIMIT, cursor } = query;
  const wanted = MARKET_STATUSES.indexOf(status as never);
  const words = q?.toLowerCase().split(/\s+/) ?? [];
  const key = MARKET_SORT_KEYS[sort as string]!;
  const after = cursor === undefined ? null : decodeCursor(cursor, 2);
  const all = registry.all();
  const found: Market[] = [];
  for (let i = all.length - 1; i >= 0; i--) {
    const market = all[i]!;
    if (market.status !== wanted) continue;
    if (category !== undefined && market.category !== category) continue;
    if (event_id !== undefined && market.eventId !== event_id) continue;
    if (after !== null && !(key(market) < after[0]! || (key(market) === after[0]! && market.id < after[1]!))) continue;
    if (words.length > 0) {
      const text = `${market.question} ${market.description ?? ""} ${market.slug}`.toLowerCase();
      if (!words.every((word) => text.includes(word))) continue;
    }
    found.push(market);
    // Newest first is the order of the walk: it can end with the page.
    if (sort === "created_at" && found.length > limit) break;
  }
  if (sort !== "created_at") found.sort((a, b) => key(b) - key(a) || b.id - a.id);
  const shown = found.slice(0, limit);
  const last = shown.at(-1);
  const next = found.length > limit && last !== undefined ? encodeCursor(key(last), last.id) : null;
  return JSON.stringify({ items: shown.map((market) => marketView(market, ledger)), next_cursor: next });
}

interface FeedEntry {
  readonly volume: number;
  readonly createdAt: number;
  readonly view: () => object;
}

/** How long an order of the feed holds: sorting thousands of markets for each request would block the gateway. */
const FEED_ORDER_MS = 1_000;

/** Pages through open markets and events; their order is as of the last second, what they show is of now. */
function createFeed({ registry, ledger }: Exchange): (page: number, size: number, now: number) => string {
  let entries: FeedEntry[] = [];
  let orderedAt = 0;

  function order(now: number): void {
    entries = [];
    for (const market of registry.all()) {
      if (market.status !== MarketStatus.open) continue;
      entries.push({
        volume: registry.dayVolume(market, now),
        createdAt: market.createdAt,
        view: () => ({ kind: "market", ...marketView(market, ledger) }),
      });
    }
    for (const event of registry.allEvents()) {
      let volume = 0;
      for (const market of registry.marketsOf(event.id)) volume += registry.dayVolume(market, now);
      const view = (): object => ({ kind: "event", ...eventView(event, registry, ledger) });
      entries.push({ volume, createdAt: event.createdAt, view });
    }
    entries.sort((a, b) => b.volume - a.volume || b.createdAt - a.createdAt);
    orderedAt = now;
  }

  return (page, size, now) => {
    if (now - orderedAt >= FEED_ORDER_MS) order(now);
    const items = entries.slice((page - 1) * size, page * size).map(({ view }) => view());
    return JSON.stringify({ items, page, size, total: entries.length });
  };
}
