/**
 * Brings the tables up to the end of the log before anything loads them: after a crash, and where exchange.db is new or
 * older than journal.db. Refuses files that don't belong together.
 */
import { AssertionError } from "node:assert";
import type Database from "better-sqlite3";
import { type LogEnd, NO_HASH, readLogEnd } from "../log/append.ts";
import { hashOf } from "../log/batch-format.ts";
import { BrokenLog } from "../log/broken-log.ts";
import { LogChain } from "../log/chain.ts";
import { JournalReader, type LogReader } from "../log/log-reader.ts";
import { projectAll } from "./follow.ts";
import { loadProjection } from "./load/projection.ts";
import type { ProjectorSizes } from "./parts.ts";
import { Projector } from "./projector.ts";

/** What a batch that was changed throws where no hash gives it away. */
const CONTENT_ERRORS = [AssertionError, RangeError, TypeError] as const;
const RESTORE = "restore both files from one back-up";
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
  if (end !== null) adoptExchange(tables, end.exchange);
  const projected = loadProjection(tables);
  const last = end?.batch ?? projected.logBegins - 1;
  if (end !== null && end.exchange !== projected.exchange) {
    throw new BrokenLog(`exchange.db and journal.db belong to different exchanges: ${RESTORE}`);
  }
  if (projected.batch > last) {
    throw new BrokenLog(`exchange.db contains batch ${projected.batch}, journal.db ends at ${last}: ${RESTORE}`);
  }
  checkProjected(journal, projected);
  if (projected.batch < last) projectRest(new Projector(tables, log, { ...sizes, checksHashes: true }), log);
  const { exchange, batch, position, hash, at } = loadProjection(tables);
  return { exchange, batch, records: position, at, hash: hash === "" ? NO_HASH : Buffer.from(hash, "hex") };
}

/** @throws BrokenLog that names the batch that can't be projected, whatever is wrong with its contents */
function projectRest(projector: Projector, log: LogReader): void {
  try {
    projectAll(projector, log);
  } catch (error) {
    if (!CONTENT_ERRORS.some((kind) => error instanceof kind)) throw error;
    const next = projector.position.batch + 1;
    throw new BrokenLog(`batch ${next} of the log can't be projected: ${(error as Error).message}`);
  }
}

/** A new exchange.db beside an existing log belongs to the log's exchange. */
function adoptExchange(tables: Database.Database, exchange: number): void {
  tables.prepare("UPDATE projection SET exchange = ? WHERE batch = 0 AND log_begins = 1").run(exchange);
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

/** The last projected batch must be the one in the log, if the log still has it. */
function checkProjected(journal: Database.Database, { batch, hash }: { batch: number; hash: string }): void {
  const body = journal.prepare("SELECT body FROM batches WHERE number = ?").pluck().get(batch) as Buffer | undefined;
  if (body !== undefined && hashOf(body).toString("hex") !== hash) {
    throw new BrokenLog(`batch ${batch} in exchange.db isn't the one in journal.db: ${RESTORE}`);
  }
}
