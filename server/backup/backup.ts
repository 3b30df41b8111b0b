/**
 * Makes a consistent copy of the exchange's two files and its archives, also while the exchange commits: first the tables,
 * then the log, which therefore has every batch that the tables include. One read transaction spans each file's copy:
 * without it, each commit in between would make SQLite restart the copy. Meanwhile its WAL cannot start over.
 *
 * The copies grow beside their targets under other names, are verified, synced and then renamed, the tables last: the target
 * is either a complete copy or what it was before. Each is one plain file in rollback mode, which needs no -wal to be read.
 */
import { closeSync, existsSync, openSync, readdirSync, realpathSync, renameSync, rmSync, statSync } from "node:fs";
import { basename, dirname, join, resolve } from "node:path";
import { setImmediate as nextTurn } from "node:timers/promises";
import type Database from "better-sqlite3";
import { verifyCopy } from "../../engine/projection/verify.ts";
import { systemClock } from "../../engine/util/clock.ts";
import { syncPath } from "../../engine/util/durable-file.ts";
import { openSqlite } from "../../engine/util/sqlite.ts";
import { DATABASE_COMPANIONS, removeDatabase } from "../../engine/util/wal-database.ts";
import { journalNameOf, openExisting } from "../util/data-folder.ts";
import { type BackupEnd, type CopiedArchives, type CopiedLog, checkPair, copyArchives } from "./backup-log.ts";

/** Pages copied at a time; between two slices signals are handled. */
const SLICE_PAGES = 4_096;
/** A copy that isn't complete, by the process that makes it. */
const LEFTOVER = /\.db\.(\d+)\.part(-wal|-shm|-journal)?$/;
const STOP_SIGNALS = ["SIGINT", "SIGTERM", "SIGHUP"] as const;

/**
 * A backup: it includes every commit up to `sequence`, made at `committed_at` (ms). The tables in `file` may end earlier, and
 * follow the log at the first start.
 */
export interface Backup extends BackupEnd {
  readonly file: string;
  readonly pages: number;
  readonly bytes: number;
  readonly seconds: number;
  /** Null for an exchange of a version without a log. */
  readonly log: (CopiedLog & CopiedArchives) | null;
}

/** A file to copy, and the names of the copy before and after it is complete. */
interface Copy {
  readonly source: string;
  readonly partial: string;
  readonly file: string;
}

/**
 * Copies the data folder's tables to `file`, the log to a file of the same name that ends with `.journal.db`, and archives
 * into the folder `log` beside them.
 * @param overwrite whether existing files may be replaced
 * @throws Error where it fails; then nothing but archives is left behind
 */
export async function backUp(dataDir: string, target: string, overwrite: boolean): Promise<Backup> {
  const began = systemClock.elapsed();
  const file = resolve(target);
  const tables = copyOf(join(dataDir, "exchange.db"), file);
  const journal = copyOf(join(dataDir, "journal.db"), join(dirname(file), journalNameOf(basename(file))));
  const stop = new AbortController();
  const interrupt = (): void => stop.abort(new Error("interrupted: nothing was written"));
  openExisting(tables.source).close();
  for (const signal of STOP_SIGNALS) process.once(signal, interrupt);
  try {
    for (const each of [tables, journal]) checkTarget(dataDir, each.file, overwrite);
    removeLeftovers(dirname(file));
    const copied = await copyTables(tables, stop.signal);
    const { log, ...ends } = await copyLog(tables, journal, join(dataDir, "log"), stop.signal);
    // A signal that arrived while the check kept the thread busy is handled here.
    await nextTurn();
    stop.signal.throwIfAborted();
    for (const each of log === null ? [tables] : [journal, tables]) publish(each, overwrite);
    const seconds = Math.round(systemClock.elapsed() - began) / 1_000;
    return { file, ...copied, ...ends, bytes: statSync(file).size, seconds, log };
  } finally {
    for (const signal of STOP_SIGNALS) process.removeListener(signal, interrupt);
    for (const { partial } of [tables, journal]) removeDatabase(partial);
  }
}

const copyOf = (source: string, file: string): Copy => ({ source, file, partial: `${file}.${process.pid}.part` });

async function copyTables(tables: Copy, stop: AbortSignal): Promise<BackupEnd & Pick<Backup, "pages">> {
  const { pages, found } = await copy(tables, stop, (db) => {
    return db.prepare("SELECT sequence, at FROM totals").raw().get() as [number, number];
  });
  const [sequence, committed_at] = found;
  finishCopy(tables.partial, (db) => {
    const failures = verifyCopy(db).filter(({ ok }) => !ok);
    if (failures.length > 0) throw new Error(failures.map(({ name, figures }) => `${name}: ${figures}`).join("; "));
  });
  return { pages, sequence, committed_at };
}

/** After the tables: so the log has all that they have. Archives come last, since batches leave the log for them. */
async function copyLog(
  tables: Copy,
  journal: Copy,
  archives: string,
  stop: AbortSignal,
): Promise<Partial<BackupEnd> & Pick<Backup, "log">> {
  if (!existsSync(journal.source)) return { log: null };
  await copy(journal, stop, () => null);
  finishCopy(journal.partial, (db) => {
    const found = db.pragma("quick_check(1)", { simple: true });
    if (found !== "ok") throw new Error(`${journal.source}: ${found}`);
  });
  const to = join(dirname(journal.file), "log");
  const copied = copyArchives(archives, to);
  const { first, end } = checkPair(tables.partial, { journal: journal.partial, archives: to });
  const log = { file: journal.file, bytes: statSync(journal.partial).size, first, ...copied };
  return { ...end, log };
}

/** Removes copies that a killed backup left in the folder. */
function removeLeftovers(folder: string): void {
  for (const name of readdirSync(folder)) {
    const pid = Number(LEFTOVER.exec(name)?.[1] ?? process.pid);
    if (pid !== process.pid && !isAlive(pid)) rmSync(join(folder, name), { force: true });
  }
}

function isAlive(pid: number): boolean {
  try {
    return process.kill(pid, 0);
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === "EPERM";
  }
}

/** Gives a complete copy its name. */
function publish({ partial, file }: Copy, overwrite: boolean): void {
  if (overwrite) for (const companion of DATABASE_COMPANIONS) rmSync(file + companion, { force: true });
  renameSync(partial, file);
  syncPath(dirname(file));
}

/** @throws Error where the copy must not go there */
function checkTarget(dataDir: string, path: string, overwrite: boolean): void {
  const folder = dirname(path);
  if (!existsSync(folder)) throw new Error(`there is no folder ${folder}`);
  const isLive = realpathSync(folder) === realpathSync(dataDir);
  if (isLive && /^(exchange|journal)\./.test(basename(path))) throw new Error(`${path} is a live exchange file`);
  if (existsSync(path) && !statSync(path).isFile()) throw new Error(`${path} is not a file`);
  const found = ["", ...DATABASE_COMPANIONS].map((ending) => path + ending).find((each) => existsSync(each));
  if (found !== undefined && !overwrite) throw new Error(`${found} already exists: --overwrite replaces it`);
}

/** @throws Error that names the folder */
function createFile(path: string): void {
  try {
    closeSync(openSync(path, "wx", 0o600));
  } catch (error) {
    throw new Error(`cannot write to ${dirname(path)} (${(error as NodeJS.ErrnoException).code})`);
  }
}

/** @param read reads from the same snapshot @throws the reason of `stop` once it is aborted */
async function copy<T>(
  { source, partial }: Copy,
  stop: AbortSignal,
  read: (db: Database.Database) => T,
): Promise<{ readonly pages: number; readonly found: T }> {
  const db = openExisting(source);
  try {
    createFile(partial);
    db.exec("BEGIN");
    const found = read(db);
    const progress = (): number => {
      stop.throwIfAborted();
      return SLICE_PAGES;
    };
    const { totalPages: pages } = await db.backup(partial, { progress });
    db.exec("COMMIT");
    return { pages, found };
  } finally {
    db.close();
  }
}

/** Takes the copy out of WAL mode, checks and syncs it. @throws Error from `check` */
function finishCopy(path: string, check: (db: Database.Database) => void): void {
  const db = openSqlite(path);
  try {
    db.pragma("journal_mode = DELETE");
    check(db);
  } finally {
    db.close();
  }
  syncPath(path);
}
