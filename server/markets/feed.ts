/**
 * The feed: open markets, and events with open markets, in one list sorted by 24-hour volume, in numbered pages. Owns the
 * order; reads everything else at the time of the request.
 */

import type { Static } from "typebox";
import { MarketStatus } from "../../engine/constants.ts";
import type { Ledger } from "../../engine/ledger.ts";
import type { EventRow } from "../../engine/projection/load/markets.ts";
import type { TimeSlicer } from "../util/time-slicer.ts";
import { DEFAULT_FEED_SIZE, MAX_LISTED_EVENT_MARKETS } from "./limits.ts";
import type { MarketRegistry, RegistryListener } from "./registry.ts";
import type * as S from "./schemas.ts";
import { type MarketSearch, SearchHits } from "./search.ts";
import { Column, type IdFilter, matches, SortedIds } from "./sorted-ids.ts";
import type { Market } from "./types.ts";
import { eventView, marketView } from "./views.ts";

type FeedQuery = Static<typeof S.FeedQuery>;

/** Feed entries have one id each: twice a market's id, or twice an event's id plus one. */
const entryOfMarket = (id: number): number => 2 * id;
const entryOfEvent = (id: number): number => 2 * id + 1;
const isEvent = (entry: number): boolean => entry % 2 === 1;
const idOf = (entry: number): number => entry >>> 1;

const HOUR_MS = 3_600_000;
const NOTHING = SearchHits.of([]);
const isOpen = ({ status }: Market): boolean => status === MarketStatus.open;

export class MarketFeed implements RegistryListener {
  private readonly registry: MarketRegistry;
  private readonly ledger: Ledger;
  private readonly search: MarketSearch;
  private readonly timeSlicer: TimeSlicer;
  private readonly order: SortedIds;
  private readonly category = new Column();
  private readonly kind = new Column();
  /** The time of the 24-hour volumes, ms. */
  private now = 0;

  constructor(registry: MarketRegistry, ledger: Ledger, search: MarketSearch, timeSlicer: TimeSlicer) {
    this.registry = registry;
    this.ledger = ledger;
    this.search = search;
    this.timeSlicer = timeSlicer;
    const createdAt = (entry: number): number => {
      return (isEvent(entry) ? registry.event(idOf(entry)) : registry.market(idOf(entry))).createdAt;
    };
    this.order = new SortedIds({
      keyOf: (entry) => this.keyOf(entry),
      tie: (a, b) => createdAt(b) - createdAt(a) || b - a,
    });
    registry.listen(this);
  }

  private keyOf(entry: number): number {
    const { registry, now } = this;
    const id = idOf(entry);
    if (!isEvent(entry)) {
      const market = registry.market(id);
      return isOpen(market) ? registry.dayVolume(market, now) : Number.NaN;
    }
    const markets = registry.marketsOf(id);
    if (!markets.some(isOpen)) return Number.NaN;
    return markets.reduce((sum, market) => sum + registry.dayVolume(market, now), 0);
  }

  // ---------------------------------------------------------------- registry changes

  marketAdded(market: Market): void {
    this.category.set(entryOfMarket(market.id), market.category);
    this.kind.set(entryOfMarket(market.id), "market");
    this.volumeChanged(market);
  }

  eventAdded({ id, category }: EventRow): void {
    this.category.set(entryOfEvent(id), category);
    this.kind.set(entryOfEvent(id), "event");
    this.order.mark(entryOfEvent(id));
  }

  statusChanged(market: Market): void {
    this.volumeChanged(market);
  }

  marketDescribed({ id, category }: Market): void {
    this.category.set(entryOfMarket(id), category);
  }

  volumeChanged({ id, eventId }: Market): void {
    this.order.mark(entryOfMarket(id));
    if (eventId !== null) this.order.mark(entryOfEvent(eventId));
  }

  /** Sorts the feed at startup, so that the first request does not have to. */
  warmUp(now: number): void {
    this.now = now;
    this.order.refresh(Number.MAX_SAFE_INTEGER);
  }

  /** Every hour, the oldest hour leaves the volumes. */
  private refresh(now: number): void {
    if (Math.floor(now / HOUR_MS) !== Math.floor(this.now / HOUR_MS)) this.order.markAll();
    this.now = now;
    this.order.refresh();
  }

  // ---------------------------------------------------------------- reading

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
    const { page = 1, size = DEFAULT_FEED_SIZE, kind, category } = query;
    const filters = [...found];
    if (kind !== undefined) filters.push(this.kind.having(String(kind)));
    if (category !== undefined) filters.push(this.category.having(category));
    this.refresh(now);
    const all = this.order.ids.subarray(0, this.order.size);
    const wanted = filters.length === 0 ? all : all.filter((entry) => matches(entry, filters));
    // A copy: the order may change while the response is written in slices.
    const selected = [...wanted.subarray((page - 1) * size, page * size)];
    return this.timeSlicer.write(
      selected,
      (entry) => this.text(entry, now),
      (items) => `{"items":[${items}],"page":${page},"size":${size},"total":${wanted.length}}`,
    );
  }

  private text(entry: number, now: number): string {
    const { registry, ledger } = this;
    const id = idOf(entry);
    return isEvent(entry)
      ? JSON.stringify({
          kind: "event",
          ...eventView(registry.event(id), registry, ledger, now, MAX_LISTED_EVENT_MARKETS),
        })
      : JSON.stringify({ kind: "market", ...marketView(registry.market(id), registry, ledger, now) });
  }
}
