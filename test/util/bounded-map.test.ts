/** Bounded maps and sets against a plain model: the bound holds, and eviction removes the oldest key. */
import fc from "fast-check";
import { expect, test } from "vitest";
import { BoundedMap, BoundedSet } from "../../server/util/bounded-map.ts";

const MAX_SIZE = 5;

test("one key too many evicts the oldest; a key that is set again keeps its age", () => {
  const map = new BoundedMap<string, number>(3);
  map.set("a", 1).set("b", 2).set("c", 3).set("a", 4).set("d", 5);
  expect([...map]).toEqual([
    ["b", 2],
    ["c", 3],
    ["d", 5],
  ]);
  map.renew("b", 6);
  map.set("e", 7);
  expect([...map.keys()]).toEqual(["d", "b", "e"]);
  const set = new BoundedSet<number>(2);
  set.add(1).add(2).add(1).add(3);
  expect([...set]).toEqual([2, 3]);
});

const key = fc.integer({ min: 0, max: 12 });
const step = fc.oneof(
  { weight: 6, arbitrary: fc.record({ kind: fc.constant("set" as const), key }) },
  { weight: 3, arbitrary: fc.record({ kind: fc.constant("renew" as const), key }) },
  { weight: 3, arbitrary: fc.record({ kind: fc.constant("delete" as const), key }) },
  { weight: 1, arbitrary: fc.record({ kind: fc.constant("clear" as const), key }) },
);

test("after any sets, renewals, deletes and clears, it holds the newest keys in order", () => {
  fc.assert(
    fc.property(fc.array(step, { maxLength: 200 }), (steps) => {
      const map = new BoundedMap<number, number>(MAX_SIZE);
      let model: number[] = [];
      for (const [i, { kind, key }] of steps.entries()) {
        if (kind === "set" && !model.includes(key)) model = [...model, key].slice(-MAX_SIZE);
        if (kind === "renew") model = [...model.filter((each) => each !== key), key].slice(-MAX_SIZE);
        if (kind === "delete") model = model.filter((each) => each !== key);
        if (kind === "clear") model = [];
        if (kind === "set") map.set(key, i);
        else if (kind === "renew") map.renew(key, i);
        else if (kind === "delete") map.delete(key);
        else map.clear();
        expect([...map.keys()]).toEqual(model);
      }
    }),
  );
});
