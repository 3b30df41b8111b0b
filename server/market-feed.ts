/**
 * The feed: open markets, and events that have one, in one list by the volume of the last 24 hours, in numbered pages.
 * What is in it is exact at every request, its order may be of a moment before (LISTED_PER_MS).
 */
import type { Static } from "typebox";
import { MarketStatus } from "../engine/constants.ts";
import type { EventRow } from "../engine/journal/load.ts";
import type { Ledger } from "../engine/ledger.ts";
import { DEFAULT_FEED_SIZE } from "../engine/limits.ts";
import { writeInTurns } from "./in-turns.ts";
import { holdsMs } from "./market-lists.ts";
import { type Filter, Order } from "./market-order.ts";
import type { Market, MarketRegistry } from "./market-registry.ts";
import { Found, type MarketSearch } from "./market-search.ts";
import type * as S from "./schemas.ts";
import { eventView, marketView } from "./views.ts";

type FeedQuery = Static<typeof S.FeedQuery>;

/** Places of the feed have one number each: twice a market's id, twice an event's and one. */
const placeOfMarket = (id: number): number => 2 * id;
const placeOfEvent = (id: number): number => 2 * id + 1;
const isEvent = (place: number): boolean => place % 2 === 1;
const idOf = (place: number): number => Math.floor(place / 2);

const NOTHING = Found.of([]);

export class MarketFeed {
  private readonly registry: MarketRegistry;
  private readonly ledger: Ledger;
  private readonly search: MarketSearch;
  private readonly order: Order;
  private readonly shown: Filter;
  private readonly kind: Filter;
  private readonly category: Filter;

  constructor(registry: MarketRegistry, ledger: Ledger, search: MarketSearch) {
    this.registry = registry;
    this.ledger = ledger;
    this.search = search;
    const isOpen = ({ status }: Market): boolean => status === MarketStatus.open;
    const marketAt = (place: number): Market => registry.get(idOf(place))!;
    const eventAt = (place: number): EventRow => registry.event(idOf(place))!;
    const at = (place: number): Market | EventRow => (isEvent(place) ? eventAt(place) : marketAt(place));
    this.order = new Order({
      sources: [
        { items: () => registry.all(), idOf: placeOfMarket },
        { items: () => registry.allEvents(), idOf: placeOfEvent },
      ],
      keyOf: (place, now) => {
        if (!isEvent(place)) return registry.dayVolume(marketAt(place), now);
        return registry.marketsOf(idOf(place)).reduce((sum, market) => sum + registry.dayVolume(market, now), 0);
      },
      tie: (a, b) => at(b).createdAt - at(a).createdAt || b - a,
      holdsMs: () => holdsMs(registry),
      version: () => registry.statusChanges,
    });
    this.shown = {
      name: "shown",
      read: (place) => (isEvent(place) ? registry.marketsOf(idOf(place)).some(isOpen) : isOpen(marketAt(place))),
    };
    this.kind = { name: "kind", read: (place) => (isEvent(place) ? "event" : "market") };
    this.category = { name: "category", read: (place) => at(place).category };
  }

  /** Sorts it, so that whoever asks first needn't wait for it. */
  warmUp(now: number): void {
    this.order.upToDate(now);
  }

  async read(query: FeedQuery, now: number): Promise<string> {
    const { page = 1, size = DEFAULT_FEED_SIZE, category, kind, q } = query;
    const isFound = q === undefined ? null : await this.find(q, kind === undefined ? null : String(kind));
    let slice = this.order.upToDate(now).where(this.shown, true);
    if (kind !== undefined) slice = slice.where(this.kind, kind);
    if (category !== undefined) slice = slice.where(this.category, category);
    const places = isFound === null ? slice.ids : slice.ids.filter(isFound);
    return writeInTurns(
      places.slice((page - 1) * size, page * size),
      (place) => this.text(place, now),
      (items) => `{"items":[${items}],"page":${page},"size":${size},"total":${places.length}}`,
    );
  }

  /** @param kind the one to look among, null for both */
  private async find(q: string, kind: string | null): Promise<(place: number) => boolean> {
    const [markets, events] = await Promise.all([
      kind === "event" ? NOTHING : this.search.find("markets", q),
      kind === "market" ? NOTHING : this.search.find("events", q),
    ]);
    return (place) => (isEvent(place) ? events : markets).has(idOf(place));
  }

  private text(place: number, now: number): string {
    const { registry, ledger } = this;
    const id = idOf(place);
    return isEvent(place)
      ? JSON.stringify({ kind: "event", ...eventView(registry.event(id)!, registry, ledger, now) })
      : JSON.stringify({ kind: "market", ...marketView(registry.get(id)!, registry, ledger, now) });
  }
}
