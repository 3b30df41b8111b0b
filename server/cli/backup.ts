/**
 * Makes a consistent copy of the database, also while the exchange commits. One read transaction spans the whole copy:
 * without it, each commit in between would make SQLite restart the copy. Meanwhile the WAL cannot start over.
 *
 * The copy grows beside its target under another name, is verified, synced and then renamed: the target is either a
 * complete copy or what it was before. It is one plain file in rollback mode, which needs no -wal to be read.
 */
import { closeSync, existsSync, fsyncSync, openSync, realpathSync, renameSync, rmSync, statSync } from "node:fs";
import { basename, dirname, resolve } from "node:path";
import { setImmediate as nextTurn } from "node:timers/promises";
import type Database from "better-sqlite3";
import { verifyCopy } from "../../engine/projection/verify.ts";
import { openSqlite } from "../../engine/util/sqlite.ts";
import { openExisting } from "../util/data-folder.ts";

/** Pages copied at a time; between two slices signals are handled. */
const SLICE_PAGES = 4_096;
/** Files with these endings would count as parts of the database to SQLite. */
const COMPANIONS = ["-wal", "-shm", "-journal"] as const;
const STOP_SIGNALS = ["SIGINT", "SIGTERM", "SIGHUP"] as const;

/** The copy, which includes every commit up to `sequence`, made at `committed_at` (ms). */
export interface Backup {
  readonly file: string;
  readonly pages: number;
  readonly bytes: number;
  readonly seconds: number;
  readonly sequence: number;
  readonly committed_at: number;
}

/**
 * Copies the database to `file`.
 * @param overwrite whether an existing `file` may be replaced
 * @throws Error where it fails; then nothing is left behind
 */
export async function backUp(databasePath: string, target: string, overwrite: boolean): Promise<Backup> {
  const began = performance.now();
  const file = resolve(target);
  const partial = `${file}.${process.pid}.part`;
  const stop = new AbortController();
  const interrupt = (): void => stop.abort(new Error("interrupted: nothing was written"));
  const db = openExisting(databasePath);
  for (const signal of STOP_SIGNALS) process.once(signal, interrupt);
  try {
    checkTarget(databasePath, file, overwrite);
    closeSync(openFile(partial, "wx"));
    const copied = await copy(db, partial, stop.signal);
    finishCopy(partial);
    sync(partial);
    // A signal that arrived while the check kept the thread busy is handled here.
    await nextTurn();
    stop.signal.throwIfAborted();
    if (overwrite) for (const companion of COMPANIONS) rmSync(file + companion, { force: true });
    renameSync(partial, file);
    sync(dirname(file));
    const seconds = Math.round(performance.now() - began) / 1_000;
    return { file, ...copied, bytes: statSync(file).size, seconds };
  } finally {
    db.close();
    for (const signal of STOP_SIGNALS) process.removeListener(signal, interrupt);
    for (const ending of ["", ...COMPANIONS]) rmSync(partial + ending, { force: true });
  }
}

/** @throws Error where the copy must not go there */
function checkTarget(databasePath: string, path: string, overwrite: boolean): void {
  const folder = dirname(path);
  if (!existsSync(folder)) throw new Error(`there is no folder ${folder}`);
  const isLive = realpathSync(folder) === realpathSync(dirname(databasePath));
  if (isLive && basename(path).startsWith("exchange.")) throw new Error(`${path} is the exchange's own`);
  if (existsSync(path) && !statSync(path).isFile()) throw new Error(`${path} is not a file`);
  const found = ["", ...COMPANIONS].map((ending) => path + ending).find((each) => existsSync(each));
  if (found !== undefined && !overwrite) throw new Error(`${found} already exists: --overwrite replaces it`);
}

/** @throws Error that names the folder */
function openFile(path: string, flags: "r" | "wx"): number {
  try {
    return openSync(path, flags, 0o600);
  } catch (error) {
    throw new Error(`cannot write to ${dirname(path)} (${(error as NodeJS.ErrnoException).code})`);
  }
}

/** @throws the reason of `stop` once it is aborted */
async function copy(
  db: Database.Database,
  to: string,
  stop: AbortSignal,
): Promise<Pick<Backup, "pages" | "sequence" | "committed_at">> {
  db.exec("BEGIN");
  const [sequence, committed_at] = db.prepare("SELECT sequence, at FROM totals").raw().get() as [number, number];
  const progress = (): number => {
    stop.throwIfAborted();
    return SLICE_PAGES;
  };
  const { totalPages } = await db.backup(to, { progress });
  db.exec("COMMIT");
  return { pages: totalPages, sequence, committed_at };
}

/** Takes the copy out of WAL mode and verifies it. @throws Error where an invariant does not hold */
function finishCopy(path: string): void {
  const db = openSqlite(path);
  try {
    db.pragma("journal_mode = DELETE");
    const failures = verifyCopy(db).filter(({ ok }) => !ok);
    if (failures.length > 0) throw new Error(failures.map(({ name, figures }) => `${name}: ${figures}`).join("; "));
  } finally {
    db.close();
  }
}

function sync(path: string): void {
  const descriptor = openFile(path, "r");
  try {
    fsyncSync(descriptor);
  } finally {
    closeSync(descriptor);
  }
}
