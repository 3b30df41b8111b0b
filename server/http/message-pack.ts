/**
 * MessagePack beside JSON: the same values in both. The only file that imports msgpackr, which reads far more than JSON can
 * express (dates, regular expressions, records with state): no client's bytes reach it unchecked.
 */
import { isUtf8 } from "node:buffer";
// Not the entry "msgpackr": it adds a native string reader, a little faster, which isn't memory-safe on hostile bytes.
import { Packr, Unpackr } from "msgpackr/pack";
import { MAX_MESSAGE_DEPTH } from "./limits.ts";

/** Without records, an extension of msgpackr's own that no other implementation reads. */
const packr = new Packr({ useRecords: false });
const unpackr = new Unpackr({ useRecords: false, int64AsType: "number" });

let lastJson: string | null = null;
let lastBytes: Uint8Array = new Uint8Array(0);

/**
 * Converts a JSON text of ours to MessagePack: integers to integers of up to 64 bits, fractions to float64. Callers with
 * the same text share the bytes: read them only. Nothing overwrites them.
 */
export function encodeJson(json: string): Uint8Array {
  // The same message often goes to many sockets in a row.
  if (json === lastJson) return lastBytes;
  // `pack` returns slices of a buffer that it fills once, so they keep their content.
  lastBytes = packr.pack(withWideIntegers(JSON.parse(json)));
  lastJson = json;
  return lastBytes;
}

/** Turns integers beyond 32 bits into BigInts, in place: msgpackr writes such numbers as floats, which typed clients reject. */
function withWideIntegers(value: unknown): unknown {
  if (typeof value === "number") return isWide(value) ? BigInt(value) : value;
  if (typeof value !== "object" || value === null) return value;
  if (Array.isArray(value)) {
    for (let i = 0; i < value.length; i++) value[i] = withWideIntegers(value[i]);
    return value;
  }
  const object = value as Record<string, unknown>;
  for (const key in object) {
    const field = object[key];
    if (typeof field === "number" ? isWide(field) : typeof field === "object") object[key] = withWideIntegers(field);
  }
  return value;
}

function isWide(value: number): boolean {
  return (value > 0xffff_ffff || value < -0x8000_0000) && Number.isSafeInteger(value);
}

/**
 * Decodes a client's message: values that JSON can hold, NaN and infinite numbers. Rounds integers beyond 2^53.
 * @throws Error on anything else: malformed or trailing bytes, malformed UTF-8, binary values, extensions, keys that
 *   aren't strings, `__proto__`, too deep nesting
 */
export function decodeMessage(bytes: Uint8Array): unknown {
  check(bytes);
  return unpackr.unpack(bytes);
}

const Kind = { rejected: 0, scalar: 1, string: 2, array: 3, map: 4 } as const;
type Kind = (typeof Kind)[keyof typeof Kind];

/** By first byte: the kind of value, and the bytes that its number or its length takes after the first. */
const KINDS = new Uint8Array(256);
const WIDTHS = new Uint8Array(256);

function define(kind: Kind, from: number, to: number, ...widths: readonly number[]): void {
  KINDS.fill(kind, from, to + 1);
  for (const [i, width] of widths.entries()) WIDTHS[from + i] = width;
}

define(Kind.scalar, 0x00, 0x7f); // 7-bit integers
define(Kind.map, 0x80, 0x8f);
define(Kind.array, 0x90, 0x9f);
define(Kind.string, 0xa0, 0xbf);
define(Kind.scalar, 0xc0, 0xc0); // null
define(Kind.scalar, 0xc2, 0xc3); // false, true
define(Kind.scalar, 0xca, 0xd3, 4, 8, 1, 2, 4, 8, 1, 2, 4, 8); // float 32, 64; uint 8 .. 64; int 8 .. 64
define(Kind.string, 0xd9, 0xdb, 1, 2, 4);
define(Kind.array, 0xdc, 0xdd, 2, 4);
define(Kind.map, 0xde, 0xdf, 2, 4);
define(Kind.scalar, 0xe0, 0xff); // negative 5-bit integers

/** The open containers: the values still to read in each, keys included, and whether it is a map. */
const left = new Int32Array(MAX_MESSAGE_DEPTH + 1);
const isMap = new Uint8Array(MAX_MESSAGE_DEPTH + 1);

/**
 * Scans a message without allocating. A message that passes is complete: the decoder neither runs past its end nor
 * allocates more values than there are bytes.
 */
function check(bytes: Uint8Array): void {
  let at = 0;
  let depth = 0;
  left[0] = 1;
  while (true) {
    let values = left[depth] ?? 0;
    while (values === 0 && depth > 0) values = left[--depth] ?? 0;
    if (values === 0) break;
    const token = bytes[at++];
    if (token === undefined) throw truncated();
    const isKey = isMap[depth] === 1 && values % 2 === 0;
    left[depth] = values - 1;

    const kind = KINDS[token];
    const width = WIDTHS[token] ?? 0;
    if (kind === Kind.rejected)
      throw new Error(`MessagePack of type 0x${token.toString(16)} is not representable in JSON`);
    if (isKey && kind !== Kind.string) throw new Error("a key is not a string");
    if (width > bytes.length - at) throw truncated();
    if (kind === Kind.scalar) {
      at += width;
      continue;
    }

    const length = width === 0 ? token & (kind === Kind.string ? 0x1f : 0x0f) : readLength(bytes, at, width);
    at += width;
    if (kind === Kind.string) {
      checkString(bytes, at, length, isKey);
      at += length;
      continue;
    }
    values = kind === Kind.map ? 2 * length : length;
    if (values > bytes.length - at) throw truncated();
    if (depth === MAX_MESSAGE_DEPTH) throw new Error(`nested deeper than ${MAX_MESSAGE_DEPTH}`);
    depth++;
    left[depth] = values;
    isMap[depth] = kind === Kind.map ? 1 : 0;
  }
  if (at !== bytes.length) throw new Error("bytes after the end of the message");
}

function truncated(): Error {
  return new Error("the message is cut short");
}

function readLength(bytes: Uint8Array, at: number, width: number): number {
  let length = 0;
  for (let i = 0; i < width; i++) length = length * 256 + (bytes[at + i] ?? 0);
  return length;
}

const PROTO = Buffer.from("__proto__");

/** Given malformed UTF-8, msgpackr reads past the string's end and caches such keys across messages. */
function checkString(bytes: Uint8Array, at: number, length: number, isKey: boolean): void {
  if (length > bytes.length - at) throw truncated();
  const end = at + length;
  let i = at;
  while (i < end && (bytes[i] ?? 0) < 0x80) i++;
  if (i < end && !isUtf8(bytes.subarray(at, end))) throw new Error("a string is not UTF-8");
  if (isKey && length === PROTO.length && PROTO.equals(bytes.subarray(at, end))) throw new Error("a key is __proto__");
}
