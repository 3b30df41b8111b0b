/**
 * One engine thread: takes commands off its ring, runs them through the books of its markets, publishes events, and,
 * where the journal is its last stage, commits them. It never answers anyone: the gateway reads the committed events.
 *
 * One turn: 1. a batch of commands  2. publish events  3. commit (or wake the journal)  4. idle work, or sleep.
 */
import { parentPort, workerData } from "node:worker_threads";
import { JournalStage } from "./journal/journal-stage.ts";
import { MAX_BATCH_COMMANDS, MAX_EVENTS_PER_STEP } from "./limits.ts";
import { createMatcher } from "./matcher.ts";
import { CommandKind, kindOf, RECORD_WORDS } from "./records.ts";
import { RingConsumer, RingProducer, Waker } from "./ring.ts";
import { type EngineThreadSetup, type ThreadMessage, waitForWork } from "./thread-setup.ts";
import { warmUp } from "./warm-up.ts";

const setup = workerData as EngineThreadSetup;

function run(): void {
  const waker = new Waker(setup.waker);
  const gateway = new Waker(setup.gatewayWaker);
  const journalWaker = new Waker(setup.journalWaker);
  const commands = new RingConsumer(setup.commands, false);
  const events = new RingProducer(setup.events);
  const journal = setup.journal === null ? null : new JournalStage(setup.journal, gateway);
  const matcher = createMatcher(events, { capacity: setup.capacity, onRingFull: makeRoom });
  let stopping = false;
  warmUp(matcher);

  function makeRoom(): void {
    const hasRoom = (): boolean => events.hasRoom(setup.events.records >> 1);
    while (!hasRoom()) {
      if (journal !== null) journal.run();
      else journalWaker.wake();
      waitForWork(waker, hasRoom, 0);
    }
  }

  function runBatch(): number {
    const { words, doubles, mask } = commands;
    const available = Math.min(commands.available(), MAX_BATCH_COMMANDS);
    let done = 0;
    while (done < available && matcher.hasRoom()) {
      const base = (commands.tail & mask) * RECORD_WORDS;
      if (kindOf(words[base]!) === CommandKind.stop) stopping = true;
      matcher.execute(words, doubles, base);
      commands.tail = (commands.tail + 1) | 0;
      done++;
    }
    if (done === 0) return 0;
    matcher.endBatch();
    commands.release();
    return done;
  }

  const hasWork = (): boolean =>
    (commands.available() > 0 && events.hasRoom(4 * MAX_EVENTS_PER_STEP)) || journal?.hasWork() === true;

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
