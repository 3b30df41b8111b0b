/** The sort orders behind the lists: after any changes they equal a full sort. */
import { describe, expect, test } from "vitest";
import { MAX_MOVED_PER_READ } from "../../server/markets/limits.ts";
import { Column, matches, SortedIds } from "../../server/markets/sorted-ids.ts";
import { Random } from "../support/random.ts";

const listed = (order: SortedIds): number[] => [...order.ids.subarray(0, order.size)];

describe("an order", () => {
  test("ids that leave the order are gone at the next read, however many; moved ones wait their turn", () => {
    const keys = new Map<number, number>();
    const order = new SortedIds({ keyOf: (id) => keys.get(id) ?? Number.NaN });
    const count = 3 * MAX_MOVED_PER_READ;
    for (let id = 1; id <= count; id++) {
      keys.set(id, id);
      order.markPresence(id);
    }
    order.refresh();
    expect(order.size).toBe(count);
    for (let id = 1; id <= count; id++) order.mark(id);
    for (let id = 13; id <= count; id++) {
      keys.delete(id);
      order.markPresence(id);
    }
    order.refresh();
    expect(listed(order)).toEqual([12, 11, 10, 9, 8, 7, 6, 5, 4, 3, 2, 1]);
  });

  test.for(["the largest id first", "the smallest id first"])("sorted ids: among equal keys %s", (tie) => {
    const random = Random.printed(`an order with ${tie}`);
    const keys = new Map<number, number>();
    const compare = tie === "the largest id first" ? (a: number, b: number) => b - a : (a: number, b: number) => a - b;
    const order = new SortedIds({ keyOf: (id) => keys.get(id) ?? Number.NaN, tie: compare });
    for (let round = 0; round < 300; round++) {
      for (let n = random.integer(0, 40); n > 0; n--) {
        const id = random.integer(1, 300);
        // Few keys, so that many are equal; sometimes one leaves.
        if (random.chance(0.2)) keys.delete(id);
        else keys.set(id, random.integer(-5, 5));
        order.mark(id);
      }
      order.refresh();
      const expected = [...keys.keys()].sort((a, b) => keys.get(b)! - keys.get(a)! || compare(a, b));
      expect(listed(order)).toEqual(expected);
      expect([...order.keys.subarray(0, order.size)]).toEqual(expected.map((id) => keys.get(id)));
      expect(expected.map((id) => order.placeOf(keys.get(id)!, id))).toEqual([...expected.keys()]);
    }
  });

  test("sorted ids: a read moves a bounded number of ids; later reads continue, and none is lost", () => {
    const random = Random.printed("a bounded move");
    const count = 4 * MAX_MOVED_PER_READ;
    const keys = Array.from({ length: count }, (_, id) => id);
    let looked = 0;
    const order = new SortedIds({
      keyOf: (id) => {
        looked++;
        return keys[id]!;
      },
    });
    for (let id = 0; id < count; id++) order.mark(id);
    order.refresh(Number.MAX_SAFE_INTEGER);
    expect(listed(order)).toEqual(keys.toReversed());
    for (let id = 0; id < count; id++) keys[id] = random.integer(0, 1_000_000);
    order.markAll();
    for (let read = 1; read <= 4; read++) {
      looked = 0;
      order.refresh();
      expect(looked).toBe(MAX_MOVED_PER_READ);
      expect(new Set(listed(order)).size).toBe(count);
    }
    expect(listed(order)).toEqual([...keys.keys()].sort((a, b) => keys[b]! - keys[a]! || b - a));
    looked = 0;
    order.refresh();
    expect(looked).toBe(0);
  });
});

test("a column filters by any of its values, and finds nothing for others", () => {
  const column = new Column();
  const values = ["sports", null, "", "0", 0, "sports"];
  for (const [id, value] of values.entries()) column.set(id + 100, value);
  const having = (value: string | number | null): number[] => {
    return values.flatMap((_, i) => (matches(i + 100, [column.having(value)]) ? [i] : []));
  };
  expect([having("sports"), having(null), having(""), having("0"), having(0)]).toEqual([[0, 5], [1], [2], [3], [4]]);
  expect(having("Sports")).toEqual([]);
  expect(column.having("sports").has(5)).toBe(false);
  expect(column.having("sports").has(1e9)).toBe(false);
  column.set(100, null);
  expect(having("sports")).toEqual([5]);
});
