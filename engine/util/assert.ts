/** Assertions about our own mistakes: always on, cheap enough for the hot path. A failed one ends the process. */
import { AssertionError } from "node:assert";

/**
 * Throws unless `condition` holds. Never for user errors.
 * @param invariant the sentence that `condition` makes true
 */
export function assert(condition: boolean, invariant: string): asserts condition {
  if (!condition) throw new AssertionError({ message: invariant });
}

/** Ends a switch over a union of kinds: the compiler names a kind without a case, and a foreign value throws. */
export function unreachable(value: never, what: string): never {
  throw new AssertionError({ message: `there is no ${what} ${String(value)}` });
}
