/**
 * Which outcome ids are taken. Outcomes of one market have ids that follow each other; a refused proposal returns its
 * own, and they go to the next market that fits. Its outcomes keep ids of another range, so that an id names one outcome
 * at most. Owned by the journal; knows no database.
 */

import { MAX_OUTCOMES } from "../limits.ts";
import { assert } from "../util/assert.ts";

/** From here on ids are of refused proposals: no array is indexed by them. */
const FIRST_REFUSED_ID = 2 ** 30;

/** The id of a refused proposal's first outcome; the others follow. */
export function refusedOutcomeId(marketId: number): number {
  return FIRST_REFUSED_ID + marketId * MAX_OUTCOMES;
}

export class OutcomeIds {
  /** By id: 1 where it is taken. */
  private readonly taken: Uint8Array;
  /** No id below is free. */
  private lowest = 1;

  /** @param last the largest id that any market can have */
  constructor(last: number) {
    this.taken = new Uint8Array(last + 1);
  }

  /** Takes the ids of a market that is there; those of a refused proposal are none of these. */
  add(first: number, count: number): void {
    if (first < FIRST_REFUSED_ID) this.taken.fill(1, first, first + count);
  }

  /** The first of `count` free ids that follow each other, up to `last`; null where there are none. Takes them. */
  allocate(count: number, last: number): number | null {
    const { taken } = this;
    while (this.lowest < taken.length && taken[this.lowest] === 1) this.lowest++;
    let found = 0;
    for (let id = this.lowest; id <= last && id < taken.length; id++) {
      found = taken[id] === 1 ? 0 : found + 1;
      if (found < count) continue;
      this.add(id - count + 1, count);
      return id - count + 1;
    }
    return null;
  }

  /** Gives a market's ids back. */
  free(first: number, count: number): void {
    assert(this.taken[first] === 1, "ids that are given back were taken");
    this.taken.fill(0, first, first + count);
    this.lowest = Math.min(this.lowest, first);
  }
}
