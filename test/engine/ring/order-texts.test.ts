/** Client order ids in the memory that gateway and log share: a number leaves the same bytes in the log as its digits. */
import * as fc from "fast-check";
import { expect, test } from "vitest";
import { type ClientOrderId, MAX_TEXT_BYTES, NUMERIC_IDS, OrderTexts } from "../../../engine/ring/order-texts.ts";

const SLOT = 3;

/** What the log gets of a slot. */
function logged(id: ClientOrderId | null, builderCode: string | null = null): Buffer {
  const texts = new OrderTexts(SLOT);
  // Another order had the slot before.
  texts.write(SLOT, "x".repeat(64), "y".repeat(32), 1);
  texts.write(SLOT, 12_345, null, 1);
  texts.write(SLOT, id, builderCode, 77);
  const target = Buffer.alloc(MAX_TEXT_BYTES, 0xee);
  return target.subarray(0, texts.copy(SLOT, target, 0));
}

test("a number is read back as itself, and logged as its digits", () => {
  const numbers = [0, 7, 9, 10, 99, 100, 99_999_999, 100_000_000, 100_000_001, 1_000_000_007, 2 ** 32, 2 ** 48, 123_456_789_012_345, NUMERIC_IDS - 1]; // biome-ignore format: list
  for (const number of numbers) {
    const texts = new OrderTexts(SLOT);
    texts.write(SLOT, number, "code", 1);
    expect([texts.clientOrderId(SLOT), texts.builderCode(SLOT)]).toEqual([number, "code"]);
    expect(logged(number, "code"), String(number)).toEqual(logged(String(number), "code"));
  }
});

test("every number below 10^15 leaves the bytes of its digits", () => {
  fc.assert(
    fc.property(fc.integer({ min: 0, max: NUMERIC_IDS - 1 }), (number) => {
      expect(logged(number).equals(logged(String(number)))).toBe(true);
    }),
    { numRuns: 2_000 },
  );
});

test("a text follows a number in a slot, and nothing follows either", () => {
  const texts = new OrderTexts(SLOT);
  texts.write(SLOT, 123, null, 1);
  texts.write(SLOT, "abc", null, 2);
  expect(texts.clientOrderId(SLOT)).toBe("abc");
  texts.write(SLOT, 5, null, 3);
  texts.write(SLOT, null, "code", 0);
  expect([texts.clientOrderId(SLOT), texts.builderCode(SLOT)]).toEqual([null, "code"]);
});
