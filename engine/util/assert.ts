/** Assertions about our own mistakes: always on, cheap enough for the hot path, and the end of the process. */
import { AssertionError } from "node:assert";

/** Throws where `condition` is false. Never for what a user did. */
export function assert(condition: boolean, message: string): asserts condition {
  if (!condition) throw new AssertionError({ message });
}
