/**
 * When orders were received, matched, durable and sent, in microseconds of the clock that all threads share. `received` is
 * the order's own; `matched` and `durable` belong to the batch of events being applied, from the stamp before them in their
 * ring. Owned by the gateway thread.
 */

import { MAX_LIVE_ORDERS } from "../../engine/limits.ts";
import type { EngineEvent } from "../../engine/ring/engine-event.ts";
import { createHistogram, Histogram, logBounds } from "../../engine/util/histogram.ts";
import type { MicroClock } from "../../engine/util/micro-clock.ts";

const MATCHED = 0;
const DURABLE = 1;
const BOUNDS = logBounds(10, 10_000_000);
const openHistogram = (): Histogram => new Histogram(createHistogram(BOUNDS));

export class OrderTimes {
  /** Placements' latencies from stage to stage, µs. */
  readonly latencies = {
    received_to_matched: openHistogram(),
    matched_to_durable: openHistogram(),
    durable_to_sent: openHistogram(),
    total: openHistogram(),
  };
  private readonly clock: MicroClock;
  /** By slot. */
  private readonly received: Float64Array;
  /** The current batch. An array, because V8 boxes doubles in fields. */
  private readonly stamp = new Float64Array(2);

  /** @param capacity the largest slot */
  constructor(clock: MicroClock, capacity = MAX_LIVE_ORDERS) {
    this.clock = clock;
    this.received = new Float64Array(capacity + 1);
  }

  /** The gateway accepts the order in `slot`. */
  receive(slot: number): void {
    this.received[slot] = this.clock();
  }

  /** The events that follow in this ring have the times of this stamp. @param stamp a batchMatched */
  beginBatch(stamp: EngineEvent): void {
    this.stamp[MATCHED] = stamp.matchedAt;
    this.stamp[DURABLE] = stamp.durableAt;
  }

  /** The gateway has just replied to the placement of the order in `slot`. */
  observe(slot: number): void {
    const sent = this.clock();
    const received = this.received[slot]!;
    const { latencies, stamp } = this;
    latencies.received_to_matched.observe(Math.max(0, stamp[MATCHED]! - received));
    latencies.matched_to_durable.observe(Math.max(0, stamp[DURABLE]! - stamp[MATCHED]!));
    latencies.durable_to_sent.observe(Math.max(0, sent - stamp[DURABLE]!));
    latencies.total.observe(Math.max(0, sent - received));
  }

  /** The times of the current event of the order in `slot`, sent now, as JSON. They never fall, whatever threads' clocks differ by. */
  json(slot: number): string {
    const received = Math.floor(this.received[slot]!);
    const matched = Math.max(received, Math.floor(this.stamp[MATCHED]!));
    const durable = Math.max(matched, Math.floor(this.stamp[DURABLE]!));
    const sent = Math.max(durable, Math.floor(this.clock()));
    return `{"received":${received},"matched":${matched},"durable":${durable},"sent":${sent}}`;
  }
}
