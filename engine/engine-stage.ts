/**
 * The books of one engine as a stage: takes a batch of commands off the ring, whole chains only, runs them and publishes
 * their events. Whoever owns it decides when, and waits for room in the event ring. Never sleeps, never answers anyone,
 * knows no journal and no thread.
 */

import { createMatcher, type Matcher, type MatcherOptions } from "./book/matcher.ts";
import { MAX_BATCH_COMMANDS, MAX_CHAIN_COMMANDS } from "./limits.ts";
import { BatchStamp } from "./log/batch-stamp.ts";
import { CommandKind, FLAG_EXTENDS, FLAG_MORE, FLAG_POST_ONLY, kindOf, RECORD_WORDS } from "./ring/records.ts";
import { RingConsumer, type RingMemory, RingProducer } from "./ring/ring.ts";
import { assert } from "./util/assert.ts";
import { Histogram, type HistogramMemory } from "./util/histogram.ts";
import type { MicroClock } from "./util/micro-clock.ts";

export interface EngineStageOptions extends Pick<MatcherOptions, "capacity" | "activeBooks" | "largestId"> {
  readonly commands: RingMemory;
  readonly events: RingMemory;
  readonly clock: MicroClock;
  /** Commands in each batch; the stage observes. */
  readonly batchCommands: HistogramMemory;
  /** Commands that a chain may have, whose events must find room in an empty ring. */
  readonly longestChain?: number;
  /** The event ring is full in the middle of a command: commits and waits until `hasRoom` holds. */
  readonly waitForRoom: (hasRoom: () => boolean) => void;
}

export class EngineStage {
  readonly matcher: Matcher;
  private readonly commands: RingConsumer;
  private readonly stamp: BatchStamp;
  private readonly batchCommands: Histogram;
  private readonly longestChain: number;
  private hasStopped = false;

  constructor(options: EngineStageOptions) {
    const { capacity, activeBooks, largestId, longestChain = MAX_CHAIN_COMMANDS, waitForRoom } = options;
    this.longestChain = longestChain;
    const events = new RingProducer(options.events);
    const half = options.events.records >> 1;
    const hasRoom = (): boolean => events.hasRoom(half);
    this.commands = new RingConsumer(options.commands, false);
    this.stamp = new BatchStamp(events, options.clock);
    this.batchCommands = new Histogram(options.batchCommands);
    this.matcher = createMatcher(events, {
      capacity,
      ...(activeBooks === undefined ? {} : { activeBooks }),
      ...(largestId === undefined ? {} : { largestId }),
      onRingFull: () => {
        waitForRoom(hasRoom);
        this.stamp.open();
      },
      beforePublish: () => this.stamp.close(),
    });
  }

  /** It was told that nothing follows. */
  get stopped(): boolean {
    return this.hasStopped;
  }

  /** True when `run` would take a command. */
  hasWork(): boolean {
    return this.commands.available() > 0 && this.matcher.hasRoom(this.countNext());
  }

  /** How many commands start with the next one: the longest chain where it begins one. */
  private countNext(): number {
    const { commands } = this;
    const packed = commands.words[(commands.tail & commands.mask) * RECORD_WORDS]!;
    return (packed & FLAG_MORE) === 0 ? 1 : this.longestChain;
  }

  /**
   * Runs a batch; answers how many commands it had.
   * @param most a chain that begins before it is run to its end
   */
  run(most: number = MAX_BATCH_COMMANDS): number {
    const { commands, matcher } = this;
    const { words, doubles, mask } = commands;
    const available = commands.available();
    let done = 0;
    // Commands that may still come without another look at the batch's bounds: the rest of a chain.
    let granted = 0;
    while (done < available) {
      if (granted === 0) {
        granted = this.countNext();
        if (done >= most || done + granted > MAX_BATCH_COMMANDS || !matcher.hasRoom(granted)) {
          granted = 0;
          break;
        }
        if (done === 0) this.stamp.open();
      }
      const base = (commands.tail & mask) * RECORD_WORDS;
      const packed = words[base]!;
      if (granted > 1 || (packed & FLAG_MORE) !== 0) checkChained(packed, granted);
      if (kindOf(packed) === CommandKind.stop) this.hasStopped = true;
      matcher.execute(words, doubles, base);
      commands.tail = (commands.tail + 1) | 0;
      done++;
      granted = (packed & FLAG_MORE) === 0 ? 0 : granted - 1;
    }
    assert(granted === 0, "a chain is published as a whole");
    if (done === 0) return 0;
    matcher.endBatch();
    commands.release();
    this.batchCommands.observe(done);
    return done;
  }
}

/** A chain's commands have one event each, so that its room is known. It may have `left` commands from here. */
function checkChained(packed: number, left: number): void {
  const kind = kindOf(packed);
  const postOnly = kind === CommandKind.placeOrder && (packed & FLAG_POST_ONLY) !== 0;
  const extend = kind === CommandKind.amendOrder && (packed & FLAG_EXTENDS) !== 0;
  assert(kind === CommandKind.cancelOrder || postOnly || extend, "a chain is made of what causes one event each");
  assert(left > 1 || (packed & FLAG_MORE) === 0, "a chain is no longer than it may be");
}
