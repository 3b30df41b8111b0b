/** The item at an index that must exist; asserts it. Not for measured code. */
import { assert } from "../../engine/util/assert.ts";

export function itemAt<T>(items: ArrayLike<T>, index: number): T {
  const item = items[index];
  assert(item !== undefined, "an index is within its list");
  return item;
}
