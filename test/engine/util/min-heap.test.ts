/** The heap against a sorted list. */
import fc from "fast-check";
import { expect, test } from "vitest";
import { MinHeap } from "../../../engine/util/min-heap.ts";

test("pops items in order, whatever is added, popped and dropped in between", () => {
  const step = fc.oneof(
    { weight: 4, arbitrary: fc.record({ add: fc.integer({ min: 0, max: 50 }) }) },
    { weight: 2, arbitrary: fc.constant({ take: true }) },
    { weight: 1, arbitrary: fc.record({ keep: fc.integer({ min: 2, max: 4 }) }) },
  );
  fc.assert(
    fc.property(fc.array(step, { maxLength: 200 }), (steps) => {
      const queue = new MinHeap<{ at: number; orderId: number }>();
      let list: { at: number; orderId: number }[] = [];
      for (const [i, change] of steps.entries()) {
        if ("add" in change) {
          queue.add({ at: change.add, orderId: i + 1 });
          list.push({ at: change.add, orderId: i + 1 });
        } else if ("keep" in change) {
          queue.keep(({ orderId }) => orderId % change.keep !== 0);
          list = list.filter(({ orderId }) => orderId % change.keep !== 0);
        } else if (list.length > 0) {
          const taken = queue.pop();
          expect(list).toContainEqual(taken);
          list = list.filter(({ orderId }) => orderId !== taken.orderId);
          expect(taken.at).toBeLessThanOrEqual(Math.min(Number.POSITIVE_INFINITY, ...list.map(({ at }) => at)));
        }
        expect(queue.size).toBe(list.length);
        expect(queue.peek()?.at ?? null).toBe(list.length === 0 ? null : Math.min(...list.map(({ at }) => at)));
      }
    }),
  );
});
