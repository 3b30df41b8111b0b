/** The data folder: who has it, and where a running server is reached. */
import { existsSync, mkdirSync } from "node:fs";
import { join } from "node:path";
import type Database from "better-sqlite3";
import { openReadOnly } from "../../engine/projection/database.ts";
import { openSqlite } from "../../engine/util/sqlite.ts";
import { ConfigError } from "../config.ts";

/** What this process makes from now on, only its owner may open: the database holds password hashes and addresses. */
export function keepToOwner(): void {
  process.umask(0o077);
}

/** Why a server doesn't start that comes too early, or too late. */
export const FOLDER_IN_USE = "is in use by another server";

/** Holds the data folder for this process's life, also through a crash: the lock goes with the process. */
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

/** Opens a database file of any server, running or not. @throws Error where there is none */
export function openExisting(path: string): Database.Database {
  if (!existsSync(path)) throw new Error(`there is no database at ${path}`);
  return openReadOnly(path);
}

export function keyFolder(dataDir: string): string {
  return join(dataDir, "keys");
}

/** The server's control socket. */
export function controlPath(dataDir: string): string {
  return join(dataDir, "control.sock");
}
