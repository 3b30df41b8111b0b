/**
 * Allocates outcome ids. The outcomes of a market have consecutive ids. A refused proposal frees its ids for the next
 * market that fits and moves its outcomes to ids of another range, so that an id names at most one outcome. Owned by the
 * journal; never reads the database.
 */

import { MAX_OUTCOMES } from "../limits.ts";
import { assert } from "../util/assert.ts";

/** Ids from here on belong to refused proposals; no array is indexed by them. */
const FIRST_REFUSED_ID = 2 ** 30;

/** The id of a refused proposal's first outcome; the others follow consecutively. */
export function refusedOutcomeId(marketId: number): number {
  return FIRST_REFUSED_ID + marketId * MAX_OUTCOMES;
}

export class OutcomeIds {
  /** By id: 1 if it is in use. */
  private readonly used: Uint8Array;
  /** No lower id is free. */
  private lowest = 1;

  /** @param last the largest id that any market can have */
  constructor(last: number) {
    this.used = new Uint8Array(last + 1);
  }

  /** Marks the ids of an existing market as used, unless they belong to a refused proposal. */
  add(first: number, count: number): void {
    if (first < FIRST_REFUSED_ID) this.used.fill(1, first, first + count);
  }

  /** Allocates `count` consecutive ids up to `last`; returns the first, or null if there are none. */
  allocate(count: number, last: number): number | null {
    const { used } = this;
    while (this.lowest < used.length && used[this.lowest] === 1) this.lowest++;
    let found = 0;
    for (let id = this.lowest; id <= last && id < used.length; id++) {
      found = used[id] === 1 ? 0 : found + 1;
      if (found < count) continue;
      this.add(id - count + 1, count);
      return id - count + 1;
    }
    return null;
  }

  /** Frees a market's ids. */
  free(first: number, count: number): void {
    assert(this.used[first] === 1, "only used ids are freed");
    this.used.fill(0, first, first + count);
    this.lowest = Math.min(this.lowest, first);
  }
}
