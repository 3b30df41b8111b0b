/**
 * Rebuilds the tables from the log, to replace lost ones or to compare the live ones with. Checks the log's hash chain on
 * the way. Never touches the live tables.
 */
import type Database from "better-sqlite3";
import { readHeader } from "../log/batch-format.ts";
import { BrokenLog } from "../log/broken-log.ts";
import { LogChain } from "../log/chain.ts";
import type { LogFiles } from "../log/log-files.ts";
import { PARTIAL, publishFile, syncPath } from "../util/durable-file.ts";
import { removeDatabase } from "../util/wal-database.ts";
import { createBaseTables, snapshotBatch } from "./base-tables.ts";
import { Projector } from "./projector.ts";
import { verifyDatabase } from "./verify.ts";

/** Records of one transaction: nobody waits for it. */
const MAX_RECORDS = 2 ** 19;

/** @param batch of the log's `last` one */
type OnProgress = (batch: number, last: number) => void;

/** The log from its first batch, checked batch by batch. */
export class CheckedLog {
  readonly first: number;
  readonly last: number;
  readonly exchange: number;
  readonly files: LogFiles;

  /** @param through the last batch to read @throws BrokenLog if the log is empty */
  constructor(log: LogFiles, through = Number.POSITIVE_INFINITY) {
    const range = log.range();
    const [body] = range === null ? [] : log.bodies(range.first);
    if (range === null || body === undefined) throw new BrokenLog("the log is empty");
    this.files = log;
    this.first = range.first;
    this.last = Math.min(range.last, through);
    this.exchange = readHeader(body).exchange;
  }

  /**
   * Passes each batch on after its check, up to the log's present end. @param visit gets its number, body and hash in hex
   * @throws BrokenLog that names the first batch that is wrong
   */
  read(visit: (number: number, body: Buffer, hash: () => string) => void): void {
    const chain = new LogChain();
    for (const body of this.files.bodies(this.first)) {
      const { batch } = chain.next(body);
      visit(batch, body, () => chain.hash);
      if (batch === this.last) return;
    }
    throw new BrokenLog(`the log ends before batch ${this.last}`);
  }
}

export interface RebuildOptions {
  /** The new database file; ":memory:" only without a snapshot. */
  readonly path: string;
  /** The folder of the archives, which has the snapshot. */
  readonly archives: string;
  readonly log: CheckedLog;
  /** The last batch to project. */
  readonly until: number;
  /** Called when the tables include this batch. */
  readonly pause?: { readonly batch: number; readonly run: (tables: Database.Database) => void };
  readonly onProgress?: OnProgress;
}

/**
 * Builds the tables from the whole log into a file at `path` and checks every invariant. The file is durable, and complete
 * or absent: a crash leaves only `path` with another ending.
 * @throws BrokenLog if the log is broken, or an invariant doesn't hold
 */
export function rebuildFile({ path, ...options }: Omit<RebuildOptions, "until">): void {
  const partial = path + PARTIAL;
  removeDatabase(partial);
  try {
    const rebuilt = rebuildTables({ ...options, path: partial, until: options.log.last });
    const failures = verifyDatabase(rebuilt).filter(({ ok }) => !ok);
    rebuilt.close();
    if (failures.length > 0) throw new BrokenLog(failures.map(({ name, figures }) => `${name}: ${figures}`).join("; "));
    syncPath(partial);
  } catch (error) {
    removeDatabase(partial);
    throw error;
  }
  removeDatabase(path);
  publishFile(partial, path);
}

/** The last batch before the log that a rebuild can start from; null if the log doesn't reach back to it. */
export function rebuildBase(log: CheckedLog, archives: string): number | null {
  const base = snapshotBatch(archives) ?? 0;
  return log.first <= base + 1 && base <= log.last ? base : null;
}

/** Builds the tables as of `until`, and checks the chain of the whole log. @throws BrokenLog */
export function rebuildTables({ path, archives, log, until, pause, onProgress }: RebuildOptions): Database.Database {
  const base = rebuildBase(log, archives);
  if (base === null) {
    throw new BrokenLog(`the log begins with batch ${log.first}: the tables can't be rebuilt without those before`);
  }
  const tables = createBaseTables(path, archives, log.exchange);
  try {
    const projector = new Projector(tables, log.files);
    let committed = projector.point.records;
    const commit = (): void => {
      projector.commit();
      committed = projector.point.records;
      onProgress?.(projector.point.batch, log.last);
    };
    if (pause?.batch === base) pause.run(tables);
    log.read((batch, body) => {
      if (batch > base && batch <= until) projector.apply(body);
      if (batch === until || batch === pause?.batch || projector.point.records - committed >= MAX_RECORDS) commit();
      if (batch === pause?.batch) pause.run(tables);
    });
    commit();
    return tables;
  } catch (error) {
    tables.close();
    throw error;
  }
}
