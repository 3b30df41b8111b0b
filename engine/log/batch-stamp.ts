/**
 * The record before the events of each publish, with the time at which they were published. The engine thread writes it
 * around the matcher, which never reads a clock.
 */

import { EngineEvent } from "../ring/engine-event.ts";
import { EventKind, packEvent, RECORD_WORDS } from "../ring/records.ts";
import type { RingProducer } from "../ring/ring.ts";
import { assert } from "../util/assert.ts";
import type { MicroClock } from "../util/micro-clock.ts";

export class BatchStamp {
  private readonly events: RingProducer;
  private readonly clock: MicroClock;
  private readonly stamp = new EngineEvent();
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
    const w = (events.head & events.mask) * RECORD_WORDS;
    events.head = (events.head + 1) | 0;
    events.words.fill(0, w, w + RECORD_WORDS);
    this.stamp.at(events.words, events.doubles, w).packed = packEvent(EventKind.batchMatched, 0, 0, 0, 0);
    this.record = w;
  }

  /** Writes the time. Before the publish. */
  close(): void {
    assert(this.record >= 0, "a publish has a stamp");
    const { words, doubles } = this.events;
    this.stamp.at(words, doubles, this.record).matchedAt = this.clock();
    this.record = -1;
  }
}
