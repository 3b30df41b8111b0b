/**
 * The record before the events of each publish, with the time at which they were published. The engine thread writes it
 * around the matcher, which never reads a clock.
 */

import * as R from "../ring/records.ts";
import type { RingProducer } from "../ring/ring.ts";
import { assert } from "../util/assert.ts";
import type { MicroClock } from "../util/micro-clock.ts";

export class BatchStamp {
  private readonly events: RingProducer;
  private readonly clock: MicroClock;
  /** The first word of the open record, or -1. */
  private record = -1;

  constructor(events: RingProducer, clock: MicroClock) {
    this.events = events;
    this.clock = clock;
  }

  /** Claims the ring's next record, which must have room. Before the first event after a publish. */
  open(): void {
    const { events } = this;
    assert(this.record < 0, "a publish has one stamp");
    const w = (events.head & events.mask) * R.RECORD_WORDS;
    events.head = (events.head + 1) | 0;
    events.words.fill(0, w, w + R.RECORD_WORDS);
    events.words[w + R.W_PACKED] = R.packEvent(R.EventKind.batchMatched, 0, 0, 0, 0);
    this.record = w;
  }

  /** Writes the time. Before the publish. */
  close(): void {
    assert(this.record >= 0, "a publish has a stamp");
    this.events.doubles[(this.record >> 1) + R.D_MATCHED] = this.clock();
    this.record = -1;
  }
}
