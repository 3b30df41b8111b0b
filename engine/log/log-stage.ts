/**
 * The log as a stage of a thread, with its mailbox of writes. The thread calls `run` whenever it wakes: an engine
 * thread whose last stage is the log, or the log's own thread.
 */
import { type MessagePort, receiveMessageOnPort } from "node:worker_threads";
import { OrderTexts } from "../ring/order-texts.ts";
import { RingGate, type RingMemory } from "../ring/ring.ts";
import { Waker } from "../ring/waker.ts";
import { assert } from "../util/assert.ts";
import type { Clock } from "../util/clock.ts";
import { Histogram, type HistogramMemory } from "../util/histogram.ts";
import type { MicroClock } from "../util/micro-clock.ts";
import { type LogStart, openLog } from "./database.ts";
import { Log, type LogReplication } from "./log.ts";
import { MailCount } from "./mail-count.ts";
import type { LogMessage, LogReply, LogRequest } from "./messages.ts";
import { LogProgress } from "./progress.ts";

/** The setup for the thread that runs the log. */
export interface LogSetup {
  readonly start: LogStart;
  readonly events: readonly RingMemory[];
  readonly texts: SharedArrayBuffer;
  readonly progress: SharedArrayBuffer;
  readonly port: MessagePort;
  /** Of the messages posted to `port`: the stage reads the port only after it changes. */
  readonly mail: SharedArrayBuffer;
  readonly projectorWaker: SharedArrayBuffer;
  /** The epoch of the clock that all threads share (micro-clock.ts). */
  readonly clockEpoch: number;
  /** The duration of each commit, µs, and its number of placements; this stage observes. */
  readonly commitTimes: HistogramMemory;
  readonly commitOrders: HistogramMemory;
  /** Null on a single box. */
  readonly replication: ReplicatedLogSetup | null;
}

/** What the log stage needs where other places get the log. */
interface ReplicatedLogSetup {
  /** Nobody sees a batch before `progress.released` reaches it. */
  readonly isHeld: boolean;
  /** The wait cell of the replication thread. */
  readonly waker: SharedArrayBuffer;
  /** From the beginning of a pass until it was shown, µs; this stage observes. */
  readonly releaseTimes: HistogramMemory;
}

export class LogStage {
  private readonly log: Log;
  private readonly port: MessagePort;
  private readonly mail: MailCount;
  private readonly gates: RingGate[];
  private readonly progress: LogProgress;
  private readonly gateway: Waker;
  /** The replication thread; null on a single box. */
  private readonly replication: Waker | null;
  private received = 0;
  private lastRequest = 0;

  constructor(setup: LogSetup, gateway: Waker, clock: Clock, microClock: MicroClock) {
    this.port = setup.port;
    this.mail = new MailCount(setup.mail);
    this.gateway = gateway;
    this.replication = setup.replication === null ? null : new Waker(setup.replication.waker);
    this.gates = setup.events.map((memory) => new RingGate(memory));
    this.progress = new LogProgress(setup.progress);
    const [commitTimes, commitOrders] = [new Histogram(setup.commitTimes), new Histogram(setup.commitOrders)];
    const projector = new Waker(setup.projectorWaker);
    this.log = new Log({
      ...openLog(setup.start),
      gates: this.gates,
      texts: new OrderTexts(setup.texts),
      progress: this.progress,
      now: clock.now,
      clock: microClock,
      onCommit: (durationMicros, orders) => {
        commitTimes.observe(durationMicros);
        commitOrders.observe(orders);
      },
      requestCheckpoint: () => {
        this.progress.requestCheckpoint();
        projector.wake();
      },
      replication: setup.replication === null ? null : openReplication(setup.replication),
    });
  }

  /** True if `run` has work. */
  hasWork(): boolean {
    if (this.mail.posted !== this.received || this.log.canRelease) return true;
    for (const gate of this.gates) if (gate.available() > 0) return true;
    return this.progress.isCheckpointDone;
  }

  /** Commits everything available and wakes the gateway; returns false if there was nothing. Throws if the database fails. */
  run(): boolean {
    if (this.progress.isCheckpointDone && this.progress.takeCheckpointDone()) this.log.finishCheckpoint();
    const released = this.log.release();
    if (released !== null) this.show(released);
    const replies = this.log.commit(() => this.receive());
    this.mail.finish(this.received);
    if (replies === null) return released !== null;
    if (this.log.isShown) this.show(replies);
    this.replication?.wake();
    this.log.trimBesideLoad();
    return true;
  }

  private show(replies: readonly LogReply[]): void {
    for (const reply of replies) this.port.postMessage(reply);
    this.gateway.wake();
  }

  /** Does a slice of background work; returns true if there may be more. */
  idle(): boolean {
    return this.log.idle();
  }

  get stopped(): boolean {
    return this.log.stopped;
  }

  close(): void {
    this.log.close();
    this.port.close();
  }

  private receive(): LogRequest[] {
    const requests: LogRequest[] = [];
    if (this.mail.posted === this.received) return requests;
    for (;;) {
      const message = receiveMessageOnPort(this.port);
      if (message === undefined) return requests;
      this.received = (this.received + 1) | 0;
      const content = message.message as LogMessage;
      if ("trimThrough" in content) this.log.trimUpTo(content.trimThrough);
      else {
        assert(content.id > this.lastRequest, "requests arrive in their order");
        this.lastRequest = content.id;
        requests.push(content);
      }
    }
  }
}

function openReplication({ isHeld, releaseTimes }: ReplicatedLogSetup): LogReplication {
  const times = new Histogram(releaseTimes);
  return { isHeld, onRelease: (durationMicros) => times.observe(durationMicros) };
}
