/**
 * Opens a database in WAL mode with the settings that the exchange's guarantees need. Both files, journal.db and
 * exchange.db, come from here; each has one writing connection.
 */
import { rmSync } from "node:fs";
import type Database from "better-sqlite3";
import { assert } from "./assert.ts";
import { openSqlite } from "./sqlite.ts";

export type Durability = "full" | "normal" | "off";
const SYNCHRONOUS: Record<Durability, number> = { off: 0, normal: 1, full: 2 };
/** Older releases can corrupt a database when a checkpoint races with a writer. */
const MIN_SQLITE = [3, 51, 3] as const;

/** How long a connection waits for a lock, and for readers that keep the WAL: those may be another program's and stay. */
const BUSY_MS = 5_000;
const READERS_MS = 250;

/** @param busyMs how long it waits for a lock */
export function openDatabase(path: string, durability: Durability, busyMs = BUSY_MS): Database.Database {
  const db = openSqlite(path, { timeout: busyMs });
  assertSqliteVersion(db);
  db.pragma("journal_mode = WAL");
  db.pragma(`synchronous = ${SYNCHRONOUS[durability]}`);
  // A reopened WAL database silently starts at NORMAL, so read the settings back.
  assert(db.pragma("journal_mode", { simple: true }) === "wal", "the database is in WAL mode");
  assert(
    db.pragma("synchronous", { simple: true }) === SYNCHRONOUS[durability],
    "the requested durability is in effect",
  );
  db.pragma("wal_autocheckpoint = 0");
  db.pragma("journal_size_limit = 134217728");
  db.pragma("cache_size = -65536");
  db.pragma("temp_store = MEMORY");
  return db;
}

/** Moves the WAL into the database file and empties it, except for pages that a reader still needs. */
export function emptyWal(db: Database.Database): void {
  db.pragma(`busy_timeout = ${READERS_MS}`);
  db.pragma("wal_checkpoint(TRUNCATE)");
  db.pragma(`busy_timeout = ${BUSY_MS}`);
}

/** For readers. Many may be open; none writes, and none keeps a transaction open across calls. */
export function openReadOnly(path: string): Database.Database {
  const db = openSqlite(path, { readonly: true, timeout: BUSY_MS });
  db.pragma("query_only = ON");
  db.pragma("cache_size = -16384");
  return db;
}

/** What SQLite keeps beside a database's file. */
export const DATABASE_COMPANIONS = ["-wal", "-shm", "-journal"] as const;

/** Removes a database that nobody has open. Its file goes first: without it, SQLite ignores the others. */
export function removeDatabase(path: string): void {
  for (const ending of ["", ...DATABASE_COMPANIONS]) rmSync(path + ending, { force: true });
}

function assertSqliteVersion(db: Database.Database): void {
  const version = String(db.prepare("SELECT sqlite_version()").pluck().get());
  const parts = version.split(".").map(Number);
  for (const [i, minimum] of MIN_SQLITE.entries()) {
    const part = parts[i] ?? 0;
    if (part > minimum) return;
    assert(part === minimum, `SQLite ${version} is at least ${MIN_SQLITE.join(".")}`);
  }
}
