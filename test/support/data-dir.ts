/**
 * The content of a server's data folder, as seen from a shell: rows of the database, the signing keys,
 * and whether the database's files contain a secret. Knows nothing of the API.
 */
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import type Database from "better-sqlite3";
import { expect } from "vitest";
import { openReadOnly } from "../../engine/projection/database.ts";
import { openSqlite } from "../../engine/util/sqlite.ts";
import { SECOND_FACTOR_KEYS } from "../../server/accounts/second-factor-keys.ts";

const DATABASE = "exchange.db";

/** The result of a query; the server may be running. */
export function rowsOf<T>(dataDir: string, sql: string, ...values: (string | number)[]): T[] {
  return rowsOfFile(join(dataDir, DATABASE), sql, ...values);
}

export function rowsOfFile<T>(path: string, sql: string, ...values: (string | number)[]): T[] {
  const db = openReadOnly(path);
  try {
    return db.prepare(sql).all(...values) as T[];
  } finally {
    db.close();
  }
}

/** Lets a function change the database of a stopped server. */
export function withDatabase(dataDir: string, run: (db: Database.Database) => void): void {
  const db = openSqlite(join(dataDir, DATABASE));
  try {
    run(db);
  } finally {
    db.close();
  }
}

/** The files of the signing keys, as JWKs; a key that isn't retired has its private members. */
export function signingKeys(dataDir: string): Record<string, string>[] {
  const folder = join(dataDir, "keys");
  const names = readdirSync(folder).filter((name) => name !== SECOND_FACTOR_KEYS);
  return names.map((name) => JSON.parse(readFileSync(join(folder, name), "utf8")));
}

/** Neither the database nor its WAL contains any of these texts. */
export function expectUnkept(secrets: Iterable<string>, dataDir: string): void {
  const files = [DATABASE, `${DATABASE}-wal`].map((name) => join(dataDir, name));
  const bytes = files.filter((path) => existsSync(path)).map((path) => readFileSync(path, "latin1"));
  expect(bytes.length).toBeGreaterThan(0);
  expect([...secrets].filter((secret) => bytes.some((text) => text.includes(secret)))).toEqual([]);
}

/** Recomputes the accounts' daily activity from fills and entries, after a test has moved those in time. */
export const RECOUNT_ACTIVITY = `UPDATE accounts SET (activity_day, activity_used) =
  (SELECT coalesce(max(day), 0), coalesce(used, 0) FROM (
    SELECT day, sum(amount) AS used FROM (
      SELECT created_at / 86400000 AS day, price * quantity * 100 AS amount FROM fills
        WHERE side = 1 AND user_id = accounts.user_id
      UNION ALL SELECT created_at / 86400000, -amount FROM entries WHERE type = 'split' AND user_id = accounts.user_id)
    GROUP BY day))`;
