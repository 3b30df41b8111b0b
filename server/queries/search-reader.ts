/** Reads the full-text index of markets and events. Finds ids only: nothing is ranked. */
import type Database from "better-sqlite3";
import type { SearchTable } from "./types.ts";

interface SearchOptions {
  readonly table: SearchTable;
  /** At least one, as `searchWords` makes them: the index's query syntax gives no character in them a meaning. */
  readonly words: readonly string[];
}

/** Gives a bit for each id: set where all words occur, each at the start of a word. */
export function prepareSearch(db: Database.Database): (options: SearchOptions) => Uint32Array {
  const matching = {
    markets: db.prepare("SELECT rowid FROM market_words WHERE market_words MATCH ?").pluck(),
    events: db.prepare("SELECT rowid FROM event_words WHERE event_words MATCH ?").pluck(),
  };
  const newest = {
    markets: db.prepare("SELECT coalesce(max(id), 0) FROM markets").pluck(),
    events: db.prepare("SELECT coalesce(max(id), 0) FROM events").pluck(),
  };
  return ({ table, words }) => {
    const bits = new Uint32Array((Number(newest[table].get()) >>> 5) + 1);
    const query = words.map((word) => `"${word}"*`).join(" ");
    for (const id of matching[table].iterate(query) as IterableIterator<number>) {
      const word = id >>> 5;
      bits[word] = (bits[word] ?? 0) | (1 << (id & 31));
    }
    return bits;
  };
}
