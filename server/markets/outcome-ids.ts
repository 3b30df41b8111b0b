/**
 * Allocates outcome ids. The outcomes of a market have consecutive ids. A refused proposal frees its ids for the next
 * market that fits. Owned by the gateway thread; never reads the database.
 */
import { FIRST_REFUSED_ID } from "../../engine/projection/outcome-ids.ts";
import { assert } from "../../engine/util/assert.ts";

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
