/**
 * Ships the log to the stream: reads the batches that the log stage has appended, and publishes as many of them in one
 * message as wait. journal.db is the queue: a start and a long outage are the same code. Runs in the replication thread.
 */

import { setTimeout as delay } from "node:timers/promises";
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
  packBase,
  packBatches,
  packParts,
  readMessage,
} from "../../engine/replication/message-format.ts";
import type { Waker } from "../../engine/ring/waker.ts";
import { systemClock } from "../../engine/util/clock.ts";
import { Fenced, OtherMessage, RefusedSetup } from "./errors.ts";
import { LARGE_MESSAGE_BYTES, MIN_GAP_MS } from "./limits.ts";
import type { Publisher } from "./publisher.ts";
import type { ReplicationStatus } from "./replication-status.ts";
import type { StreamEnd } from "./stream.ts";

const SLEEP_MS = 1_000;

export interface ShipperOptions {
  /** journal.db, and the archives for what it no longer has. */
  readonly log: LogReader;
  readonly progress: LogProgress;
  /** This thread's, and the log's. */
  readonly waker: Waker;
  readonly logWaker: Waker;
  readonly publisher: Publisher;
  readonly status: ReplicationStatus;
  /** Resolves while the stream may be used. */
  readonly allowed: () => Promise<void>;
}

export class Shipper {
  private readonly options: ShipperOptions;
  private sequence = 0;
  private epoch = 1;
  /** The last batch that the stream has. */
  private shipped = 0;
  /** When the last message was sent first, ms, and its length. */
  private sentAt = 0;
  private sentBytes = 0;
  private isStopping = false;

  constructor(options: ShipperOptions) {
    this.options = options;
  }

  /**
   * Begins where the stream ends; a stream without a message gets one that says where this log ends.
   * @throws RefusedSetup where the stream isn't of this log, or is ahead of it
   */
  async begin(end: StreamEnd, local: LogPosition): Promise<void> {
    this.sequence = end.sequence;
    this.epoch = end.epoch;
    if (end.position === null) {
      this.sequence = await this.publishBase(local, end.sequence);
      this.shipped = local.batch;
    } else {
      this.requireSame(end.position, local);
      this.shipped = end.position.batch;
    }
    this.options.status.set("epoch", this.epoch);
    this.release();
  }

  private async publishBase(local: LogPosition, expected: number): Promise<number> {
    try {
      return await this.options.publisher.publish(packBase(this.epoch, local), expected);
    } catch (error) {
      if (error instanceof OtherMessage) throw new RefusedSetup("another box began the stream meanwhile");
      throw error;
    }
  }

  /** The stream ends with a batch of this log. */
  private requireSame({ exchange, batch, hash }: LogPosition, local: LogPosition): void {
    if (exchange !== local.exchange) throw new RefusedSetup("the stream has the log of another exchange");
    if (batch > local.batch) {
      throw new RefusedSetup(
        `the stream ends with batch ${batch}, this box's log with batch ${local.batch}: it was restored from an older copy. If no other box runs, "admin standby fetch" gets the rest`,
      );
    }
    if (batch === 0) return;
    const own = batch === local.batch ? local.hash : hashOf(this.bodyOf(batch));
    if (!own.equals(hash)) {
      throw new RefusedSetup(`batch ${batch} of the stream isn't the one in this box's log: they went on separately`);
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
      } else await waker.sleepAsync(hasWork, SLEEP_MS);
    }
  }

  /** Ships up to this batch, which the log has. @throws as `run` */
  async shipThrough(batch: number): Promise<void> {
    while (this.shipped < batch) await this.ship(batch);
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

  /** Publishes the next batches, in one message or one batch in parts. @param last the last batch that the log has */
  private async ship(last: number): Promise<void> {
    const { publisher, status } = this.options;
    const next = this.pack(last);
    for (const message of next.messages) {
      try {
        this.sequence = await publisher.publish(message, this.sequence);
      } catch (error) {
        if (!(error instanceof OtherMessage)) throw error;
        this.adopt(error.bytes);
        return;
      }
      status.add("shippedMessages", 1);
      status.add("shippedBytes", message.length);
      this.sentBytes = message.length;
    }
    this.shipped = next.last;
    this.release();
  }

  /**
   * Another message has the place of ours. A process that was killed may have sent it: with the same batches it is as good as
   * ours, and what follows is packed anew. @throws Fenced where it isn't ours
   */
  private adopt(bytes: Buffer): void {
    const sequence = this.sequence + 1;
    const message = readOther(bytes, sequence);
    const { epoch, first, last, kind } = message;
    const isNext = epoch === this.epoch && first === this.shipped + 1;
    if (!isNext || !this.hasSame(message, bytes)) {
      throw new Fenced(`another box wrote message ${sequence} of the stream: batch ${first} of epoch ${epoch}`);
    }
    this.sequence = sequence;
    // Of a batch in parts all are sent again; those that their rest doesn't follow are void.
    if (kind === MessageKind.batches) this.shipped = last;
    this.release();
  }

  /** True if the log has the same batches, or the same slice of one. */
  private hasSame({ kind, first, part, bodies }: Message, bytes: Buffer): boolean {
    if (kind === MessageKind.base || first > this.options.progress.appendedBatch) return false;
    let at = 0;
    for (const own of this.options.log.bodies(first)) {
      if (kind === MessageKind.part) return this.partsOf(first, own)[part - 1]?.equals(bytes) === true;
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

  private release(): void {
    const { progress, logWaker } = this.options;
    progress.release(this.shipped);
    logWaker.wake();
  }

  private pack(last: number): { readonly messages: readonly Buffer[]; readonly last: number } {
    const first = this.shipped + 1;
    const bodies: Buffer[] = [];
    let length = MESSAGE_HEADER_BYTES;
    for (const body of this.options.log.bodies(first)) {
      length += bytesOfBody(body);
      if (bodies.length > 0 && length > MAX_MESSAGE_BYTES) break;
      if (length > MAX_MESSAGE_BYTES) return { messages: this.partsOf(first, body), last: first };
      bodies.push(body);
      if (first + bodies.length > last) break;
    }
    return { messages: [packBatches(this.epoch, first, bodies)], last: this.shipped + bodies.length };
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
