/**
 * One engine thread: takes commands off its ring, runs them through the books of its markets, publishes events, and,
 * where the journal is its last stage, commits them. It never answers anyone: the gateway reads the committed events.
 *
 * One turn: 1. a batch of commands, whole chains only  2. publish events  3. commit (or wake the journal)
 * 4. idle work, or sleep.
 */
import { parentPort, workerData } from "node:worker_threads";
import { BatchStamp } from "./batch-stamp.ts";
import { check } from "./check.ts";
import { Histogram } from "./histogram.ts";
import { JournalStage } from "./journal/journal-stage.ts";
import { MAX_BATCH_COMMANDS, MAX_CHAIN_COMMANDS } from "./limits.ts";
import { createMatcher } from "./matcher.ts";
import { createMicroClock } from "./micro-clock.ts";
import { CommandKind, FLAG_MORE, FLAG_POST_ONLY, kindOf, RECORD_WORDS } from "./records.ts";
import { RingConsumer, RingProducer, Waker } from "./ring.ts";
import { type EngineThreadSetup, type ThreadMessage, waitForWork } from "./thread-setup.ts";
import { warmUp } from "./warm-up.ts";

const setup = workerData as EngineThreadSetup;

/** A chain's commands have one event each, so that its room is known. It may have `left` commands from here. */
function checkChained(packed: number, left: number): void {
  const kind = kindOf(packed);
  const postOnly = kind === CommandKind.placeOrder && (packed & FLAG_POST_ONLY) !== 0;
  check(kind === CommandKind.cancelOrder || postOnly, "a chain is made of cancels and post-only placements");
  check(left > 1 || (packed & FLAG_MORE) === 0, "a chain is no longer than MAX_CHAIN_COMMANDS");
}

function run(): void {
  const waker = new Waker(setup.waker);
  const gateway = new Waker(setup.gatewayWaker);
  const journalWaker = new Waker(setup.journalWaker);
  const commands = new RingConsumer(setup.commands, false);
  const events = new RingProducer(setup.events);
  const journal = setup.journal === null ? null : new JournalStage(setup.journal, gateway);
  const stamp = new BatchStamp(events, createMicroClock(setup.clockEpoch));
  const batchCommands = new Histogram(setup.batchCommands);
  const matcher = createMatcher(events, {
    capacity: setup.capacity,
    onRingFull: makeRoom,
    beforePublish: () => stamp.close(),
  });
  let stopping = false;
  warmUp(matcher);

  function makeRoom(): void {
    const hasRoom = (): boolean => events.hasRoom(setup.events.records >> 1);
    while (!hasRoom()) {
      if (journal !== null) journal.run();
      else journalWaker.wake();
      waitForWork(waker, hasRoom, 0);
    }
    stamp.open();
  }

  /** How many commands start with the next one: the longest chain where it begins one. */
  function countNext(): number {
    const packed = commands.words[(commands.tail & commands.mask) * RECORD_WORDS]!;
    return (packed & FLAG_MORE) === 0 ? 1 : MAX_CHAIN_COMMANDS;
  }

  function runBatch(): number {
    const { words, doubles, mask } = commands;
    const available = commands.available();
    let done = 0;
    // Commands that may still come without another look at the batch's bounds: the rest of a chain.
    let granted = 0;
    while (done < available) {
      if (granted === 0) {
        granted = countNext();
        if (done + granted > MAX_BATCH_COMMANDS || !matcher.hasRoom(granted)) {
          granted = 0;
          break;
        }
        if (done === 0) stamp.open();
      }
      const base = (commands.tail & mask) * RECORD_WORDS;
      const packed = words[base]!;
      if (granted > 1 || (packed & FLAG_MORE) !== 0) checkChained(packed, granted);
      if (kindOf(packed) === CommandKind.stop) stopping = true;
      matcher.execute(words, doubles, base);
      commands.tail = (commands.tail + 1) | 0;
      done++;
      granted = (packed & FLAG_MORE) === 0 ? 0 : granted - 1;
    }
    check(granted === 0, "a chain is published as a whole");
    if (done === 0) return 0;
    matcher.endBatch();
    commands.release();
    batchCommands.observe(done);
    return done;
  }

  const hasWork = (): boolean =>
    (commands.available() > 0 && matcher.hasRoom(countNext())) || journal?.hasWork() === true;

  parentPort!.postMessage({ kind: "ready" } satisfies ThreadMessage);
  let otherWork = journal !== null;
  for (;;) {
    const done = runBatch();
    if (journal === null) {
      if (done > 0) journalWaker.wake();
    } else {
      const committed = journal.run();
      if (journal.stopped) break;
      if (committed) otherWork = true;
    }
    if (stopping && journal === null) break;
    if (done > 0) continue;
    if (!waitForWork(waker, hasWork, setup.spinTurns, otherWork)) otherWork = journal?.idle() === true;
  }
  journal?.close();
}

try {
  run();
} catch (error) {
  const text = error instanceof Error ? (error.stack ?? error.message) : String(error);
  parentPort!.postMessage({ kind: "failed", error: text } satisfies ThreadMessage);
}
