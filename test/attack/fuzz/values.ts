/**
 * Values that an attacker would send: numbers at the edges, texts of every script and language of injection,
 * names that objects have anyway, nesting without end. As trees whose objects may have a name twice and whose numbers
 * are written as they were chosen, in JSON and in MessagePack. Knows nothing of routes.
 */
import type { Random } from "../../support/random.ts";

/** The raw form of a value in each encoding, for values that the tree can't express. */
export class Exact {
  readonly json: string;
  readonly packed: Buffer;

  constructor(json: string, packed: Buffer) {
    this.json = json;
    this.packed = packed;
  }
}

/** An object, of whose names some may be the same. */
export class Fields {
  readonly pairs: [name: string, value: Tree][];

  constructor(pairs: [name: string, value: Tree][]) {
    this.pairs = pairs;
  }
}

export type Tree = null | boolean | number | string | Exact | Fields | Tree[];

function float64(value: number): Buffer {
  const bytes = Buffer.alloc(9, 0xcb);
  bytes.writeDoubleBE(value, 1);
  return bytes;
}

function int64(token: number, value: bigint): Buffer {
  const bytes = Buffer.alloc(9, token);
  bytes.writeBigUInt64BE(BigInt.asUintN(64, value), 1);
  return bytes;
}

const number = (json: string): Exact => new Exact(json, float64(Number(json)));
const integer = (json: string): Exact => new Exact(json, int64(json.startsWith("-") ? 0xd3 : 0xcf, BigInt(json)));

const EDGE_NUMBERS: readonly Exact[] = [
  ...["0", "1", "2", "3", "-1", "127", "128", "255", "256", "65535", "65536", "9999", "10000", "10001"].map(integer),
  ...["1000000000", "1000000001", "2147483647", "2147483648", "-2147483648", "4294967295", "4294967296"].map(integer),
  ...["8000000000000000", "9007199254740991", "9007199254740992", "9007199254740993"].map(integer),
  ...["9223372036854775807", "-9223372036854775808", "18446744073709551615"].map(integer),
  ...["-0", "0.5", "1.0", "1e2", "1E+2", "0.1", "1e400", "-1e400", "1e-400", "5e-324", "1.7976931348623157e308"].map(
    number,
  ),
  ...["4200.0000000000001", "1e21", "123456789012345678901234567890"].map(number),
  ...["NaN", "Infinity", "-Infinity", "01", "+1", ".5", "1.", "0x10", "1_000", "1n", "\u0661"].map(number),
];

const INJECTIONS: readonly string[] = [
  ..."' OR '1'='1|'; DROP TABLE users; --|1; DELETE FROM orders|\") UNION SELECT token FROM pats --|%' ESCAPE '%|NEAR(a b)".split(
    "|",
  ),
  ...'"a" AND *|a* OR b|{x}: y|^a|-a|col:a|\u0000|a\u0000b|$(id)|`id`|| id|; id|$\u007b7*7}|{{7*7}}|#{7*7}|<%= 7*7 %>|%s%n%x'.split(
    "|",
  ),
  ..."<script>alert(1)</script>|<img src=x onerror=alert(1)>|javascript:alert(1)|=cmd|+1|@SUM(1)|\u202ereversed".split(
    "|",
  ),
  ..."../../etc/passwd|..\\..\\windows|/etc/passwd\u0000.png|file:///etc/passwd|C:\\|%2e%2e%2f|....//|~root|//evil.example".split(
    "|",
  ),
  ..."a\r\nSet-Cookie: x=1|a\nb|\r\n\r\nHTTP/1.1 200 OK|__proto__|constructor|prototype|toString|null|undefined|true|[object Object]".split(
    "|",
  ),
  ...'nobody@example.com|fuzz0@example.com|a@b\r\nBcc: c@d|"a b"@example.com|a@[127.0.0.1]|http://127.0.0.1:22/|gopher://x'.split(
    "|",
  ),
];

const SCRIPTS: readonly string[] = [
  ...[
    "\ud800",
    "\udc00",
    "a\udfff\ud800b",
    "\ufeff",
    "\ufeffa",
    "\ufffd",
    "\uffff",
    "\u200b",
    "\u200d",
    "\u00ad",
    "\u2028",
  ],
  ...["e\u0301", "\u00e9", "\ufb01", "\u212b", "\u00c5", "A\u030a", "\u1e9e", "\u0130", "\u0131", "\uff21", "\u2460"],
  ...[
    "\u202e\u0645",
    "\u05d0\u05d1",
    "\u0e01\u0e33",
    "\u0939\u093f",
    "\u4e2d\u6587",
    "\ud83d\ude00",
    "\ud83d\udc68\u200d\ud83d\udc69",
  ],
  ...[
    "\u0301".repeat(60),
    `a${"\u0300".repeat(200)}`,
    "\u{10ffff}",
    "\u{e0041}",
    "\u0001",
    "\u007f",
    "\u0085",
    "\u00a0",
    " ",
    "\t",
  ],
];

/** Names that every object has, and others with a meaning in some library. */
export const NAMES: readonly string[] = [
  ...["__proto__", "constructor", "prototype", "hasOwnProperty", "toString", "valueOf", "toJSON", "then", "length"],
  ...["", " ", "\u0000", "id", "op", "user_id", "role", "kyc_tier", "admin", "balance", "$where", "$gt", "a.b", "a[b]"],
];

/** What makes a careless pattern go over it again and again. */
const SLOW_PATTERNS: readonly ((length: number) => string)[] = [
  (length) => "a".repeat(length),
  (length) => `${"a-".repeat(length >> 1)}!`,
  (length) => `${"a ".repeat(length >> 1)}\n`,
  (length) => `a@${"a.".repeat(length >> 1)}`,
  (length) => `a@${"a-".repeat(length >> 1)}_`,
  (length) => " ".repeat(length),
  (length) => "\u00e9".repeat(length >> 1),
];

export function hostileText(random: Random): string {
  const kind = random.integer(0, 9);
  if (kind < 4) return random.pick(INJECTIONS);
  if (kind < 7) return random.pick(SCRIPTS) + (random.chance(0.3) ? random.pick(SCRIPTS) : "");
  if (kind < 8) return random.pick(SLOW_PATTERNS)(random.pick([64, 65, 129, 255, 1_025, 4_097, 20_000]));
  if (kind < 9)
    return Array.from({ length: random.integer(0, 12) }, () => String.fromCharCode(random.integer(0, 0xffff))).join("");
  return random.pick(EDGE_NUMBERS).json;
}

/** Bytes that are no value of JSON's: binary, extensions, dates, times two kinds of never used, sizes beyond the end. */
const PACKED_ONLY: readonly string[] = [
  ...["c1", "c403616263", "c7ff00", "d4010a", "d6ff00000000", "d7ff0000000000000000", "c70cff000000000000000000000000"],
  ...["dfffffffff", "ddffffffff", "dbffffffff", "c6ffffffff", "deffff", "dcffff", "d9ff61", "81c001", "8101a161"],
  ...["d47261", "d8720000000000000000000000000000000000", "a2c328", "a1ff", "cb7ff8000000000000", "ca7f800000", "d3"],
];

/** Any value at all. @param depth how many levels it may have */
export function hostileValue(random: Random, depth = 3): Tree {
  const kind = random.integer(0, 13);
  if (kind < 4) return random.pick(EDGE_NUMBERS);
  if (kind < 7) return hostileText(random);
  if (kind < 8) return random.pick([null, true, false]);
  if (kind < 9)
    return new Exact(
      random.pick(["undefined", "'a'", "", "//", '"\\ud800"', '"\\u0000"', '"\\x"', '"\t"']),
      Buffer.from(random.pick(PACKED_ONLY), "hex"),
    );
  if (kind < 10) return nested(random);
  if (kind < 11) return Array.from({ length: random.pick([0, 1, 51, 101, 1_001, 4_000]) }, () => null);
  if (depth === 0) return [];
  if (kind < 12) return Array.from({ length: random.integer(0, 3) }, () => hostileValue(random, depth - 1));
  return new Fields(
    Array.from({ length: random.integer(0, 4) }, () => [random.pick(NAMES), hostileValue(random, depth - 1)]),
  );
}

function nested(random: Random): Exact {
  const depth = random.pick([31, 32, 33, 500, 5_000, 30_000]);
  if (random.chance(0.5)) return new Exact("[".repeat(depth) + "]".repeat(depth), Buffer.alloc(depth + 1, 0x91));
  const name = '{"a":';
  return new Exact(`${name.repeat(depth)}1${"}".repeat(depth)}`, Buffer.from(`${"81a161".repeat(depth)}01`, "hex"));
}

/** Returns a copy of the tree with one change. */
export function mutated(random: Random, tree: Tree): Tree {
  if (tree instanceof Fields && tree.pairs.length > 0 && !random.chance(0.05)) return mutatedFields(random, tree);
  if (Array.isArray(tree) && tree.length > 0 && !random.chance(0.1)) {
    const at = random.integer(0, tree.length - 1);
    if (random.chance(0.7)) return tree.with(at, mutated(random, tree[at]!));
    return random.chance(0.5) ? tree.toSpliced(at, 1) : tree.toSpliced(at, 0, tree[at]!);
  }
  return hostileValue(random);
}

function mutatedFields(random: Random, { pairs }: Fields): Fields {
  const at = random.integer(0, pairs.length - 1);
  const [name, value] = pairs[at]!;
  const kind = random.integer(0, 9);
  if (kind < 5) return new Fields(pairs.with(at, [name, mutated(random, value)]));
  if (kind < 6) return new Fields(pairs.toSpliced(at, 1));
  if (kind < 7) return new Fields([...pairs, [random.pick(NAMES), hostileValue(random)]]);
  if (kind < 8) return new Fields([...pairs, [name, random.chance(0.5) ? value : hostileValue(random)]]);
  if (kind < 9)
    return new Fields(
      pairs.with(at, [random.pick([name.toUpperCase(), `${name} `, `\ufeff${name}`, hostileText(random)]), value]),
    );
  return new Fields(pairs.with(at, [name, hostileValue(random)]));
}

export function toJson(tree: Tree): string {
  if (tree instanceof Exact) return tree.json;
  if (tree instanceof Fields)
    return `{${tree.pairs.map(([name, value]) => `${JSON.stringify(name)}:${toJson(value)}`).join(",")}}`;
  if (Array.isArray(tree)) return `[${tree.map(toJson).join(",")}]`;
  return JSON.stringify(tree);
}

export function toMessagePack(tree: Tree): Buffer {
  if (tree instanceof Exact) return tree.packed;
  if (tree instanceof Fields) {
    const parts = tree.pairs.flatMap(([name, value]) => [toMessagePack(name), toMessagePack(value)]);
    return Buffer.concat([sized(0xde, tree.pairs.length), ...parts]);
  }
  if (Array.isArray(tree)) return Buffer.concat([sized(0xdc, tree.length), ...tree.map(toMessagePack)]);
  if (tree === null) return Buffer.from([0xc0]);
  if (typeof tree === "boolean") return Buffer.from([tree ? 0xc3 : 0xc2]);
  if (typeof tree === "number") return int64(0xd3, BigInt(tree));
  const text = Buffer.from(tree);
  return Buffer.concat([sized(0xda, text.length), text]);
}

/** A token with a length of two bytes behind it. */
function sized(token: number, length: number): Buffer {
  return Buffer.from([token, (length >> 8) & 0xff, length & 0xff]);
}
