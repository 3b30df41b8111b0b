/**
 * Opens the exchange's two files at the start, before any thread does: checks their pages, migrates exchange.db, checks
 * that it belongs to journal.db, and projects the rest of the log into it. recovery.ts reads the contents.
 */
import { AssertionError } from "node:assert";
import { chmodSync, existsSync, statSync } from "node:fs";
import { basename } from "node:path";
import type Database from "better-sqlite3";
import { type LogEnd, readLogEnd } from "../../engine/log/append.ts";
import { BrokenLog } from "../../engine/log/broken-log.ts";
import { openJournal } from "../../engine/log/database.ts";
import { LogFiles, type LogPlace } from "../../engine/log/log-files.ts";
import { readThrough } from "../../engine/log/log-reader.ts";
import { keepSnapshot, snapshotPath } from "../../engine/projection/base-tables.ts";
import { migrate, NewerSchema } from "../../engine/projection/database.ts";
import { DamagedTables, loadProjection } from "../../engine/projection/load/projection.ts";
import { CheckedLog, rebuildFile } from "../../engine/projection/rebuild.ts";
import { decisionOf, recoverTables } from "../../engine/projection/recover.ts";
import type { JournalState } from "../../engine/projection/recovery-table.ts";
import { emptyWal, openDatabase } from "../../engine/util/wal-database.ts";
import { ConfigError } from "../errors.ts";
import { archiveFolder, journalPath, tablesPath } from "../util/data-folder.ts";
import type { Config } from "./config.ts";

/** Checking every page of a larger database at each start would take longer than recovery: `admin verify` does. */
const MAX_CHECKED_BYTES = 64 * 1024 * 1024;
/** How long a start waits for another program's lock. */
const START_LOCK_MS = 30_000;

export interface ExchangeDatabase {
  /** exchange.db, open for recovery. */
  readonly db: Database.Database;
  readonly path: string;
  readonly journalPath: string;
  /** The folder of the log's archives. */
  readonly archives: string;
  /** Where the log continues; the tables include all before. */
  readonly end: LogEnd;
  /** What is wrong with the archives, one line each. */
  readonly logFaults: readonly string[];
  /** When journal.db's first batch was committed, ms; null if it has none. */
  readonly logSince: number | null;
}

/**
 * @param through the last batch that the tables may include
 * @throws ConfigError where a page is damaged, or the files don't belong together
 */
export function openExchangeDatabase(
  { dataDir, durability }: Config,
  through = Number.POSITIVE_INFINITY,
): ExchangeDatabase {
  const [path, log, archives] = [tablesPath(dataDir), journalPath(dataDir), archiveFolder(dataDir)];
  const hasJournal = existsSync(log);
  let last = 0;
  const journal = openChecked(log, () => {
    const opened = openJournal(log, durability, START_LOCK_MS);
    last = readLogEnd(opened)?.batch ?? 0;
    return opened;
  });
  const place = { journal: log, archives };
  try {
    const state = hasJournal ? "empty" : "none";
    restoreTables(path, last > 0 ? "ahead" : state, last, place, through);
    const tablesDurability = durability === "full" ? "normal" : durability;
    const db = openChecked(path, () => openDatabase(path, tablesDurability, START_LOCK_MS));
    migrate(db);
    const { end, logFaults } = recover(db, journal, last, place, through);
    const since = journal.prepare("SELECT at FROM batches ORDER BY number LIMIT 1").pluck().get() as number | undefined;
    // Before the threads open the files: they would have to wait for the reads of recovery.
    emptyWal(db);
    emptyWal(journal);
    journal.close();
    return { db, path, journalPath: log, archives, end, logFaults, logSince: since ?? null };
  } catch (error) {
    throw explainDamage(error, basename(path));
  }
}

/** Where there are no tables, builds them from the log as `admin rebuild` does. @param last batch @throws BrokenLog */
function restoreTables(path: string, state: JournalState, last: number, place: LogPlace, through: number): void {
  const isMissing = !existsSync(path) || statSync(path).size === 0;
  if (!isMissing) return;
  const log = new LogFiles(place);
  try {
    checkArchives(log.archives.at(-1)?.last ?? 0, last);
    const snapshot = snapshotPath(place.archives);
    if (decisionOf(state, "none").does === "rebuild")
      rebuildFile({ path, archives: place.archives, log: new CheckedLog(log, through) });
    else if (existsSync(snapshot)) {
      throw new BrokenLog(`there is ${snapshot}, but no exchange.db and no batch in journal.db`);
    }
  } finally {
    log.close();
  }
}

/** Brings the tables to the end of the log; keeps a copy of tables that are older than their log. @throws BrokenLog */
function recover(
  db: Database.Database,
  journal: Database.Database,
  last: number,
  place: LogPlace,
  through: number,
): { readonly end: LogEnd; readonly logFaults: readonly string[] } {
  const files = new LogFiles(place);
  const { archived, logFaults } = readArchives(files, loadProjection(db).logBegins);
  checkArchives(archived, last);
  if (last === 0) keepSnapshot(db, place.archives);
  const end = recoverTables(db, journal, {}, readThrough(files, through));
  files.close();
  return { end, logFaults };
}

/** @param archived the last batch in an archive @param last the last one in journal.db, which continues them */
function checkArchives(archived: number, last: number): void {
  if (archived <= last) return;
  throw new BrokenLog(
    `the archives end with batch ${archived}, journal.db with ${last}: restore the log of that time, or remove later archives`,
  );
}

/** The last archived batch, and what is wrong: the exchange trades without archives that only old order updates need. */
function readArchives(files: LogFiles, logBegins: number): { archived: number; logFaults: string[] } {
  try {
    return { archived: files.archives.at(-1)?.last ?? 0, logFaults: files.faults(logBegins) };
  } catch (error) {
    if (!(error instanceof BrokenLog)) throw error;
    return { archived: 0, logFaults: [error.message] };
  }
}

/** @throws ConfigError where a page of the file is damaged */
function openChecked(path: string, open: () => Database.Database): Database.Database {
  const isNew = !existsSync(path);
  // A file of an older version may be readable to others.
  if (!isNew) chmodSync(path, 0o600);
  try {
    const db = open();
    if (!isNew && statSync(path).size <= MAX_CHECKED_BYTES) {
      const found = db.pragma("quick_check(1)", { simple: true });
      if (found !== "ok")
        throw new ConfigError(`DATA_DIR: ${damaged(basename(path), String(found).replace(/\s+/g, " "))}`);
    }
    return db;
  } catch (error) {
    throw explainDamage(error, basename(path));
  }
}

const BY_ANOTHER =
  "by another program: end its transaction (a shell with BEGIN, VACUUM, a tool that copies databases), see docs/operations.md";

/** What SQLite's codes begin with, and what they mean for a file. */
const SQLITE_CODES: readonly (readonly [prefix: RegExp, means: (file: string, message: string) => string])[] = [
  [/^SQLITE_BUSY/, (file) => `${file} is locked ${BY_ANOTHER}`],
  [/^SQLITE_FULL/, (file) => `the disk of ${file} is full: free space`],
  [/^SQLITE_(READONLY|CANTOPEN|PERM|AUTH)/, (file, message) => `${file} can't be opened for writing (${message})`],
  [/^SQLITE_IOERR/, (file, message) => `the disk of ${file} failed (${message})`],
  [/^SQLITE_/, damaged],
];

/**
 * The ConfigError that explains an error of the files; any other error unchanged.
 * @param file that was being read
 */
export function explainDamage(thrown: unknown, file = "exchange.db or journal.db"): unknown {
  if (!(thrown instanceof Error) || thrown instanceof ConfigError) return thrown;
  if (thrown instanceof BrokenLog || thrown instanceof NewerSchema) return ofFolder(thrown.message);
  if (thrown instanceof DamagedTables) return ofFolder(damaged("exchange.db", thrown.message));
  if (thrown instanceof AssertionError)
    return ofFolder(`an invariant doesn't hold: ${thrown.message}; see docs/operations.md`);
  const { code, syscall, message } = thrown as NodeJS.ErrnoException;
  const explained = SQLITE_CODES.find(([prefix]) => prefix.test(String(code)))?.[1];
  if (explained !== undefined) return ofFolder(explained(file, message));
  return syscall === undefined ? thrown : new ConfigError(message);
}

const ofFolder = (line: string): ConfigError => new ConfigError(`DATA_DIR: ${line.replace(/\s+/g, " ")}`);

/** What is to be done about a file with damaged content. */
function damaged(file: string, finding: string): string {
  const remedy = file === "exchange.db" ? "rebuild it from the log or restore a backup" : "restore a backup";
  return `${file} is damaged (${finding}): ${remedy}, see docs/operations.md`;
}
