/** The queue against a plain one: the order of turns, its bounds, and a constant cost of each call. */
import fc from "fast-check";
import { expect, test } from "vitest";
import { FairQueue } from "../../server/util/fair-queue.ts";
import { Random } from "../support/random.ts";

const { seed } = Random.printed("fair queue");

/** Keys in the order of their turns, each with its items, oldest first. */
class ReferenceQueue {
  private readonly lines: { key: string; items: number[] }[] = [];
  private readonly maxOfKey: number;
  private readonly maxSize: number;

  constructor(maxOfKey: number, maxSize: number) {
    this.maxOfKey = maxOfKey;
    this.maxSize = maxSize;
  }

  get size(): number {
    return this.lines.reduce((sum, { items }) => sum + items.length, 0);
  }

  push(key: string, item: number): boolean {
    const line = this.lines.find((other) => other.key === key);
    if (this.size >= this.maxSize || (line?.items.length ?? 0) >= this.maxOfKey) return false;
    if (line === undefined) this.lines.push({ key, items: [item] });
    else line.items.push(item);
    return true;
  }

  take(): number | undefined {
    const line = this.lines.shift();
    const item = line?.items.shift();
    if (line !== undefined && line.items.length > 0) this.lines.push(line);
    return item;
  }
}

function takeAll<T>(queue: FairQueue<T>): T[] {
  const items: T[] = [];
  for (let item = queue.pop(); item !== undefined; item = queue.pop()) items.push(item);
  return items;
}

test("any sequence of pushes and takes gives the same results as the reference", () => {
  const step = fc.oneof(
    { weight: 3, arbitrary: fc.constantFrom("a", "b", "c", "d", "e", "") },
    { weight: 2, arbitrary: fc.constant(null) },
  );
  const bounds = fc.tuple(fc.integer({ min: 1, max: 4 }), fc.integer({ min: 1, max: 10 }));
  fc.assert(
    fc.property(bounds, fc.array(step, { maxLength: 120, size: "max" }), ([maxOfKey, maxSize], steps) => {
      const queue = new FairQueue<number>(maxOfKey, maxSize);
      const reference = new ReferenceQueue(maxOfKey, maxSize);
      for (const [i, key] of steps.entries()) {
        if (key === null) expect(queue.pop()).toBe(reference.take());
        else expect(queue.push(key, i)).toBe(reference.push(key, i));
        expect(queue.size).toBe(reference.size);
      }
      for (let left = reference.size; left >= 0; left--) expect(queue.pop()).toBe(reference.take());
    }),
    { seed, numRuns: 500 },
  );
});

test("keys take turns in the order of their arrival", () => {
  const queue = new FairQueue<string>(10, 100);
  for (const item of ["a1", "a2", "a3", "b1", "c1", "c2"]) expect(queue.push(item.charAt(0), item)).toBe(true);
  expect(queue.pop()).toBe("a1");
  expect(queue.push("d", "d1")).toBe(true);
  expect(takeAll(queue)).toEqual(["b1", "c1", "a2", "d1", "c2", "a3"]);
});

test("behind 200 items of one key, another key's item is among the next two", () => {
  const queue = new FairQueue<string>(200, 1_000);
  for (let i = 0; i < 200; i++) queue.push("flood", "flood");
  queue.pop();
  queue.push("other", "other");
  expect([queue.pop(), queue.pop()]).toContain("other");
});

test("a key's bound rejects that key only, and each take makes room for one item", () => {
  const queue = new FairQueue<number>(2, 100);
  expect([queue.push("a", 1), queue.push("a", 2), queue.push("a", 3), queue.push("b", 4)]).toEqual([
    true,
    true,
    false,
    true,
  ]);
  expect([queue.pop(), queue.push("a", 5), queue.push("a", 6)]).toEqual([1, true, false]);
  expect(takeAll(queue)).toEqual([4, 2, 5]);
});

test("the total bound rejects every key, known or new", () => {
  const queue = new FairQueue<number>(10, 3);
  expect(["a", "b", "c", "a", "d"].map((key, i) => queue.push(key, i))).toEqual([true, true, true, false, false]);
  expect([queue.size, queue.pop(), queue.push("d", 5), queue.push("a", 6)]).toEqual([3, 0, true, false]);
});

// Removed keys must leave nothing behind that later takes would have to skip.
test("200,000 keys that come and go cost the same each", () => {
  const keys = 200_000;
  const queue = new FairQueue<number>(2, keys * 2);
  for (let i = 0; i < keys; i++) queue.push(String(i), i);
  let right = 0;
  for (let i = 0; i < keys; i++) if (queue.pop() === i && queue.push(String(i + keys), i + keys)) right++;
  expect([right, queue.size]).toEqual([keys, keys]);
}, 10_000);
