/**
 * The projector's thread: follows journal.db and keeps exchange.db up to date, at low priority. Also copies journal.db's
 * WAL into its file when the log stage asks for it. Trading never waits for it; reads of the tables do.
 *
 * One round: 1. a checkpoint, if requested  2. one transaction over the batches that were committed since the last one
 * 3. tell the gateway, if a reader waits  4. sleep, so that the next transaction covers more, until a reader waits.
 */
import { openSync } from "node:fs";
import { parentPort, workerData } from "node:worker_threads";
import { checkpoint } from "../log/checkpoint.ts";
import { archivesBeside, LogFiles } from "../log/log-files.ts";
import { JournalReader } from "../log/log-reader.ts";
import { LogProgress } from "../log/progress.ts";
import { Waker } from "../ring/waker.ts";
import type { ProjectorThreadSetup, ThreadMessage } from "../thread-setup.ts";
import { lowerPriority } from "../util/low-priority.ts";
import { emptyWal, openDatabase, openReadOnly } from "../util/wal-database.ts";
import { MAX_RECORDS, projectNext } from "./follow.ts";
import { Projector } from "./projector.ts";

/** Below what trades, above what hashes passwords. */
const NICE = 5;
/**
 * Without a reader the tables follow in large steps: a transaction over a second's orders costs half as much an order as
 * 50 small ones, and disturbs trading less.
 */
const PAUSE_MS = 200;
const BUSY_PAUSE_MS = 1_000;
/** A transaction of so many records tells of a busy exchange. */
const BUSY_RECORDS = 1_024;
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
  const projector = new Projector(tables, files);
  progress.project(projector.position);
  report({ kind: "ready" });

  const hasWork = (): boolean => progress.isWanted || progress.isCheckpointRequested || progress.isStopRequested;
  for (;;) {
    const isStopping = progress.isStopRequested;
    if (progress.takeCheckpointRequest()) {
      checkpoint(setup.journalPath, journalFile);
      progress.finishCheckpoint();
      log.wake();
    }
    const isWanted = progress.isWanted;
    const records = projectNext(projector, reader, progress);
    if (isWanted) gateway.wake();
    // What was committed meanwhile belongs to the next step, unless this one didn't reach what was committed before it.
    if (records >= MAX_RECORDS) continue;
    if (!isStopping) waker.sleep(hasWork, records < BUSY_RECORDS ? PAUSE_MS : BUSY_PAUSE_MS);
    else if (progress.projectedBatch === progress.committedBatch) break;
  }
  emptyWal(tables);
  tables.close();
  files.close();
  journal.close();
}

try {
  run();
} catch (error) {
  const text = error instanceof Error ? (error.stack ?? error.message) : String(error);
  report({ kind: "failed", error: text });
}
