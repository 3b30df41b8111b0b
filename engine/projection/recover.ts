/**
 * Brings the tables up to the end of the log before anything loads them: after a crash, and where exchange.db is new or
 * older than journal.db. Refuses files that don't belong together. What it does with which files: recovery-table.ts.
 */
import { AssertionError } from "node:assert";
import type Database from "better-sqlite3";
import { type LogEnd, NO_HASH, readLogEnd } from "../log/append.ts";
import { hashOf } from "../log/batch-format.ts";
import { BrokenLog } from "../log/broken-log.ts";
import { LogChain } from "../log/chain.ts";
import { JournalReader, type LogReader } from "../log/log-reader.ts";
import { assert, unreachable } from "../util/assert.ts";
import { projectAll } from "./follow.ts";
import { loadProjection, type Projection } from "./load/projection.ts";
import type { ProjectorSizes } from "./parts.ts";
import { Projector } from "./projector.ts";
import { type Decision, type JournalState, RECOVERY, type TablesState } from "./recovery-table.ts";

/** What a batch that was changed throws where no hash gives it away. */
const CONTENT_ERRORS = [AssertionError, RangeError, TypeError] as const;
const RESTORE = "restore both files from one backup";
/** Batches that each start counts: 100,000 of 600 bytes take 24 ms from memory, 88 ms from a disk. `admin verify` reads all. */
const COUNTED_BATCHES = 100_000;

/**
 * Projects what exchange.db lacks; returns where the log continues.
 * @param sizes of an exchange smaller than usual
 * @param log reads batches that journal.db no longer has, too
 * @throws BrokenLog if the files don't belong together
 */
export function recoverTables(
  tables: Database.Database,
  journal: Database.Database,
  sizes: ProjectorSizes = {},
  log: LogReader = new JournalReader(journal),
): LogEnd {
  const end = readLogEnd(journal);
  if (end !== null) checkEnd(journal, end.batch);
  const projection = loadProjection(tables);
  const decision = decisionOf(journalState(journal, end, projection), tablesState(projection));
  switch (decision.does) {
    case "refuse":
      throw new BrokenLog(decision.why({ projected: projection.batch, last: end?.batch ?? 0 }));
    case "adopt":
      assert(end !== null, "a log that new tables follow has a batch");
      tables.prepare("UPDATE projection SET exchange = ?").run(end.exchange);
      projectRest(new Projector(tables, log, { ...sizes, checksHashes: true }), log);
      break;
    case "project":
      projectRest(new Projector(tables, log, { ...sizes, checksHashes: true }), log);
      break;
    case "start":
    case "begin":
      break;
    case "rebuild":
      assert(false, "tables that are open aren't missing");
      break;
    default:
      unreachable(decision, "decision of recovery");
  }
  const { exchange, batch, records, hash, at } = loadProjection(tables);
  return { exchange, batch, records, at, hash: hash === "" ? NO_HASH : Buffer.from(hash, "hex") };
}

/** What a start does with such files. */
export function decisionOf(journal: JournalState, tables: TablesState): Decision {
  const decision = RECOVERY[journal][tables];
  assert(decision !== null, "the files are in a state that there can be");
  return decision;
}

function tablesState({ batch, logBegins }: Projection): TablesState {
  if (batch >= logBegins) return "used";
  return logBegins === 1 ? "new" : "beforeLog";
}

function journalState(journal: Database.Database, end: LogEnd | null, projection: Projection): JournalState {
  if (end === null) return "empty";
  if (tablesState(projection) === "new") return "ahead";
  if (end.exchange !== projection.exchange) return "anotherExchange";
  if (projection.batch > end.batch) return "behind";
  if (hasOtherBatch(journal, projection)) return "hashDiffers";
  return projection.batch === end.batch ? "same" : "ahead";
}

/** True if journal.db still has the last projected batch, and it is another one. */
function hasOtherBatch(journal: Database.Database, { batch, hash }: Projection): boolean {
  const body = journal.prepare("SELECT body FROM batches WHERE number = ?").pluck().get(batch) as Buffer | undefined;
  return body !== undefined && hashOf(body).toString("hex") !== hash;
}

/** @throws BrokenLog that names the batch that can't be projected, whatever is wrong with its contents */
function projectRest(projector: Projector, log: LogReader): void {
  try {
    projectAll(projector, log);
  } catch (error) {
    if (!CONTENT_ERRORS.some((kind) => error instanceof kind)) throw error;
    const next = projector.point.batch + 1;
    throw new BrokenLog(`batch ${next} of the log can't be projected: ${(error as Error).message}`);
  }
}

/** The last batches follow each other: none is missing, and the last one continues the one before. */
function checkEnd(journal: Database.Database, last: number): void {
  const since = last - COUNTED_BATCHES;
  const select = journal.prepare("SELECT min(number), count(*) FROM batches WHERE number > ?").raw();
  const [first, count] = select.get(since) as [number, number];
  const missing = last - first + 1 - count;
  if (missing > 0) throw new BrokenLog(`journal.db lacks ${missing} of the batches ${first} to ${last}: ${RESTORE}`);
  const chain = new LogChain();
  for (const body of new JournalReader(journal).bodies(Math.max(first, last - 1))) chain.next(body);
}
