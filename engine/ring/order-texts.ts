/**
 * The texts of orders, in memory that the gateway and the log stage share: the client order id with the fingerprint of its
 * request body, and the builder code. An order whose record lacks FLAG_TEXT has none.
 *
 * The gateway writes a slot before it publishes the placement, and reuses the slot only after the order's last event is
 * committed. The log stage reads it while it owns the orderPlaced record. So each slot has one writer, and the rings'
 * cursors hand it over. The operating system backs only pages that are touched.
 *
 *   72 bytes per slot                  0..63                              64..71
 *                                      client order id, ASCII, ends at    fingerprint (double 8)
 *                                      a 0; or NUMBER, 7 bytes, and a
 *                                      number (double 1)
 *   then, mostly untouched,            0..31
 *   32 bytes per slot                  builder code, ASCII, ends at a 0
 */
import { MAX_BUILDER_CODE_LENGTH, MAX_CLIENT_ORDER_ID_LENGTH } from "../limits.ts";

const FINGERPRINT_AT = MAX_CLIENT_ORDER_ID_LENGTH;
const SLOT_BYTES = FINGERPRINT_AT + 8;
/** The most bytes that `copy` writes. */
export const MAX_TEXT_BYTES = 10 + MAX_CLIENT_ORDER_ID_LENGTH + MAX_BUILDER_CODE_LENGTH;

/** Stands for the first character of a client order id that is a number. */
const NUMBER = 1;
const NUMBER_AT = 8;
/** A part of a number that the processor divides as an integer. */
const PART = 100_000_000;
const PART_DIGITS = 8;

/** A client order id: a text, or a number below 10^15, which stands for the text of its digits. */
export type ClientOrderId = string | number;

/** Client order ids that are kept as numbers are below it: exact, and with digits in two parts. */
export const NUMERIC_IDS = 1e15;

/** Digits of NUMERIC_IDS, which is not below itself. */
const TOO_MANY_DIGITS = 16;
const ZERO = 48;

/** The numeric id whose digits a text is, without leading zeros; -1 for any other text. */
export function numericIdOf(text: string): number {
  if (text.length >= TOO_MANY_DIGITS || text.length === 0 || (text.length > 1 && text.charCodeAt(0) === ZERO))
    return -1;
  let number = 0;
  for (let i = 0; i < text.length; i++) {
    const digit = text.charCodeAt(i) - ZERO;
    if (digit < 0 || digit > 9) return -1;
    number = number * 10 + digit;
  }
  return number;
}

function digitsOf(number: number): number {
  let digits = 1;
  for (let limit = 10; number >= limit; limit *= 10) digits++;
  return digits;
}

/** @returns the first byte behind the digits */
function writeDigits(target: Buffer, at: number, number: number, digits: number): number {
  const upper = Math.floor(number / PART);
  let part = number - upper * PART;
  for (let i = digits - 1; i >= 0; i--) {
    if (digits - 1 - i === PART_DIGITS) part = upper;
    const rest = Math.floor(part / 10);
    target[at + i] = ZERO + part - rest * 10;
    part = rest;
  }
  return at + digits;
}

export class OrderTexts {
  readonly buffer: SharedArrayBuffer;
  private readonly bytes: Buffer;
  private readonly doubles: Float64Array;
  /** The offset of the builder codes. */
  private readonly codesAt: number;

  /** @param source the largest slot, or another thread's memory */
  constructor(source: number | SharedArrayBuffer) {
    const bytes = SLOT_BYTES + MAX_BUILDER_CODE_LENGTH;
    this.buffer = typeof source === "number" ? new SharedArrayBuffer((source + 1) * bytes) : source;
    this.codesAt = (this.buffer.byteLength / bytes) * SLOT_BYTES;
    this.bytes = Buffer.from(this.buffer);
    this.doubles = new Float64Array(this.buffer);
  }

  /**
   * @param clientOrderId 1..64 ASCII characters, or a number below 10^15 @param builderCode 1..32 characters
   * @param fingerprint 0 without client order id
   */
  write(slot: number, clientOrderId: ClientOrderId | null, builderCode: string | null, fingerprint: number): void {
    const base = slot * SLOT_BYTES;
    if (typeof clientOrderId === "number") {
      this.bytes[base] = NUMBER;
      this.doubles[(base + NUMBER_AT) / 8] = clientOrderId;
    } else this.writeText(base, clientOrderId ?? "", MAX_CLIENT_ORDER_ID_LENGTH);
    const code = this.codesAt + slot * MAX_BUILDER_CODE_LENGTH;
    // Reading an untouched page costs no memory.
    if (builderCode !== null || this.bytes[code] !== 0)
      this.writeText(code, builderCode ?? "", MAX_BUILDER_CODE_LENGTH);
    this.doubles[(base + FINGERPRINT_AT) / 8] = fingerprint;
  }

  /** Gives the slot the texts of another memory's slot. */
  take(slot: number, other: OrderTexts, from: number): void {
    const [to, at] = [(slot * SLOT_BYTES) / 8, (from * SLOT_BYTES) / 8];
    for (let i = 0; i < SLOT_BYTES / 8; i++) this.doubles[to + i] = other.doubles[at + i]!;
    const code = this.codesAt + slot * MAX_BUILDER_CODE_LENGTH;
    const source = other.codesAt + from * MAX_BUILDER_CODE_LENGTH;
    // Reading an untouched page costs no memory.
    if (other.bytes[source] === 0 && this.bytes[code] === 0) return;
    other.bytes.copy(this.bytes, code, source, source + MAX_BUILDER_CODE_LENGTH);
  }

  clientOrderId(slot: number): ClientOrderId | null {
    const base = slot * SLOT_BYTES;
    if (this.bytes[base] === NUMBER) return this.doubles[(base + NUMBER_AT) / 8]!;
    return this.readText(base, MAX_CLIENT_ORDER_ID_LENGTH);
  }

  builderCode(slot: number): string | null {
    return this.readText(this.codesAt + slot * MAX_BUILDER_CODE_LENGTH, MAX_BUILDER_CODE_LENGTH);
  }

  /**
   * Copies the slot's texts to `target` from `at` on: fingerprint (double), lengths (two bytes), client order id, builder code.
   * A number becomes its digits: the log and the tables have texts alone.
   * @returns the first byte behind them
   */
  copy(slot: number, target: Buffer, at: number): number {
    const base = slot * SLOT_BYTES;
    const code = this.codesAt + slot * MAX_BUILDER_CODE_LENGTH;
    const isNumber = this.bytes[base] === NUMBER;
    const number = isNumber ? this.doubles[(base + NUMBER_AT) / 8]! : 0;
    const idLength = isNumber ? digitsOf(number) : this.lengthOf(base, MAX_CLIENT_ORDER_ID_LENGTH);
    const codeLength = this.lengthOf(code, MAX_BUILDER_CODE_LENGTH);
    this.bytes.copy(target, at, base + FINGERPRINT_AT, base + FINGERPRINT_AT + 8);
    target[at + 8] = idLength;
    target[at + 9] = codeLength;
    let end = at + 10;
    if (isNumber) end = writeDigits(target, end, number, idLength);
    else for (let i = 0; i < idLength; i++) target[end++] = this.bytes[base + i]!;
    for (let i = 0; i < codeLength; i++) target[end++] = this.bytes[code + i]!;
    return end;
  }

  fingerprint(slot: number): number {
    return this.doubles[(slot * SLOT_BYTES + FINGERPRINT_AT) / 8]!;
  }

  private writeText(base: number, text: string, room: number): void {
    for (let i = 0; i < text.length; i++) this.bytes[base + i] = text.charCodeAt(i);
    if (text.length < room) this.bytes[base + text.length] = 0;
  }

  private readText(base: number, room: number): string | null {
    const length = this.lengthOf(base, room);
    return length === 0 ? null : this.bytes.toString("latin1", base, base + length);
  }

  private lengthOf(base: number, room: number): number {
    let length = 0;
    while (length < room && this.bytes[base + length] !== 0) length++;
    return length;
  }
}
