/**
 * A consistent copy of the database, also while the exchange commits. One read transaction lasts as long as the copying:
 * without it each commit in between would make SQLite begin the copy anew. Meanwhile the WAL cannot start over.
 *
 * The copy grows beside its place under another name, is checked, made durable and then renamed: under FILE there is a
 * whole copy or what was there before. It is one plain file in rollback mode, which needs no -wal to be read.
 */
import { closeSync, existsSync, fsyncSync, openSync, realpathSync, renameSync, rmSync, statSync } from "node:fs";
import { basename, dirname, resolve } from "node:path";
import { parseArgs } from "node:util";
import Database from "better-sqlite3";
import { openReadOnly } from "../engine/journal/database.ts";
import { verifyCopy } from "../engine/journal/verify.ts";

/** Copied at a time; between two slices a signal is heard. */
const SLICE_PAGES = 4_096;
/** What SQLite would take for a part of the database of that name. */
const COMPANIONS = ["-wal", "-shm", "-journal"] as const;
const STOP_SIGNALS = ["SIGINT", "SIGTERM", "SIGHUP"] as const;

/** What the copy holds: all up to commit `sequence`, which was made at `at` (ms). */
interface Backup {
  readonly path: string;
  readonly pages: number;
  readonly bytes: number;
  readonly seconds: number;
  readonly sequence: number;
  readonly at: number;
}

/** The operator's command: `backup FILE [--overwrite]`. Answers what to print. @throws Error */
export async function backUpAsAsked(databasePath: string, args: readonly string[]): Promise<string> {
  const { values, positionals } = readArguments(args);
  const [file, ...more] = positionals;
  if (file === undefined || file === "") throw new Error("backup: name the file to write");
  if (more.length > 0) throw new Error(`backup: one file, not "${more.join(" ")}" too`);
  const { path, pages, bytes, seconds, sequence, at } = await backUp(databasePath, file, values.overwrite);
  const size = `${pages} pages, ${bytes} bytes, ${seconds.toFixed(1)} s`;
  return `wrote ${path}: ${size}; it holds all up to commit ${sequence} of ${new Date(at).toISOString()}`;
}

function readArguments(args: readonly string[]) {
  const options = { overwrite: { type: "boolean", default: false } } as const;
  try {
    return parseArgs({ args: [...args], options, allowPositionals: true });
  } catch (error) {
    throw new Error(`backup: ${(error as Error).message}`);
  }
}

/**
 * Copies the database to `file`.
 * @param overwrite a `file` that is there may be replaced
 * @throws Error where it cannot; then nothing is left behind
 */
async function backUp(databasePath: string, file: string, overwrite: boolean): Promise<Backup> {
  const began = performance.now();
  const path = resolve(file);
  checkPlace(databasePath, path, overwrite);
  const partial = `${path}.${process.pid}.part`;
  const stop = new AbortController();
  const interrupt = (): void => stop.abort();
  for (const signal of STOP_SIGNALS) process.once(signal, interrupt);
  try {
    closeSync(openFile(partial, "wx"));
    const copied = await copy(databasePath, partial, stop.signal);
    makeSound(partial);
    sync(partial);
    stop.signal.throwIfAborted();
    if (overwrite) for (const companion of COMPANIONS) rmSync(path + companion, { force: true });
    renameSync(partial, path);
    sync(dirname(path));
    return { path, ...copied, bytes: statSync(path).size, seconds: (performance.now() - began) / 1_000 };
  } catch (error) {
    if (stop.signal.aborted) throw new Error("backup: interrupted, nothing was written");
    throw new Error(`backup: ${(error as Error).message}`);
  } finally {
    for (const signal of STOP_SIGNALS) process.removeListener(signal, interrupt);
    for (const ending of ["", ...COMPANIONS]) rmSync(partial + ending, { force: true });
  }
}

/** @throws Error where a copy must not go there */
function checkPlace(databasePath: string, path: string, overwrite: boolean): void {
  if (!existsSync(databasePath)) throw new Error(`backup: there is no database at ${databasePath}`);
  const folder = dirname(path);
  if (!existsSync(folder)) throw new Error(`backup: there is no folder ${folder}`);
  const isLive = realpathSync(folder) === realpathSync(dirname(databasePath));
  if (isLive && basename(path).startsWith("exchange.")) throw new Error(`backup: ${path} is the exchange's own`);
  if (existsSync(path) && !statSync(path).isFile()) throw new Error(`backup: ${path} is not a file`);
  const found = ["", ...COMPANIONS].map((ending) => path + ending).find((each) => existsSync(each));
  if (found !== undefined && !overwrite) throw new Error(`backup: ${found} is there already: --overwrite replaces it`);
}

/** @throws Error that names the file */
function openFile(path: string, flags: "r" | "wx"): number {
  try {
    return openSync(path, flags, 0o600);
  } catch (error) {
    throw new Error(`cannot write to ${dirname(path)} (${(error as NodeJS.ErrnoException).code})`);
  }
}

/** @throws Error once `stop` is aborted */
async function copy(from: string, to: string, stop: AbortSignal): Promise<Pick<Backup, "pages" | "sequence" | "at">> {
  const db = openReadOnly(from);
  try {
    db.exec("BEGIN");
    const { sequence, at } = db.prepare("SELECT sequence, at FROM totals").get() as Pick<Backup, "sequence" | "at">;
    const progress = (): number => {
      stop.throwIfAborted();
      return SLICE_PAGES;
    };
    const { totalPages } = await db.backup(to, { progress });
    return { pages: totalPages, sequence, at };
  } finally {
    db.close();
  }
}

/** Takes the copy out of WAL mode and checks it. @throws Error where it isn't whole */
function makeSound(path: string): void {
  const db = new Database(path);
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
