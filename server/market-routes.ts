/** The public routes of market data: markets, events, trades, order books, the feed. */
import type { Static } from "typebox";
import { CANDLE_MINUTES, MARKET_STATUSES, MarketStatus } from "../engine/constants.ts";
import { DEFAULT_CANDLES, DEFAULT_FEED_SIZE, DEFAULT_PAGE_LIMIT, MAX_CANDLES } from "../engine/limits.ts";
import { badRequest, notFound } from "./errors.ts";
import type { Exchange } from "./exchange.ts";
import { type History, historyPage } from "./history.ts";
import type { Market } from "./market-registry.ts";
import { decodeCursor, encodeCursor, readPage } from "./paging.ts";
import { pathId, type Route, route } from "./route.ts";
import * as S from "./schemas.ts";
import { eventView, ladders, marketView, marketVolume } from "./views.ts";

const MINUTE_MS = 60_000;

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
        const { before, limit } = readPage(query as Static<typeof S.PageQuery>);
        return historyPage(history.trades(findMarket(params[0]).id, before, limit));
      },
    }),
    route({
      method: "GET",
      path: "/markets/:id/candles",
      summary: "Candles of one outcome (the first by default), in UTC: open, high, low, close and volume of its trades",
      query: S.CandlesQuery,
      response: S.Candles,
      handler: ({ params, query, now }) => candles(history, findMarket(params[0]), query as CandlesQuery, now),
    }),
    route({
      method: "GET",
      path: "/markets/:id/orderbook",
      summary: "The order books of all outcomes of a market",
      query: S.BookQuery,
      response: S.MarketBook,
      handler({ params, query, now }) {
        const { depth, implied = false } = query as Static<typeof S.BookQuery>;
        const market = findMarket(params[0]);
        const outcomes = market.outcomes.map((outcome) => ({
          outcome_id: outcome.id,
          sequence: registry.bookSequence(outcome),
          ...ladders(registry, market, outcome, depth, implied),
        }));
        return JSON.stringify({ market_id: market.id, ts: now, outcomes });
      },
    }),
    route({
      method: "GET",
      path: "/orderbook/:market_id/:outcome_id",
      summary: "The order book of one outcome",
      query: S.BookQuery,
      response: S.OutcomeBook,
      handler({ params, query, now }) {
        const { depth, implied = false } = query as Static<typeof S.BookQuery>;
        const market = findMarket(params[0]);
        const outcome = market.outcomes[pathId(params[1], "outcome") - market.firstOutcomeId];
        if (outcome === undefined) throw notFound("outcome");
        const sequence = registry.bookSequence(outcome);
        const levels = ladders(registry, market, outcome, depth, implied);
        return JSON.stringify({ market_id: market.id, outcome_id: outcome.id, sequence, ts: now, ...levels });
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

type CandlesQuery = Static<typeof S.CandlesQuery>;

/** The intervals that overlap `from` to `to`; none is later than now. */
async function candles(history: History, market: Market, query: CandlesQuery, now: number): Promise<string> {
  const { outcome_id: outcomeId = market.firstOutcomeId, interval = "1m", to = now } = query;
  if (market.outcomes[outcomeId - market.firstOutcomeId] === undefined) throw notFound("outcome");
  const minutes = CANDLE_MINUTES[interval as keyof typeof CANDLE_MINUTES];
  const step = minutes * MINUTE_MS;
  const openTime = (at: number): number => at - (at % step);
  const last = openTime(Math.min(to, now));
  const { from = Math.max(last - (DEFAULT_CANDLES - 1) * step, 0) } = query;
  if (from > to) throw badRequest(`from: must not be later than "to" (${to})`);
  const first = openTime(from);
  if (last - first >= MAX_CANDLES * step) {
    throw badRequest(`from: must be at most ${MAX_CANDLES} intervals of ${interval} before "to"`);
  }
  const items = await history.candles({ outcomeId, minutes, first, last });
  return `{"market_id":${market.id},"outcome_id":${outcomeId},"interval":"${interval}","items":${items}}`;
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
