/**
 * The projector's thread: follows journal.db and keeps exchange.db up to date, at low priority. Also copies journal.db's
 * WAL into its file when the log stage asks for it. Trading never waits for it; reads of the tables do.
 *
 * One round: 1. a checkpoint, if requested  2. one transaction over the batches that were committed since the last one
 * 3. tell the gateway, if a reader waits  4. sleep, so that the next transaction covers more, until a reader waits.
 *
 * Nothing acknowledged depends on exchange.db: where another program holds a lock on it, or its disk is full, the projector
 * says so and tries again.
 */
import { openSync } from "node:fs";
import { parentPort, workerData } from "node:worker_threads";
import type Database from "better-sqlite3";
import { checkpoint } from "../log/checkpoint.ts";
import { archivesBeside, LogFiles } from "../log/log-files.ts";
import { JournalReader } from "../log/log-reader.ts";
import { LogProgress, Obstacle } from "../log/progress.ts";
import { Waker } from "../ring/waker.ts";
import type { ProjectorThreadSetup, ThreadMessage } from "../thread-setup.ts";
import { systemClock } from "../util/clock.ts";
import { lowerPriority } from "../util/low-priority.ts";
import { emptyWal, openDatabase, openReadOnly } from "../util/wal-database.ts";
import { MAX_RECORDS, projectNext } from "./follow.ts";
import { Projector } from "./projector.ts";

/** Below the trading threads, above password hashing. */
const NICE = 5;
/**
 * Without a reader the tables follow in large steps: a transaction over a second's orders costs half as much an order as
 * 50 small ones, and disturbs trading less.
 */
const PAUSE_MS = 200;
const BUSY_PAUSE_MS = 1_000;
/** From so many records in a transaction on, the exchange counts as busy. */
const BUSY_RECORDS = 1_024;
/** How long the projector waits for a lock, and how often it tries again. */
const LOCK_MS = 1_000;
const RETRY_MS = 1_000;
/** How often it looks whether checkpoints keep up. */
const CHECKPOINT_CHECK_MS = 5_000;
/** Pages in exchange.db's WAL before a commit copies them into the file. */
const WAL_PAGES = 4_000;

const setup = workerData as ProjectorThreadSetup;

function report(message: ThreadMessage): void {
  parentPort?.postMessage(message);
}

function run(): void {
  lowerPriority(NICE);
  const progress = new LogProgress(setup.progress);
  const waker = new Waker(setup.waker);
  const [gateway, log] = [new Waker(setup.gatewayWaker), new Waker(setup.logWaker)];
  const journalFile = openSync(setup.journalPath, "r");
  const journal = openReadOnly(setup.journalPath);
  const reader = new JournalReader(journal);
  const files = new LogFiles({ journal: setup.journalPath, archives: archivesBeside(setup.journalPath) });
  const tables = openDatabase(setup.tablesPath, setup.durability);
  tables.pragma(`wal_autocheckpoint = ${WAL_PAGES}`);
  tables.pragma(`busy_timeout = ${LOCK_MS}`);
  let projector = new Projector(tables, files);
  let checkpointCheckedAt = 0;
  progress.project(projector.point);
  report({ kind: "ready" });

  const hasWork = (): boolean => progress.isWanted || progress.isCheckpointRequested || progress.isStopRequested;
  const isInterrupted = (): boolean => progress.isCheckpointRequested || progress.isStopRequested;
  for (;;) {
    const isStopping = progress.isStopRequested;
    if (progress.takeCheckpointRequest()) {
      checkpoint(setup.journalPath, journalFile);
      progress.finishCheckpoint();
      log.wake();
    }
    const isWanted = progress.isWanted;
    let records: number;
    try {
      records = projectNext(projector, reader, progress);
    } catch (error) {
      const obstacle = obstacleOf(error);
      if (obstacle === Obstacle.none) throw error;
      progress.reportObstacle(obstacle);
      // What was applied in memory without being durable is read again.
      if (tables.inTransaction) tables.exec("ROLLBACK");
      projector = new Projector(tables, files);
      // The next start projects the rest.
      if (isStopping) break;
      waker.sleep(isInterrupted, RETRY_MS);
      continue;
    }
    if (progress.obstacle !== Obstacle.none) progress.reportObstacle(Obstacle.none);
    if (isWanted) gateway.wake();
    if (systemClock.elapsed() - checkpointCheckedAt > CHECKPOINT_CHECK_MS) {
      checkpointCheckedAt = systemClock.elapsed();
      progress.reportCheckpoint(!keepsUp(tables));
    }
    // Later commits go to the next transaction, unless this one didn't reach what was committed before it.
    if (records >= MAX_RECORDS) continue;
    if (!isStopping) waker.sleep(hasWork, records < BUSY_RECORDS ? PAUSE_MS : BUSY_PAUSE_MS);
    else if (progress.projectedBatch >= progress.committedBatch) break;
  }
  try {
    emptyWal(tables);
  } catch (error) {
    if (obstacleOf(error) === Obstacle.none) throw error;
  }
  tables.close();
  files.close();
  journal.close();
}

/** False where the WAL has grown to a multiple of what an automatic checkpoint leaves, and can't be copied. */
function keepsUp(tables: Database.Database): boolean {
  const left = (mode: string): number => {
    const [row] = tables.pragma(`wal_checkpoint(${mode})`) as { log: number; checkpointed: number }[];
    return row === undefined ? 0 : row.log - row.checkpointed;
  };
  try {
    return left("NOOP") <= 2 * WAL_PAGES || left("PASSIVE") <= 2 * WAL_PAGES;
  } catch (error) {
    if (obstacleOf(error) === Obstacle.none) throw error;
    return false;
  }
}

/** Errors of SQLite that pass by themselves. All others are final. */
function obstacleOf(error: unknown): Obstacle {
  const { code } = error as { code?: unknown };
  if (typeof code !== "string") return Obstacle.none;
  if (code.startsWith("SQLITE_BUSY")) return Obstacle.lock;
  return code === "SQLITE_FULL" || code === "SQLITE_IOERR_WRITE" || code === "SQLITE_IOERR_SHMSIZE"
    ? Obstacle.disk
    : Obstacle.none;
}

try {
  run();
} catch (error) {
  const text = error instanceof Error ? (error.stack ?? error.message) : String(error);
  report({ kind: "failed", error: text });
}
