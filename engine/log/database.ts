/** journal.db: opens it for the log stage, and says where the log ends. Never reads exchange.db. */
import type Database from "better-sqlite3";
import { type Durability, openDatabase } from "../util/wal-database.ts";
import type { LogEnd } from "./append.ts";
import type { LastNumbers } from "./numbering.ts";
import type { OwnRates } from "./user-rates.ts";

export const SCHEMA = `
  -- One row per commit; body: engine/log/batch-format.ts. at: ms.
  CREATE TABLE IF NOT EXISTS batches (number INTEGER PRIMARY KEY, at INTEGER NOT NULL, body BLOB NOT NULL) STRICT`;

/** What the log stage starts from; recovery has read it from both files. */
export interface LogStart {
  readonly path: string;
  readonly durability: Durability;
  readonly end: LogEnd;
  readonly last: LastNumbers;
  readonly rates: readonly OwnRates[];
}

/** Opens journal.db, and creates it if it doesn't exist. @param busyMs how long it waits for a lock */
export function openJournal(path: string, durability: Durability, busyMs?: number): Database.Database {
  const db = openDatabase(path, durability, busyMs);
  // A batch is written once, and only its end is read again.
  db.pragma("cache_size = -8192");
  db.exec(SCHEMA);
  return db;
}

/** Opens the log where recovery left it. */
export function openLog({ path, durability, end, last, rates }: LogStart) {
  // A structured clone turns a Buffer into a Uint8Array.
  return { db: openJournal(path, durability), end: { ...end, hash: Buffer.from(end.hash) }, last, rates };
}
