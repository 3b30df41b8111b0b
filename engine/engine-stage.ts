/**
 * The books of one engine as a stage: reads a batch of commands from the ring, whole chains only, executes them and
 * publishes their events. The owner decides when, and waits for room in the event ring. The stage never sleeps, never
 * responds to a client, and knows neither the log nor its thread.
 */

import { createMatcher, type Matcher, type MatcherOptions } from "./book/matcher.ts";
import { MAX_BATCH_COMMANDS, MAX_CHAIN_COMMANDS } from "./limits.ts";
import { BatchStamp } from "./log/batch-stamp.ts";
import { CommandKind, commandKindOf, FLAG_EXTENDS, FLAG_MORE, FLAG_POST_ONLY, RECORD_WORDS } from "./ring/records.ts";
import { RingConsumer, type RingMemory, RingProducer } from "./ring/ring.ts";
import { assert } from "./util/assert.ts";
import { Histogram, type HistogramMemory } from "./util/histogram.ts";
import type { MicroClock } from "./util/micro-clock.ts";

export interface EngineStageOptions extends Pick<MatcherOptions, "capacity" | "activeBooks" | "largestId"> {
  readonly commands: RingMemory;
  readonly events: RingMemory;
  readonly clock: MicroClock;
  /** Commands per batch; the stage observes. */
  readonly batchCommands: HistogramMemory;
  /** The maximum number of commands in a chain; their events must fit into an empty ring. */
  readonly longestChain?: number;
  /** Called if the event ring is full in the middle of a command: must commit and wait until `hasRoom` holds. */
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

  /** True once a stop command has arrived: no command follows it. */
  get stopped(): boolean {
    return this.hasStopped;
  }

  /** True if `run` would execute a command. */
  hasWork(): boolean {
    return this.commands.available() > 0 && this.matcher.hasRoom(this.nextLength());
  }

  /** The number of commands that must fit from the next one on: the longest chain if it begins one. */
  private nextLength(): number {
    const { commands } = this;
    const packed = commands.words[(commands.tail & commands.mask) * RECORD_WORDS]!;
    return (packed & FLAG_MORE) === 0 ? 1 : this.longestChain;
  }

  /**
   * Executes a batch; returns its number of commands.
   * @param most the batch's bound; a chain that begins within it is executed to its end
   */
  run(most: number = MAX_BATCH_COMMANDS): number {
    const { commands, matcher } = this;
    const { words, doubles, mask } = commands;
    const available = commands.available();
    let done = 0;
    // Commands of the current chain that need no further check of the batch's bounds.
    let granted = 0;
    while (done < available) {
      if (granted === 0) {
        granted = this.nextLength();
        if (done >= most || done + granted > MAX_BATCH_COMMANDS || !matcher.hasRoom(granted)) {
          granted = 0;
          break;
        }
        if (done === 0) this.stamp.open();
      }
      const base = (commands.tail & mask) * RECORD_WORDS;
      const packed = words[base]!;
      if (granted > 1 || (packed & FLAG_MORE) !== 0) assertChained(packed, granted);
      if (commandKindOf(packed) === CommandKind.stop) this.hasStopped = true;
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

/** Each command of a chain emits one event, so that its room is known. @param left the commands the chain may still have */
function assertChained(packed: number, left: number): void {
  const kind = commandKindOf(packed);
  const postOnly = kind === CommandKind.placeOrder && (packed & FLAG_POST_ONLY) !== 0;
  const extend = kind === CommandKind.amendOrder && (packed & FLAG_EXTENDS) !== 0;
  assert(kind === CommandKind.cancelOrder || postOnly || extend, "each command of a chain emits one event");
  assert(left > 1 || (packed & FLAG_MORE) === 0, "a chain stays within its maximum length");
}
