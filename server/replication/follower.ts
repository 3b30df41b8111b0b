/**
 * Follows the log of the active box: what comes over the subject is checked, made durable with one commit for everything that
 * waits, and reported. What didn't come is read from the stream. Runs in the replication thread of a standby.
 *
 * A message comes before the nodes have acknowledged it, and may never be: only what the next message or a beat of the active
 * confirms is shown to the tables.
 */

import { setTimeout as delay } from "node:timers/promises";
import type { StreamInfo } from "@nats-io/jetstream";
import type { Subscription } from "@nats-io/transport-node";
import type { LogEnd } from "../../engine/log/append.ts";
import { DivergedLog, type LogCopy } from "../../engine/log/log-copy.ts";
import { BatchAssembler } from "../../engine/replication/batch-assembler.ts";
import { BadMessage, type Message, readMessage } from "../../engine/replication/message-format.ts";
import { assert } from "../../engine/util/assert.ts";
import { systemClock } from "../../engine/util/clock.ts";
import { type Beat, shortHash } from "./beats.ts";
import type { NatsLink } from "./connection.ts";
import { BrokenStream } from "./errors.ts";
import { BEHIND_MS, MAX_WAITING_BYTES, RESIGN_POLL_MS, RESIGN_SURE_MS } from "./limits.ts";
import type { Say } from "./reminder.ts";
import type { LogStream, StreamEnd } from "./stream.ts";
import { syncLog } from "./sync.ts";

const SLEEP_MS = 1_000;

export interface FollowerOptions {
  readonly link: NatsLink;
  readonly stream: LogStream;
  readonly log: LogCopy;
  /** Called with where the log certainly goes on from: the tables may follow. */
  readonly onConfirmed: (end: LogEnd) => void;
  /** Called after each commit, and where the log is found to be whole, with its end. */
  readonly onCommit: (end: LogEnd) => void;
  readonly say: Say;
  /** Ends the log where it and the stream are still the same. @param known the last batch that certainly is @throws as cutDiverged */
  readonly cut: (info: StreamInfo, known: number) => Promise<void>;
  /** Called where the stream ends with a resignation. @param successor the box that is to begin the next epoch */
  readonly onResigned: (successor: string) => void;
  /** In which this box led or followed last; 0 for none. */
  readonly epoch: number;
  /** Called with the first epoch, and before anything that comes of a later one is appended. @param created of the stream */
  readonly onEpoch: (epoch: number, created: string) => void;
}

export class Follower {
  private readonly options: FollowerOptions;
  private readonly assembler = new BatchAssembler();
  /** Messages that wait for the disk, oldest first, and their bytes. */
  private waiting: Buffer[] = [];
  private waitingBytes = 0;
  /** Batches in the log that nothing has confirmed yet, oldest first. */
  private unconfirmed: LogEnd[] = [];
  private currentEpoch: number;
  /** True where the log lacks something that the stream has. */
  private hasGap = true;
  /** What the active says that it has, and since when, ms; null before it said so. */
  private behind: { readonly batch: number; readonly since: number } | null = null;
  /** What a beat says of another log; the stream says whether that is so. */
  private suspect: DivergedLog | null = null;
  private isStopping = false;
  private isSynced = false;
  private confirmedBatch = 0;
  private readThrough = -1;
  /** Until when a resignation that was heard may come in the stream, ms. */
  private resignUntil = 0;
  private created = "";
  /** Of the callers of `sync`. */
  private readonly awaiting: (() => void)[] = [];
  private readonly subscription: Subscription;
  private readonly forget: () => void;
  private wake: () => void = () => {};

  constructor(options: FollowerOptions) {
    this.options = options;
    const { link, stream } = options;
    this.currentEpoch = options.epoch;
    this.subscription = link.nc.subscribe(stream.names.subject, {
      callback: (error, message) => {
        if (error === null) this.receive(Buffer.from(message.data));
      },
    });
    // What was published meanwhile is in the stream alone.
    this.forget = link.onTurn(() => this.fillGap());
  }

  /** The epoch of the active. */
  get epoch(): number {
    return this.currentEpoch;
  }

  /** Reads the stream until the log has all of it. @throws as `run` */
  private async catchUp(): Promise<void> {
    const { stream, log } = this.options;
    this.hasGap = false;
    this.behind = null;
    // Whoever asks from now on wants what the stream has later.
    const callers = this.awaiting.splice(0);
    const { suspect } = this;
    this.suspect = null;
    const info = await stream.find();
    if (info === null) throw new BrokenStream(`the stream ${stream.names.stream} is gone`);
    const isOther = info.created !== this.created;
    this.created = info.created;
    this.readThrough = info.state.last_seq;
    const { epoch, position, successor } = await this.syncOrCut(info, suspect);
    // This box may have begun to lead, and another one was faster; or the stream is another one now.
    if (isOther && position !== null) this.currentEpoch = epoch;
    if (isOther || epoch > this.currentEpoch) this.enter(Math.max(epoch, this.currentEpoch));
    if (position !== null) this.confirmThrough(position.batch);
    // All messages are too old: a beat of the active confirms what the log has.
    else this.unconfirmed = log.end === null ? [] : [log.end];
    this.isSynced = true;
    // What beats said meanwhile may be waiting here.
    this.behind = null;
    for (const resolve of callers) resolve();
    if (successor !== null) this.options.onResigned(successor);
    else if (systemClock.elapsed() < this.resignUntil) {
      // The nodes haven't acknowledged it yet.
      await delay(RESIGN_POLL_MS);
      this.hasGap = true;
    }
  }

  /** @param suspect what a beat said before the stream was looked at */
  private async syncOrCut(info: StreamInfo, suspect: DivergedLog | null): Promise<StreamEnd> {
    const { stream, log, cut } = this.options;
    try {
      const end = await syncLog(stream, info, log);
      if (suspect !== null) throw suspect;
      return end;
    } catch (error) {
      if (!(error instanceof DivergedLog) || error === suspect) throw error;
      await cut(info, this.confirmedBatch);
      return syncLog(stream, info, log);
    }
  }

  /** Reads what the stream has, where it has more than at the last look, although nobody said so. */
  async look(): Promise<void> {
    const info = await this.options.stream.find(0);
    if (info === null || info.state.last_seq !== this.readThrough) this.fillGap();
  }

  /** The stream's last message when it was read. */
  get sequence(): number {
    return this.readThrough;
  }

  /** Resolves with its last batch once the log has all that the stream has by then. */
  sync(): Promise<number> {
    return new Promise((resolve) => {
      this.awaiting.push(() => resolve(this.options.log.batch));
      this.fillGap();
    });
  }

  private enter(epoch: number): void {
    this.options.onEpoch(epoch, this.created);
    this.currentEpoch = epoch;
  }

  /** Follows until `stop`, or `isDone`. @throws DivergedLog, BrokenLog, BrokenStream, RefusedSetup, SqliteError */
  async run(isDone: () => boolean = () => false): Promise<void> {
    while (!this.isStopping && !isDone()) {
      if (this.hasGap) await this.catchUp();
      // What came while the stream was read continues it: nothing of that is read again.
      else if (this.waiting.length > 0) this.takeWaiting();
      else if (this.isBehind()) await this.catchUp();
      else await this.sleep();
    }
  }

  /** Takes no more messages, and ends `run`. */
  stop(): void {
    this.isStopping = true;
    this.subscription.unsubscribe();
    this.forget();
    this.wake();
  }

  /** A beat of the active box: what it has, the stream has acknowledged. */
  hear({ epoch, batch, hash }: Beat): void {
    if (epoch < this.currentEpoch || !this.isSynced) return;
    const { log } = this.options;
    if (batch > log.batch) {
      if (this.isUpToBeat) this.behind = { batch, since: systemClock.elapsed() };
      this.wake();
      return;
    }
    if (batch === 0) return;
    const own = log.hashOf(batch);
    if (own !== null && shortHash(own) !== hash) {
      this.suspect = new DivergedLog(batch - 1);
      this.fillGap();
    } else this.confirm(batch);
  }

  private get isUpToBeat(): boolean {
    return this.behind === null || this.options.log.batch >= this.behind.batch;
  }

  private isBehind(): boolean {
    return !this.isUpToBeat && systemClock.elapsed() - this.behind!.since >= BEHIND_MS;
  }

  private fillGap(): void {
    this.hasGap = true;
    this.wake();
  }

  private receive(bytes: Buffer): void {
    this.waitingBytes += bytes.length;
    if (this.waitingBytes > MAX_WAITING_BYTES) {
      this.dropWaiting();
      this.fillGap();
      return;
    }
    this.waiting.push(bytes);
    this.wake();
  }

  private dropWaiting(): void {
    this.waiting = [];
    this.waitingBytes = 0;
  }

  private takeWaiting(): void {
    const waiting = this.waiting;
    this.dropWaiting();
    const bodies: Buffer[] = [];
    let { batch } = this.options.log;
    let confirmed = 0;
    for (const bytes of waiting) {
      const message = this.messageOf(bytes);
      if (message === null) continue;
      if (this.isHere(message)) {
        confirmed = message.first;
        continue;
      }
      if (message.base !== null || message.first > batch + 1 || message.epoch > this.currentEpoch) {
        // A base says where the log is, and so do a new epoch and its end: the stream has what they follow.
        this.hasGap = true;
        if (message.successor !== null) this.resignUntil = systemClock.elapsed() + RESIGN_SURE_MS;
        break;
      }
      const whole = this.assembler.add(message);
      bodies.push(...whole);
      if (whole.length > 0) batch = Math.max(batch, message.last);
      // One message is in flight at a time: the one before this was acknowledged.
      confirmed = message.first - 1;
    }
    this.append(bodies);
    this.confirm(confirmed);
  }

  /** True where an active says that the stream ends where this log does. */
  private isHere({ base, successor, epoch }: Message): boolean {
    const { end } = this.options.log;
    const isOwn = base !== null && successor === null && epoch === this.currentEpoch;
    return isOwn && end !== null && base.batch === end.batch && base.hash.equals(end.hash);
  }

  /** Null for what an older active sent, which may never be stored, and for what no exchange did. */
  private messageOf(bytes: Buffer): Message | null {
    try {
      const message = readMessage(bytes);
      return message.epoch < this.currentEpoch ? null : message;
    } catch (error) {
      if (!(error instanceof BadMessage)) throw error;
      this.options.say("warn", `something else wrote to the stream's subject: ${error.message}`);
      return null;
    }
  }

  private append(bodies: readonly Buffer[]): void {
    if (bodies.length === 0) return;
    let ends: readonly LogEnd[];
    try {
      ends = this.options.log.append(bodies);
    } catch (error) {
      if (!(error instanceof DivergedLog)) throw error;
      // The stream has it soon, or a later message of another box: it says which log is right.
      this.hasGap = true;
      return;
    }
    this.unconfirmed.push(...ends);
    const last = ends.at(-1);
    if (last !== undefined) this.options.onCommit(last);
  }

  /** @param batch the stream has this one, and those before it */
  private confirm(batch: number): void {
    const { unconfirmed } = this;
    const kept = unconfirmed.findIndex((end) => end.batch > batch);
    const last = unconfirmed.splice(0, kept < 0 ? unconfirmed.length : kept).at(-1);
    if (last !== undefined) this.show(last);
  }

  /** A beat may have confirmed more while the stream was read. */
  private show(end: LogEnd): void {
    if (end.batch <= this.confirmedBatch) return;
    this.confirmedBatch = end.batch;
    this.options.onConfirmed(end);
  }

  /** The stream ends with this batch. What the log has beyond it may still become a part of it. */
  private confirmThrough(batch: number): void {
    const { log, onCommit } = this.options;
    this.unconfirmed = [];
    for (let at = Math.max(1, batch); at <= log.batch; at++) {
      const end = log.endAt(at);
      assert(end !== null, "the end of the log is in the journal");
      if (at <= Math.max(batch, this.confirmedBatch)) this.show(end);
      else this.unconfirmed.push(end);
    }
    if (log.end !== null) onCommit(log.end);
  }

  private async sleep(): Promise<void> {
    const ms = this.isUpToBeat ? SLEEP_MS : BEHIND_MS;
    await new Promise<void>((resolve) => {
      const timer = setTimeout(resolve, ms);
      this.wake = () => {
        clearTimeout(timer);
        resolve();
      };
    });
    this.wake = () => {};
  }
}
