/**
 * The layout of a batch in the log: what one commit makes durable, and the only place that knows its offsets. The log stage
 * writes batches (append.ts); the projector, `resume`, the archives and docs/log.md's script read them. Never reads a ring.
 *
 * Little-endian. Doubles hold integers below 2^53.
 *
 *   byte  0        4        8        16       24         32           40         48        52        56        60      64..95
 *         magic    version  batch    at, ms   before     last entry   exchange   records   texts,    writes,   flags   SHA-256 of the
 *         u32      u32      f64      f64      f64        f64          f64        u32       bytes u32 bytes u32 u32     previous body
 *
 *   96      records: 64 bytes each, the engines' events as the gateway reads them (ring/records.ts), one ring after the other
 *   then    texts: of each orderPlaced that has one, in the records' order
 *             if its time was raised   f64 placed at, ms
 *             with FLAG_TEXT           f64 fingerprint, u8 and u8 lengths, then the client order id and the builder code in ASCII
 *   then    writes: of each request u32 bytes, then a LoggedRequest in MessagePack
 *
 *   batch       its number: rises by 1
 *   at          when it was appended; never falls
 *   before      records in the log before this batch
 *   last entry  the number of the last fill or ledger entry before this batch
 *   exchange    a random number that exchange.db has too
 *   flags       1: the first batch since a start: slots and correlation ids begin again
 *
 * A batch numbers the entries of its requests first, in their order, then those of its events.
 */
import { hash } from "node:crypto";
import type { EngineEvent } from "../ring/engine-event.ts";
import * as R from "../ring/records.ts";
import { assert } from "../util/assert.ts";
import { BrokenLog } from "./broken-log.ts";

const MAGIC = 0x474f4c58;
const FORMAT_VERSION = 1;
export const HEADER_BYTES = 96;
export const FLAG_STARTED = 1;
/** The length of a hash. */
export const HASH_BYTES = 32;
/** Records of a block, the unit in which update_index finds order updates. */
export const BLOCK_RECORDS = 2 ** 14;

const AT_VERSION = 4;
const AT_BATCH = 8;
const AT_AT = 16;
const AT_RECORDS_BEFORE = 24;
const AT_LAST_ENTRY = 32;
const AT_EXCHANGE = 40;
const AT_RECORDS = 48;
const AT_TEXTS = 52;
const AT_WRITES = 56;
const AT_FLAGS = 60;
const AT_PREVIOUS = 64;

/** How the layout's constants relate. Called once at startup. */
export function assertBatchLayout(): void {
  assert(AT_VERSION === 4 && AT_BATCH === AT_VERSION + 4, "the version follows the magic");
  const doubles = [AT_BATCH, AT_AT, AT_RECORDS_BEFORE, AT_LAST_ENTRY, AT_EXCHANGE, AT_RECORDS];
  assert(
    doubles.every((at, i) => at === AT_BATCH + 8 * i && at % 8 === 0),
    "the header's doubles follow each other, aligned",
  );
  const words = [AT_RECORDS, AT_TEXTS, AT_WRITES, AT_FLAGS, AT_PREVIOUS];
  assert(
    words.every((at, i) => at === AT_RECORDS + 4 * i),
    "the header's words follow each other",
  );
  assert(HEADER_BYTES === AT_PREVIOUS + HASH_BYTES, "the hash ends the header");
  assert(HEADER_BYTES % 8 === 0 && R.RECORD_BYTES % 8 === 0, "records lie aligned in a body that does");
  assert(HASH_BYTES === 32, "a SHA-256 has 32 bytes");
  assert(Number.isInteger(Math.log2(BLOCK_RECORDS)), "a block is a power of two");
}

/** True for what a header's doubles hold. */
const isCount = (value: number): boolean => Number.isSafeInteger(value) && value >= 0;

export interface BatchHeader {
  readonly batch: number;
  /** ms */
  readonly at: number;
  /** Records in the log before this batch. */
  readonly recordsBefore: number;
  readonly lastEntry: number;
  readonly exchange: number;
  readonly records: number;
  /** Bytes. */
  readonly texts: number;
  readonly writes: number;
  readonly flags: number;
}

/** The block of a batch, by the number of records before it. */
export const blockOf = (recordsBefore: number): number => Math.floor(recordsBefore / BLOCK_RECORDS);

/** The SHA-256 of a body. */
export const hashOf = (body: Buffer): Buffer => hash("sha256", body, "buffer");

/** The length of a body, bytes. */
export const bodyBytes = ({ records, texts, writes }: Pick<BatchHeader, "records" | "texts" | "writes">): number =>
  HEADER_BYTES + records * R.RECORD_BYTES + texts + writes;

/** Writes the header of `body`, which its other parts follow. @param previous the hash of the previous body */
export function writeHeader(body: Buffer, header: BatchHeader, previous: Buffer): void {
  assert(header.batch > 0 && Number.isSafeInteger(header.batch), "batches are numbered from 1");
  assert(
    isCount(header.recordsBefore) && isCount(header.lastEntry) && isCount(header.at),
    "a header holds whole numbers",
  );
  assert(previous.length === HASH_BYTES, "a body names the hash of the one before");
  assert(body.length >= bodyBytes(header), "the body has room for its parts");
  body.writeUInt32LE(MAGIC, 0);
  body.writeUInt32LE(FORMAT_VERSION, AT_VERSION);
  body.writeDoubleLE(header.batch, AT_BATCH);
  body.writeDoubleLE(header.at, AT_AT);
  body.writeDoubleLE(header.recordsBefore, AT_RECORDS_BEFORE);
  body.writeDoubleLE(header.lastEntry, AT_LAST_ENTRY);
  body.writeDoubleLE(header.exchange, AT_EXCHANGE);
  body.writeUInt32LE(header.records, AT_RECORDS);
  body.writeUInt32LE(header.texts, AT_TEXTS);
  body.writeUInt32LE(header.writes, AT_WRITES);
  body.writeUInt32LE(header.flags, AT_FLAGS);
  previous.copy(body, AT_PREVIOUS, 0, HASH_BYTES);
}

/** @throws BrokenLog if the body isn't a batch of this format, or is cut short */
export function readHeader(body: Buffer): BatchHeader {
  if (body.length < HEADER_BYTES || body.readUInt32LE(0) !== MAGIC) throw new BrokenLog("not a batch of the log");
  const version = body.readUInt32LE(AT_VERSION);
  if (version !== FORMAT_VERSION) {
    throw new BrokenLog(`the log has format ${version}, this program reads format ${FORMAT_VERSION}`);
  }
  const header = {
    batch: body.readDoubleLE(AT_BATCH),
    at: body.readDoubleLE(AT_AT),
    recordsBefore: body.readDoubleLE(AT_RECORDS_BEFORE),
    lastEntry: body.readDoubleLE(AT_LAST_ENTRY),
    exchange: body.readDoubleLE(AT_EXCHANGE),
    records: body.readUInt32LE(AT_RECORDS),
    texts: body.readUInt32LE(AT_TEXTS),
    writes: body.readUInt32LE(AT_WRITES),
    flags: body.readUInt32LE(AT_FLAGS),
  };
  if (bodyBytes(header) !== body.length) throw new BrokenLog(`batch ${header.batch} is cut short`);
  return header;
}

/** The hash of the previous body, as the body contains it. */
export const previousHash = (body: Buffer): Buffer => body.subarray(AT_PREVIOUS, AT_PREVIOUS + HASH_BYTES);

/** The records as words and as doubles; record `i` begins at word `i * 16`. */
export interface Records {
  readonly words: Int32Array;
  readonly doubles: Float64Array;
  readonly count: number;
}

/** Copies the body only if it lies unaligned in memory. */
export function recordsOf(body: Buffer, { records: count }: Pick<BatchHeader, "records">): Records {
  const bytes = count * R.RECORD_BYTES;
  assert(HEADER_BYTES + bytes <= body.length, "records end within their batch");
  const isAligned = (body.byteOffset + HEADER_BYTES) % 8 === 0;
  const [buffer, at] = isAligned
    ? [body.buffer, body.byteOffset + HEADER_BYTES]
    : [new Uint8Array(body.subarray(HEADER_BYTES, HEADER_BYTES + bytes)).buffer, 0];
  return {
    words: new Int32Array(buffer, at, count * R.RECORD_WORDS),
    doubles: new Float64Array(buffer, at, count * R.RECORD_DOUBLES),
    count,
  };
}

/** The text of an order, or its absence. */
export interface OrderText {
  /** ms; null if the record has the time. */
  readonly placedAt: number | null;
  readonly clientOrderId: string | null;
  readonly builderCode: string | null;
  readonly fingerprint: number;
}

const NO_TEXT: OrderText = { placedAt: null, clientOrderId: null, builderCode: null, fingerprint: 0 };

/** Reads the texts of a batch one by one, in the order of its orderPlaced records. */
export class TextReader {
  private body: Buffer;
  private at = 0;

  constructor(body: Buffer, header: Pick<BatchHeader, "records">) {
    this.body = body;
    this.at = HEADER_BYTES + header.records * R.RECORD_BYTES;
  }

  /** The text of an orderPlaced. Must be called for each of them. */
  next({ hasText, isRaised }: EngineEvent): OrderText {
    if (!hasText && !isRaised) return NO_TEXT;
    const placedAt = isRaised ? this.double() : null;
    if (!hasText) return { ...NO_TEXT, placedAt };
    const fingerprint = this.double();
    const idLength = this.body[this.at++]!;
    const codeLength = this.body[this.at++]!;
    const clientOrderId = this.text(idLength);
    return { placedAt, fingerprint, clientOrderId, builderCode: this.text(codeLength) };
  }

  /** Skips a text like `next`; returns when the order was placed if that isn't the record's time, else 0. ms */
  skip({ hasText, isRaised }: EngineEvent): number {
    const placedAt = isRaised ? this.double() : 0;
    if (hasText) this.at += 10 + this.body[this.at + 8]! + this.body[this.at + 9]!;
    return placedAt;
  }

  private double(): number {
    this.at += 8;
    assert(this.at <= this.body.length, "a text ends within its batch");
    return this.body.readDoubleLE(this.at - 8);
  }

  private text(length: number): string | null {
    this.at += length;
    assert(this.at <= this.body.length, "a text ends within its batch");
    return length === 0 ? null : this.body.toString("latin1", this.at - length, this.at);
  }
}

/** The requests of a batch, each in MessagePack. */
export function* requestsOf(body: Buffer, header: BatchHeader): Generator<Buffer> {
  let at = HEADER_BYTES + header.records * R.RECORD_BYTES + header.texts;
  while (at < body.length) {
    const length = body.readUInt32LE(at);
    at += 4;
    assert(at + length <= body.length, "a request ends within its batch");
    yield body.subarray(at, at + length);
    at += length;
  }
}
