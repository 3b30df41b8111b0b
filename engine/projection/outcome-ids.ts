/**
 * The ids of refused proposals' outcomes. A refused proposal's outcomes move to this range, so that an id names at most
 * one outcome although the next market may get the old ids.
 */

import { MAX_OUTCOMES } from "../limits.ts";

/** Ids from here on belong to refused proposals; no array is indexed by them. */
export const FIRST_REFUSED_ID = 2 ** 30;

/** The id of a refused proposal's first outcome; the others follow consecutively. */
export function refusedOutcomeId(marketId: number): number {
  return FIRST_REFUSED_ID + marketId * MAX_OUTCOMES;
}
