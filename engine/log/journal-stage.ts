/**
 * The journal as a stage of a thread, with its mailbox of account writes. The thread calls `run` whenever it wakes: an
 * engine thread whose last stage is the journal, or the journal's own thread.
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

/** The setup for the thread that runs the journal. */
export interface JournalSetup {
  readonly path: string;
  readonly durability: Durability;
  readonly events: readonly RingMemory[];
  readonly texts: SharedArrayBuffer;
  readonly totals: SharedArrayBuffer;
  readonly port: MessagePort;
  /** The number of messages posted to `port`: the stage reads the port only after it changes. */
  readonly posted: SharedArrayBuffer;
  /** The epoch of the clock that all threads share (micro-clock.ts). */
  readonly clockEpoch: number;
  /** The duration of each transaction, µs, and its number of dirty orders; this stage observes. */
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
      onCommit: (durationMicros, orders) => {
        commitTimes.observe(durationMicros);
        commitOrders.observe(orders);
      },
      requestCheckpoint: () => this.port.postMessage("checkpoint" satisfies JournalReply),
    });
  }

  /** True if `run` has work. */
  hasWork(): boolean {
    if (Atomics.load(this.posted, POSTED) !== this.received) return true;
    for (const gate of this.gates) if (gate.available() > 0) return true;
    return false;
  }

  /** Commits everything available and wakes the gateway; returns false if there was nothing. Throws if the database fails. */
  run(): boolean {
    const replies = this.journal.commit(() => this.receive());
    if (replies === null) return false;
    for (const reply of replies) this.port.postMessage(reply);
    this.gateway.wake();
    return true;
  }

  /** Does a slice of background work; returns true if there may be more. */
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
