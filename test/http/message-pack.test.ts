/** MessagePack against another implementation, both ways, and against malformed bytes. */
import { Decoder, Encoder, encode } from "@msgpack/msgpack";
import fc from "fast-check";
import { Packr } from "msgpackr";
import { describe, expect, test } from "vitest";
import { MAX_MESSAGE_DEPTH } from "../../server/http/limits.ts";
import { decodeMessage, encodeJson } from "../../server/http/message-pack.ts";
import { EFFORT } from "../support/projects.ts";

const order = {
  id: 123456,
  client_order_id: "mm-7:quote-42",
  side: 1,
  price: 5300,
  quantity: 1_000_000_000,
  post_only: false,
  reason: null,
  created_at: 1_760_000_000_123,
  trades: [{ id: 9001, fee: 0, rebate: 1060.5, amount: -8_000_000_000_000_000 }],
};

/** JSON values, as `JSON.parse` returns them. */
const jsonValue = fc.jsonValue({ maxDepth: 4 }).map((value) => JSON.parse(JSON.stringify(value)) as unknown);

function bytesOf(...bytes: readonly number[]): Uint8Array {
  return Uint8Array.from(bytes);
}

function text(content: string): number[] {
  return [0xa0 + content.length, ...Buffer.from(content)];
}

/** The value with every BigInt of the other implementation as a number. */
function withNumbers(value: unknown): unknown {
  if (typeof value === "bigint") return Number(value);
  if (Array.isArray(value)) return value.map(withNumbers);
  if (typeof value !== "object" || value === null) return value;
  return Object.fromEntries(Object.entries(value).map(([key, field]) => [key, withNumbers(field)]));
}

/** Fails unless the value has plain values only. */
function expectPlain(value: unknown): void {
  if (typeof value !== "object" || value === null) {
    expect(["string", "number", "boolean", "object"]).toContain(typeof value);
    return;
  }
  expect(Object.getPrototypeOf(value)).toBe(Array.isArray(value) ? Array.prototype : Object.prototype);
  for (const field of Object.values(value)) expectPlain(field);
}

describe("encodeJson", () => {
  const reader = new Decoder({ useBigInt64: true });

  test("encodeJson writes what another implementation reads as the same object, large integers as integers", () => {
    expect(reader.decode(encodeJson(JSON.stringify(order)))).toEqual({
      ...order,
      created_at: 1_760_000_000_123n,
      trades: [{ id: 9001, fee: 0, rebate: 1060.5, amount: -8_000_000_000_000_000n }],
    });
  });

  test("encodeJson writes every safe integer as an integer", () => {
    const edges = [0, 2 ** 31, 2 ** 32 - 1, 2 ** 32, -(2 ** 31), -(2 ** 31) - 1, Number.MAX_SAFE_INTEGER];
    for (const integer of [...edges, Number.MIN_SAFE_INTEGER]) {
      const bytes = encodeJson(JSON.stringify([integer, { n: integer }]));
      expect(withNumbers(reader.decode(bytes))).toEqual([integer, { n: integer }]);
      expect(bytes).not.toContain(0xcb);
      expect(Number(reader.decode(encodeJson(String(integer))))).toBe(integer);
    }
    expect(encodeJson(String(2 ** 32 - 1))).toHaveLength(5);
    expect(encodeJson("0.5")[0]).toBe(0xcb);
  });

  test("encodeJson round-trips any JSON, here and in another implementation", () => {
    fc.assert(
      fc.property(jsonValue, (value) => {
        const bytes = encodeJson(JSON.stringify(value));
        if (!JSON.stringify(value).includes("__proto__")) {
          expect(withNumbers(reader.decode(bytes))).toEqual(value);
          expect(decodeMessage(bytes)).toEqual(value);
        }
      }),
    );
  });

  test("encodeJson's bytes never change after later writes, and equal texts in a row share them", () => {
    const texts = Array.from({ length: 2_000 }, (_, i) => JSON.stringify({ i, filler: "x".repeat((i * 37) % 3_000) }));
    const kept = texts.map((json) => encodeJson(json));
    for (const [i, json] of texts.entries()) expect(decodeMessage(kept[i]!)).toEqual(JSON.parse(json));
    expect(encodeJson(texts[0]!)).toBe(encodeJson(`${texts[0]!}`));
    expect(encodeJson(texts[1]!)).not.toBe(encodeJson(texts[0]!));
  });

  test("encodeJson throws for a text that is not JSON, and that has no effect on the next one", () => {
    const before = encodeJson('{"a":1}');
    for (const broken of ["", "{"]) expect(() => encodeJson(broken)).toThrow();
    expect(encodeJson('{"a":1}')).toEqual(before);
  });
});

describe("decodeMessage", () => {
  test("decodeMessage reads what another implementation writes, whichever integers it prefers", () => {
    expect(decodeMessage(encode(order))).toEqual(order);
    const wide = { created_at: BigInt(order.created_at), amount: -8_000_000_000_000_000n, most: 2n ** 64n - 1n };
    expect(decodeMessage(encode(wide, { useBigInt64: true }))).toEqual({
      created_at: order.created_at,
      amount: -8_000_000_000_000_000,
      most: 2 ** 64,
    });
    fc.assert(
      fc.property(jsonValue, fc.boolean(), (value, forceIntegerToFloat) => {
        if (JSON.stringify(value).includes("__proto__")) return;
        expect(decodeMessage(new Encoder({ forceIntegerToFloat }).encode(value))).toEqual(value);
      }),
    );
  });

  test("decodeMessage reads strings of all characters and lengths, as values and as keys", () => {
    // In strings of more than 64 bytes, msgpackr drops a byte order mark at the start.
    const string = fc
      .string({ unit: "binary", maxLength: 200, size: "max" })
      .filter((s) => !/^\ufeff|^__proto__$/.test(s));
    fc.assert(
      fc.property(string, string, (key, value) => {
        expect(decodeMessage(encode({ [key]: value }))).toEqual({ [key]: value });
      }),
    );
  });

  test("decodeMessage doesn't make integers beyond 2^53 safe ones", () => {
    for (const integer of [2n ** 53n, 2n ** 53n + 1n, 2n ** 63n, 2n ** 64n - 1n, -(2n ** 53n) - 1n, -(2n ** 63n)]) {
      const decoded = decodeMessage(encode(integer, { useBigInt64: true }));
      expect(decoded).toBeTypeOf("number");
      expect(Number.isSafeInteger(decoded)).toBe(false);
    }
  });

  const refused: [string, Uint8Array, RegExp][] = [
    ["nothing", bytesOf(), /cut short/],
    ["a trailing byte", bytesOf(0x80, 0x80), /after the end/],
    ["the type that is never used", bytesOf(0xc1), /0xc1/],
    ["a binary value", bytesOf(0xc4, 1, 0), /0xc4/],
    ["a timestamp", encode(new Date(1_760_000_000_000)), /0xd6/],
    ["a long timestamp", encode(new Date(-1)), /0xc7/],
    ["undefined as an extension", new Packr({ useRecords: false }).pack(undefined), /0xd4/],
    ["a record of msgpackr", new Packr().pack([{ a: 1 }, { a: 2 }]), /0xd4/],
    ["a long record of msgpackr", bytesOf(0xd5, 0x72, 0x40, 0, 0x91, ...text("a"), 1), /0xd5/],
    ["a regular expression", new Packr({ moreTypes: true, useRecords: false }).pack(/(a+)+$/), /0xd4/],
    ["a set", new Packr({ moreTypes: true, useRecords: false }).pack(new Set([1])), /0xd4/],
    ["an error", new Packr({ moreTypes: true, useRecords: false }).pack(new Error("x")), /0xd4/],
    ["a typed array", new Packr({ moreTypes: true, useRecords: false }).pack(new Float64Array(1)), /0xc7/],
    ["bundled strings", new Packr({ bundleStrings: true, useRecords: false }).pack(["long enough"]), /0xd6/],
    ["a reference", bytesOf(0xd6, 0x70, 0, 0, 0, 1), /0xd6/],
    ["an extension of 16", bytesOf(0xd8, 1, ...new Array(16).fill(0)), /0xd8/],
    ["an extension in an array", bytesOf(0x92, 1, 0xd4, 0x72, 0x40), /0xd4/],
    ["an extension as a key", bytesOf(0x81, 0xd4, 0, 0, 1), /0xd4/],
    ["a number as a key", bytesOf(0x81, 1, 1), /key/],
    ["null as a key", bytesOf(0x81, 0xc0, 1), /key/],
    ["an array as a key", bytesOf(0x81, 0x91, ...text("__proto__"), 0x80), /key/],
    ["__proto__ as a key", bytesOf(0x81, ...text("__proto__"), 0x81, ...text("admin"), 0xc3), /__proto__/],
    ["__proto__ as a long key", bytesOf(0x81, 0xd9, 9, ...Buffer.from("__proto__"), 0x80), /__proto__/],
    ["__proto__ within", bytesOf(0x91, 0xde, 0, 1, 0xda, 0, 9, ...Buffer.from("__proto__"), 0x80), /__proto__/],
    ["a map without its last value", bytesOf(0x81, ...text("a")), /cut short/],
    ["a string that is cut short", bytesOf(0xa2, 0x61), /cut short/],
    ["half a length", bytesOf(0xda, 0), /cut short/],
    ["half a number", bytesOf(0xcb, 0, 0, 0), /cut short/],
    ["4 GB of array", bytesOf(0xdd, 0xff, 0xff, 0xff, 0xff), /cut short/],
    ["4 GB of map", bytesOf(0xdf, 0xff, 0xff, 0xff, 0xff), /cut short/],
    ["4 GB of string", bytesOf(0xdb, 0xff, 0xff, 0xff, 0xff), /cut short/],
    ["arrays of 256 MB each", Buffer.from("dd01ffffff".repeat(1_000), "hex"), /cut short/],
    ["malformed UTF-8", bytesOf(0xa1, 0xe2), /UTF-8/],
    ["an overlong form", bytesOf(0xa2, 0xc0, 0x80), /UTF-8/],
    ["half a surrogate pair", bytesOf(0xa3, 0xed, 0xa0, 0x80), /UTF-8/],
    ["nesting past the bound", new Uint8Array(MAX_MESSAGE_DEPTH + 2).fill(0x91).fill(0, -1), /deeper/],
    ["nesting to the stack's end", new Uint8Array(1 << 20).fill(0x91).fill(0, -1), /deeper/],
  ];
  test.for(refused)("decodeMessage rejects %s", ([, bytes, message]) => {
    expect(() => decodeMessage(bytes)).toThrow(message);
    expect(({} as Record<string, unknown>)["admin"]).toBeUndefined();
  });

  test("decodeMessage accepts nesting up to the bound", () => {
    expect(() => decodeMessage(new Uint8Array(MAX_MESSAGE_DEPTH + 1).fill(0x91).fill(0, -1))).not.toThrow();
  });

  test("decodeMessage: one message has no effect on the next", () => {
    // A record would make 0x40 an object, and a key that isn't UTF-8 would be remembered with the bytes after it.
    expect(() => decodeMessage(bytesOf(0x92, 0xd4, 0x72, 0x40, 0x91, ...text("a"), 1, 0x40))).toThrow();
    expect(decodeMessage(bytesOf(0x91, 0x40))).toEqual([0x40]);
    expect(() => decodeMessage(bytesOf(0x81, 0xa1, 0xe2, 0x82, 0xac))).toThrow();
    expect(() => decodeMessage(bytesOf(0x82, 0xa2, 0xc3, 0xa9, 1, ...text("b"), 0xa5, 0x61))).toThrow();
    expect(decodeMessage(bytesOf(0x81, 0xa2, 0xc3, 0xa9, 1))).toEqual({ é: 1 });
  });

  test("decodeMessage reads names of object methods as keys like others", () => {
    const names = { constructor: 1, toString: 2, hasOwnProperty: 3, toJSON: 4 };
    expect(decodeMessage(encode(names))).toEqual(names);
  });

  /** Either rejects the bytes, or reads the same plain values as another implementation. */
  function readOrRefuse(bytes: Uint8Array): void {
    let value: unknown;
    try {
      value = decodeMessage(bytes);
    } catch {
      return;
    }
    expectPlain(value);
    expect(value).toEqual(withNumbers(new Decoder({ useBigInt64: true }).decode(bytes)));
  }

  test("decodeMessage rejects random bytes or reads them as plain values", () => {
    fc.assert(fc.property(fc.uint8Array({ maxLength: 300 }), readOrRefuse), { numRuns: 1_000 * EFFORT });
  });

  test("decodeMessage rejects valid messages with bytes changed, removed and inserted, or reads them as plain values", () => {
    const change = fc.record({
      at: fc.double({ min: 0, max: 1, maxExcluded: true, noNaN: true }),
      remove: fc.nat({ max: 3 }),
      insert: fc.uint8Array({ maxLength: 5 }),
    });
    fc.assert(
      fc.property(jsonValue, fc.array(change, { minLength: 1, maxLength: 4 }), (value, changes) => {
        let bytes = [...encode({ ...order, value })];
        for (const { at, remove, insert } of changes) {
          bytes = bytes.toSpliced(Math.floor(at * bytes.length), remove, ...insert);
        }
        readOrRefuse(Uint8Array.from(bytes));
      }),
      { numRuns: 1_000 * EFFORT },
    );
  });
});
