/**
 * The data folder: the lock that gives it to one server, the permissions of its files, and the paths in it that more
 * than one part knows. Never opens the database for writing.
 */
import {
  closeSync,
  constants,
  existsSync,
  fchownSync,
  fstatSync,
  mkdirSync,
  openSync,
  readdirSync,
  readlinkSync,
  realpathSync,
  rmSync,
  type Stats,
  statSync,
} from "node:fs";
import { join, relative } from "node:path";
import type Database from "better-sqlite3";
import { whyNoFile, whyNoFolder } from "../../engine/util/path-kind.ts";
import { openSqlite } from "../../engine/util/sqlite.ts";
import { openReadOnly } from "../../engine/util/wal-database.ts";
import { ConfigError } from "../errors.ts";

/** How far the mails that say what happened have come. */
export const MAILS_FILE = "mails.json";
const LOCK = "exchange.lock";
/** Whatever an exchange may leave in it, files and folders. */
const KEPT =
  /^(exchange|journal)\.|^(log|history|keys|outbox|cut|copy)$|^(control\.sock|last-backup\.json|(mails|standby)\.json(\.part)?)$|^demo-token-\d+$/;
/** The files in it that a start opens. */
const OWN_FILES = /^((exchange|journal)\.db|exchange\.lock)(-wal|-shm|-journal)?$/;

/** Only the owner may open files that this process creates from now on: the database holds password hashes and addresses. */
export function restrictToOwner(): void {
  process.umask(0o077);
}

/** The end of the error that a server stops with while another one holds the folder. */
export const FOLDER_IN_USE = "is in use by another server";

/**
 * Locks the data folder for the life of this process; a crash releases it too.
 * @throws ConfigError where the folder can't be written to, or another server holds it
 */
export function lockDataFolder(dataDir: string): Database.Database {
  let lock: Database.Database | null = null;
  try {
    mkdirSync(dataDir, { recursive: true });
    checkDataFolder(dataDir);
    lock = openSqlite(join(dataDir, LOCK), { timeout: 0 });
    lock.exec("BEGIN EXCLUSIVE");
    return lock;
  } catch (error) {
    lock?.close();
    if (error instanceof ConfigError) throw error;
    const code = String((error as { code?: unknown }).code);
    if (code.startsWith("SQLITE_BUSY")) throw new ConfigError(`DATA_DIR: "${dataDir}" ${FOLDER_IN_USE}`);
    if (code === "SQLITE_NOTADB") throw new ConfigError("DATA_DIR: exchange.lock is no lock: delete it");
    throw new ConfigError(`DATA_DIR: cannot write to "${dataDir}" (${code})`);
  }
}

/**
 * Every file of the exchange is a file and every folder a folder, or a link to one: opening a pipe would wait for ever.
 * Archives are checked when they are read, since an exchange trades without them.
 * @throws ConfigError that names the first that isn't
 */
function checkDataFolder(dataDir: string): void {
  const require = (path: string, why: string | null): void => {
    if (why !== null) throw new ConfigError(`DATA_DIR: ${relative(dataDir, path) || `"${dataDir}"`} ${why}`);
  };
  require(dataDir, whyNoFolder(dataDir));
  const names = existsSync(dataDir) ? readdirSync(dataDir) : [];
  const files = names.filter((name) => OWN_FILES.test(name)).map((name) => join(dataDir, name));
  for (const path of files) require(path, whyNoFile(path));
  for (const path of [keyFolder(dataDir), archiveFolder(dataDir)]) require(path, whyNoFolder(path));
  const keys = keyFolder(dataDir);
  for (const path of existsSync(keys) ? readdirSync(keys) : []) require(join(keys, path), whyNoFile(join(keys, path)));
}

/**
 * Gives the folder's owner what root wrote into it, so that the exchange can read it at its next start. Does nothing for
 * other users, nor where root owns the folder. The owner could have put a link there: only files and folders that really are in
 * the folder change hands.
 */
export function giveToOwner(dataDir: string): void {
  if (process.geteuid?.() !== 0) return;
  const folder = statSync(dataDir, { throwIfNoEntry: false });
  if (folder === undefined || folder.uid === 0) return;
  const root = realpathSync(dataDir);
  for (const name of readdirSync(root, { recursive: true })) giveFile(join(root, String(name)), folder);
}

/** A path that is gone, or a link, stays as it is; so does a file with another name elsewhere. */
function giveFile(path: string, { uid, gid }: Stats): void {
  let file: number | null = null;
  try {
    file = openSync(path, constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK);
    const stats = fstatSync(file);
    const isAlone = stats.isDirectory() || (stats.isFile() && stats.nlink === 1);
    if (stats.uid === 0 && isAlone && readlinkSync(`/proc/self/fd/${file}`) === path) fchownSync(file, uid, gid);
  } catch {
    // The next command tries again.
  } finally {
    if (file !== null) closeSync(file);
  }
}

/** True if an exchange keeps its state there. */
export function holdsExchange(dataDir: string): boolean {
  return [tablesPath(dataDir), journalPath(dataDir), archiveFolder(dataDir)].some((path) => existsSync(path));
}

/** Deletes everything that an exchange keeps in the folder, except the lock, which the caller holds. */
export function deleteExchange(dataDir: string): void {
  for (const name of readdirSync(dataDir)) {
    if (name === LOCK || !KEPT.test(name)) continue;
    rmSync(join(dataDir, name), { recursive: true, force: true });
  }
}

/** Opens a database file read-only, whether its server runs or not. @throws Error where there is none */
export function openExisting(path: string): Database.Database {
  const why = whyNoFile(path);
  if (why !== null) throw new Error(`${path} ${why}`);
  if (!existsSync(path)) throw new Error(`there is no database at ${path}`);
  return openReadOnly(path);
}

export function keyFolder(dataDir: string): string {
  return join(dataDir, "keys");
}

/** The path of the server's control socket. */
export function controlPath(dataDir: string): string {
  return join(dataDir, "control.sock");
}

/** The path of the tables. */
export function tablesPath(dataDir: string): string {
  return join(dataDir, "exchange.db");
}

/** The folder of the log's archives. */
export function archiveFolder(dataDir: string): string {
  return join(dataDir, "log");
}

/** The folder of what was cut off the log, because the other box's went on differently. */
export function cutFolder(dataDir: string): string {
  return join(dataDir, "cut");
}

/** The folder of copies of the exchange's files that are on their way to another box, or from one. */
export function copyFolder(dataDir: string): string {
  return join(dataDir, "copy");
}

/** The name of the log in a backup whose tables have this name. */
export const journalNameOf = (tables: string): string => tables.replace(/(\.db)?$/, ".journal.db");

/** The path of the log. */
export function journalPath(dataDir: string): string {
  return join(dataDir, "journal.db");
}
