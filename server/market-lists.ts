/**
 * The public lists of markets and events by cursor: filters, search, sorts, pages, from the gateway's memory. Which ones
 * are in a list is exact at every request. The order by volume may be of a moment before (LISTED_PER_MS: of the last
 * second among 100,000), what is shown is of now. A volume never falls, so that paging by it never shows a thing twice;
 * what is traded meanwhile can rise past the page that is being read, and is then found further in front.
 */
import type { Static } from "typebox";
import { MARKET_STATUSES } from "../engine/constants.ts";
import type { EventRow } from "../engine/journal/load.ts";
import type { Ledger } from "../engine/ledger.ts";
import { DEFAULT_PAGE_LIMIT, LISTED_PER_MS } from "../engine/limits.ts";
import { badRequest } from "./errors.ts";
import { writeInTurns } from "./in-turns.ts";
import { type Filter, Order, type Slice } from "./market-order.ts";
import type { Market, MarketRegistry } from "./market-registry.ts";
import { Found, type MarketSearch } from "./market-search.ts";
import { decodeCursor, encodeCursor } from "./paging.ts";
import type * as S from "./schemas.ts";
import { eventView, marketView, marketVolume } from "./views.ts";

type MarketsQuery = Static<typeof S.MarketsQuery>;
type EventsQuery = Static<typeof S.EventsQuery>;

/** One sort of one list. */
interface List {
  readonly order: Order;
  /** In the cursors that lead through it. */
  readonly tag: number;
}

/** By the names of the sorts. */
type Lists = Readonly<Record<string, List>>;

/** Soonest first; what has no end comes last. */
const endKey = (closesAt: number | null): number => -(closesAt ?? Number.MAX_SAFE_INTEGER);

/** How long an order by volume holds, in ms: renewing it takes the gateway's time in proportion. */
export function holdsMs(registry: MarketRegistry): number {
  return Math.floor((registry.all().length + registry.allEvents().length) / LISTED_PER_MS);
}

export class MarketLists {
  private readonly registry: MarketRegistry;
  private readonly ledger: Ledger;
  private readonly search: MarketSearch;
  private readonly marketLists: Lists;
  private readonly eventLists: Lists;
  private readonly status: Filter;
  private readonly marketCategory: Filter;
  private readonly eventCategory: Filter;

  constructor(registry: MarketRegistry, ledger: Ledger, search: MarketSearch) {
    this.registry = registry;
    this.ledger = ledger;
    this.search = search;
    const market = (id: number): Market => registry.get(id)!;
    const event = (id: number): EventRow => registry.event(id)!;
    const base = { version: () => registry.statusChanges };
    const moving = { ...base, holdsMs: () => holdsMs(registry) };
    const lists = (
      items: () => readonly { id: number }[],
      volume: (id: number) => number,
      closesAt: (id: number) => number | null,
      firstTag: number,
    ): Lists => {
      const sources = [{ items, idOf: (id: number) => id }];
      return {
        created_at: { tag: firstTag, order: new Order({ ...base, sources, keyOf: (id) => id }) },
        volume: { tag: firstTag + 1, order: new Order({ ...moving, sources, keyOf: volume }) },
        closes_at: { tag: firstTag + 2, order: new Order({ ...base, sources, keyOf: (id) => endKey(closesAt(id)) }) },
      };
    };
    const volumeOf = (id: number): number => marketVolume(market(id));
    const volumeOfEvent = (id: number): number => registry.marketsOf(id).reduce((sum, m) => sum + marketVolume(m), 0);
    const endOf = (id: number): number | null => market(id).closesAt;
    const endOfEvent = (id: number): number | null => event(id).closesAt;
    this.marketLists = lists(() => registry.all(), volumeOf, endOf, 0);
    this.eventLists = lists(() => registry.allEvents(), volumeOfEvent, endOfEvent, 3);
    this.status = { name: "status", read: (id) => market(id).status };
    this.marketCategory = { name: "category", read: (id) => market(id).category };
    this.eventCategory = { name: "category", read: (id) => event(id).category };
  }

  /** Sorts every list, so that whoever asks first needn't wait for it. */
  warmUp(now: number): void {
    for (const lists of [this.marketLists, this.eventLists]) {
      for (const { order } of Object.values(lists)) order.upToDate(now);
    }
  }

  markets(query: MarketsQuery, now: number): string | Promise<string> {
    const { status = "open", category, event_id, sort = "created_at", q } = query;
    const list = this.marketLists[String(sort)]!;
    const read = (found: readonly Found[]): string | Promise<string> => {
      let slice = list.order.upToDate(now).where(this.status, MARKET_STATUSES.indexOf(status as never));
      if (category !== undefined) slice = slice.where(this.marketCategory, category);
      const sets = event_id === undefined ? found : [...found, Found.of(this.registry.marketsOf(event_id))];
      return page(list, slice, sets, query, (id) => this.marketText(id, now));
    };
    return q === undefined ? read([]) : this.search.find("markets", q).then((found) => read([found]));
  }

  events(query: EventsQuery, now: number): string | Promise<string> {
    const { category, sort = "created_at", q } = query;
    const list = this.eventLists[String(sort)]!;
    const read = (found: readonly Found[]): string | Promise<string> => {
      let slice = list.order.upToDate(now);
      if (category !== undefined) slice = slice.where(this.eventCategory, category);
      return page(list, slice, found, query, (id) => this.eventText(id, now));
    };
    return q === undefined ? read([]) : this.search.find("events", q).then((found) => read([found]));
  }

  private marketText(id: number, now: number): string {
    return JSON.stringify(marketView(this.registry.get(id)!, this.registry, this.ledger, now));
  }

  private eventText(id: number, now: number): string {
    return JSON.stringify(eventView(this.registry.event(id)!, this.registry, this.ledger, now));
  }
}

/** One page of a slice: what is in all of `sets`, from the cursor on. @throws ApiError 40000 */
function page(
  { tag }: List,
  slice: Slice,
  sets: readonly Found[],
  query: { limit?: number; cursor?: string },
  text: (id: number) => string,
): string | Promise<string> {
  const { limit = DEFAULT_PAGE_LIMIT, cursor } = query;
  const { ids, keys } = slice;
  let at = 0;
  if (cursor !== undefined) {
    const [of, key, id] = decodeCursor(cursor, 3) as [number, number, number];
    if (of !== tag) throw badRequest("cursor: of another list, or of another sort");
    at = slice.after(key, id);
  }
  const shown: number[] = [];
  let last = 0;
  let next = "null";
  for (; at < ids.length; at++) {
    const id = ids[at]!;
    if (!sets.every((set) => set.has(id))) continue;
    if (shown.length === limit) {
      next = `"${encodeCursor(tag, keys[last]!, ids[last]!)}"`;
      break;
    }
    shown.push(id);
    last = at;
  }
  return writeInTurns(shown, text, (items) => `{"items":[${items}],"next_cursor":${next}}`);
}
