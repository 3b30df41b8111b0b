/**
 * A consistent copy of the database, also while the exchange commits. One read transaction lasts as long as the copying:
 * without it each commit in between would make SQLite begin the copy anew. Meanwhile the WAL cannot start over.
 *
 * The copy grows beside its place under another name, is checked, made durable and then renamed: under FILE there is a
 * whole copy or what was there before. It is one plain file in rollback mode, which needs no -wal to be read.
 */
import { closeSync, existsSync, fsyncSync, openSync, realpathSync, renameSync, rmSync, statSync } from "node:fs";
import { basename, dirname, resolve } from "node:path";
import { setImmediate as nextTurn } from "node:timers/promises";
import type Database from "better-sqlite3";
import { verifyCopy } from "../../engine/projection/verify.ts";
import { openSqlite } from "../../engine/util/sqlite.ts";
import { openExisting } from "../util/data-folder.ts";

/** Copied at a time; between two slices a signal is heard. */
const SLICE_PAGES = 4_096;
/** What SQLite would take for a part of the database of that name. */
const COMPANIONS = ["-wal", "-shm", "-journal"] as const;
const STOP_SIGNALS = ["SIGINT", "SIGTERM", "SIGHUP"] as const;

/** What was written: it holds all up to commit `sequence`, which was made at `committed_at` (ms). */
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
 * @param overwrite a `file` that is there may be replaced
 * @throws Error where it cannot; then nothing is left behind
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
    checkPlace(databasePath, file, overwrite);
    closeSync(openFile(partial, "wx"));
    const copied = await copy(db, partial, stop.signal);
    makeSound(partial);
    sync(partial);
    // A signal that came while the thread was busy with the check is heard here.
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

/** @throws Error where a copy must not go there */
function checkPlace(databasePath: string, path: string, overwrite: boolean): void {
  const folder = dirname(path);
  if (!existsSync(folder)) throw new Error(`there is no folder ${folder}`);
  const isLive = realpathSync(folder) === realpathSync(dirname(databasePath));
  if (isLive && basename(path).startsWith("exchange.")) throw new Error(`${path} is the exchange's own`);
  if (existsSync(path) && !statSync(path).isFile()) throw new Error(`${path} is not a file`);
  const found = ["", ...COMPANIONS].map((ending) => path + ending).find((each) => existsSync(each));
  if (found !== undefined && !overwrite) throw new Error(`${found} is there already: --overwrite replaces it`);
}

/** @throws Error that names the file */
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

/** Takes the copy out of WAL mode and checks it. @throws Error where it isn't whole */
function makeSound(path: string): void {
  const db = openSqlite(path);
  try {
    db.pragma("journal_mode = DELETE");
    const wrong = verifyCopy(db).filter(({ ok }) => !ok);
    if (wrong.length > 0) throw new Error(wrong.map(({ name, figures }) => `${name}: ${figures}`).join("; "));
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
