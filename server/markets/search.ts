/**
 * Full-text search over markets and events. The index is in the database; the pool of readers queries it. Results stay in
 * memory until a market or an event is created or its texts change.
 */
import { searchWords } from "../../engine/projection/search-words.ts";
import type { History } from "../queries/history.ts";
import type { SearchTable } from "../queries/types.ts";
import { BoundedMap } from "../util/bounded-map.ts";
import { MAX_CACHED_SEARCHES } from "./limits.ts";
import type { MarketRegistry } from "./registry.ts";
import type { IdFilter } from "./sorted-ids.ts";

/** The ids that a search found, one bit each. */
export class SearchHits implements IdFilter {
  private readonly bits: Uint32Array;

  constructor(bits: Uint32Array) {
    this.bits = bits;
  }

  static of(items: readonly { readonly id: number }[]): SearchHits {
    const largest = items.reduce((most, { id }) => Math.max(most, id), 0);
    const bits = new Uint32Array((largest >>> 5) + 1);
    for (const { id } of items) bits[id >>> 5]! |= 1 << (id & 31);
    return new SearchHits(bits);
  }

  has(id: number): boolean {
    return (((this.bits[id >>> 5] ?? 0) >>> (id & 31)) & 1) === 1;
  }
}

const NOTHING = Promise.resolve(new SearchHits(new Uint32Array(0)));

export class MarketSearch {
  private readonly history: Pick<History, "search">;
  private readonly registry: Pick<MarketRegistry, "textsVersion">;
  private readonly known = new BoundedMap<string, Promise<SearchHits>>(MAX_CACHED_SEARCHES);
  private searched = 0;

  constructor(history: Pick<History, "search">, registry: Pick<MarketRegistry, "textsVersion">) {
    this.history = history;
    this.registry = registry;
  }

  /** Finds entries whose texts contain every word that the user typed; none for a text without words. */
  find(table: SearchTable, typed: string): Promise<SearchHits> {
    const words = searchWords(typed).sort();
    if (words.length === 0) return NOTHING;
    const { textsVersion } = this.registry;
    if (textsVersion !== this.searched) this.known.clear();
    this.searched = textsVersion;
    const key = `${table} ${words.join(" ")}`;
    const known = this.known.get(key);
    if (known !== undefined) return known;
    const found = this.history.search(table, words).then((bits) => new SearchHits(bits));
    this.known.set(key, found);
    // Failures are not cached.
    found.catch(() => this.known.get(key) === found && this.known.delete(key));
    return found;
  }
}
