/**
 * Single-producer, single-consumer rings of 64-byte records on SharedArrayBuffer. How a thread waits: waker.ts.
 *
 * A ring has one producer and up to two consumers in a row: a gating stage that reads what is published and moves the
 * limit (the journal's committed cursor), and the last consumer, which reads up to the limit and frees the records.
 * Cursors are int32 positions that wrap; only their differences mean something. Each stands 128 bytes from the next
 * and has one writer. Payload is written with plain stores and handed over by one atomic store of a cursor.
 *
 *   word    0           32         64
 *           published   limit      consumed
 *           producer    journal    last consumer
 *
 * No end of a ring is safe for use from more than one thread.
 */
import { assert } from "../util/assert.ts";
import { RECORD_BYTES, RECORD_DOUBLES, RECORD_WORDS } from "./records.ts";

const CURSOR_PUBLISHED = 0;
const CURSOR_LIMIT = 32;
const CURSOR_CONSUMED = 64;
const HEADER_BYTES = 512;

/** What is handed to a thread so that it can open its end of a ring. */
export interface RingMemory {
  readonly buffer: SharedArrayBuffer;
  readonly records: number;
}

/** @param records capacity, a power of two */
export function createRing(records: number): RingMemory {
  assert(records >= 2 && (records & (records - 1)) === 0, "a ring's capacity is a power of two");
  return { buffer: new SharedArrayBuffer(HEADER_BYTES + records * RECORD_BYTES), records };
}

class RingEnd {
  /** Record `position` starts at word `(position & mask) * 16` and double `(position & mask) * 8`. */
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
  /** The next position to write. Its owner advances it and calls `publish` once a batch. */
  head: number;
  private consumed: number;

  constructor(memory: RingMemory) {
    super(memory);
    this.head = Atomics.load(this.cursors, CURSOR_PUBLISHED);
    this.consumed = Atomics.load(this.cursors, CURSOR_CONSUMED);
  }

  /** True when `count` records can be written at `head`; looks at the consumer's cursor only when its copy says no. */
  hasRoom(count: number): boolean {
    if (this.mask + 1 - ((this.head - this.consumed) | 0) >= count) return true;
    this.consumed = Atomics.load(this.cursors, CURSOR_CONSUMED);
    return this.mask + 1 - ((this.head - this.consumed) | 0) >= count;
  }

  /** Records that were written and not yet freed by the last consumer. */
  depth(): number {
    this.consumed = Atomics.load(this.cursors, CURSOR_CONSUMED);
    return (this.head - this.consumed) | 0;
  }

  /** Takes back what was written and not published. */
  discard(): void {
    this.head = Atomics.load(this.cursors, CURSOR_PUBLISHED);
  }

  /** Hands all records before `head` to the consumers. */
  publish(): void {
    Atomics.store(this.cursors, CURSOR_PUBLISHED, this.head);
  }
}

/** The last consumer: reads up to `limit` (what is published, or what the gate let through) and frees records. */
export class RingConsumer extends RingEnd {
  /** The next position to read. Its owner advances it and calls `release` once a batch. */
  tail: number;
  private readonly limitCursor: number;

  constructor(memory: RingMemory, gated: boolean) {
    super(memory);
    this.limitCursor = gated ? CURSOR_LIMIT : CURSOR_PUBLISHED;
    this.tail = Atomics.load(this.cursors, CURSOR_CONSUMED);
  }

  /** Records that may be read at `tail`. */
  available(): number {
    return (Atomics.load(this.cursors, this.limitCursor) - this.tail) | 0;
  }

  /** The position up to which the producer has handed records over, let through or not. */
  published(): number {
    return Atomics.load(this.cursors, CURSOR_PUBLISHED);
  }

  /** Records that were handed over, let through or not, and not yet read. */
  depth(): number {
    return (this.published() - this.tail) | 0;
  }

  /** Gives all records before `tail` back to the producer. */
  release(): void {
    Atomics.store(this.cursors, CURSOR_CONSUMED, this.tail);
  }
}

/** The gating stage: reads what is published, may write into the records, and moves the last consumer's limit. */
export class RingGate extends RingEnd {
  /** The next position to read. */
  tail: number;

  constructor(memory: RingMemory) {
    super(memory);
    this.tail = Atomics.load(this.cursors, CURSOR_LIMIT);
  }

  available(): number {
    return (Atomics.load(this.cursors, CURSOR_PUBLISHED) - this.tail) | 0;
  }

  /** Lets the last consumer read all records before `tail`. */
  open(): void {
    Atomics.store(this.cursors, CURSOR_LIMIT, this.tail);
  }
}
