/**
 * One life of the exchange, from its start to its stop or crash: the gateway's trading core, the engines, the log and the
 * projector, all real, in one thread. Nothing here runs by itself: the driver decides who is next. A crash drops all of
 * it.
 *
 * The engines' events are checked on the way (executed.ts), and the log's commits are applied to the committed state
 * (committed.ts) before the gateway can see them.
 */

import type Database from "better-sqlite3";
import { HandLoop } from "../../bench/demo/past/hand-loop.ts";
import { MarketStatus } from "../../engine/constants.ts";
import { EngineStage } from "../../engine/engine-stage.ts";
import type { LogEnd } from "../../engine/log/append.ts";
import { openJournal } from "../../engine/log/database.ts";
import { Log } from "../../engine/log/log.ts";
import { JournalReader } from "../../engine/log/log-reader.ts";
import type { LogMessage, LogReply, LogRequest } from "../../engine/log/messages.ts";
import { LogProgress } from "../../engine/log/progress.ts";
import { unpackRequest } from "../../engine/log/request.ts";
import { loadAccounts, loadUserRates } from "../../engine/projection/load/accounts.ts";
import type { LedgerState } from "../../engine/projection/load/ledger.ts";
import { loadUpdateSequences } from "../../engine/projection/load/orders.ts";
import { loadApprovals, loadPendingWithdrawals } from "../../engine/projection/load/wallet.ts";
import { Projector } from "../../engine/projection/projector.ts";
import { recoverTables } from "../../engine/projection/recover.ts";
import * as R from "../../engine/ring/records.ts";
import { createRing, RingConsumer, RingGate, type RingMemory, RingProducer } from "../../engine/ring/ring.ts";
import { Waker } from "../../engine/ring/waker.ts";
import { createHistogram } from "../../engine/util/histogram.ts";
import { emptyWal, openDatabase, openReadOnly } from "../../engine/util/wal-database.ts";
import { Accounts } from "../../server/accounts/accounts.ts";
import { Approvals } from "../../server/accounts/approvals.ts";
import { MAX_ENDED_SESSIONS } from "../../server/accounts/limits.ts";
import { readHere } from "../../server/bootstrap/order-source.ts";
import { loadExchange, namingOf, restoreTrading } from "../../server/bootstrap/recovery.ts";
import { createWriteRooms } from "../../server/bootstrap/write-rooms.ts";
import { FAILED, outcomeUnknown, overloaded } from "../../server/errors.ts";
import { MarketLifecycle, type MarketLifecycleOptions } from "../../server/markets/lifecycle.ts";
import { prepareHolders } from "../../server/queries/holder-reader.ts";
import { preparePayments } from "../../server/queries/payment-reader.ts";
import { ProjectedReads } from "../../server/queries/projected-reads.ts";
import { type ClientOrderIdBounds, ClientOrderIds } from "../../server/trading/client-order-ids.ts";
import { Exchange } from "../../server/trading/exchange.ts";
import { OrderEntry } from "../../server/trading/order-entry.ts";
import { OrderStore } from "../../server/trading/order-store.ts";
import { OrderTimes } from "../../server/trading/order-times.ts";
import type { EndedOrder, MarketListener, UserListener } from "../../server/trading/types.ts";
import { Counters } from "../../server/util/counters.ts";
import { Timeline } from "../../server/util/timeline.ts";
import { LogWriter } from "../../server/writes/log-writer.ts";
import type { Mailbox } from "../../server/writes/mailbox.ts";
import { decodeEvent, type EngineEvent, ensure } from "../engine/book/harness.ts";
import type { Committed } from "./committed.ts";
import { FaultyConnection, type Files, walFrames } from "./disk.ts";
import { Executed } from "./executed.ts";

/** Sizes of one world. */
export interface Shape {
  readonly engines: number;
  readonly commandRecords: number;
  readonly eventRecords: number;
  readonly reservedCommands: number;
  readonly longestChain: number;
  /** Slots of live orders. */
  readonly capacity: number;
  readonly largestId: number;
  readonly activeBooks: number;
  /** Nobody sees what the log has before another place has it, too. */
  readonly isHeld?: boolean;
  readonly clientOrderIds?: ClientOrderIdBounds;
}

/** The merge fee of users without individual terms. */
const USUAL_MERGE_FEE_BPS = 3;

/** The world's clock, ms since the epoch; it continues over crashes. */
export interface Clock {
  now: number;
}

const microClockOf = (clock: Clock) => (): number => clock.now * 1_000;

/** No activity that must end takes more turns than this. */
export const PATIENCE = 20_000;
const COUNT_BOUNDS = [1, 10, 100];
/** Pages in the tables' WAL before a commit copies them into the file. */
const WAL_PAGES = 100;

/** Both ends of the log's mailbox. */
class HandMailbox implements Mailbox {
  posted: LogMessage[] = [];
  replies: LogReply[] = [];
  private receive: (reply: LogReply) => void = () => {};

  post(message: LogMessage): void {
    this.posted.push(message);
  }

  listen(receive: (reply: LogReply) => void): void {
    this.receive = receive;
  }

  drain(): LogReply[] {
    return this.replies.splice(0);
  }

  /** Delivers the oldest reply to the gateway; false if there is none. */
  deliver(): boolean {
    const reply = this.replies.shift();
    if (reply === undefined) return false;
    this.receive(reply);
    return true;
  }
}

/** The rings to and from one engine. */
interface Rings {
  readonly commands: RingMemory;
  readonly events: RingMemory;
}

interface Engine {
  readonly stage: EngineStage;
  readonly executed: Executed;
  /** Readers beside the real ones: of the engine's commands, and of its published events. */
  readonly commands: RingGate;
  readonly events: RingGate;
  /** Published and not yet committed. */
  readonly published: { readonly event: EngineEvent; readonly index: number }[];
  isRunning: boolean;
}

/** Events and requests of one pass of the log. */
interface Pass {
  readonly requests: readonly LogRequest[];
  readonly events: readonly { event: EngineEvent; ring: number; fillId: number; sequence: number }[];
}

/** A read of the tables, which another thread would do. */
type Lookup = () => void;

/** The world's observer during a life. */
export interface Witness {
  committed(events: number, writes: number): void;
  event(event: EngineEvent, fillId: number, sequence: number): void;
  /** An engine waits in the middle of a command; others go on until `hasRoom` holds. */
  ringIsFull(engine: number, hasRoom: () => boolean): void;
}

export class Life {
  readonly loop: HandLoop;
  readonly mailbox = new HandMailbox();
  /** journal.db and exchange.db. */
  readonly connection: FaultyConnection;
  readonly tables: FaultyConnection;
  readonly log: Log;
  readonly projector: Projector;
  readonly progress = new LogProgress();
  private readonly bodies: JournalReader;
  private readonly projected: ProjectedReads;
  readonly engines: Engine[] = [];
  readonly exchange: Exchange;
  readonly entry: OrderEntry;
  readonly writer: LogWriter;
  readonly markets: MarketLifecycle;
  /** Live orders and markets are back. */
  isReady = false;
  /** A disk has failed: only messages about earlier commits still move. */
  hasFailed = false;
  /** The projector still runs. */
  hasTables = true;
  readonly restored: Promise<number>;
  /** Applies the log's last commit to the record; null if there is none. */
  unheard: (() => void) | null = null;
  checkpointIsWanted: (() => void) | null = null;
  /** Passes that the log holds, oldest first, with the last batch of each. */
  private readonly held: { readonly batch: number; readonly pass: Pass }[] = [];
  /** The last batch before this life. */
  private readonly begins: number;
  private readonly lookups: Lookup[] = [];
  /** Reads that wait for the projector. */
  private waitingReads = 0;
  private readonly record: Committed;
  private readonly witness: Witness;
  private readonly files: Files;
  private readonly shape: Shape;
  private readonly reader: Database.Database;
  private readonly lookupsOf: TableLookups;

  /** @param strikes called with the tables' connection before recovery projects the rest of the log */
  constructor(
    files: Files,
    shape: Shape,
    clock: Clock,
    record: Committed,
    audience: UserListener & MarketListener,
    witness: Witness,
    strikes: (tables: FaultyConnection) => void = () => {},
  ) {
    this.record = record;
    this.witness = witness;
    this.files = files;
    this.shape = shape;
    this.loop = new HandLoop(() => clock.now);
    this.connection = new FaultyConnection(openJournal(files.journal, "full"), "INSERT INTO batches");
    this.tables = new FaultyConnection(openDatabase(files.tables, "normal"), "COMMIT");
    const journal = openReadOnly(files.journal);
    this.bodies = new JournalReader(journal);
    const db = openReadOnly(files.tables);
    this.reader = db;
    strikes(this.tables);
    const end = recoverTables(this.tables.db, journal, shape);
    emptyWal(this.connection.db);
    this.begins = end.batch;
    const { state, ledger, registry } = loadExchange(db, this.loop);
    const accounts = new Accounts(() => {});
    accounts.load(loadAccounts(db, clock.now, MAX_ENDED_SESSIONS, { since: clock.now, most: 0 }));
    const store = new OrderStore(shape.capacity);
    const clientOrderIds = new ClientOrderIds(clock.now, shape.clientOrderIds);
    const rings = Array.from({ length: shape.engines }, () => {
      return { commands: createRing(shape.commandRecords), events: createRing(shape.eventRecords) };
    });
    rings.forEach((memory, i) => {
      this.engines.push(this.openEngine(i, memory, shape, microClockOf(clock)));
    });
    this.log = this.openLog(clock, store, rings, { end, state, isHeld: shape.isHeld === true });
    this.tables.db.pragma(`wal_autocheckpoint = ${WAL_PAGES}`);
    this.projector = new Projector(this.tables.db, this.bodies, { ...shape, checksHashes: true });
    this.progress.project(this.projector.point);
    this.projected = new ProjectedReads(this.progress, new Waker(), () => clock.now);
    this.exchange = new Exchange({
      projected: this.projected,
      links: rings.map(({ commands, events }) => {
        return { commands: new RingProducer(commands), events: new RingConsumer(events, true), waker: new Waker() };
      }),
      loop: this.loop,
      store,
      ledger,
      registry,
      clientOrderIds,
      lastOrderId: state.lastOrderId,
      userSequences: loadUpdateSequences(db),
      counters: new Counters(),
      times: new OrderTimes(microClockOf(clock), shape.capacity),
      timeline: new Timeline(Math.max(clock.now, state.at)),
      reservedCommands: shape.reservedCommands,
    });
    this.exchange.listen(audience, audience);
    this.lookupsOf = tableLookups(db);
    this.entry = this.openEntry();
    this.writer = new LogWriter({
      mailbox: this.mailbox,
      gate: this.exchange.gate,
      time: () => this.exchange.time(),
      rooms: createWriteRooms({
        ...{ db, accounts, exchange: this.exchange },
        lookups: {
          payment: (reference) => this.ask(() => this.lookupsOf.payment(reference)),
          reversibleDeposit: (id) => this.ask(() => this.lookupsOf.reversibleDeposit(id)),
          withdrawalPaidWith: (reference) => this.ask(() => this.lookupsOf.withdrawalPaidWith(reference)),
          holders: (first, count) => this.ask(() => this.lookupsOf.holders({ first, count })),
        },
        largestId: shape.largestId,
      }),
    });
    const approvals = new Approvals(this.writer, accounts, new Set(), loadApprovals(db));
    const { exchange, writer } = this;
    this.markets = new MarketLifecycle({ exchange, writer, approvals, accounts } as unknown as MarketLifecycleOptions);
    for (const { userId, amount } of loadPendingWithdrawals(db)) exchange.cash.hold(userId, amount);
    this.restored = restoreTrading(exchange, readHere(db, namingOf(exchange, clock.now)), clock.now);
  }

  private openLog(
    clock: Clock,
    { texts }: OrderStore,
    rings: readonly Rings[],
    { end, state, isHeld }: { readonly end: LogEnd; readonly state: LedgerState; readonly isHeld: boolean },
  ): Log {
    return new Log({
      db: this.connection.db,
      end,
      last: { entry: state.lastEntryId, at: state.at, updates: loadUpdateSequences(this.reader) },
      rates: loadUserRates(this.reader).map(({ id: userId, ...terms }) => ({ userId, ...terms })),
      gates: rings.map(({ events }) => new RingGate(events)),
      texts,
      progress: this.progress,
      now: () => clock.now,
      clock: microClockOf(clock),
      onCommit: () => {},
      requestCheckpoint: () => {
        this.checkpointIsWanted = () => this.log.finishCheckpoint();
      },
      replication: isHeld ? { isHeld, onRelease: () => {} } : null,
    });
  }

  /** Reads the tables once they include what is committed now, when the driver lets the reader run. */
  private ask<T>(read: () => T): Promise<T> {
    const queue = (): Promise<T> => new Promise((resolve) => this.lookups.push(() => resolve(read())));
    const behind = this.projected.caughtUp();
    if (behind === undefined) return queue();
    this.waitingReads++;
    const waited = (): void => void this.waitingReads--;
    behind.then(waited, waited);
    return behind.then(queue);
  }

  private openEntry(): OrderEntry {
    return new OrderEntry({
      exchange: this.exchange,
      findEnded: (_userId, orderId) => this.ask(() => this.lookupsOf.endedOrder(orderId)),
      saveCancelOnDisconnect: (orderIds, isSet) =>
        this.writer.write(
          orderIds.map((id) => ({ kind: "update", table: "orders", id, set: { tied: isSet ? 1 : 0 } })),
        ),
      defaultMergeFeeBps: USUAL_MERGE_FEE_BPS,
    });
  }

  private openEngine(i: number, memory: Rings, shape: Shape, clock: () => number) {
    const { capacity, activeBooks, largestId, longestChain } = shape;
    const engine: Engine = {
      stage: new EngineStage({
        ...memory,
        capacity,
        activeBooks,
        largestId,
        longestChain,
        clock,
        batchCommands: createHistogram(COUNT_BOUNDS),
        waitForRoom: (hasRoom) => {
          this.readPublished(engine);
          this.witness.ringIsFull(i, hasRoom);
        },
      }),
      executed: new Executed(),
      commands: new RingGate(memory.commands),
      events: new RingGate(memory.events),
      published: [],
      isRunning: false,
    };
    return engine;
  }

  // ---------------------------------------------------------------- scheduling

  /** Lets an engine execute a batch of up to `most` commands; returns their number. */
  runEngine(i: number, most: number): number {
    const engine = this.engines[i]!;
    if (engine.isRunning) return 0;
    if (!this.isReady) engine.executed.foresee(engine.commands);
    engine.isRunning = true;
    const count = engine.stage.run(most);
    engine.isRunning = false;
    if (count === 0) return 0;
    this.readPublished(engine);
    engine.executed.ran(engine.commands, count, engine.stage.matcher);
    return count;
  }

  private readPublished(engine: Engine): void {
    const { events, published, executed } = engine;
    const count = events.available();
    const read: EngineEvent[] = [];
    for (let i = 0; i < count; i++) {
      const index = events.tail & events.mask;
      const event = decodeEvent(events.words, events.doubles, index);
      published.push({ event, index });
      read.push(event);
      events.tail = (events.tail + 1) | 0;
    }
    executed.read(read);
  }

  /** One pass of the log; false if there was nothing to commit. Throws the error of the disk or crash. */
  commit(): boolean {
    const counts = this.engines.map(({ published }) => published.length);
    const commits = this.connection.commits;
    let requests: LogRequest[] = [];
    const receive = (): LogRequest[] => {
      requests = this.mailbox.posted.splice(0).filter((message) => "payload" in message);
      return requests;
    };
    let replies: LogReply[] | null = null;
    try {
      replies = this.log.commit(receive);
    } catch (error) {
      // The file has it and nobody has seen it: the disk decides whether it lasts.
      if (this.connection.commits > commits) this.unheard = () => this.keep(this.take(requests, counts), null);
      throw error;
    }
    if (replies === null) return false;
    const pass = this.take(requests, counts);
    const { appendedBatch: batch, releasedBatch } = this.progress;
    const isShown = this.held.length === 0 && (this.shape.isHeld !== true || batch <= releasedBatch);
    if (isShown) this.showPass(pass, replies);
    else {
      ensure(replies.length === 0, "no reply precedes the release of its batch");
      this.held.push({ batch, pass });
    }
    return true;
  }

  private showPass(pass: Pass, replies: readonly LogReply[]): void {
    this.keep(pass, replies);
    for (const reply of replies) this.mailbox.replies.push(reply);
  }

  /** Another place has got up to `most` batches more, and what it has is shown. */
  release(most: number): void {
    const { progress, held } = this;
    progress.release(Math.max(progress.releasedBatch, Math.min(progress.appendedBatch, progress.releasedBatch + most)));
    const replies = this.log.release() ?? [];
    while (held[0] !== undefined && held[0].batch <= progress.releasedBatch) {
      const { pass } = held.shift()!;
      this.showPass(pass, replies.splice(0, pass.requests.length));
    }
    ensure(replies.length === 0, "each reply belongs to a pass that is released");
    // A start shows what its file has; nobody looks before it is over.
    const allowed = Math.max(this.begins, progress.releasedBatch);
    ensure(progress.committedBatch <= allowed, "nothing is committed that no other place has");
  }

  /** True if nothing is held. */
  get isShown(): boolean {
    return this.held.length === 0;
  }

  /** The process ends: a start finds in the file what was held. */
  keepHeld(): void {
    for (const { pass } of this.held.splice(0)) this.keep(pass, null);
  }

  /** One transaction of the projector over up to `most` batches; false if there was nothing to project. */
  project(most: number): boolean {
    let count = 0;
    const left = Math.min(most, this.progress.committedBatch - this.projector.point.batch);
    for (const body of left > 0 ? this.bodies.bodies(this.projector.point.batch + 1) : []) {
      this.projector.apply(body);
      if (++count >= left) break;
    }
    if (count === 0) return false;
    this.projector.commit();
    this.progress.project(this.projector.point);
    return true;
  }

  /** What a pass has committed, as the log numbered it. @param counts of each ring's events */
  private take(requests: readonly LogRequest[], counts: readonly number[]): Pass {
    const events = this.engines.flatMap(({ events: view, published }, ring) =>
      published.splice(0, counts[ring]).map(({ event, index }) => {
        const d = index * R.RECORD_DOUBLES;
        return { event, ring, fillId: view.doubles[d + R.D_FILL_ID]!, sequence: view.doubles[d + R.D_USER_SEQUENCE]! };
      }),
    );
    return { requests, events };
  }

  /** Applies a commit to the record. @param replies null if the log died before it replied */
  private keep({ requests, events }: Pass, replies: readonly LogReply[] | null): void {
    const { record, witness } = this;
    requests.forEach(({ payload }, i) => {
      record.writes(unpackRequest(Buffer.from(payload)), replies === null ? null : replies[i]!);
    });
    for (const { event, ring, fillId, sequence } of events) {
      record.event(event, ring, fillId, sequence);
      witness.event(event, fillId, sequence);
    }
    record.expectBalanced();
    witness.committed(events.length, requests.length);
  }

  idle(): boolean {
    return this.log.idle();
  }

  /** Another connection moves the WAL into the file, as the log requested. */
  checkpoint(): boolean {
    const done = this.checkpointIsWanted;
    if (done === null) return false;
    this.checkpointIsWanted = null;
    const other = openDatabase(this.files.journal, "full");
    other.pragma("wal_checkpoint(PASSIVE)");
    other.close();
    done();
    return true;
  }

  /** A reading thread does a read. */
  lookUp(): boolean {
    const lookup = this.lookups.shift();
    if (lookup === undefined) return false;
    lookup();
    return true;
  }

  get hasLookups(): boolean {
    return this.lookups.length > 0;
  }

  /** A disk has failed: does what the server does then. */
  fail(isTables: boolean): void {
    this.hasFailed = true;
    this.hasTables = !isTables;
    this.exchange.gate.fail(overloaded(FAILED));
    this.exchange.failPending(outcomeUnknown(FAILED));
    this.writer.failPending(outcomeUnknown(FAILED));
    if (isTables) this.projected.end();
  }

  /** True once every command and write has its reply, and nothing is in flight. */
  get isQuiet(): boolean {
    const { exchange, writer, mailbox, engines } = this;
    return (
      exchange.pending.size === 0 &&
      writer.pendingCount === 0 &&
      mailbox.posted.length === 0 &&
      mailbox.replies.length === 0 &&
      this.held.length === 0 &&
      this.lookups.length === 0 &&
      this.waitingReads === 0 &&
      this.progress.projectedBatch === this.progress.committedBatch &&
      !exchange.cancels.isBusy &&
      engines.every(({ published, commands }) => published.length === 0 && commands.available() === 0) &&
      exchange.links.every(({ commands, events }) => commands.depth() === 0 && events.depth() === 0)
    );
  }

  /** Completes everything in flight; no client acts meanwhile. */
  async becomeQuiet(): Promise<void> {
    for (let turns = 0, quiet = 0; quiet < 2; turns++) {
      ensure(turns < PATIENCE, "everything in flight completes");
      while (this.mailbox.deliver());
      while (this.lookUp());
      this.checkpoint();
      this.loop.turn();
      for (let i = 0; i < this.engines.length; i++) this.runEngine(i, 1_000);
      this.commit();
      this.release(1_000);
      while (this.project(1_000));
      this.loop.turn();
      await microtasks();
      quiet = this.isQuiet ? quiet + 1 : 0;
    }
  }

  /** May have orders in its books. */
  canTrade(market: number): boolean {
    const status = this.exchange.registry.get(market)?.status;
    return status === MarketStatus.open || status === MarketStatus.halted;
  }

  /** Frames of the tables' WAL that are in their file. */
  get copiedFrames(): number {
    // On a connection of its own: the others may be in a transaction.
    const db = openReadOnly(this.files.tables);
    const { checkpointed } = walFrames(db);
    db.close();
    return checkpointed;
  }

  get journal(): JournalReader {
    return this.bodies;
  }

  get database(): Database.Database {
    return this.reader;
  }

  /** Ends like a dead process: connections are gone, nothing is finished. */
  end(): void {
    this.connection.abandon();
    this.tables.abandon();
    try {
      this.reader.close();
    } catch {
      // A recovery that a crash interrupted was still reading: the collector closes it.
    }
  }
}

/** The reads of the tables that the exchange needs. */
function tableLookups(db: Database.Database) {
  const ended = db.prepare(
    `SELECT user_id AS userId, fingerprint, created_at AS createdAt,
       (SELECT code FROM builders WHERE builders.id = builder_id) AS builderCode FROM orders WHERE id = ?`,
  );
  const payments = preparePayments(db);
  return {
    endedOrder: (orderId: number): EndedOrder | null => (ended.get(orderId) as EndedOrder | undefined) ?? null,
    payment: (reference: string) => payments.payments({ references: [reference] })[0] ?? null,
    reversibleDeposit: (id: number) => payments.reversibleDeposit({ id }),
    withdrawalPaidWith: (reference: string) => payments.withdrawalPaidWith({ reference }),
    holders: prepareHolders(db),
  };
}

type TableLookups = ReturnType<typeof tableLookups>;

/** Lets all promises resolve that can. */
export function microtasks(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve));
}
