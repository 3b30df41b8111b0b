/**
 * The batches of a log as the replay reads them: checks that each continues the one before, and the numbers of its events;
 * hashes the events, and splits them into publishes. Never runs a matcher.
 *
 * A publish is what an engine published at a time: a stamp, events and, last, the levels that they changed. The levels may
 * also precede the end of a market's close.
 */
import { createHash } from "node:crypto";
import { OrderStatus } from "../../../engine/constants.ts";
import {
  type BatchHeader,
  FLAG_STARTED,
  hashOf,
  previousHash,
  readHeader,
  recordsOf,
  TextReader,
} from "../../../engine/log/batch-format.ts";
import { EngineEvent } from "../../../engine/ring/engine-event.ts";
import { traitsOf } from "../../../engine/ring/event-traits.ts";
import * as R from "../../../engine/ring/records.ts";
import { Difference, describeEvent, isDamage } from "./difference.ts";
import { LogNumbers } from "./numbers.ts";

/** Records that are hashed at a time. */
const HASHED_RECORDS = 4096;

export interface Publish {
  readonly batch: LoggedBatch;
  /** Words. */
  readonly from: number;
  end: number;
  /** Events to compare, without levels. */
  events: number;
  /** The first word of the first and of the last of them; -1 for none. */
  first: number;
  last: number;
  isDone: boolean;
}

export interface LoggedBatch {
  readonly body: Buffer;
  readonly header: BatchHeader;
  readonly words: Int32Array;
  readonly doubles: Float64Array;
  readonly publishes: Publish[];
  /** When the orders were placed whose events have a later time, ms, by the event's first word. */
  readonly placedAt: Map<number, number>;
  /** The first wrong number. The events before it may differ, too. */
  fault: Difference | null;
  /** The time of the last numbered event before it, ms; only a lower bound if it isn't exact. */
  readonly at: number;
  readonly isAtExact: boolean;
}

export const hasStarted = ({ header }: LoggedBatch): boolean => (header.flags & FLAG_STARTED) !== 0;

/** True for kinds that take no part in the comparison: they change nothing, or say when something was published. */
export const isSkipped = (kind: R.EventKind): boolean => !traitsOf(kind).isDurable && kind !== R.EventKind.levelChanged;

/** True if the publish ends with an order that self-trade prevention canceled before anything filled. */
export function endsInSelfTrade({ batch, last }: Publish): boolean {
  const packed = batch.words[last]!;
  return R.kindOf(packed) === R.EventKind.orderPlaced && R.statusOf(packed) === OrderStatus.canceled;
}

export class BatchReader {
  private readonly bodies: Iterator<Buffer>;
  private readonly event = new EngineEvent();
  private readonly numbers = new LogNumbers();
  private readonly eventsHash = createHash("sha256");
  private readonly hashed = new Int32Array(HASHED_RECORDS * R.RECORD_WORDS);
  private hashedWords = 0;
  private previous: { readonly header: BatchHeader; readonly hash: Buffer } | null = null;
  orders = 0;
  fills = 0;

  constructor(bodies: Iterable<Buffer>) {
    this.bodies = bodies[Symbol.iterator]();
  }

  /** The next batch; null at the end of the log. @throws Difference if it doesn't continue the one before */
  next(): LoggedBatch | null {
    const { value: body, done } = this.bodies.next();
    if (done) return null;
    const header = this.readHeader(body);
    this.checkChain(body, header);
    this.previous = { header, hash: hashOf(body) };
    try {
      return this.read(body, header);
    } catch (error) {
      // A damaged batch can be anything: the one after it, which has its hash, isn't read yet.
      if (!isDamage(error)) throw error;
      throw new Difference(header.batch, null, `it is damaged: ${error.message}`);
    }
  }

  /** The SHA-256 of all events so far except levels, in hex. Ends the hash. */
  digest(): string {
    this.flushHash();
    return this.eventsHash.digest("hex");
  }

  /** The SHA-256 of the last batch's body, in hex. */
  get lastHash(): string {
    return this.previous?.hash.toString("hex") ?? "";
  }

  private readHeader(body: Buffer): BatchHeader {
    try {
      return readHeader(body);
    } catch (error) {
      throw new Difference((this.previous?.header.batch ?? 0) + 1, null, (error as Error).message);
    }
  }

  private checkChain(body: Buffer, header: BatchHeader): void {
    if (this.previous === null) return;
    const { header: last, hash } = this.previous;
    const fault = (message: string): Difference => new Difference(last.batch + 1, null, message);
    if (header.batch !== last.batch + 1) throw fault(`batch ${header.batch} follows batch ${last.batch}`);
    if (header.exchange !== last.exchange) throw fault("it is another exchange's");
    if (header.recordsBefore !== last.recordsBefore + last.records)
      throw fault("the records before it aren't those of the log");
    if (header.at < last.at) throw fault("its time is before that of the one before");
    if (!previousHash(body).equals(hash)) throw fault(`it doesn't have the SHA-256 of batch ${last.batch}`);
  }

  /** Splits the batch into publishes and checks its numbers. */
  private read(body: Buffer, header: BatchHeader): LoggedBatch {
    const { words, doubles, count } = recordsOf(body, header);
    const wrong = this.numbers.begin(header);
    const fault = wrong === null ? null : new Difference(header.batch, null, wrong);
    const { at, isAtExact } = this.numbers;
    const batch: LoggedBatch = {
      ...{ body, header, words, doubles, publishes: [], placedAt: new Map<number, number>() },
      ...{ fault, at, isAtExact },
    };
    const texts = new TextReader(body, header);
    let publish = newPublish(batch, 0);
    for (let w = 0; w < count * R.RECORD_WORDS; w += R.RECORD_WORDS) {
      const kind = R.kindOf(words[w]!);
      if (kind === R.EventKind.batchMatched && w > 0) publish = newPublish(batch, w);
      publish.end = w + R.RECORD_WORDS;
      if (kind === R.EventKind.levelChanged || isSkipped(kind)) continue;
      if (publish.events++ === 0) publish.first = w;
      publish.last = w;
      if (kind === R.EventKind.orderPlaced) this.readPlacement(batch, texts, w);
      else if (kind === R.EventKind.orderFilled) this.fills++;
      this.checkNumbers(batch, w);
      this.hashEvent(words, w);
    }
    return batch;
  }

  private readPlacement({ words, doubles, placedAt }: LoggedBatch, texts: TextReader, w: number): void {
    this.orders++;
    const at = texts.skip(this.event.at(words, doubles, w));
    if (at !== 0) placedAt.set(w, at);
  }

  private checkNumbers(batch: LoggedBatch, w: number): void {
    if (batch.fault !== null) return;
    const { header, words, doubles } = batch;
    const wrong = this.numbers.event(this.event.at(words, doubles, w));
    if (wrong === null) return;
    batch.fault = new Difference(header.batch, w / R.RECORD_WORDS, wrong, describeEvent(words, doubles, w));
  }

  private hashEvent(words: Int32Array, w: number): void {
    const { hashed } = this;
    const at = this.hashedWords;
    for (let i = 0; i < R.RECORD_WORDS; i++) hashed[at + i] = words[w + i]!;
    this.hashedWords = at + R.RECORD_WORDS;
    if (this.hashedWords === hashed.length) this.flushHash();
  }

  private flushHash(): void {
    this.eventsHash.update(this.hashed.subarray(0, this.hashedWords));
    this.hashedWords = 0;
  }
}

/** Adds a publish to the batch. */
function newPublish(batch: LoggedBatch, from: number): Publish {
  const publish = { batch, from, end: from, events: 0, first: -1, last: -1, isDone: false };
  batch.publishes.push(publish);
  return publish;
}

/** True if the log stage may have raised the time of the event at word `w` to what it is. */
export function isRaisedTime(batch: LoggedBatch, w: number): boolean {
  const { words, doubles } = batch;
  const at = doubles[(w >> 1) + R.D_AT]!;
  if (!traitsOf(R.kindOf(words[w]!)).isTimed) return false;
  for (let before = w - R.RECORD_WORDS; before >= 0; before -= R.RECORD_WORDS) {
    if (traitsOf(R.kindOf(words[before]!)).isTimed) return at === doubles[(before >> 1) + R.D_AT]!;
  }
  return batch.isAtExact ? at === batch.at : at >= batch.at;
}
