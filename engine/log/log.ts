/**
 * Makes engine events and writes durable: numbers them, appends them to journal.db as one batch, and only then
 * lets the gateway see them. The only writer of journal.db. Knows no ledger, no order and no row.
 *
 * An error is final: the caller must stop the exchange. Nothing is retried, and what wasn't committed was never shown.
 *
 * One pass: 1. number the requests  2. number the events, ring by ring  3. copy records, texts and requests
 *           4. INSERT, which commits  5. cursors  6. replies.
 * Where the log is held, steps 5 and 6 wait until `progress.released` says that another place has the batch.
 */
import type Database from "better-sqlite3";
import { EngineEvent } from "../ring/engine-event.ts";
import { MAX_TEXT_BYTES, type OrderTexts } from "../ring/order-texts.ts";
import { EventKind, RECORD_BYTES, RECORD_WORDS } from "../ring/records.ts";
import type { RingGate } from "../ring/ring.ts";
import { assert } from "../util/assert.ts";
import type { MicroClock } from "../util/micro-clock.ts";
import { emptyWal } from "../util/wal-database.ts";
import { LogAppender, type LogEnd } from "./append.ts";
import { BatchStamps } from "./batch-stamps.ts";
import { HeldPasses } from "./held-passes.ts";
import type { LogReply, LogRequest } from "./messages.ts";
import { type LastNumbers, Numbering } from "./numbering.ts";
import type { LogProgress } from "./progress.ts";
import { type OwnRates, UserRates } from "./user-rates.ts";
import { WalCheckpoints } from "./wal-checkpoints.ts";

/** Records of one batch, unless a single ring has more: keeps a batch within a few MiB. */
const MAX_RECORDS = 2 ** 16;
/** Archived batches and bytes of them that one slice deletes, about a millisecond's work; the first batch always. */
const TRIM_BATCHES = 64;
const TRIM_BYTES = 2 ** 18;

/** How the log is copied to other places. */
export interface LogReplication {
  /** Nobody sees a pass until `progress.released` reaches its batch. */
  readonly isHeld: boolean;
  /** Called when a pass with a batch is shown, with the time since it began, µs. */
  readonly onRelease: (durationMicros: number) => void;
}

export interface LogOptions {
  readonly db: Database.Database;
  readonly end: LogEnd;
  readonly last: LastNumbers;
  readonly rates: Iterable<OwnRates>;
  readonly gates: readonly RingGate[];
  readonly texts: OrderTexts;
  readonly progress: LogProgress;
  /** Milliseconds since the epoch. */
  readonly now: () => number;
  readonly clock: MicroClock;
  /** Called after each commit, with its duration in µs and its number of placements. */
  readonly onCommit: (durationMicros: number, orders: number) => void;
  /** Requests a checkpoint through another connection; the caller reports its end with `finishCheckpoint`. */
  readonly requestCheckpoint: () => void;
  /** Null on a single box. */
  readonly replication: LogReplication | null;
}

/** One ring's part of a pass. */
interface Part {
  readonly gate: RingGate;
  /** The ring's memory as bytes. */
  readonly bytes: Uint8Array;
  /** Records that this pass reads, and how many of them have a text. */
  count: number;
  texts: number;
}

export class Log {
  private readonly db: Database.Database;
  private readonly appender: LogAppender;
  private readonly numbering: Numbering;
  private readonly rates = new UserRates();
  private readonly parts: readonly Part[];
  private readonly texts: OrderTexts;
  private readonly progress: LogProgress;
  private readonly now: () => number;
  private readonly clock: MicroClock;
  private readonly onCommit: LogOptions["onCommit"];
  private readonly stamps = new BatchStamps();
  private readonly replication: LogReplication | null;
  /** Null where every pass is shown at once. */
  private readonly held: HeldPasses | null;
  private readonly event = new EngineEvent();
  private readonly checkpoints: WalCheckpoints;
  private readonly sizes: Database.Statement;
  private readonly deleteBatches: Database.Statement;
  /** The ring that the next pass reads first. */
  private first = 0;
  /** The first batch that journal.db has. */
  private oldest: number;
  private trimThrough = 0;
  /** What commits have appended since a slice was last deleted beside them. */
  private readonly grown = { batches: 0, bytes: 0 };
  /** Placements of this pass. */
  private orders = 0;

  constructor(options: LogOptions) {
    const { db, end, last, progress } = options;
    this.db = db;
    this.appender = new LogAppender(db, end);
    for (const rates of options.rates) this.rates.set(rates);
    this.numbering = new Numbering(last, this.rates);
    this.parts = options.gates.map((gate) => {
      const { buffer, byteOffset, byteLength } = gate.words;
      return { gate, bytes: new Uint8Array(buffer, byteOffset, byteLength), count: 0, texts: 0 };
    });
    this.texts = options.texts;
    this.progress = progress;
    this.now = options.now;
    this.clock = options.clock;
    this.onCommit = options.onCommit;
    this.replication = options.replication;
    this.held = options.replication?.isHeld === true ? new HeldPasses() : null;
    this.checkpoints = new WalCheckpoints(db, options.requestCheckpoint);
    this.sizes = db.prepare("SELECT length(body) FROM batches WHERE number BETWEEN ? AND ?").pluck();
    this.deleteBatches = db.prepare("DELETE FROM batches WHERE number < ?");
    this.oldest = Number(db.prepare("SELECT min(number) FROM batches").pluck().get() ?? end.batch + 1);
    progress.commit(this.appender.last);
  }

  /**
   * One pass over everything that the rings hold and `receive` returns. Returns the replies to send, none where the pass is
   * held, or null if there was nothing to do. Throws if the database fails: then nothing of this pass may be shown.
   */
  commit(receive: () => readonly LogRequest[]): LogReply[] | null {
    // Count events before receiving: a request posted before a command is never committed after that command's events.
    const records = this.countRecords();
    const requests = receive();
    if (requests.length === 0 && records === 0) return null;
    const startedAt = this.clock();
    const { appender, numbering } = this;
    const lastEntry = numbering.lastEntry;
    const replies = requests.map((request) => this.number(request));
    let isDurable = requests.length > 0;
    this.orders = 0;
    for (const part of this.parts) if (this.numberEvents(part)) isDurable = true;
    assert(numbering.lastEntry >= lastEntry, "numbers rise");
    if (isDurable) {
      appender.begin();
      for (const part of this.parts) this.copyRecords(part);
      for (const part of this.parts) this.copyTexts(part);
      for (const { payload } of requests) appender.addRequest(payload);
      const before = appender.last;
      this.grown.bytes += appender.commit(Math.max(numbering.at, this.now()), lastEntry);
      assert(appender.last.batch === before.batch + 1, "a pass is one batch");
      assert(appender.last.records === before.records + records, "a batch has all records of its pass");
      this.grown.batches++;
    }
    for (const { gate, count } of this.parts) gate.pass(count);
    if (!this.mayShow) return this.hold(isDurable, startedAt, replies);
    this.show(isDurable, startedAt);
    return replies;
  }

  /** True unless a pass waits for another place. */
  get isShown(): boolean {
    return this.held?.isEmpty !== false;
  }

  /** True if a pass that was held may be shown. */
  get canRelease(): boolean {
    return this.held?.canRelease(this.progress.releasedBatch) === true;
  }

  /** Shows what was held and may be seen by now; returns the replies to send, or null if there was nothing. */
  release(): LogReply[] | null {
    if (this.held === null || !this.canRelease) return null;
    const { parts, progress, replication } = this;
    const shownAt = this.clock();
    const shown = this.held.release(progress.releasedBatch);
    for (const { stamps, startedAt } of shown) {
      for (const stamp of stamps) stamp.durableAt = shownAt;
      if (startedAt !== null) replication?.onRelease(shownAt - startedAt);
    }
    const last = shown.at(-1)!;
    progress.commit(last.point);
    for (const [i, { gate }] of parts.entries()) gate.open(last.tails[i]!);
    return shown.flatMap(({ replies }) => replies);
  }

  /** True once every engine has announced that no event follows, and everything is shown. */
  get stopped(): boolean {
    const hasEnded = this.parts.length > 0 && this.numbering.stoppedRings === this.parts.length;
    return hasEnded && this.isShown;
  }

  /**
   * Deletes archived batches after some commits, faster than commits append: an exchange that never rests gets rid of them
   * too. Called once the clients have their responses.
   */
  trimBesideLoad(): void {
    const { grown } = this;
    if (grown.batches < TRIM_BATCHES / 2 && grown.bytes < TRIM_BYTES / 2) return;
    this.trim();
    grown.batches = 0;
    grown.bytes = 0;
  }

  /** Does a slice of background work, for when the rings are empty. Returns true if there may be more. */
  idle(): boolean {
    if (this.trim()) return true;
    this.checkpoints.checkQuiet();
    return false;
  }

  /** Deletes batches up to this one while the log is idle, but never the last. */
  trimUpTo(batch: number): void {
    assert(batch <= this.appender.last.batch, "only what the log has can be archived");
    this.trimThrough = Math.max(this.trimThrough, batch);
  }

  /** The other connection has finished the checkpoint that `requestCheckpoint` asked for. */
  finishCheckpoint(): void {
    this.checkpoints.finish();
  }

  /** Empties the WAL and closes the file. */
  close(): void {
    emptyWal(this.db);
    this.db.close();
  }

  // ---------------------------------------------------------------- one pass

  /** Decides how many records of each ring this pass reads; returns their sum. */
  private countRecords(): number {
    const { parts } = this;
    let total = 0;
    for (let i = 0; i < parts.length; i++) {
      const part = parts[(this.first + i) % parts.length]!;
      const available = part.gate.available();
      assert(available >= 0 && available <= part.gate.mask + 1, "a ring holds no more than its records");
      part.count = total > 0 && total + available > MAX_RECORDS ? 0 : available;
      total += part.count;
    }
    this.first = parts.length === 0 ? 0 : (this.first + 1) % parts.length;
    return total;
  }

  private number({ id, at, entries, rates }: LogRequest): LogReply {
    for (const own of rates) this.rates.set(own);
    return { id, firstEntry: this.numbering.request(entries, at) };
  }

  private numberEvents(part: Part): boolean {
    const { event, numbering, stamps } = this;
    const { words, doubles, mask, tail } = part.gate;
    let isDurable = false;
    part.texts = 0;
    for (let i = 0; i < part.count; i++) {
      event.at(words, doubles, ((tail + i) & mask) * RECORD_WORDS);
      const { kind } = event;
      if (kind === EventKind.batchMatched) stamps.add(event);
      if (numbering.event(event)) isDurable = true;
      if (kind !== EventKind.orderPlaced) continue;
      this.orders++;
      if (hasText(event)) part.texts++;
    }
    return isDurable;
  }

  private copyRecords({ gate, bytes, count }: Part): void {
    const from = (gate.tail & gate.mask) * RECORD_BYTES;
    const end = from + count * RECORD_BYTES;
    this.appender.addRecords(bytes.subarray(from, Math.min(end, bytes.length)));
    if (end > bytes.length) this.appender.addRecords(bytes.subarray(0, end - bytes.length));
  }

  private copyTexts({ gate, texts, count }: Part): void {
    const { event } = this;
    const { words, doubles, mask, tail } = gate;
    for (let i = 0, left = texts; left > 0; i++) {
      event.at(words, doubles, ((tail + i) & mask) * RECORD_WORDS);
      if (event.kind !== EventKind.orderPlaced || !hasText(event)) continue;
      left--;
      assert(i < count, "texts belong to records of their pass");
      this.appender.addText(8 + MAX_TEXT_BYTES, (body, at) => this.writeText(event, body, at));
    }
  }

  /** Writes the text of an orderPlaced; returns its end. */
  private writeText(event: EngineEvent, body: Buffer, at: number): number {
    const rest = event.isRaised ? body.writeDoubleLE(this.numbering.shiftPlacedAt(), at) : at;
    return event.hasText ? this.texts.copy(event.slot, body, rest) : rest;
  }

  /** True where this pass may be shown at once. */
  private get mayShow(): boolean {
    const { held } = this;
    return held === null || (held.isEmpty && this.appender.last.batch <= this.progress.releasedBatch);
  }

  /** Keeps what this pass made durable until another place has it. */
  private hold(isDurable: boolean, startedAt: number, replies: readonly LogReply[]): LogReply[] {
    const point = this.appender.last;
    this.held!.push({
      point,
      startedAt: isDurable ? startedAt : null,
      tails: this.parts.map(({ gate }) => gate.tail),
      stamps: this.stamps.take(),
      replies,
    });
    if (!isDurable) return [];
    this.progress.append(point.batch);
    this.onCommit(this.clock() - startedAt, this.orders);
    this.checkpoints.countCommit(this.orders);
    return [];
  }

  /** Lets the gateway see what this pass made durable. */
  private show(isDurable: boolean, startedAt: number): void {
    const durableAt = this.clock();
    if (isDurable) {
      this.progress.commit(this.appender.last);
      this.onCommit(durableAt - startedAt, this.orders);
    }
    this.stamps.resolve(durableAt);
    assert(!isDurable || this.progress.committedBatch === this.appender.last.batch, "gates open after the commit");
    for (const { gate } of this.parts) gate.open();
    if (isDurable) this.checkpoints.countCommit(this.orders);
  }

  // ---------------------------------------------------------------- archived batches

  /** Deletes a slice of archived batches that other places have; returns false if there are none. */
  private trim(): boolean {
    const copied = this.replication === null ? this.trimThrough : this.progress.releasedBatch;
    const end = Math.min(this.trimThrough, this.appender.last.batch - 1, copied) + 1;
    if (this.oldest >= end) return false;
    const last = Math.min(end, this.oldest + TRIM_BATCHES) - 1;
    let bytes = 0;
    for (const size of this.sizes.iterate(this.oldest, last)) {
      if (bytes > 0 && bytes + Number(size) > TRIM_BYTES) break;
      bytes += Number(size);
      this.oldest++;
    }
    assert(this.oldest <= this.appender.last.batch, "the last batch stays");
    this.deleteBatches.run(this.oldest);
    return true;
  }
}

/** True if the batch has a text for the orderPlaced. */
const hasText = (event: EngineEvent): boolean => event.hasText || event.isRaised;
