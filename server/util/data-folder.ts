/**
 * The data folder: the lock that gives it to one server, the permissions of its files, and the paths in it that more
 * than one part knows. Never opens the database for writing.
 */
import { existsSync, mkdirSync } from "node:fs";
import { join } from "node:path";
import type Database from "better-sqlite3";
import { openSqlite } from "../../engine/util/sqlite.ts";
import { openReadOnly } from "../../engine/util/wal-database.ts";
import { ConfigError } from "../errors.ts";

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
  let lock: Database.Database;
  try {
    mkdirSync(dataDir, { recursive: true });
    lock = openSqlite(join(dataDir, "exchange.lock"), { timeout: 0 });
  } catch (error) {
    throw new ConfigError(`DATA_DIR: cannot write to "${dataDir}" (${(error as NodeJS.ErrnoException).code})`);
  }
  try {
    lock.exec("BEGIN EXCLUSIVE");
  } catch {
    throw new ConfigError(`DATA_DIR: "${dataDir}" ${FOLDER_IN_USE}`);
  }
  return lock;
}

/** Opens a database file read-only, whether its server runs or not. @throws Error where there is none */
export function openExisting(path: string): Database.Database {
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

/** The path of the log. */
export function journalPath(dataDir: string): string {
  return join(dataDir, "journal.db");
}
