/** The public routes of market data: markets, events, trades, order books, the feed. */

import type { Static } from "typebox";
import { CANDLE_MINUTES } from "../../engine/constants.ts";
import type { Ledger } from "../../engine/ledger.ts";
import type { Clock } from "../../engine/util/clock.ts";
import { badRequest, notFound } from "../errors.ts";
import { checkSpan, intervalsOf, Listing } from "../http/paging.ts";
import { pathId, type Route, route } from "../http/route.ts";
import { Now, pageOf } from "../http/schemas.ts";
import { type History, historyPage } from "../queries/history.ts";
import type { OrderedReads } from "../trading/types.ts";
import { bookJson, marketBooksJson } from "./book-json.ts";
import type { MarketFeed } from "./feed.ts";
import type { MarketLists } from "./lists.ts";
import type { MarketRegistry } from "./registry.ts";
import * as S from "./schemas.ts";
import type { Market } from "./types.ts";
import { eventView, marketView } from "./views.ts";

/** No user: a read on behalf of nobody waits for commits only. */
const NOBODY = 0;

const MINUTE_MS = 60_000;

/** What market routes need of the exchange. */
export interface MarketExchange {
  readonly registry: MarketRegistry;
  readonly ledger: Ledger;
  readonly reads: OrderedReads;
  readonly clock: Clock;
}

export interface MarketRouteContext {
  readonly exchange: MarketExchange;
  readonly history: History;
  readonly lists: MarketLists;
  readonly feed: MarketFeed;
}

export function createMarketRoutes(context: MarketRouteContext): Route[] {
  return [
    ...marketRoutes(context),
    pictureRoute(context),
    ...tradeRoutes(context),
    ...bookRoutes(context),
    ...eventRoutes(context),
  ];
}

function marketRoutes({ exchange, lists }: MarketRouteContext): Route[] {
  const { registry, ledger } = exchange;
  return [
    route({
      method: "GET",
      path: "/markets",
      compressed: true,
      summary: "Markets, newest first; open ones by default",
      query: S.MarketsQuery,
      response: pageOf(S.MarketSchema),
      handler({ query, now }) {
        return lists.markets(query, now);
      },
    }),
    route({
      method: "GET",
      path: "/markets/:id",
      summary: "A market by id or slug",
      response: S.MarketSchema,
      handler: ({ params, now }) => JSON.stringify(marketView(marketNamed(registry, params[0]), registry, ledger, now)),
    }),
  ];
}

function pictureRoute({ exchange: { registry }, history }: MarketRouteContext): Route {
  return route({
    method: "GET",
    path: "/markets/:id/pictures/:hash",
    summary: "A market's picture, as a WebP file; the market names its path",
    response: S.Picture,
    enveloped: false,
    contentType: "image/webp",
    // Another picture has another path.
    cache: "public, max-age=31536000, immutable",
    async handler({ params: [name, hash], address, reply }) {
      const { id: marketId, picture } = marketNamed(registry, name);
      const webp = picture === hash ? await history.picture(address.client, { marketId, hash }) : null;
      if (webp === null) throw notFound("picture");
      reply.plain(200, Buffer.from(webp, "base64"));
      return undefined;
    },
  });
}

function tradeRoutes({ exchange, history }: MarketRouteContext): Route[] {
  const { registry } = exchange;
  return [
    route({
      method: "GET",
      path: "/markets/:id/trades",
      compressed: true,
      summary: "A market's trades, newest first: one per match, from the taker's side",
      query: S.TradesQuery,
      response: pageOf(S.Trade),
      handler({ params, query, address }) {
        const { outcome_id: outcomeId, from, to, ...page } = query;
        checkSpan(query);
        const market = marketNamed(registry, params[0]);
        if (outcomeId !== undefined && market.outcomes[outcomeId - market.firstOutcomeId] === undefined) {
          throw badRequest("outcome_id: not an outcome of this market");
        }
        const { id: marketId, newestTrade } = market;
        const filters = { outcomeId, from, to };
        const listing = new Listing("/markets/:id/trades", { marketId, ...filters });
        const { before, limit } = listing.page(page);
        const below = page.cursor === undefined ? null : before;
        const recent = registry.recentTrades.page(marketId, newestTrade, below, limit, filters);
        if (recent !== null) return listing.json(recent.items, recent.next);
        const found = history.trades(address.client, { marketId, before, limit, ...filters });
        return storedTrades(exchange, historyPage(listing, found));
      },
    }),
    route({
      method: "GET",
      path: "/markets/:id/candles",
      compressed: true,
      summary: "Candles of one outcome (the first by default) in UTC: open, high, low, close and volume",
      query: S.CandlesQuery,
      response: S.Candles,
      handler: ({ params, query, now, address }) =>
        candles(history, address.client, marketNamed(registry, params[0]), query, now),
    }),
  ];
}

function bookRoutes({ exchange: { registry } }: MarketRouteContext): Route[] {
  return [
    route({
      method: "GET",
      path: "/markets/:id/orderbook",
      summary: "The order books of all outcomes of a market",
      query: S.BookQuery,
      response: S.MarketBook,
      handler: ({ params, query }) => marketBooksJson(registry, marketNamed(registry, params[0]), query),
    }),
    route({
      method: "GET",
      path: "/orderbook/:market_id/:outcome_id",
      summary: "The order book of one outcome",
      query: S.BookQuery,
      response: S.OutcomeBook,
      handler({ params, query }) {
        const market = marketNamed(registry, params[0]);
        const outcome = market.outcomes[pathId(params[1], "outcome") - market.firstOutcomeId];
        if (outcome === undefined) throw notFound("outcome");
        return bookJson(registry, market, outcome, query);
      },
    }),
  ];
}

function eventRoutes({ exchange, lists, feed }: MarketRouteContext): Route[] {
  const { registry, ledger } = exchange;
  return [
    route({
      method: "GET",
      path: "/events",
      compressed: true,
      summary: "Events with their markets, newest first",
      query: S.MarketEventsQuery,
      response: pageOf(S.EventSchema),
      handler({ query, now }) {
        return lists.events(query, now);
      },
    }),
    route({
      method: "GET",
      path: "/events/:id",
      compressed: true,
      summary: "An event by id or slug, with its markets",
      response: S.EventSchema,
      handler({ params, now }) {
        const event = registry.findEventBySlug(params[0]) ?? registry.findEvent(pathId(params[0], "event"));
        if (event === undefined) throw notFound("event");
        return JSON.stringify(eventView(event, registry, ledger, now));
      },
    }),
    route({
      method: "GET",
      path: "/feed",
      compressed: true,
      summary: "Open markets, and events with open markets, in one list ordered by the volume of the last 24 hours",
      query: S.FeedQuery,
      response: S.Feed,
      handler({ query, now }) {
        return feed.read(query, now);
      },
    }),
    route({
      method: "GET",
      path: "/categories",
      summary: "The categories that markets have",
      response: S.Categories,
      compressed: true,
      handler: () => feed.readCategories(),
    }),
    route({
      method: "GET",
      path: "/time",
      summary: "The server's clock",
      response: Now,
      rateClass: "default",
      handler: ({ now }) => `{"now":${now}}`,
    }),
  ];
}

/** The market that a path names by id or slug. @throws ApiError 4040 */
export function marketNamed(registry: MarketRegistry, text: string): Market {
  const market = registry.findBySlug(text) ?? registry.get(pathId(text, "market"));
  if (market === undefined) throw notFound("market");
  return market;
}

/**
 * Returns a page from the database once memory has caught up with it: the next page, or a repeat of this one, may come
 * from memory and must not lack trades that this page shows.
 */
async function storedTrades({ reads }: MarketExchange, page: Promise<string>): Promise<string> {
  const text = await page;
  await reads.committed(NOBODY);
  return text;
}

type CandlesQuery = Static<typeof S.CandlesQuery>;

/** The intervals that overlap `from` to `to`; none is later than now. */
async function candles(
  history: History,
  address: string,
  market: Market,
  query: CandlesQuery,
  now: number,
): Promise<string> {
  const { outcome_id: outcomeId = market.firstOutcomeId, interval = "1m" } = query;
  if (market.outcomes[outcomeId - market.firstOutcomeId] === undefined) throw notFound("outcome");
  const minutes = CANDLE_MINUTES[interval];
  const step = minutes * MINUTE_MS;
  const { first, last } = intervalsOf(query, { name: interval, step }, now, Math.floor);
  const items = await history.candles(address, { outcomeId, minutes, first, last });
  return `{"market_id":${market.id},"outcome_id":${outcomeId},"interval":"${interval}","items":${items}}`;
}
