/**
 * Single-producer, single-consumer rings of 64-byte records on SharedArrayBuffer. How a thread waits: waker.ts.
 *
 * A ring has one producer and up to two consumers in sequence: a gating stage, which reads published records and moves
 * the limit (the log's committed cursor), and the last consumer, which reads up to the limit and frees the records.
 * Cursors are int32 counts of records that wrap; only their differences have a meaning. They are 128 bytes apart, and each has
 * one writer. Payload is written with plain stores and handed over by one atomic store of a cursor.
 *
 *   word    0           32         64               96
 *           published   limit      consumed         passed: read by the log, whether or not its limit has moved
 *           producer    log        last consumer    log
 *
 * No end of a ring is safe for use from more than one thread.
 */
import { assert } from "../util/assert.ts";
import { RECORD_BYTES, RECORD_DOUBLES, RECORD_WORDS } from "./records.ts";

const CURSOR_PUBLISHED = 0;
const CURSOR_LIMIT = 32;
const CURSOR_CONSUMED = 64;
const CURSOR_PASSED = 96;
const HEADER_BYTES = 512;

/** The memory from which a thread opens its end of a ring. */
export interface RingMemory {
  readonly buffer: SharedArrayBuffer;
  readonly records: number;
}

/** @param records capacity, a power of two */
export function createRing(records: number): RingMemory {
  assert(records >= 2 && (records & (records - 1)) === 0, "a ring's capacity is a power of two");
  return { buffer: new SharedArrayBuffer(HEADER_BYTES + records * RECORD_BYTES), records };
}

/** How the cursors lie. Called once at startup. */
export function assertRingLayout(): void {
  assert(CURSOR_LIMIT - CURSOR_PUBLISHED >= 32 && CURSOR_CONSUMED - CURSOR_LIMIT >= 32, "cursors are 128 bytes apart");
  assert(CURSOR_PASSED - CURSOR_CONSUMED >= 32, "cursors are 128 bytes apart");
  assert(4 * CURSOR_PASSED < HEADER_BYTES && HEADER_BYTES % RECORD_BYTES === 0, "records begin after the cursors");
}

class RingEnd {
  /** The record at cursor `c` starts at word `(c & mask) * 16` and double `(c & mask) * 8`. */
  readonly words: Int32Array;
  readonly doubles: Float64Array;
  readonly mask: number;
  protected readonly cursors: Int32Array;

  constructor(memory: RingMemory) {
    this.cursors = new Int32Array(memory.buffer, 0, HEADER_BYTES / 4);
    this.words = new Int32Array(memory.buffer, HEADER_BYTES, memory.records * RECORD_WORDS);
    this.doubles = new Float64Array(memory.buffer, HEADER_BYTES, memory.records * RECORD_DOUBLES);
    this.mask = memory.records - 1;
  }
}

export class RingProducer extends RingEnd {
  /** The next record to write. Its owner advances it and calls `publish` once a batch. */
  head: number;
  private consumed: number;

  constructor(memory: RingMemory) {
    super(memory);
    this.head = Atomics.load(this.cursors, CURSOR_PUBLISHED);
    this.consumed = Atomics.load(this.cursors, CURSOR_CONSUMED);
  }

  /** True if `count` records fit at `head`. Loads the consumer's cursor only if the cached copy says no. */
  hasRoom(count: number): boolean {
    if (this.mask + 1 - ((this.head - this.consumed) | 0) >= count) return true;
    this.consumed = Atomics.load(this.cursors, CURSOR_CONSUMED);
    return this.mask + 1 - ((this.head - this.consumed) | 0) >= count;
  }

  /** The number of written records that the last consumer hasn't freed. */
  depth(): number {
    this.consumed = Atomics.load(this.cursors, CURSOR_CONSUMED);
    return (this.head - this.consumed) | 0;
  }

  /** Drops written records that aren't published. */
  discard(): void {
    this.head = Atomics.load(this.cursors, CURSOR_PUBLISHED);
  }

  /** Hands all records before `head` to the consumers. */
  publish(): void {
    const written = (this.head - Atomics.load(this.cursors, CURSOR_PUBLISHED)) | 0;
    assert(written >= 0 && written <= this.mask + 1, "a publish fits the ring");
    Atomics.store(this.cursors, CURSOR_PUBLISHED, this.head);
  }
}

/** The last consumer: reads up to the gate's limit (or all published records without a gate) and frees records. */
export class RingConsumer extends RingEnd {
  /** The next record to read. Its owner advances it and calls `release` once a batch. */
  tail: number;
  private readonly limitCursor: number;

  constructor(memory: RingMemory, gated: boolean) {
    super(memory);
    this.limitCursor = gated ? CURSOR_LIMIT : CURSOR_PUBLISHED;
    this.tail = Atomics.load(this.cursors, CURSOR_CONSUMED);
  }

  /** The number of records that may be read at `tail`. */
  available(): number {
    return (Atomics.load(this.cursors, this.limitCursor) - this.tail) | 0;
  }

  /** The cursor up to which the producer has published, whether or not the gate has passed it. */
  published(): number {
    return Atomics.load(this.cursors, CURSOR_PUBLISHED);
  }

  /** The number of published records that the gate hasn't read yet. */
  unpassed(): number {
    return (this.published() - Atomics.load(this.cursors, CURSOR_PASSED)) | 0;
  }

  /** The number of published records that aren't read yet, whether or not the gate has passed them. */
  depth(): number {
    return (this.published() - this.tail) | 0;
  }

  /** Frees all records before `tail` for the producer. */
  release(): void {
    assert(((Atomics.load(this.cursors, this.limitCursor) - this.tail) | 0) >= 0, "only what was read is freed");
    Atomics.store(this.cursors, CURSOR_CONSUMED, this.tail);
  }
}

/** The gating stage: reads published records, may write into them, and moves the last consumer's limit. */
export class RingGate extends RingEnd {
  /** The next record to read. */
  tail: number;

  constructor(memory: RingMemory) {
    super(memory);
    this.tail = Atomics.load(this.cursors, CURSOR_LIMIT);
  }

  available(): number {
    return (Atomics.load(this.cursors, CURSOR_PUBLISHED) - this.tail) | 0;
  }

  /** The next `count` records are read; the last consumer doesn't see them yet. */
  pass(count: number): void {
    this.tail = (this.tail + count) | 0;
    assert(this.available() >= 0, "only what is published is read");
    Atomics.store(this.cursors, CURSOR_PASSED, this.tail);
  }

  /** Lets the last consumer read all records before `position`, which are read. */
  open(position: number = this.tail): void {
    assert(((this.tail - position) | 0) >= 0, "the limit stays behind what is read");
    Atomics.store(this.cursors, CURSOR_LIMIT, position);
  }
}
