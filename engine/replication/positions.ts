/** Where two logs went on separately. No I/O: whoever has them says which batches are the same. */
import { assert } from "../util/assert.ts";

/**
 * The last batch of `first..last` that both logs have alike, which `first` is. Each batch names the hash of the one before, so
 * all before an equal one are equal, and all after an unequal one are not.
 */
export async function lastEqual(
  first: number,
  last: number,
  isEqual: (batch: number) => Promise<boolean>,
): Promise<number> {
  assert(first <= last, "there are batches to compare");
  let [low, high] = [first, last];
  while (low < high) {
    const middle = Math.ceil((low + high) / 2);
    if (await isEqual(middle)) low = middle;
    else high = middle - 1;
  }
  return low;
}
