/**
 * Engines and the real log in this process: commands wait by engine, and a scheduler with random numbers decides which
 * engine executes how many of them, when it publishes and when the log commits. So a batch of the log has publishes of
 * several engines, and a full ring lets others go on.
 */
import type Database from "better-sqlite3";
import { createMatcher, type Matcher } from "../../../engine/book/matcher.ts";
import { NO_HASH, readLogEnd } from "../../../engine/log/append.ts";
import { readHeader, recordsOf } from "../../../engine/log/batch-format.ts";
import { BatchStamp } from "../../../engine/log/batch-stamp.ts";
import { openJournal } from "../../../engine/log/database.ts";
import { Log } from "../../../engine/log/log.ts";
import { JournalReader } from "../../../engine/log/log-reader.ts";
import type { LogRequest } from "../../../engine/log/messages.ts";
import type { LastNumbers } from "../../../engine/log/numbering.ts";
import { LogProgress } from "../../../engine/log/progress.ts";
import { mergeFeeMicro } from "../../../engine/money.ts";
import { OrderTexts } from "../../../engine/ring/order-texts.ts";
import {
  D_AT,
  D_FILL_ID,
  D_USER_SEQUENCE,
  EventKind,
  kindOf,
  RECORD_WORDS,
  W_PRICE,
  W_QUANTITY,
  W_USER,
} from "../../../engine/ring/records.ts";
import { createRing, RingConsumer, RingGate, RingProducer } from "../../../engine/ring/ring.ts";
import type { CommandRecord } from "../book/harness.ts";

export const CAPACITY = 2 ** 14;
const EXCHANGE = 4711;

/** The process ended in the middle of a command. */
export class Crash extends Error {}

interface Engine {
  readonly matcher: Matcher;
  readonly producer: RingProducer;
  readonly consumer: RingConsumer;
  readonly gate: RingGate;
  readonly stamp: BatchStamp;
  readonly commands: CommandRecord[];
  isBusy: boolean;
  hasOpen: boolean;
}

export interface EnginesOptions {
  readonly engines: number;
  readonly ringRecords: number;
  readonly random: () => number;
  /** Called at each full ring; true ends the process there. */
  readonly crashes?: () => boolean;
}

/** One run of the process on a journal.db. */
export class LoggedEngines {
  readonly texts = new OrderTexts(CAPACITY);
  private readonly options: EnginesOptions;
  private readonly engines: Engine[];
  private readonly log: Log;
  private requests: LogRequest[] = [];

  constructor(path: string, options: EnginesOptions) {
    this.options = options;
    this.engines = Array.from({ length: options.engines }, () => this.createEngine());
    const db = openJournal(path, "off");
    this.log = new Log({
      db,
      end: readLogEnd(db) ?? { exchange: EXCHANGE, batch: 0, records: 0, at: 0, hash: NO_HASH },
      last: readLastNumbers(db),
      rates: [],
      gates: this.engines.map(({ gate }) => gate),
      texts: this.texts,
      progress: new LogProgress(),
      now: () => 0,
      clock: () => 0,
      onCommit: () => {},
      requestCheckpoint: () => {},
      replication: null,
    });
  }

  /** The next commit has the request. */
  post(request: LogRequest): void {
    this.requests.push(request);
  }

  add(market: number, command: CommandRecord): void {
    this.engines[market % this.engines.length]!.commands.push(command);
  }

  /** Executes and commits everything. */
  drain(): void {
    while (this.engines.some(({ commands, hasOpen }) => commands.length > 0 || hasOpen)) this.step();
    this.commit();
  }

  close(): void {
    this.log.close();
  }

  commit(): void {
    this.log.commit(() => this.requests.splice(0));
    for (const { consumer } of this.engines) {
      consumer.tail = (consumer.tail + consumer.available()) | 0;
      consumer.release();
    }
  }

  private createEngine(): Engine {
    const memory = createRing(this.options.ringRecords);
    const producer = new RingProducer(memory);
    const stamp = new BatchStamp(producer, () => 0);
    const engine: Engine = {
      producer,
      stamp,
      gate: new RingGate(memory),
      consumer: new RingConsumer(memory, true),
      commands: [],
      isBusy: false,
      hasOpen: false,
      matcher: createMatcher(producer, {
        capacity: CAPACITY,
        activeBooks: 64,
        largestId: 1024,
        beforePublish: () => stamp.close(),
        onRingFull: () => this.waitForRoom(engine),
      }),
    };
    return engine;
  }

  /** An engine executes some commands, and may publish and commit them. */
  private step(): void {
    const { random } = this.options;
    const idle = this.engines.filter(({ isBusy }) => !isBusy);
    const engine = idle[Math.floor(random() * idle.length)];
    if (engine === undefined) return;
    const { matcher, commands } = engine;
    for (let left = Math.floor(random() * 12); left > 0 && commands.length > 0; left--) {
      if (!engine.hasOpen) engine.stamp.open();
      engine.hasOpen = true;
      const { words, doubles } = commands.shift()!;
      engine.isBusy = true;
      matcher.execute(words, doubles, 0);
      engine.isBusy = false;
    }
    if (random() < 0.5 || commands.length === 0) this.publish(engine);
    if (random() < 0.3) this.commit();
  }

  private publish(engine: Engine): void {
    if (!engine.hasOpen) return;
    engine.matcher.endBatch();
    engine.hasOpen = false;
  }

  private waitForRoom(engine: Engine): void {
    const { random, crashes, ringRecords } = this.options;
    while (random() < 0.6) this.step();
    this.commit();
    if (crashes?.()) throw new Crash();
    while (!engine.producer.hasRoom(ringRecords >> 1)) this.commit();
    engine.stamp.open();
  }
}

/** What the log stage continues from, which a start reads from the tables. */
function readLastNumbers(db: Database.Database): LastNumbers {
  const updates = new Map<number, number>();
  const last = { entry: 0, at: 0 };
  for (const body of new JournalReader(db).bodies(1)) {
    const header = readHeader(body);
    const { words, doubles, count } = recordsOf(body, header);
    last.entry = Math.max(last.entry, header.lastEntry);
    for (let w = 0; w < count * RECORD_WORDS; w += RECORD_WORDS) {
      const d = w >> 1;
      const sequence = doubles[d + D_USER_SEQUENCE]!;
      if (sequence > 0) updates.set(words[w + W_USER]!, sequence);
      last.at = Math.max(last.at, doubles[d + D_AT]!);
      const kind = kindOf(words[w]!);
      const fee = kind === EventKind.setsMerged ? mergeFeeMicro(words[w + W_QUANTITY]!, words[w + W_PRICE]!) : 0;
      if (kind === EventKind.orderFilled || kind === EventKind.setsSplit || kind === EventKind.setsMerged) {
        last.entry = doubles[d + D_FILL_ID]! + (fee > 0 ? 1 : 0);
      }
    }
  }
  return { ...last, updates };
}
