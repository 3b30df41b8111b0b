/**
 * Starts the engine threads, the log's where there are several engines, and the projector's; creates the rings, wakers and
 * histograms that they share with the gateway. With one engine the log is the last stage of its thread. Runs no work itself.
 */
import { availableParallelism } from "node:os";
import { MessageChannel, type MessagePort, Worker } from "node:worker_threads";
import { COMMAND_RING_RECORDS, EVENT_RING_RECORDS, MAX_LIVE_ORDERS } from "../../engine/limits.ts";
import type { LogStart } from "../../engine/log/database.ts";
import type { LogSetup } from "../../engine/log/log-stage.ts";
import { MailCount } from "../../engine/log/mail-count.ts";
import { LogProgress, Obstacle } from "../../engine/log/progress.ts";
import { createRing, RingConsumer, type RingMemory, RingProducer } from "../../engine/ring/ring.ts";
import { Waker } from "../../engine/ring/waker.ts";
import type {
  EngineThreadSetup,
  LogThreadSetup,
  ProjectorThreadSetup,
  ThreadMessage,
} from "../../engine/thread-setup.ts";
import { createHistogram, type HistogramMemory, logBounds } from "../../engine/util/histogram.ts";
import type { Replication } from "../replication/replication.ts";
import { holdsLog } from "../replication/settings.ts";
import type { Config } from "./config.ts";
import type { ExchangeDatabase } from "./database.ts";
import type { FailTrading, Lifecycle } from "./lifecycle.ts";
import type { Watched } from "./watches.ts";

/** With two cores a spinning engine takes the core that the gateway needs. */
const SPIN_TURNS = availableParallelism() > 2 ? 2_000 : 0;
/** Bounds of histograms: commands of a batch and orders of a transaction; a transaction's duration, µs. */
const COUNT_BOUNDS = Array.from({ length: 14 }, (_, i) => 2 ** i);
export const COMMIT_BOUNDS = logBounds(10, 10_000_000);

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
  readonly logWaker: Waker;
  readonly progress: LogProgress;
  readonly projectorWaker: Waker;
  /** The projector ends after the others. */
  readonly projector: Worker;
  /** The gateway's end of the log's mailbox, and the count of its messages. */
  readonly port: MessagePort;
  readonly mail: MailCount;
  readonly batchCommands: readonly HistogramMemory[];
  readonly commitTimes: HistogramMemory;
  readonly commitOrders: HistogramMemory;
  /** Null on a single box. */
  readonly replication: Replication | null;
}

interface ThreadsOptions {
  readonly config: Config;
  readonly database: Pick<ExchangeDatabase, "path" | "journalPath" | "archives">;
  readonly start: LogStart;
  /** Shared memory of the orders' texts. */
  readonly texts: SharedArrayBuffer;
  /** The epoch of the clock that all threads share. */
  readonly clockEpoch: number;
  /** Null on a single box. */
  readonly replication: Replication | null;
}

export function startThreads({ config, database, start, texts, clockEpoch, replication }: ThreadsOptions): Threads {
  const { port1: port, port2: logPort } = new MessageChannel();
  const mail = new MailCount();
  const progress = new LogProgress();
  progress.commit(pointOf(start));
  progress.project(pointOf(start));
  const gatewayWaker = new Waker();
  const projectorWaker = new Waker();
  const firstEngine = createEngineMemory();
  const engines = [firstEngine];
  while (engines.length < config.engineThreads) engines.push(createEngineMemory());
  const [commitTimes, commitOrders] = [createHistogram(COMMIT_BOUNDS), createHistogram(COUNT_BOUNDS)];
  const log: LogSetup = {
    start,
    events: engines.map(({ events }) => events),
    texts,
    progress: progress.buffer,
    port: logPort,
    mail: mail.buffer,
    projectorWaker: projectorWaker.buffer,
    clockEpoch,
    commitTimes,
    commitOrders,
    replication: replication === null ? null : replicatedLog(replication),
  };
  const sharesThread = engines.length === 1;
  const logWaker = sharesThread ? firstEngine.waker : new Waker();
  const wakers = { gatewayWaker: gatewayWaker.buffer, logWaker: logWaker.buffer };
  const workers = engines.map((engine, i) => {
    const setup = engineSetup(engine, wakers, sharesThread ? log : null, clockEpoch);
    return { name: `engine ${i + 1}`, worker: startThread("engine-thread", setup, sharesThread ? [logPort] : []) };
  });
  if (!sharesThread) {
    const { gatewayWaker, logWaker: waker } = wakers;
    const setup: LogThreadSetup = { log, waker, gatewayWaker, spinTurns: SPIN_TURNS };
    workers.push({ name: "log", worker: startThread("log-thread", setup, [logPort]) });
  }
  const projector = startProjector(config, database, progress, {
    projector: projectorWaker,
    gateway: gatewayWaker,
    log: logWaker,
  });
  const links = engines.map(({ commands, events, waker }) => {
    return { commands: new RingProducer(commands), events: new RingConsumer(events, true), waker };
  });
  const batchCommands = engines.map((engine) => engine.batchCommands);
  const histograms = { batchCommands, commitTimes, commitOrders };
  replication?.lead({ end: start.end, progress: progress.buffer, logWaker: logWaker.buffer });
  const parts = { workers, projector, links, gatewayWaker, logWaker, projectorWaker, progress, port, mail };
  return { ...parts, ...histograms, replication };
}

/** @param wakers of the projector's own thread, and of those that it wakes */
export function startProjector(
  { durability }: Config,
  { path, journalPath }: Pick<ExchangeDatabase, "path" | "journalPath">,
  progress: LogProgress,
  wakers: Readonly<Record<"projector" | "gateway" | "log", Waker>>,
): Worker {
  const setup: ProjectorThreadSetup = {
    journalPath,
    tablesPath: path,
    durability: durability === "full" ? "normal" : durability,
    progress: progress.buffer,
    waker: wakers.projector.buffer,
    gatewayWaker: wakers.gateway.buffer,
    logWaker: wakers.log.buffer,
  };
  return startThread("projector-thread", setup, []);
}

function replicatedLog({ settings, waker, releaseMemory }: Replication): NonNullable<LogSetup["replication"]> {
  return { isHeld: holdsLog(settings), waker: waker.buffer, releaseTimes: releaseMemory };
}

function pointOf({ end: { batch, records, at } }: LogStart) {
  return { batch, records, at };
}

function createEngineMemory(): EngineMemory {
  return {
    commands: createRing(COMMAND_RING_RECORDS),
    events: createRing(EVENT_RING_RECORDS),
    waker: new Waker(),
    batchCommands: createHistogram(COUNT_BOUNDS),
  };
}

/** @param log null where it has a thread of its own */
function engineSetup(
  { commands, events, waker, batchCommands }: EngineMemory,
  wakers: Pick<EngineThreadSetup, "gatewayWaker" | "logWaker">,
  log: LogSetup | null,
  clockEpoch: number,
): EngineThreadSetup {
  return {
    ...{ commands, events, waker: waker.buffer, ...wakers, log, clockEpoch, batchCommands },
    capacity: MAX_LIVE_ORDERS,
    spinTurns: SPIN_TURNS,
  };
}

/** @param name of the bundle beside main.js */
export function startThread(name: string, setup: object, transferList: MessagePort[]): Worker {
  return new Worker(new URL(`./${name}.js`, import.meta.url), { workerData: setup, transferList });
}

/**
 * Resolves once each thread has loaded its modules, or ended. A process that exits before can abort: Node stops a thread
 * that is still loading in the middle of it.
 */
export async function threadsLoaded({ workers, projector }: Pick<Threads, "workers" | "projector">): Promise<void> {
  await Promise.all([...workers.map(({ worker }) => worker), projector].map(threadLoaded));
}

/** Resolves once the thread has loaded its modules, or ended. */
export function threadLoaded(worker: Worker): Promise<void> {
  return new Promise((resolve) => {
    for (const event of ["message", "error", "exit"]) worker.once(event, () => resolve());
  });
}

/** Calls `fail` when a thread reports an error, throws, or ends before the server stops. */
export function watchThreads({ workers, projector }: Threads, lifecycle: Lifecycle, fail: FailTrading): void {
  for (const { name, worker } of [...workers, { name: "projector", worker: projector }]) {
    worker.on("message", (message: ThreadMessage) => {
      if (message.kind === "failed") fail(name, message.error);
    });
    worker.on("error", (error) => fail(name, error.stack ?? error.message));
    worker.on("exit", () => {
      if (lifecycle.phase !== "stopping") fail(name, "the thread ended");
    });
  }
}

/** Each thread's waiting work and progress. An engine's thread that also runs the log is watched in both roles. */
export function threadProgress({ links, mail, progress }: Threads): Watched[] {
  // An engine whose events wait for other boxes may have no room for more.
  const isHeld = (): boolean => progress.appendedBatch > progress.committedBatch;
  const watched: Watched[] = [
    // What waits for another box isn't the log's work any more: the standby's own watch says so.
    { name: "log", waiting: () => mail.waiting, progress: () => progress.appendedBatch },
    {
      name: "projector",
      // It waits for a lock, or for room on the disk: ProjectionLag says so, and bounds it.
      waiting: () => (progress.obstacle === Obstacle.none ? progress.committedBatch - progress.projectedBatch : 0),
      progress: () => progress.projectedBatch,
    },
  ];
  for (const [i, { commands, events }] of links.entries()) {
    const name = `engine ${i + 1}`;
    const waiting = (): number => (isHeld() ? 0 : commands.depth());
    watched.push({ name, waiting, progress: () => (commands.head - commands.depth()) | 0 });
    const passed = (): number => (events.published() - events.unpassed()) | 0;
    watched.push({ name: "log", waiting: () => events.unpassed(), progress: passed });
  }
  return watched;
}
