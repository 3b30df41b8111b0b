/**
 * Opens the exchange's database the one way that keeps its promises, and brings its schema up to date.
 * The journal's is the only writing connection once the exchange runs.
 */
import type Database from "better-sqlite3";
import { assert } from "../util/assert.ts";
import { openSqlite } from "../util/sqlite.ts";
import { MIGRATIONS } from "./schema.ts";
import { indexedWords } from "./search-words.ts";

export type Durability = "full" | "normal" | "off";
const SYNCHRONOUS: Record<Durability, number> = { off: 0, normal: 1, full: 2 };
/** Older releases can corrupt a database when a checkpoint races with a writer. */
const MIN_SQLITE = [3, 51, 3] as const;

/** How long a connection waits for others; and for readers that keep the WAL, who may be of another program and stay. */
const BUSY_MS = 5_000;
const READERS_MS = 250;

export function openDatabase(path: string, durability: Durability): Database.Database {
  const db = openSqlite(path, { timeout: BUSY_MS });
  assertSqliteVersion(db);
  db.pragma("journal_mode = WAL");
  db.pragma(`synchronous = ${SYNCHRONOUS[durability]}`);
  // A reopened WAL database silently starts at NORMAL: read back what holds.
  assert(db.pragma("journal_mode", { simple: true }) === "wal", "the database is in WAL mode");
  assert(db.pragma("synchronous", { simple: true }) === SYNCHRONOUS[durability], "the durability asked for holds");
  db.pragma("wal_autocheckpoint = 0");
  db.pragma("journal_size_limit = 134217728");
  db.pragma("cache_size = -65536");
  db.pragma("temp_store = MEMORY");
  return db;
}

/** Moves the WAL into the database file and empties it; what a reader keeps of it stays for another time. */
export function emptyWal(db: Database.Database): void {
  db.pragma(`busy_timeout = ${READERS_MS}`);
  db.pragma("wal_checkpoint(TRUNCATE)");
  db.pragma(`busy_timeout = ${BUSY_MS}`);
}

/** For history and exports: many may be open, none writes, none keeps a transaction across calls. */
export function openReadOnly(path: string): Database.Database {
  const db = openSqlite(path, { readonly: true, timeout: BUSY_MS });
  db.pragma("query_only = ON");
  db.pragma("cache_size = -16384");
  return db;
}

function assertSqliteVersion(db: Database.Database): void {
  const version = String(db.prepare("SELECT sqlite_version()").pluck().get());
  const parts = version.split(".").map(Number);
  for (let i = 0; i < MIN_SQLITE.length; i++) {
    if (parts[i]! > MIN_SQLITE[i]!) return;
    assert(parts[i] === MIN_SQLITE[i], `SQLite ${version} is older than ${MIN_SQLITE.join(".")}`);
  }
}

/** Runs the migrations that the database lacks, each in its own transaction. Throws on a database of a newer version. */
export function migrate(db: Database.Database): void {
  const version = Number(db.pragma("user_version", { simple: true }));
  if (version > MIGRATIONS.length) {
    throw new Error(`the database is of schema ${version}, this program knows ${MIGRATIONS.length}: run a newer one`);
  }
  const words = (...texts: (string | null)[]): string => indexedWords(...texts);
  db.function("search_words", { varargs: true, deterministic: true }, words as (...values: unknown[]) => string);
  // What a migration sorts may be larger than memory.
  db.pragma("temp_store = FILE");
  for (let next = version; next < MIGRATIONS.length; next++) {
    db.transaction(() => {
      db.exec(MIGRATIONS[next]!);
      db.pragma(`user_version = ${next + 1}`);
    }).immediate();
  }
  db.pragma("temp_store = MEMORY");
}
