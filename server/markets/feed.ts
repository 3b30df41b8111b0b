/**
 * The feed: open markets, and events with open markets, in one list in numbered pages, by default with the largest volume
 * of 24 hours first. Owns the orders; reads everything else at the time of the request.
 */

import type { Static } from "typebox";
import { MarketStatus } from "../../engine/constants.ts";
import type { Ledger } from "../../engine/ledger.ts";
import type { EventRow } from "../../engine/projection/load/markets.ts";
import type { TimeSlicer } from "../util/time-slicer.ts";
import { DEFAULT_FEED_SIZE, MAX_LISTED_EVENT_MARKETS } from "./limits.ts";
import { endKey } from "./lists.ts";
import type { MarketRegistry, RegistryListener } from "./registry.ts";
import type * as S from "./schemas.ts";
import { FEED_SORTS } from "./schemas.ts";
import { type MarketSearch, SearchHits } from "./search.ts";
import { Column, type IdFilter, matches, SortedIds } from "./sorted-ids.ts";
import type { Market } from "./types.ts";
import { eventView, isListed, marketView } from "./views.ts";

type FeedQuery = Static<typeof S.FeedQuery>;
type Sort = NonNullable<FeedQuery["sort"]>;

/** Feed entries have one id each: twice a market's id, or twice an event's id plus one. */
const entryOfMarket = (id: number): number => 2 * id;
const entryOfEvent = (id: number): number => 2 * id + 1;
const isEvent = (entry: number): boolean => entry % 2 === 1;
const idOf = (entry: number): number => entry >>> 1;

const HOUR_MS = 3_600_000;
/** The sorts that a trade can change. */
const OF_TRADES: readonly Sort[] = ["volume", "movers"];
const NOTHING = SearchHits.of([]);
const isOpen = ({ status }: Market): boolean => status === MarketStatus.open;

export class MarketFeed implements RegistryListener {
  private readonly registry: MarketRegistry;
  private readonly ledger: Ledger;
  private readonly search: MarketSearch;
  private readonly timeSlicer: TimeSlicer;
  private readonly orders: Readonly<Record<Sort, SortedIds>>;
  private readonly category = new Column();
  private readonly kind = new Column();
  /** The response of GET /categories; null: a market has changed. */
  private categories: string | null = null;
  /** The time of the figures of 24 hours, ms. */
  private now = 0;

  constructor(registry: MarketRegistry, ledger: Ledger, search: MarketSearch, timeSlicer: TimeSlicer) {
    this.registry = registry;
    this.ledger = ledger;
    this.search = search;
    this.timeSlicer = timeSlicer;
    const createdAt = (entry: number): number => {
      return (isEvent(entry) ? registry.event(idOf(entry)) : registry.market(idOf(entry))).createdAt;
    };
    const orderBy = (keyOf: (entry: number, markets: readonly Market[]) => number): SortedIds => {
      const tie = (a: number, b: number): number => createdAt(b) - createdAt(a) || b - a;
      return new SortedIds({ keyOf: (entry) => this.keyOf(entry, keyOf), tie });
    };
    this.orders = {
      volume: orderBy((_, markets) => markets.reduce((sum, market) => sum + registry.dayVolume(market, this.now), 0)),
      movers: orderBy((_, markets) =>
        Math.max(...markets.filter(isOpen).map((each) => registry.dayMove(each, this.now))),
      ),
      created_at: orderBy(createdAt),
      closes_at: orderBy((_, markets) => Math.max(...markets.filter(isOpen).map(({ closesAt }) => endKey(closesAt)))),
    };
    registry.listen(this);
  }

  /** @param key of an entry and its markets; NaN for an entry that can't be traded */
  private keyOf(entry: number, key: (entry: number, markets: readonly Market[]) => number): number {
    const { registry } = this;
    const id = idOf(entry);
    const markets = isEvent(entry) ? registry.marketsOf(id) : [registry.market(id)];
    return markets.some(isOpen) ? key(entry, markets) : Number.NaN;
  }

  /** Marks a market and its event in these orders. */
  private mark({ id, eventId }: Market, sorts: readonly Sort[]): void {
    for (const sort of sorts) {
      this.orders[sort].mark(entryOfMarket(id));
      if (eventId !== null) this.orders[sort].mark(entryOfEvent(eventId));
    }
  }

  /** The market may have become tradable, or ended, and its event with it. */
  private markPresence({ id, eventId }: Market): void {
    for (const sort of FEED_SORTS) {
      this.orders[sort].markPresence(entryOfMarket(id));
      if (eventId !== null) this.orders[sort].markPresence(entryOfEvent(eventId));
    }
  }

  // ---------------------------------------------------------------- registry changes

  marketAdded(market: Market): void {
    this.category.set(entryOfMarket(market.id), market.category);
    this.kind.set(entryOfMarket(market.id), "market");
    this.categories = null;
    this.markPresence(market);
  }

  eventAdded({ id, category }: EventRow): void {
    this.category.set(entryOfEvent(id), category);
    this.kind.set(entryOfEvent(id), "event");
    for (const sort of FEED_SORTS) this.orders[sort].markPresence(entryOfEvent(id));
  }

  statusChanged(market: Market): void {
    this.categories = null;
    this.markPresence(market);
  }

  marketDescribed(market: Market): void {
    this.category.set(entryOfMarket(market.id), market.category);
    this.categories = null;
    this.mark(market, ["closes_at"]);
  }

  volumeChanged(market: Market): void {
    this.mark(market, OF_TRADES);
  }

  /** Sorts the feed at startup, so that the first request does not have to. */
  warmUp(now: number): void {
    this.now = now;
    for (const sort of FEED_SORTS) this.orders[sort].refresh(Number.MAX_SAFE_INTEGER);
  }

  /** Every hour, the oldest hour leaves the figures of 24 hours. */
  private refresh(sort: Sort, now: number): void {
    if (Math.floor(now / HOUR_MS) !== Math.floor(this.now / HOUR_MS)) {
      for (const each of OF_TRADES) this.orders[each].markAll();
    }
    this.now = now;
    this.orders[sort].refresh();
  }

  // ---------------------------------------------------------------- reading

  /** The categories of all listed markets, as JSON, and how many markets of each are open. */
  readCategories(): string {
    this.categories ??= JSON.stringify({ items: this.countCategories() });
    return this.categories;
  }

  private countCategories(): object[] {
    const open = new Map<string, number>();
    for (const market of this.registry.all()) {
      if (market.category === null || !isListed(market)) continue;
      open.set(market.category, (open.get(market.category) ?? 0) + (isOpen(market) ? 1 : 0));
    }
    return [...open].sort(([a], [b]) => (a < b ? -1 : 1)).map(([category, markets]) => ({ category, open: markets }));
  }

  read(query: FeedQuery, now: number): string | Promise<string> {
    const { kind, q } = query;
    if (q === undefined) return this.page(query, [], now);
    const find = (table: "markets" | "events"): Promise<SearchHits> => {
      return kind === undefined || table === `${kind}s` ? this.search.find(table, q) : Promise.resolve(NOTHING);
    };
    return Promise.all([find("markets"), find("events")]).then(([markets, events]) => {
      const found = { has: (entry: number) => (isEvent(entry) ? events : markets).has(idOf(entry)) };
      return this.page(query, [found], now);
    });
  }

  private page(query: FeedQuery, found: readonly IdFilter[], now: number): string | Promise<string> {
    const { page = 1, size = DEFAULT_FEED_SIZE, sort = "volume", kind, category } = query;
    const filters = [...found];
    if (kind !== undefined) filters.push(this.kind.having(String(kind)));
    if (category !== undefined) filters.push(this.category.having(category));
    if (query.grouped === true) {
      const others = [...filters];
      filters.push({ has: (entry) => !this.isInEvent(entry, others) });
    }
    this.refresh(sort, now);
    const order = this.orders[sort];
    const all = order.ids.subarray(0, order.size);
    const wanted = filters.length === 0 ? all : all.filter((entry) => matches(entry, filters));
    // A copy: the order may change while the response is written in slices.
    const selected = [...wanted.subarray((page - 1) * size, page * size)];
    return this.timeSlicer.write(
      selected,
      (entry) => this.text(entry, query.sparklines === true, now),
      (items) => `{"items":[${items}],"page":${page},"size":${size},"total":${wanted.length}}`,
    );
  }

  /** True of a market whose event is in the list too. */
  private isInEvent(entry: number, filters: readonly IdFilter[]): boolean {
    const eventId = isEvent(entry) ? null : this.registry.market(idOf(entry)).eventId;
    return eventId !== null && matches(entryOfEvent(eventId), filters);
  }

  private text(entry: number, hasSparklines: boolean, now: number): string {
    const { registry, ledger } = this;
    const id = idOf(entry);
    if (isEvent(entry)) {
      const view = eventView(registry.event(id), registry, ledger, now, {
        most: MAX_LISTED_EVENT_MARKETS,
        hasSparklines,
      });
      return JSON.stringify({ kind: "event", ...view });
    }
    const market = registry.market(id);
    return JSON.stringify({ kind: "market", ...marketView(market, registry, ledger, now, hasSparklines) });
  }
}
