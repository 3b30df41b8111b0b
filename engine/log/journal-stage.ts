/**
 * The journal as a stage of a thread: its mailbox of account writes, and what the thread needs to open it.
 * The thread calls `run` whenever it woke; the same code serves the engine thread that carries the journal as its last
 * stage and the journal thread of its own.
 */
import { type MessagePort, receiveMessageOnPort } from "node:worker_threads";
import { type Durability, emptyWal, openDatabase } from "../projection/database.ts";
import { OrderTexts } from "../ring/order-texts.ts";
import { RingGate, type RingMemory } from "../ring/ring.ts";
import type { Waker } from "../ring/waker.ts";
import { Histogram, type HistogramMemory } from "../util/histogram.ts";
import { createMicroClock } from "../util/micro-clock.ts";
import { Journal } from "./journal.ts";
import type { JournalMessage, JournalReply, WriteRequest } from "./journal-messages.ts";
import { CommittedTotals } from "./totals.ts";

const POSTED = 0;

/** Handed to the thread that runs the journal. */
export interface JournalSetup {
  readonly path: string;
  readonly durability: Durability;
  readonly events: readonly RingMemory[];
  readonly texts: SharedArrayBuffer;
  readonly totals: SharedArrayBuffer;
  readonly port: MessagePort;
  /** Count of messages posted to `port`, so that the stage looks into the port only when there is something. */
  readonly posted: SharedArrayBuffer;
  /** Of the clock that all threads share: micro-clock.ts. */
  readonly clockEpoch: number;
  /** How long the transactions took, µs, and how many orders each touched; this stage observes. */
  readonly commitTimes: HistogramMemory;
  readonly commitOrders: HistogramMemory;
}

export class JournalStage {
  private readonly journal: Journal;
  private readonly port: MessagePort;
  private readonly posted: Int32Array;
  private readonly gates: RingGate[];
  private readonly gateway: Waker;
  private received = 0;

  constructor(setup: JournalSetup, gateway: Waker) {
    this.port = setup.port;
    this.posted = new Int32Array(setup.posted);
    this.gateway = gateway;
    this.gates = setup.events.map((memory) => new RingGate(memory));
    const [commitTimes, commitOrders] = [new Histogram(setup.commitTimes), new Histogram(setup.commitOrders)];
    const db = openDatabase(setup.path, setup.durability);
    emptyWal(db);
    this.journal = new Journal({
      db,
      gates: this.gates,
      texts: new OrderTexts(setup.texts),
      totals: new CommittedTotals(setup.totals),
      now: Date.now,
      clock: createMicroClock(setup.clockEpoch),
      onCommit: (took, orders) => {
        commitTimes.observe(took);
        commitOrders.observe(orders);
      },
      requestCheckpoint: () => this.port.postMessage("checkpoint" satisfies JournalReply),
    });
  }

  /** True when `run` would find something. */
  hasWork(): boolean {
    if (Atomics.load(this.posted, POSTED) !== this.received) return true;
    for (const gate of this.gates) if (gate.available() > 0) return true;
    return false;
  }

  /** Commits all there is and lets the gateway see it; true when there was something. Throws when the database fails. */
  run(): boolean {
    const replies = this.journal.commit(() => this.receive());
    if (replies === null) return false;
    for (const reply of replies) this.port.postMessage(reply);
    this.gateway.wake();
    return true;
  }

  /** A slice of the work that can wait; true when there may be more. */
  idle(): boolean {
    return this.journal.idle();
  }

  get stopped(): boolean {
    return this.journal.stopped;
  }

  close(): void {
    this.journal.close();
    this.port.close();
  }

  private receive(): WriteRequest[] {
    const requests: WriteRequest[] = [];
    if (Atomics.load(this.posted, POSTED) === this.received) return requests;
    for (;;) {
      const message = receiveMessageOnPort(this.port);
      if (message === undefined) return requests;
      this.received = (this.received + 1) | 0;
      const content = message.message as JournalMessage;
      if (content === "checkpointed") this.journal.finishCheckpoint();
      else requests.push(content);
    }
  }
}
