/**
 * The feed: open markets, and events that have one, in one list by the volume of the last 24 hours, in numbered pages.
 * Owns their order; what it shows of each is of now.
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

/** Places of the feed have one number each: twice a market's id, twice an event's and one. */
const placeOfMarket = (id: number): number => 2 * id;
const placeOfEvent = (id: number): number => 2 * id + 1;
const isEvent = (place: number): boolean => place % 2 === 1;
const idOf = (place: number): number => place >>> 1;

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
  /** Volumes of 24 hours are as of here. */
  private now = 0;

  constructor(registry: MarketRegistry, ledger: Ledger, search: MarketSearch, timeSlicer: TimeSlicer) {
    this.registry = registry;
    this.ledger = ledger;
    this.search = search;
    this.timeSlicer = timeSlicer;
    const createdAt = (place: number): number => {
      return (isEvent(place) ? registry.event(idOf(place)) : registry.get(idOf(place)))!.createdAt;
    };
    this.order = new SortedIds({
      keyOf: (place) => this.keyOf(place),
      tie: (a, b) => createdAt(b) - createdAt(a) || b - a,
    });
    registry.listen(this);
  }

  private keyOf(place: number): number {
    const { registry, now } = this;
    const id = idOf(place);
    if (!isEvent(place)) {
      const market = registry.get(id)!;
      return isOpen(market) ? registry.dayVolume(market, now) : Number.NaN;
    }
    const markets = registry.marketsOf(id);
    if (!markets.some(isOpen)) return Number.NaN;
    return markets.reduce((sum, market) => sum + registry.dayVolume(market, now), 0);
  }

  // ---------------------------------------------------------------- what changes

  marketAdded(market: Market): void {
    this.category.set(placeOfMarket(market.id), market.category);
    this.kind.set(placeOfMarket(market.id), "market");
    this.volumeChanged(market);
  }

  eventAdded({ id, category }: EventRow): void {
    this.category.set(placeOfEvent(id), category);
    this.kind.set(placeOfEvent(id), "event");
    this.order.mark(placeOfEvent(id));
  }

  statusChanged(market: Market): void {
    this.volumeChanged(market);
  }

  marketDescribed({ id, category }: Market): void {
    this.category.set(placeOfMarket(id), category);
  }

  volumeChanged({ id, eventId }: Market): void {
    this.order.mark(placeOfMarket(id));
    if (eventId !== null) this.order.mark(placeOfEvent(eventId));
  }

  /** Sorts it, so that whoever asks first needn't wait for it. */
  warmUp(now: number): void {
    this.now = now;
    this.order.refresh(Number.MAX_SAFE_INTEGER);
  }

  /** Each hour the volumes lose one of their hours. */
  private renew(now: number): void {
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
      const found = { has: (place: number) => (isEvent(place) ? events : markets).has(idOf(place)) };
      return this.page(query, [found], now);
    });
  }

  private page(query: FeedQuery, found: readonly IdFilter[], now: number): string | Promise<string> {
    const { page = 1, size = DEFAULT_FEED_SIZE, kind, category } = query;
    const filters = [...found];
    if (kind !== undefined) filters.push(this.kind.having(String(kind)));
    if (category !== undefined) filters.push(this.category.having(category));
    this.renew(now);
    const all = this.order.ids.subarray(0, this.order.size);
    const wanted = filters.length === 0 ? all : all.filter((place) => matches(place, filters));
    // A copy: while it is written the order may change.
    const shown = [...wanted.subarray((page - 1) * size, page * size)];
    return this.timeSlicer.write(
      shown,
      (place) => this.text(place, now),
      (items) => `{"items":[${items}],"page":${page},"size":${size},"total":${wanted.length}}`,
    );
  }

  private text(place: number, now: number): string {
    const { registry, ledger } = this;
    const id = idOf(place);
    return isEvent(place)
      ? JSON.stringify({
          kind: "event",
          ...eventView(registry.event(id)!, registry, ledger, now, MAX_LISTED_EVENT_MARKETS),
        })
      : JSON.stringify({ kind: "market", ...marketView(registry.get(id)!, registry, ledger, now) });
  }
}
