/** Assertions about our own mistakes: always on, cheap enough for the hot path. A failed one ends the process. */
import { AssertionError } from "node:assert";

/**
 * Throws unless `condition` holds. Never for user errors.
 * @param invariant the sentence that `condition` makes true
 */
export function assert(condition: boolean, invariant: string): asserts condition {
  if (!condition) throw new AssertionError({ message: invariant });
}
