/**
 * When orders were received, matched, durable and sent, in microseconds of the clock that all threads share. `received` is
 * the order's own; `matched` and `durable` belong to the batch of events being applied, from the stamp before them in their
 * ring. Owned by the gateway thread.
 */

import { MAX_LIVE_ORDERS } from "../../engine/limits.ts";
import type { EngineEvent } from "../../engine/ring/engine-event.ts";
import { createHistogram, Histogram, logBounds } from "../../engine/util/histogram.ts";
import type { MicroClock } from "../../engine/util/micro-clock.ts";
import type { Timestamps } from "../orders/order-json.ts";

const MATCHED = 0;
const DURABLE = 1;
/** Placements of a pass that are observed together; more are observed in parts. */
const MAX_REPLIED = 1_024;
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
  /** When the request arrived that is being read, 0 between requests of several orders. */
  private readonly arrival = new Float64Array(1);
  /** Placements that were replied to and not observed: received, matched and durable of each. */
  private readonly replied = new Float64Array(3 * MAX_REPLIED);
  private repliedCount = 0;

  /** @param capacity the largest slot */
  constructor(clock: MicroClock, capacity = MAX_LIVE_ORDERS) {
    this.clock = clock;
    this.received = new Float64Array(capacity + 1);
  }

  /** Reads a request of several orders: all that `read` accepts were received at one time. Parts may say so again. */
  receiveTogether(read: () => void): void {
    if (this.arrival[0] !== 0) return read();
    this.arrival[0] = this.clock();
    try {
      read();
    } finally {
      this.arrival[0] = 0;
    }
  }

  /** The gateway accepts the order in `slot`. */
  receive(slot: number): void {
    const arrival = this.arrival[0]!;
    this.received[slot] = arrival === 0 ? this.clock() : arrival;
  }

  /** The events that follow in this ring have the times of this stamp. @param stamp a batchMatched */
  beginBatch(stamp: EngineEvent): void {
    this.stamp[MATCHED] = stamp.matchedAt;
    this.stamp[DURABLE] = stamp.durableAt;
  }

  /** The gateway replies to the placement of the order in `slot`. */
  reply(slot: number): void {
    if (this.repliedCount === MAX_REPLIED) this.observe();
    const { replied, stamp } = this;
    const at = 3 * this.repliedCount++;
    replied[at] = this.received[slot]!;
    replied[at + 1] = stamp[MATCHED]!;
    replied[at + 2] = stamp[DURABLE]!;
  }

  /** The replies so far are sent. One reading of the clock for all: it costs as much as all other work on a latency. */
  observe(): void {
    if (this.repliedCount === 0) return;
    const sent = this.clock();
    const { latencies, replied } = this;
    for (let at = 0, end = 3 * this.repliedCount; at < end; at += 3) {
      const [received, matched, durable] = [replied[at]!, replied[at + 1]!, replied[at + 2]!];
      latencies.received_to_matched.observe(Math.max(0, matched - received));
      latencies.matched_to_durable.observe(Math.max(0, durable - matched));
      latencies.durable_to_sent.observe(Math.max(0, sent - durable));
      latencies.total.observe(Math.max(0, sent - received));
    }
    this.repliedCount = 0;
  }

  /** The times of the current event of the order in `slot`, sent now. They never fall, whatever threads' clocks differ by. */
  of(slot: number): Timestamps {
    const received = Math.floor(this.received[slot]!);
    const matched = Math.max(received, Math.floor(this.stamp[MATCHED]!));
    const durable = Math.max(matched, Math.floor(this.stamp[DURABLE]!));
    const sent = Math.max(durable, Math.floor(this.clock()));
    return { received, matched, durable, sent };
  }
}
