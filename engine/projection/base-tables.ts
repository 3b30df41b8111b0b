/**
 * What a rebuild of the tables starts from: empty tables, or for an exchange that is older than its log, a copy of the
 * tables from before the log's first batch. Keeps that copy; never reads a batch.
 */
import { copyFileSync, existsSync, mkdirSync, rmSync } from "node:fs";
import { join } from "node:path";
import type Database from "better-sqlite3";
import { requireFile } from "../log/broken-log.ts";
import { PARTIAL, publishFile, syncPath } from "../util/durable-file.ts";
import { openSqlite } from "../util/sqlite.ts";
import { openReadOnly } from "../util/wal-database.ts";
import { migrate } from "./database.ts";
import { loadProjection } from "./load/projection.ts";

/** The copy, in the folder of the archives. */
export const snapshotPath = (archives: string): string => join(archives, "snapshot.db");

/**
 * Keeps a copy of tables that no batch was projected into, unless they are new. Complete or absent after a crash; then the
 * next start comes here again. Before the first batch is appended.
 */
export function keepSnapshot(tables: Database.Database, archives: string): void {
  const { batch, hash } = loadProjection(tables);
  const path = snapshotPath(archives);
  if (batch === 0 || hash !== "" || existsSync(path)) return;
  mkdirSync(archives, { recursive: true });
  const partial = path + PARTIAL;
  rmSync(partial, { force: true });
  tables.prepare("VACUUM INTO ?").run(partial);
  syncPath(partial);
  publishFile(partial, path);
}

/** The last batch before the snapshot; null if there is none. */
export function snapshotBatch(archives: string): number | null {
  const path = snapshotPath(archives);
  requireFile(path);
  if (!existsSync(path)) return null;
  const db = openReadOnly(path);
  try {
    return loadProjection(db).batch;
  } finally {
    db.close();
  }
}

/** Creates the tables at `path`, or in memory for "": from the snapshot, or empty ones of this exchange. */
export function createBaseTables(path: string, archives: string, exchange: number): Database.Database {
  const snapshot = snapshotPath(archives);
  requireFile(snapshot);
  if (existsSync(snapshot)) copyFileSync(snapshot, path);
  const db = openSqlite(path);
  // A crash leaves nothing that is used.
  db.pragma("journal_mode = MEMORY");
  db.pragma("synchronous = OFF");
  db.pragma("cache_size = -262144");
  migrate(db);
  db.prepare("UPDATE projection SET exchange = ? WHERE batch = 0").run(exchange);
  return db;
}
