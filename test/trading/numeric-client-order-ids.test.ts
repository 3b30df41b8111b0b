/** Client order ids as numbers: a number and the text of its digits are one id, other texts are others. */
import * as fc from "fast-check";
import { expect, test } from "vitest";
import { NUMERIC_IDS } from "../../engine/ring/order-texts.ts";
import { ClientOrderIds } from "../../server/trading/client-order-ids.ts";

const NOW = 1_000;

test("a number is found by its digits, and the digits by the number", () => {
  const ids = new ClientOrderIds(0);
  const numbers = [0, 1, 10, 4_294_967_296, NUMERIC_IDS - 1];
  for (const [at, number] of numbers.entries()) ids.add(1, at % 2 === 0 ? number : String(number), at + 1, NOW);
  for (const [at, number] of numbers.entries()) {
    expect([ids.find(1, number), ids.find(1, String(number))]).toEqual([at + 1, at + 1]);
    expect(ids.find(2, number)).toBe(0);
  }
  for (const other of ["00", "01", "1.0", "1e1", " 1", "+1", "1000000000000000", "4294967297", ""]) {
    expect(ids.find(1, other), other).toBe(0);
  }
  ids.free(1, "10");
  expect(ids.find(1, 10)).toBe(0);
});

test("different ids have different keys, whatever their form", () => {
  const id = fc.oneof(fc.integer({ min: 0, max: NUMERIC_IDS - 1 }), fc.string({ minLength: 1, maxLength: 20 }), fc.nat().map(String)); // biome-ignore format: one line
  fc.assert(
    fc.property(fc.uniqueArray(id, { selector: String, maxLength: 200 }), (list) => {
      const ids = new ClientOrderIds(0);
      for (const [at, each] of list.entries()) ids.add(1, each, at + 1, NOW);
      for (const [at, each] of list.entries()) expect(ids.find(1, each)).toBe(at + 1);
    }),
    { numRuns: 200 },
  );
});
