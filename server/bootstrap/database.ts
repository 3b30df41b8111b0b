/**
 * Opens exchange.db at the start: checks its pages, migrates it and brings order rows up to date before any thread opens
 * it. recovery.ts reads the contents.
 */
import { chmodSync, existsSync, statSync } from "node:fs";
import { join } from "node:path";
import type Database from "better-sqlite3";
import { emptyWal, migrate, openDatabase } from "../../engine/projection/database.ts";
import { bringOrdersForward } from "../../engine/projection/write-behind.ts";
import type { Config } from "../config.ts";
import { ConfigError } from "../errors.ts";

/** Checking every page of a larger database at each start would take longer than recovery: `admin verify` does. */
const MAX_CHECKED_BYTES = 64 * 1024 * 1024;
const DAMAGE_CODES = ["SQLITE_CORRUPT", "SQLITE_NOTADB"];

export interface ExchangeDatabase {
  readonly path: string;
  readonly db: Database.Database;
}

/** @throws ConfigError where a page is damaged */
export function openExchangeDatabase({ dataDir, durability }: Config): ExchangeDatabase {
  const path = join(dataDir, "exchange.db");
  const isNew = !existsSync(path);
  // A file of an older version may be readable to others.
  if (!isNew) chmodSync(path, 0o600);
  const db = openDatabase(path, durability);
  if (!isNew && statSync(path).size <= MAX_CHECKED_BYTES) {
    const found = db.pragma("quick_check(1)", { simple: true });
    if (found !== "ok") throw damaged(String(found).replace(/\s+/g, " "));
  }
  migrate(db);
  bringOrdersForward(db);
  // Before the journal opens the file: the journal would have to wait for the reads of recovery.
  emptyWal(db);
  return { path, db };
}

/** The ConfigError that explains an error of SQLite where the file is damaged; any other error unchanged. */
export function explainDamage(thrown: unknown): unknown {
  const { code, message } = thrown as { code?: unknown; message?: string };
  const isDamage = DAMAGE_CODES.some((name) => String(code).startsWith(name));
  return isDamage ? damaged(String(message)) : thrown;
}

function damaged(finding: string): ConfigError {
  return new ConfigError(`DATA_DIR: exchange.db is damaged (${finding}): restore a back-up, see docs/operations.md`);
}
