/**
 * Starts the engine threads, and the journal's where there are several engines; creates the rings, wakers and histograms
 * that they share with the gateway. With one engine the journal is the last stage of its thread. Runs no work itself.
 */
import { availableParallelism } from "node:os";
import { MessageChannel, type MessagePort, Worker } from "node:worker_threads";
import { COMMAND_RING_RECORDS, EVENT_RING_RECORDS, MAX_LIVE_ORDERS } from "../../engine/limits.ts";
import type { JournalSetup } from "../../engine/log/journal-stage.ts";
import { CommittedTotals } from "../../engine/log/totals.ts";
import { createRing, RingConsumer, type RingMemory, RingProducer } from "../../engine/ring/ring.ts";
import { Waker } from "../../engine/ring/waker.ts";
import type { EngineThreadSetup, JournalThreadSetup, ThreadMessage } from "../../engine/thread-setup.ts";
import { createHistogram, type HistogramMemory, logBounds } from "../../engine/util/histogram.ts";
import type { AccountWriter } from "../accounts/account-writer.ts";
import type { Config } from "../config.ts";
import type { FailTrading } from "./failure.ts";
import type { Lifecycle } from "./lifecycle.ts";
import type { Watched } from "./watchdog.ts";

/** With two cores a spinning engine takes the core that the gateway needs. */
const SPIN_TURNS = availableParallelism() > 2 ? 2_000 : 0;
/** Bounds of histograms: commands of a batch and orders of a transaction; a transaction's duration, µs. */
const COUNT_BOUNDS = Array.from({ length: 14 }, (_, i) => 2 ** i);
const COMMIT_BOUNDS = logBounds(10, 10_000_000);

/** The memory that one engine's thread shares with the gateway. */
interface EngineMemory {
  readonly commands: RingMemory;
  readonly events: RingMemory;
  readonly waker: Waker;
  readonly batchCommands: HistogramMemory;
}

export interface Threads {
  readonly workers: readonly { readonly name: string; readonly worker: Worker }[];
  /** The gateway's ends of each engine's rings. */
  readonly links: { commands: RingProducer; events: RingConsumer; waker: Waker }[];
  readonly gatewayWaker: Waker;
  readonly journalWaker: Waker;
  readonly totals: CommittedTotals;
  /** The gateway's end of the journal's mailbox, and the count of what it posted. */
  readonly port: MessagePort;
  readonly posted: SharedArrayBuffer;
  readonly batchCommands: readonly HistogramMemory[];
  readonly commitTimes: HistogramMemory;
  readonly commitOrders: HistogramMemory;
}

/** @param texts shared memory of the orders' texts @param clockEpoch of the clock that all threads share */
export function startThreads(config: Config, path: string, texts: SharedArrayBuffer, clockEpoch: number): Threads {
  const { port1: port, port2: journalPort } = new MessageChannel();
  const posted = new SharedArrayBuffer(4);
  const totals = new CommittedTotals();
  const gatewayWaker = new Waker();
  const firstEngine = createEngineMemory();
  const engines = [firstEngine];
  while (engines.length < config.engineThreads) engines.push(createEngineMemory());
  const [commitTimes, commitOrders] = [createHistogram(COMMIT_BOUNDS), createHistogram(COUNT_BOUNDS)];
  const journal: JournalSetup = {
    path,
    durability: config.durability,
    events: engines.map(({ events }) => events),
    texts,
    totals: totals.buffer,
    port: journalPort,
    posted,
    clockEpoch,
    commitTimes,
    commitOrders,
  };
  const sharesThread = engines.length === 1;
  const journalWaker = sharesThread ? firstEngine.waker : new Waker();
  const wakers = { gatewayWaker: gatewayWaker.buffer, journalWaker: journalWaker.buffer };
  const workers = engines.map((engine, i) => {
    const setup = engineSetup(engine, wakers, sharesThread ? journal : null, clockEpoch);
    return { name: `engine ${i + 1}`, worker: startThread("engine-thread", setup, sharesThread ? [journalPort] : []) };
  });
  if (!sharesThread) {
    const { gatewayWaker, journalWaker: waker } = wakers;
    const setup: JournalThreadSetup = { journal, waker, gatewayWaker, spinTurns: SPIN_TURNS };
    workers.push({ name: "journal", worker: startThread("journal-thread", setup, [journalPort]) });
  }
  const links = engines.map(({ commands, events, waker }) => {
    return { commands: new RingProducer(commands), events: new RingConsumer(events, true), waker };
  });
  const batchCommands = engines.map((engine) => engine.batchCommands);
  const histograms = { batchCommands, commitTimes, commitOrders };
  return { workers, links, gatewayWaker, journalWaker, totals, port, posted, ...histograms };
}

function createEngineMemory(): EngineMemory {
  return {
    commands: createRing(COMMAND_RING_RECORDS),
    events: createRing(EVENT_RING_RECORDS),
    waker: new Waker(),
    batchCommands: createHistogram(COUNT_BOUNDS),
  };
}

/** @param journal null where it has a thread of its own */
function engineSetup(
  { commands, events, waker, batchCommands }: EngineMemory,
  wakers: Pick<EngineThreadSetup, "gatewayWaker" | "journalWaker">,
  journal: JournalSetup | null,
  clockEpoch: number,
): EngineThreadSetup {
  return {
    ...{ commands, events, waker: waker.buffer, ...wakers, journal, clockEpoch, batchCommands },
    capacity: MAX_LIVE_ORDERS,
    spinTurns: SPIN_TURNS,
  };
}

/** @param name of the bundle beside main.js */
function startThread(name: string, setup: object, transferList: MessagePort[]): Worker {
  return new Worker(new URL(`./${name}.js`, import.meta.url), { workerData: setup, transferList });
}

/** Calls `fail` when a thread reports an error, throws, or ends before the server stops. */
export function watchThreads({ workers }: Threads, lifecycle: Lifecycle, fail: FailTrading): void {
  for (const { name, worker } of workers) {
    worker.on("message", (message: ThreadMessage) => {
      if (message.kind === "failed") fail(name, message.error);
    });
    worker.on("error", (error) => fail(name, error.stack ?? error.message));
    worker.on("exit", () => {
      if (lifecycle.phase !== "stopping") fail(name, "the thread ended");
    });
  }
}

/** Each thread's waiting work and progress. An engine's thread that also runs the journal is watched in both roles. */
export function threadProgress({ links, totals }: Threads, writer: AccountWriter): Watched[] {
  const watched: Watched[] = [
    { name: "journal", waiting: () => writer.postedCount, position: () => totals.read().sequence },
  ];
  for (const [i, { commands, events }] of links.entries()) {
    const name = `engine ${i + 1}`;
    watched.push({ name, waiting: () => commands.depth(), position: () => (commands.head - commands.depth()) | 0 });
    const committed = (): number => (events.tail + events.available()) | 0;
    watched.push({ name: "journal", waiting: () => (events.published() - committed()) | 0, position: committed });
  }
  return watched;
}
