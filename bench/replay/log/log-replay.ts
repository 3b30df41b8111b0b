/**
 * Replays a log: derives the commands from its events, runs them through the exchange's own matcher and compares what it
 * emits with the log, byte for byte. Reads no file and prints nothing.
 *
 * One matcher has the books of all engines. It executes publish by publish, in the log's order. An engine may have
 * published in the middle of a command, when its ring was full: the rest of the command is in another publish, which is
 * then the next, wherever it is.
 */
import { AssertionError } from "node:assert";
import { marketWritesOf, type Opening, OpeningTracker } from "../../../engine/log/opening.ts";
import * as R from "../../../engine/ring/records.ts";
import {
  BatchReader,
  endsInSelfTrade,
  hasStarted,
  isRaisedTime,
  isSkipped,
  type LoggedBatch,
  type Publish,
} from "./batches.ts";
import { ReplayBooks } from "./books.ts";
import { DerivedCommand } from "./commands.ts";
import { Difference, describeEvent, isDamage } from "./difference.ts";

/** Batches in which the rest of a command must follow. An engine goes on after the next commit. */
const MAX_BATCHES_AHEAD = 256;
const { RECORD_WORDS, EventKind } = R;

/** The log ends in the middle of a command, or a crash did. */
class Interrupted extends Error {}

export interface ReplayResult {
  readonly batches: number;
  /** Compared. */
  readonly events: number;
  readonly levels: number;
  readonly orders: number;
  readonly fills: number;
  readonly starts: number;
  /** Publishes that end in the middle of a command, because the engine's ring was full. */
  readonly cuts: number;
  /** Commands that a crash, or the end of the log, interrupted. */
  readonly interrupted: number;
  readonly first: number;
  readonly last: number;
  /** Of all events except levels, in hex. */
  readonly eventsHash: string;
  /** Of the last batch, in hex. */
  readonly lastHash: string;
}

export class LogReplay {
  private readonly reader: BatchReader;
  private readonly tracker: OpeningTracker;
  private readonly command = new DerivedCommand();
  private books: ReplayBooks | null = null;
  private mine: Int32Array = new Int32Array(0);
  private mineDoubles: Float64Array = new Float64Array(0);
  /** Batches that are read and not finished. */
  private readonly queue: LoggedBatch[] = [];
  /** Of them, those whose markets are open. */
  private opened = 0;
  // The publish that is compared, and the next record in it.
  private publish: Publish | null = null;
  private words: Int32Array = new Int32Array(0);
  private doubles: Float64Array = new Float64Array(0);
  private w = 0;
  private end = 0;
  /** Its events that are compared. */
  private compared = 0;
  /** The matcher's next record to compare. */
  private checked = 0;
  private isExecuting = false;
  /** The market whose close is executed: its own event comes last and has the command's time and reference. */
  private closing = 0;
  private counts = { batches: 0, events: 0, levels: 0, starts: 0, cuts: 0, interrupted: 0, first: 0, last: 0 };

  /** @param opening the books as of the first body */
  constructor(bodies: Iterable<Buffer>, opening: Opening) {
    this.reader = new BatchReader(bodies);
    this.tracker = new OpeningTracker(opening);
  }

  /** Replays the next batch; returns the records up to its end, or null at the end of the log. @throws Difference */
  step(): number | null {
    const batch = this.queue[0] ?? this.load();
    if (batch === null) return null;
    try {
      return this.replay(batch);
    } catch (error) {
      // The one after it, which has its hash, may not be read yet.
      throw isDamage(error) ? new Difference(batch.header.batch, null, `it is damaged: ${error.message}`) : error;
    }
  }

  private replay(batch: LoggedBatch): number {
    if (this.books === null || hasStarted(batch)) this.begin(hasStarted(batch));
    this.openMarkets(1);
    for (const publish of batch.publishes) if (!publish.isDone) this.run(publish);
    if (batch.fault !== null) throw batch.fault;
    this.queue.shift();
    this.opened--;
    this.tracker.follow(batch.body, batch.header);
    const { batch: number, recordsBefore, records } = batch.header;
    if (this.counts.batches++ === 0) this.counts.first = number;
    this.counts.last = number;
    return recordsBefore + records;
  }

  result(): ReplayResult {
    const { orders, fills, lastHash } = this.reader;
    return { ...this.counts, orders, fills, eventsHash: this.reader.digest(), lastHash };
  }

  // ---------------------------------------------------------------- batches

  private load(): LoggedBatch | null {
    const batch = this.reader.next();
    if (batch !== null) this.queue.push(batch);
    return batch;
  }

  /** Sets up the books with what the log has at this place. */
  private begin(isStart: boolean): void {
    if (isStart) this.counts.starts++;
    this.books = new ReplayBooks(this.tracker.opening(), isStart, () => this.continueElsewhere());
    this.mine = this.books.ring.words;
    this.mineDoubles = this.books.ring.doubles;
    this.opened = 0;
  }

  /** Opens the markets of the first batches of the queue. */
  private openMarkets(batches: number): void {
    for (; this.opened < batches; this.opened++) {
      const { body, header } = this.queue[this.opened]!;
      try {
        for (const write of marketWritesOf(body, header)) this.books!.write(write);
      } catch (error) {
        throw new Difference(header.batch, null, `its requests are damaged: ${(error as Error).message}`);
      }
    }
  }

  // ---------------------------------------------------------------- one publish

  private run(publish: Publish): void {
    this.open(publish);
    try {
      this.compare();
      this.books!.matcher.endBatch();
      this.finish();
    } catch (error) {
      this.isExecuting = false;
      if (error instanceof Interrupted) this.counts.interrupted++;
      else if (error instanceof AssertionError) throw this.difference(`the engine fails: ${error.message}`);
      else throw error;
    }
  }

  private open(publish: Publish): void {
    this.publish = publish;
    this.words = publish.batch.words;
    this.doubles = publish.batch.doubles;
    this.w = publish.from;
    this.end = publish.end;
    this.compared = 0;
    this.checked = 0;
    this.books!.ring.rewind(this.room());
  }

  /** Events that the engine published from here on, before its next publish. */
  private room(): number {
    const { events } = this.publish!;
    if (events === 0) return 0;
    // Before it ends an order that would match its owner's, the matcher makes room for another event.
    return events - this.compared + (endsInSelfTrade(this.publish!) ? 1 : 0);
  }

  /** Compares the rest of the publish, and executes its commands. */
  private compare(): void {
    const { ring, matcher } = this.books!;
    while (this.w < this.end) {
      const kind = R.kindOf(this.words[this.w]!);
      if (isSkipped(kind)) {
        this.w += RECORD_WORDS;
        continue;
      }
      const isPending = this.checked < ring.head;
      if (kind === EventKind.levelChanged) {
        if (!isPending && !this.isExecuting) {
          if (this.w > this.publish!.last) matcher.endBatch();
          else this.execute(this.afterLevels());
        }
        this.compareLevels();
      } else if (!isPending) this.execute(this.w);
      else if (R.kindOf(this.mine[this.checked * RECORD_WORDS]!) === EventKind.levelChanged) this.compareLevels();
      else this.compareEvent();
    }
  }

  /** The end of the publish: the matcher must have emitted no more. */
  private finish(): void {
    if (this.checked < this.books!.ring.head) this.compareLevels();
    if (this.checked < this.books!.ring.head) throw this.difference("the log lacks an event", null, this.checked);
    this.publish!.isDone = true;
    this.books!.finishRestoring();
  }

  /** The event behind the next levels: only the close of a market publishes levels before its own event. */
  private afterLevels(): number {
    let { w } = this;
    while (R.kindOf(this.words[w]!) === EventKind.levelChanged) w += RECORD_WORDS;
    return w;
  }

  /** Executes the command behind the event at word `w` of the log, which is the next one. */
  private execute(w: number): void {
    const { words, doubles, command } = this;
    const books = this.books!;
    if (this.isExecuting) throw this.difference("the engine doesn't emit this event");
    books.ring.rewind(this.room());
    this.checked = 0;
    const publish = this.publish;
    this.isExecuting = true;
    books.beforeCommand(words, doubles, w);
    if (books.ring.head === 0) {
      const market = books.marketOf(words, w);
      const slot = books.slotOf(doubles[(w >> 1) + R.D_ORDER_ID]!, words[w + R.W_SLOT]!);
      const placedAt = publish!.batch.placedAt.get(w) ?? doubles[(w >> 1) + R.D_AT]!;
      if (!command.derive(words, doubles, w, slot, market, placedAt)) {
        throw this.difference("no command begins with this event");
      }
      const isClosed = R.kindOf(words[w]!) === EventKind.orderCanceled && R.kindOf(command.words[0]!) === CLOSE;
      this.closing = isClosed ? market : 0;
      books.execute(command);
    }
    this.isExecuting = false;
    if (books.ring.head === 0 && this.publish === publish) throw this.difference("the engine emits nothing");
  }

  /** The engine's ring was full: the publish ends, and the command goes on in another one. */
  private continueElsewhere(): void {
    const market = this.books!.marketOf(this.words, this.publish!.last);
    this.compare();
    this.finish();
    const next = this.continuation(market);
    if (next === null) throw new Interrupted();
    this.counts.cuts++;
    this.open(next);
  }

  /** The next publish that begins with an event of the market, or null if the process or the log ended before. */
  private continuation(market: number): Publish | null {
    for (let i = 0; i < MAX_BATCHES_AHEAD; i++) {
      const batch = this.queue[i] ?? this.load();
      if (batch === null || (i > 0 && hasStarted(batch))) return null;
      this.openMarkets(i + 1);
      for (const publish of batch.publishes) {
        if (publish.isDone || publish.events === 0) continue;
        if (this.books!.marketOf(batch.words, publish.first) === market) return publish;
      }
    }
    throw this.difference("the log ends in the middle of a command, and goes on without the rest");
  }

  // ---------------------------------------------------------------- records

  private compareEvent(): void {
    const { words, w, mine, checked } = this;
    const m = checked * RECORD_WORDS;
    this.fillIn(m);
    if (!areEqual(words, w, mine, m)) throw this.difference("the events differ", w, checked);
    this.compared++;
    this.counts.events++;
    this.checked++;
    this.w += RECORD_WORDS;
  }

  /** Puts into the matcher's event what the log stage wrote into the log's, and a restored order's slot. */
  private fillIn(m: number): void {
    const { words, doubles, w, mine, mineDoubles } = this;
    const [d, n] = [w >> 1, m >> 1];
    const kind = R.kindOf(mine[m]!);
    mineDoubles[n + R.D_USER_SEQUENCE] = doubles[d + R.D_USER_SEQUENCE]!;
    if (kind < EventKind.levelChanged) mine[m + R.W_SLOT] = this.books!.loggedSlot(mine[m + R.W_SLOT]!, words[w + 1]!);
    const isRaised = mineDoubles[n + R.D_AT] !== doubles[d + R.D_AT] && this.raise(n);
    switch (kind) {
      case EventKind.orderPlaced:
        if (isRaised) mine[m + R.W_CORRELATION]! |= R.RAISED;
        return;
      case EventKind.orderFilled:
        mineDoubles[n + R.D_FILL_ID] = doubles[d + R.D_FILL_ID]!;
        mine[m + R.W_CORRELATION] = R.withRates(mine[m + R.W_CORRELATION]!, R.ratesOf(words[w + R.W_CORRELATION]!));
        return;
      case EventKind.setsSplit:
      case EventKind.setsMerged:
        mineDoubles[n + R.D_FILL_ID] = doubles[d + R.D_FILL_ID]!;
        return;
      case EventKind.marketChanged:
        if (this.closing === 0 || mine[m + R.W_SLOT] !== this.closing) return;
        mine[m + R.W_CORRELATION] = words[w + R.W_CORRELATION]!;
        mineDoubles[n + R.D_AT] = doubles[d + R.D_AT]!;
        this.closing = 0;
    }
  }

  /** Raises the time of the matcher's event to that of the log's, if the log stage would. */
  private raise(n: number): boolean {
    const at = this.doubles[(this.w >> 1) + R.D_AT]!;
    if (at < this.mineDoubles[n + R.D_AT]! || !isRaisedTime(this.publish!.batch, this.w)) return false;
    this.mineDoubles[n + R.D_AT] = at;
    return true;
  }

  // ---------------------------------------------------------------- levels

  /** Compares the levels that follow on both sides. */
  private compareLevels(): void {
    const from = this.w;
    while (this.w < this.end && R.kindOf(this.words[this.w]!) === EventKind.levelChanged) this.w += RECORD_WORDS;
    const first = this.checked;
    const { head } = this.books!.ring;
    while (this.checked < head && R.kindOf(this.mine[this.checked * RECORD_WORDS]!) === EventKind.levelChanged) {
      this.checked++;
    }
    const count = (this.w - from) / RECORD_WORDS;
    this.counts.levels += count;
    if (count === this.checked - first && this.differingLevel(from, first, count) < 0) return;
    this.compareRestoredLevels(from, first, count);
  }

  /** The index of the first level that differs; -1 if none does. */
  private differingLevel(from: number, first: number, count: number): number {
    const { words, mine } = this;
    const m = first * RECORD_WORDS;
    for (let i = 0; i < count * RECORD_WORDS; i++) {
      if (words[from + i] !== mine[m + i]) return Math.floor(i / RECORD_WORDS);
    }
    return -1;
  }

  /**
   * After a start the engine also publishes the levels of restored orders, as far as it had restored them: of those markets
   * the log may have more levels, in another order.
   */
  private compareRestoredLevels(from: number, first: number, count: number): void {
    const { words, mine } = this;
    const books = this.books!;
    const restored = new Map<string, number>();
    const expected: number[] = [];
    for (let i = first; i < this.checked; i++) expected.push(i * RECORD_WORDS);
    let next = 0;
    const skipRestored = (): void => {
      while (next < expected.length && books.isRestoring(mine[expected[next]! + R.W_OUTCOME]!)) next++;
    };
    for (let w = from; w < from + count * RECORD_WORDS; w += RECORD_WORDS) {
      if (books.isRestoring(words[w + R.W_OUTCOME]!)) {
        restored.set(`${words[w + R.W_OUTCOME]} ${words[w + R.W_PRICE]}`, w);
        continue;
      }
      skipRestored();
      const m = expected[next++];
      if (m === undefined) throw this.difference("the engine doesn't change this level", w);
      if (!areEqual(words, w, mine, m)) throw this.difference("the levels differ", w, m / RECORD_WORDS);
    }
    skipRestored();
    const lacking = expected[next];
    if (lacking !== undefined) throw this.difference("the log lacks a level", null, lacking / RECORD_WORDS);
    for (const m of expected) {
      const [outcome, price] = [mine[m + R.W_OUTCOME]!, mine[m + R.W_PRICE]!];
      if (!books.isRestoring(outcome)) continue;
      const w = restored.get(`${outcome} ${price}`) ?? null;
      if (w === null && books.isLastRestored(outcome, price)) continue;
      if (w === null || !areEqual(words, w, mine, m)) {
        throw this.difference("a level of a restored market differs", w, m / RECORD_WORDS);
      }
    }
  }

  /** @param w the log's event, or null for none @param m the matcher's record, or null */
  private difference(message: string, w: number | null = this.w, m: number | null = null): Difference {
    const { words, doubles, publish } = this;
    const { header } = publish!.batch;
    const isInside = w !== null && w < this.end;
    return new Difference(
      header.batch,
      Math.min(w ?? this.w, this.end) / RECORD_WORDS,
      message,
      isInside ? describeEvent(words, doubles, w) : null,
      m === null ? null : describeEvent(this.mine, this.mineDoubles, m * RECORD_WORDS),
    );
  }
}

const CLOSE = R.CommandKind.closeMarket;

function areEqual(words: Int32Array, w: number, mine: Int32Array, m: number): boolean {
  for (let i = 0; i < RECORD_WORDS; i++) if (words[w + i] !== mine[m + i]) return false;
  return true;
}
