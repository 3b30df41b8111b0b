/** The golden vectors, decoded and encoded by the schema's slow counterpart, the server's codec, C and Python. */
import { execFileSync, spawnSync } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { describe, expect, test } from "vitest";
import { ROOT } from "../../bench/support/root.ts";
import { NULL_MONEY } from "../../server/websocket/sbe/codec/constants.ts";
import * as requests from "../../server/websocket/sbe/codec/requests.ts";
import * as responses from "../../server/websocket/sbe/codec/responses.ts";
import { checkProgram } from "./c-check.ts";
import { generatedFiles, readProjectSchema } from "./generate.ts";
import { blockOf, entryOf, FIRST_RESPONSE } from "./layouts.ts";
import { decodeFrame, encodeMessage, messageNamed, type PlainMessage, type Value, type Values } from "./plain.ts";
import type { Layout, Message } from "./schema.ts";
import type { Vector } from "./vectors.ts";

const root = fileURLToPath(ROOT);
const schema = readProjectSchema(root);
const VECTORS = join(root, "docs/sbe/vectors.json");
const vectors: readonly Vector[] = JSON.parse(readFileSync(VECTORS, "utf8"));
const HEADER_WORDS = 6;
const DIMENSION_WORDS = 1;

test("what `npm run sbe` writes is what is committed", () => {
  for (const [path, text] of generatedFiles(root)) expect(readFileSync(join(root, path), "utf8"), path).toBe(text);
});

test("an order, byte by byte", () => {
  const plain: PlainMessage = {
    template: "PlaceOrder",
    header: { index: null, rateRemaining: null, id: "258" },
    fields: {
      ...{ outcomeId: "3", price: "5500", quantity: "10", marketId: "2", expiresAt: "1700000000000", validUntil: null },
      ...{ clientOrderId: "18446744073709551614", side: "sell", orderType: null, timeInForce: "gtd" },
      ...{ selfTradePrevention: "cancelBoth", flags: ["postOnly"] },
    },
    groups: {},
    texts: { clientOrderText: null, builderCode: "ab" },
  };
  const bytes = [
    ["3000", "0100", "0100", "0200", "50000000", "ffff", "ffff", "0201000000000000"],
    ["03000000", "7c150000", "0a000000", "02000000", "0068e5cf8b010000", "ffffffffffffffff", "feffffffffffffff"],
    ["02", "ff", "01", "02", "01", "00", "0000", "00", "02", "6162", "00000000"],
  ];
  const hex = bytes.flat().join("");
  expect(encodeMessage(schema, plain).toString("hex")).toBe(hex);
  expect(decodeFrame(schema, Buffer.from(hex, "hex"))).toEqual([plain]);
});

describe("each vector", () => {
  test("is decoded and encoded by the schema", () => {
    for (const vector of vectors) {
      const { name, version, blockLength, hex, ...plain } = vector;
      expect(decodeFrame(schema, Buffer.from(hex, "hex")), name).toEqual([plain]);
      if (isCurrent(vector)) expect(encodeMessage(schema, plain).toString("hex"), name).toBe(hex);
    }
  });

  test("of a request is read by the server's codec", () => {
    const read = vectors.filter((vector) => isRequest(vector) && vector.blockLength >= messageOf(vector).length);
    expect(read.length).toBeGreaterThan(40);
    for (const vector of read) {
      const words = wordsOf(vector);
      const message = messageOf(vector);
      let at = HEADER_WORDS;
      if (message.length > 0)
        expect(readLayout(blockOf(message), words, at)).toEqual(numbersOf(message, vector.fields));
      at += vector.blockLength / 4;
      for (const group of message.groups) {
        at += DIMENSION_WORDS;
        for (const values of vector.groups[group.name]!) {
          expect(readLayout(entryOf(group.name), words, at)).toEqual(numbersOf(group, values));
          at += group.length / 4;
        }
      }
    }
  });

  test("of a response or an event is written by the server's codec", () => {
    const written = vectors.filter((vector) => !isRequest(vector) && isCurrent(vector));
    expect(written.length).toBeGreaterThan(50);
    for (const vector of written) {
      const words = wordsOf(vector);
      // What the buffer held before must not matter.
      const into = new Int32Array(words.length).fill(-559_038_737);
      const message = messageOf(vector);
      const check = (layout: string, shape: Layout, values: Values, at: number): void => {
        writeLayout(layout, into, at, numbersOf(shape, values));
        const end = at + shape.length / 4;
        expect([...into.subarray(at, end)], `${vector.template}: ${vector.name}`).toEqual([...words.subarray(at, end)]);
      };
      let at = HEADER_WORDS;
      if (message.length > 0) check(blockOf(message), message, vector.fields, at);
      at += message.length / 4;
      for (const group of message.groups) {
        at += DIMENSION_WORDS;
        for (const values of vector.groups[group.name]!) {
          check(entryOf(group.name), group, values, at);
          at += group.length / 4;
        }
      }
    }
  });

  test("is decoded and encoded by Python", ({ skip }) => {
    if (spawnSync("python3", ["--version"]).error !== undefined) skip("python3 is missing");
    const script = fileURLToPath(new URL("check_vectors.py", import.meta.url));
    const output = execFileSync("python3", [script, join(root, "docs/sbe"), VECTORS], { encoding: "utf8" });
    expect(output).toBe(`${vectors.length}\n`);
  });

  test("is decoded and encoded by C, which reads no byte outside a damaged one", ({ skip }) => {
    if (spawnSync("cc", ["--version"]).error !== undefined) skip("cc is missing");
    const folder = mkdtempSync(join(tmpdir(), "sbe-"));
    try {
      const [source, program] = [join(folder, "check.c"), join(folder, "check")];
      writeFileSync(source, checkProgram(schema, vectors));
      const warnings = ["-std=c99", "-Wall", "-Wextra", "-Wpedantic", "-Werror"];
      const compile = (...more: string[]) =>
        spawnSync("cc", [...warnings, ...more, `-I${join(root, "docs/sbe")}`, source, "-o", program], {
          encoding: "utf8",
        });
      // Not every compiler comes with the sanitizers' libraries.
      const isSanitized = compile("-g", "-fsanitize=address,undefined", "-fno-sanitize-recover").status === 0;
      const compiled = isSanitized ? null : compile();
      expect(compiled?.stderr ?? "").toBe("");
      expect(execFileSync(program, { encoding: "utf8" })).toBe(`${vectors.length}\n`);
    } finally {
      rmSync(folder, { recursive: true });
    }
  });
});

const messageOf = ({ template }: Vector): Message => messageNamed(schema, template);
const isRequest = (vector: Vector): boolean => messageOf(vector).id < FIRST_RESPONSE;
const isCurrent = (vector: Vector): boolean =>
  vector.version === schema.version && vector.blockLength === messageOf(vector).length;

function wordsOf({ hex }: Vector): Int32Array {
  const bytes = Buffer.from(hex, "hex");
  return new Int32Array(bytes.buffer.slice(bytes.byteOffset, bytes.byteOffset + bytes.length));
}

type Numbers = Record<string, number>;
type Codec = Record<string, new () => Numbers> & Record<string, (words: Int32Array, at: number, of: Numbers) => void>;

function readLayout(name: string, words: Int32Array, at: number): Numbers {
  const codec = requests as unknown as Codec;
  const into = new codec[name]!();
  codec[`read${name}`]!(words, at, into);
  return { ...into };
}

function writeLayout(name: string, words: Int32Array, at: number, numbers: Numbers): void {
  const codec = responses as unknown as Codec;
  const from = Object.assign(new codec[name]!(), numbers);
  codec[`write${name}`]!(words, at, from);
}

/** A vector's values as the codec has them: null is -1, and numbers of 64 bits that count whole are two words. */
function numbersOf({ fields }: Layout, values: Values): Numbers {
  const numbers: Numbers = {};
  for (const { name, type } of fields) {
    if (type.kind === "padding") continue;
    const value = values[name]!;
    const missing = type.primitive === "int64" ? NULL_MONEY : -1;
    const codes = (words: readonly string[]): number[] => words.map((word) => type.values.get(word)!);
    if (type.name === "ClientOrderId") {
      const words = new Int32Array(new BigUint64Array([BigInt((value ?? "-1") as string)]).buffer);
      numbers[`${name}Low`] = words[0]!;
      numbers[`${name}High`] = words[1]!;
    } else numbers[name] = value === null ? missing : numberOf(value);

    function numberOf(given: NonNullable<Value>): number {
      if (type.kind === "set") return codes(given as readonly string[]).reduce((bits, bit) => bits | (1 << bit), 0);
      return type.kind === "enum" ? codes([given as string])[0]! : Number(given);
    }
  }
  return numbers;
}
