/**
 * The public lists of markets and events with cursors: filters, search, sorts and pages, from the gateway's memory. A read
 * walks numbers in typed arrays, after moving at most MAX_MOVED_PER_READ of them. Volumes never fall, so paging by volume
 * never shows an entry twice; one that trades meanwhile can move ahead of the page that the client reads.
 */

import type { Static } from "typebox";
import { MARKET_STATUSES } from "../../engine/constants.ts";
import type { Ledger } from "../../engine/ledger.ts";
import type { EventRow } from "../../engine/projection/load/markets.ts";
import { badRequest } from "../errors.ts";
import { DEFAULT_PAGE_LIMIT } from "../http/limits.ts";
import { Listing } from "../http/paging.ts";
import type { TimeSlicer } from "../util/time-slicer.ts";
import { MAX_LISTED_EVENT_MARKETS, MAX_LISTED_IDS } from "./limits.ts";
import type { MarketRegistry, RegistryListener } from "./registry.ts";
import type * as S from "./schemas.ts";
import { type MarketSearch, SearchHits } from "./search.ts";
import { Column, type IdFilter, matches, SortedIds } from "./sorted-ids.ts";
import type { Market } from "./types.ts";
import { eventView, marketView, marketVolume } from "./views.ts";

type MarketsQuery = Static<typeof S.MarketsQuery>;
type EventsQuery = Static<typeof S.MarketEventsQuery>;

/** The sorts of one list. */
interface Sorts {
  readonly created_at: SortedIds;
  readonly volume: SortedIds;
  readonly closes_at: SortedIds;
}

/** Soonest first; entries without an end come last. */
export const endKey = (closesAt: number | null): number => -(closesAt ?? Number.MAX_SAFE_INTEGER);

function sortsOf(volumeOf: (id: number) => number, closesAt: (id: number) => number | null): Sorts {
  return {
    created_at: new SortedIds({ keyOf: (id) => id }),
    volume: new SortedIds({ keyOf: volumeOf }),
    closes_at: new SortedIds({ keyOf: (id) => endKey(closesAt(id)) }),
  };
}

export class MarketLists implements RegistryListener {
  private readonly registry: MarketRegistry;
  private readonly ledger: Ledger;
  private readonly search: MarketSearch;
  private readonly timeSlicer: TimeSlicer;
  private readonly marketSorts: Sorts;
  private readonly eventSorts: Sorts;
  private readonly status = new Column();
  private readonly marketCategory = new Column();
  private readonly eventCategory = new Column();

  constructor(registry: MarketRegistry, ledger: Ledger, search: MarketSearch, timeSlicer: TimeSlicer) {
    this.registry = registry;
    this.ledger = ledger;
    this.search = search;
    this.timeSlicer = timeSlicer;
    this.marketSorts = sortsOf(
      (id) => marketVolume(registry.market(id)),
      (id) => registry.market(id).closesAt,
    );
    this.eventSorts = sortsOf(
      (id) => registry.marketsOf(id).reduce((sum, market) => sum + marketVolume(market), 0),
      (id) => registry.event(id).closesAt,
    );
    registry.listen(this);
  }

  // ---------------------------------------------------------------- registry changes

  marketAdded(market: Market): void {
    for (const order of Object.values(this.marketSorts)) order.markPresence(market.id);
    this.marketCategory.set(market.id, market.category);
    this.statusChanged(market);
    this.volumeChanged(market);
  }

  eventAdded({ id, category }: EventRow): void {
    for (const order of Object.values(this.eventSorts)) order.markPresence(id);
    this.eventCategory.set(id, category);
  }

  statusChanged({ id, status }: Market): void {
    this.status.set(id, status);
  }

  marketDescribed({ id, category }: Market): void {
    this.marketSorts.closes_at.mark(id);
    this.marketCategory.set(id, category);
  }

  volumeChanged({ id, eventId }: Market): void {
    this.marketSorts.volume.mark(id);
    if (eventId !== null) this.eventSorts.volume.mark(eventId);
  }

  /** Sorts every list at startup, so that the first request does not have to. */
  warmUp(): void {
    for (const sorts of [this.marketSorts, this.eventSorts]) {
      for (const order of Object.values(sorts)) order.refresh(Number.MAX_SAFE_INTEGER);
    }
  }

  // ---------------------------------------------------------------- reading

  markets(query: MarketsQuery, now: number): string | Promise<string> {
    const { status = "open", category, event_id, q } = query;
    const sort = (query.sort ?? "created_at") as keyof Sorts;
    const ids = query.ids === undefined ? undefined : readIds(query.ids);
    const listing = new Listing("/markets", { status, category, event_id, q, sort, ids });
    const read = (found: readonly SearchHits[]): string | Promise<string> => {
      const filters: IdFilter[] = [...found];
      if (status !== ALL) {
        const statuses = status.split(",").map((name) => STATUS_NAMES.indexOf(name));
        filters.push(this.status.havingOneOf(statuses));
      }
      if (ids !== undefined) filters.push(SearchHits.of(ids.flatMap((id) => this.registry.get(id) ?? [])));
      if (category !== undefined) filters.push(this.marketCategory.having(category));
      if (event_id !== undefined) filters.push(SearchHits.of(this.registry.marketsOf(event_id)));
      return page(this.timeSlicer, { order: this.marketSorts[sort], listing, filters, query }, (id) => {
        return JSON.stringify(marketView(this.registry.market(id), this.registry, this.ledger, now));
      });
    };
    return q === undefined ? read([]) : this.search.find("markets", q).then((found) => read([found]));
  }

  events(query: EventsQuery, now: number): string | Promise<string> {
    const { category, q } = query;
    const sort = (query.sort ?? "created_at") as keyof Sorts;
    const listing = new Listing("/events", { category, q, sort });
    const read = (found: readonly SearchHits[]): string | Promise<string> => {
      const filters: IdFilter[] = [...found];
      if (category !== undefined) filters.push(this.eventCategory.having(category));
      return page(this.timeSlicer, { order: this.eventSorts[sort], listing, filters, query }, (id) => {
        return JSON.stringify(
          eventView(this.registry.event(id), this.registry, this.ledger, now, { most: MAX_LISTED_EVENT_MARKETS }),
        );
      });
    };
    return q === undefined ? read([]) : this.search.find("events", q).then((found) => read([found]));
  }
}

/** By code. */
const STATUS_NAMES: readonly string[] = MARKET_STATUSES;
/** The status filter that matches every status. */
const ALL = "all";

/** @param text comma-separated ids, validated by the schema @throws ApiError 40000 */
function readIds(text: string): number[] {
  const ids = text.split(",").map(Number);
  if (ids.length > MAX_LISTED_IDS) throw badRequest(`ids: at most ${MAX_LISTED_IDS}`);
  return ids;
}

interface PageRequest {
  readonly order: SortedIds;
  readonly listing: Listing;
  readonly filters: readonly IdFilter[];
  readonly query: { readonly limit?: number; readonly cursor?: string };
}

/** One page: the entries after the cursor that match the filters. @throws ApiError 40000 */
function page(
  timeSlicer: TimeSlicer,
  { order, listing, filters, query }: PageRequest,
  text: (id: number) => string,
): string | Promise<string> {
  const { limit = DEFAULT_PAGE_LIMIT, cursor } = query;
  order.refresh();
  const { ids, keys, size } = order;
  let place = 0;
  if (cursor !== undefined) {
    const [key, id] = listing.keys(cursor, 2) as [number, number];
    place = order.placeOf(key, id);
    if (place < size && keys[place] === key && ids[place] === id) place++;
  }
  const selected: number[] = [];
  let last = 0;
  let next = "null";
  for (; place < size; place++) {
    const id = ids[place]!;
    if (!matches(id, filters)) continue;
    if (selected.length === limit) {
      next = `"${listing.cursor(keys[last]!, ids[last]!)}"`;
      break;
    }
    selected.push(id);
    last = place;
  }
  return timeSlicer.write(selected, text, (items) => `{"items":[${items}],"next_cursor":${next}}`);
}
