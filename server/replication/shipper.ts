/**
 * Ships the log to the stream: reads the batches that the log stage has appended, and publishes as many of them in one
 * message as wait. journal.db is the queue: a start and a long outage are the same code. Runs in the replication thread.
 */

import { randomBytes } from "node:crypto";
import { setTimeout as delay } from "node:timers/promises";
import { NO_HASH } from "../../engine/log/append.ts";
import { hashOf } from "../../engine/log/batch-format.ts";
import type { LogReader } from "../../engine/log/log-reader.ts";
import type { LogProgress } from "../../engine/log/progress.ts";
import {
  BadMessage,
  bytesOfBody,
  type LogPosition,
  MAX_MESSAGE_BYTES,
  MESSAGE_HEADER_BYTES,
  type Message,
  MessageKind,
  NONCE_BYTES,
  packBase,
  packBatches,
  packParts,
  packResign,
  readMessage,
} from "../../engine/replication/message-format.ts";
import type { Waker } from "../../engine/ring/waker.ts";
import { systemClock } from "../../engine/util/clock.ts";
import { Fenced, OtherLog, OtherMessage, Overtaken, RefusedSetup } from "./errors.ts";
import { ALIVE_MS, IDLE_MS, LARGE_MESSAGE_BYTES, MIN_GAP_MS } from "./limits.ts";
import type { Publisher } from "./publisher.ts";
import type { ReplicationStatus } from "./replication-status.ts";
import type { StreamEnd } from "./stream.ts";

const SLEEP_MS = 1_000;

export interface ShipperOptions {
  /** journal.db, and the archives for what it no longer has. */
  readonly log: LogReader;
  readonly progress: LogProgress;
  /** This thread's. */
  readonly waker: Waker;
  readonly publisher: Publisher;
  readonly status: ReplicationStatus;
  /** Resolves while the stream may be used. */
  readonly allowed: () => Promise<void>;
  /** Called before a message goes out that ends with this batch, and once the stream has it. */
  readonly onSend: (batch: number, body: Buffer) => void;
  readonly onShipped: (batch: number) => void;
}

export class Shipper {
  private readonly options: ShipperOptions;
  private readonly nonce = randomBytes(NONCE_BYTES);
  private sequence = 0;
  private epoch = 0;
  /** The last batch that the stream has, and its body; null where it came before this start. */
  private shipped = 0;
  private lastBody: Buffer | null = null;
  /** Its SHA-256, once somebody asked. */
  private lastHash: Buffer | null = null;
  /** Where the log was at the start. */
  private local!: LogPosition;
  /** When the last message was sent first, ms, and its length. */
  private sentAt = 0;
  private sentBytes = 0;
  private isStopping = false;
  /** After how long without a message it says where the log is. */
  private idleMs = IDLE_MS;

  constructor(options: ShipperOptions) {
    this.options = options;
  }

  /**
   * Begins where the stream ends, with a message of a new epoch that no other process sends. From then on the stream takes
   * nothing from a box that was active before. What the log has beyond the stream comes next.
   * @throws RefusedSetup where the stream isn't of this log; Overtaken where another box was faster, or is still there
   */
  async begin(end: StreamEnd, epoch: number, local: LogPosition): Promise<void> {
    this.sequence = end.sequence;
    this.epoch = epoch;
    this.local = local;
    this.shipped = end.position?.batch ?? local.batch;
    this.lastHash = end.position?.hash ?? local.hash;
    this.sentAt = systemClock.elapsed();
    if (end.position !== null) this.requireSame(end.position, local);
    try {
      // Where a late message of an earlier process has the place, the next one is of the new epoch.
      let isSaid = false;
      while (!isSaid) isSaid = await this.publishBase();
    } catch (error) {
      if (!(error instanceof Fenced)) throw error;
      throw new Overtaken(`another box became active meanwhile (${error.message})`);
    }
    this.options.status.set("epoch", epoch);
  }

  /** The stream's last message. */
  get lastSequence(): number {
    return this.sequence;
  }

  /** The last batch that the stream has. */
  get position(): Omit<LogPosition, "exchange"> {
    const { shipped: batch, lastBody } = this;
    if (lastBody !== null) this.lastHash ??= hashOf(lastBody);
    return { batch, hash: this.lastHash ?? NO_HASH };
  }

  /** Says where the log is. @throws as `publish` */
  private publishBase(): Promise<boolean> {
    const { exchange } = this.local;
    return this.publish([packBase(this.epoch, { exchange, ...this.position }, this.nonce)]);
  }

  /** The stream ends with a batch of this log. */
  private requireSame({ exchange, batch, hash }: LogPosition, local: LogPosition): void {
    if (exchange !== local.exchange) throw new RefusedSetup("the stream has the log of another exchange");
    if (batch > local.batch) {
      throw new Overtaken(`the stream ends with batch ${batch} by now, this box's log with batch ${local.batch}`);
    }
    if (batch === 0) return;
    const own = batch === local.batch ? local.hash : hashOf(this.bodyOf(batch));
    if (!own.equals(hash)) {
      throw new OtherLog(`batch ${batch} of the stream isn't the one in this box's log: they went on separately`);
    }
  }

  private bodyOf(batch: number): Buffer {
    for (const body of this.options.log.bodies(batch)) return body;
    throw new RefusedSetup(`the stream ends with batch ${batch}, which this box's log no longer has`);
  }

  /** Ships until `stop`. @throws Fenced, BrokenStream, BrokenLog */
  async run(): Promise<void> {
    const { progress, waker } = this.options;
    const hasWork = (): boolean => progress.appendedBatch > this.shipped || this.isStopping;
    while (!this.isStopping || progress.appendedBatch > this.shipped) {
      await this.options.allowed();
      if (progress.appendedBatch > this.shipped) {
        await this.gather();
        await this.ship(progress.appendedBatch);
      } else if (this.isIdle) await this.sayWhere();
      else await waker.sleepAsync(hasWork, Math.min(SLEEP_MS, this.idleMs / 4));
    }
  }

  /** True where the stream's messages may be gone before the next batch comes. */
  private get isIdle(): boolean {
    return systemClock.elapsed() - this.sentAt > this.idleMs;
  }

  /** @param isWanted true while others may not know by beats that this box is there */
  sayAlive(isWanted: boolean): void {
    const idleMs = isWanted ? ALIVE_MS : IDLE_MS;
    if (idleMs === this.idleMs) return;
    this.idleMs = idleMs;
    this.options.waker.wake();
  }

  private async sayWhere(): Promise<void> {
    this.sentAt = systemClock.elapsed();
    await this.publishBase();
  }

  /** Ships up to this batch, which the log has. @throws as `run` */
  async shipThrough(batch: number): Promise<void> {
    while (this.shipped < batch) await this.ship(batch);
  }

  /** Ends the epoch, once `run` has ended: the stream takes nothing more of it. @throws as `run` */
  async resign(successor: string): Promise<void> {
    const { exchange } = this.local;
    let isSaid = false;
    while (!isSaid) {
      isSaid = await this.publish([packResign(this.epoch, { exchange, ...this.position }, this.nonce, successor)]);
    }
  }

  /** Ends `run` once everything is shipped. */
  stop(): void {
    this.isStopping = true;
    this.options.waker.wake();
  }

  /** Under load more batches share a message, which costs each order less: no two large ones begin within MIN_GAP_MS. */
  private async gather(): Promise<void> {
    const { sentAt, sentBytes } = this;
    const left = sentAt + MIN_GAP_MS - systemClock.elapsed();
    if (sentBytes >= LARGE_MESSAGE_BYTES && left > 0) await delay(left);
    this.sentAt = systemClock.elapsed();
  }

  /**
   * Publishes the next batches, in one message or one batch in parts; resolves as `publish`.
   * @param last the last batch that the log has
   */
  private async ship(last: number): Promise<boolean> {
    const { messages, last: shipped, body } = this.pack(last);
    this.options.onSend(shipped, body);
    if (!(await this.publish(messages))) return false;
    this.moveTo(shipped, body);
    return true;
  }

  private moveTo(batch: number, body: Buffer): void {
    this.shipped = batch;
    this.lastBody = body;
    this.lastHash = null;
    this.options.onSend(batch, body);
    this.options.onShipped(batch);
  }

  /** Publishes messages that belong together; resolves with false where another one had a place of theirs. @throws Fenced */
  private async publish(messages: readonly Buffer[]): Promise<boolean> {
    const { publisher, status } = this.options;
    for (const message of messages) {
      try {
        this.sequence = await publisher.publish(message, this.sequence);
      } catch (error) {
        if (!(error instanceof OtherMessage)) throw error;
        this.adopt(error.bytes);
        return false;
      }
      status.add("shippedMessages", 1);
      status.add("shippedBytes", message.length);
      this.sentBytes = message.length;
    }
    return true;
  }

  /**
   * Another message has the place of ours. A process that was killed may have sent it: with the same batches it is as good as
   * ours, and what follows is packed anew. @throws Fenced where it isn't ours
   */
  private adopt(bytes: Buffer): void {
    const sequence = this.sequence + 1;
    const message = readOther(bytes, sequence);
    const { epoch, first, kind } = message;
    // Nothing of this process's epoch is another's.
    const isOurs = message.base !== null ? this.isHere(message) : first === this.shipped + 1 && this.hasSame(message);
    if (epoch >= this.epoch || !isOurs) {
      throw new Fenced(`another box wrote message ${sequence} of the stream: batch ${first} of epoch ${epoch}`);
    }
    this.sequence = sequence;
    // Of a batch in parts all are sent again; those that their rest doesn't follow are void.
    if (kind === MessageKind.batches) this.moveTo(message.last, message.bodies.at(-1)!);
  }

  /** True if a base or a resignation says that the stream ends where it does. */
  private isHere({ base }: Message): boolean {
    const { batch, hash } = this.position;
    return base !== null && base.exchange === this.local.exchange && base.batch === batch && base.hash.equals(hash);
  }

  /** True if the log has the same batches, or the same slice of one. */
  private hasSame({ kind, first, part, bodies }: Message): boolean {
    if (first > this.options.progress.appendedBatch) return false;
    let at = 0;
    for (const own of this.options.log.bodies(first)) {
      if (kind === MessageKind.part) {
        const parts = this.partsOf(first, own);
        return parts.length > 0 && readMessage(parts[part - 1]!).bodies[0]!.equals(bodies[0]!);
      }
      if (!own.equals(bodies[at]!)) return false;
      if (++at === bodies.length) return true;
    }
    return false;
  }

  /** The messages of a batch that is too large for one; none of any other batch. */
  private partsOf(batch: number, body: Buffer): readonly Buffer[] {
    const isLarge = MESSAGE_HEADER_BYTES + bytesOfBody(body) > MAX_MESSAGE_BYTES;
    return isLarge ? packParts(this.epoch, batch, body, MAX_MESSAGE_BYTES) : [];
  }

  /** The next messages, the last batch that they end, and its body. */
  private pack(last: number): { readonly messages: readonly Buffer[]; readonly last: number; readonly body: Buffer } {
    const first = this.shipped + 1;
    const bodies: Buffer[] = [];
    let length = MESSAGE_HEADER_BYTES;
    for (const body of this.options.log.bodies(first)) {
      length += bytesOfBody(body);
      if (bodies.length > 0 && length > MAX_MESSAGE_BYTES) break;
      if (length > MAX_MESSAGE_BYTES) return { messages: this.partsOf(first, body), last: first, body };
      bodies.push(body);
      if (first + bodies.length > last) break;
    }
    const end = this.shipped + bodies.length;
    return { messages: [packBatches(this.epoch, first, bodies)], last: end, body: bodies.at(-1)! };
  }
}

/** @throws Fenced where the message is none of an exchange */
function readOther(bytes: Buffer, sequence: number): Message {
  try {
    return readMessage(bytes);
  } catch (error) {
    if (!(error instanceof BadMessage)) throw error;
    throw new Fenced(`something else wrote message ${sequence} of the stream: ${error.message}`);
  }
}
