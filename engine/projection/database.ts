/**
 * Opens the exchange's database with the settings that its guarantees need, and migrates its schema. Once the exchange
 * runs, the journal has the only writing connection.
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

/** How long a connection waits for a lock, and for readers that keep the WAL: those may be another program's and stay. */
const BUSY_MS = 5_000;
const READERS_MS = 250;

export function openDatabase(path: string, durability: Durability): Database.Database {
  const db = openSqlite(path, { timeout: BUSY_MS });
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

/** For history and exports. Many may be open; none writes, and none keeps a transaction open across calls. */
export function openReadOnly(path: string): Database.Database {
  const db = openSqlite(path, { readonly: true, timeout: BUSY_MS });
  db.pragma("query_only = ON");
  db.pragma("cache_size = -16384");
  return db;
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

/** Runs the missing migrations, each in its own transaction. @throws Error if the database has a newer schema */
export function migrate(db: Database.Database): void {
  const version = Number(db.pragma("user_version", { simple: true }));
  if (version > MIGRATIONS.length) {
    throw new Error(
      `the database has schema ${version}, this program knows schema ${MIGRATIONS.length}: run a newer one`,
    );
  }
  const words = (...texts: (string | null)[]): string => indexedWords(...texts);
  db.function("search_words", { varargs: true, deterministic: true }, words as (...values: unknown[]) => string);
  // A migration may sort more rows than memory holds.
  db.pragma("temp_store = FILE");
  for (const [i, migration] of MIGRATIONS.slice(version).entries()) {
    db.transaction(() => {
      db.exec(migration);
      db.pragma(`user_version = ${version + i + 1}`);
    }).immediate();
  }
  db.pragma("temp_store = MEMORY");
}
