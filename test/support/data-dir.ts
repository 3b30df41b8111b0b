/**
 * The content of a server's data folder, as seen from a shell: rows of the database, the signing keys,
 * and whether the database's files contain a secret. Knows nothing of the API.
 */
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import type Database from "better-sqlite3";
import { expect } from "vitest";
import { openJournal } from "../../engine/log/database.ts";
import { recoverTables } from "../../engine/projection/recover.ts";
import { MIGRATIONS } from "../../engine/projection/schema.ts";
import { openSqlite } from "../../engine/util/sqlite.ts";
import { openDatabase, openReadOnly } from "../../engine/util/wal-database.ts";
import { SECOND_FACTOR_KEYS } from "../../server/sign-in/second-factor-keys.ts";
import { journalPath, tablesPath } from "../../server/util/data-folder.ts";

const DATABASES = ["exchange.db", "journal.db"];

/** How long a running server's projector may take. */
const CATCH_UP_MS = 20_000;
const POLL_MS = 5;

/** Waits until the tables include what the log has now; projects the rest itself if no server runs. */
export function catchUp(dataDir: string): void {
  const lock = openSqlite(join(dataDir, "exchange.lock"), { timeout: 0 });
  try {
    lock.exec("BEGIN EXCLUSIVE");
    projectRest(dataDir);
  } catch (error) {
    if ((error as { code?: string }).code !== "SQLITE_BUSY") throw error;
    waitForProjector(dataDir);
  } finally {
    lock.close();
  }
}

function projectRest(dataDir: string): void {
  const journal = openJournal(journalPath(dataDir), "off");
  const tables = openDatabase(tablesPath(dataDir), "off");
  recoverTables(tables, journal);
  journal.close();
  tables.close();
}

function waitForProjector(dataDir: string): void {
  const [journal, tables] = [journalPath(dataDir), tablesPath(dataDir)].map(openReadOnly) as [
    Database.Database,
    Database.Database,
  ];
  const committed = Number(journal.prepare("SELECT coalesce(max(number), 0) FROM batches").pluck().get());
  const projected = tables.prepare("SELECT batch FROM projection").pluck();
  const deadline = Date.now() + CATCH_UP_MS;
  const pause = new Int32Array(new SharedArrayBuffer(4));
  while (Number(projected.get()) < committed) {
    expect(Date.now(), "the projector catches up").toBeLessThan(deadline);
    Atomics.wait(pause, 0, 0, POLL_MS);
  }
  journal.close();
  tables.close();
}

/** The result of a query on the tables, once they include everything that was committed; the server may be running. */
export function rowsOf<T>(dataDir: string, sql: string, ...values: (string | number)[]): T[] {
  catchUp(dataDir);
  return rowsOfFile(tablesPath(dataDir), sql, ...values);
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
  catchUp(dataDir);
  const db = openSqlite(tablesPath(dataDir));
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
  const files = DATABASES.flatMap((name) => [name, `${name}-wal`]).map((name) => join(dataDir, name));
  const bytes = files.filter((path) => existsSync(path)).map((path) => readFileSync(path, "latin1"));
  expect(bytes.length).toBeGreaterThan(0);
  expect([...secrets].filter((secret) => bytes.some((text) => text.includes(secret)))).toEqual([]);
}

const HOURLY = MIGRATIONS.findLast((sql) => sql.includes("INSERT INTO balance_hours")) ?? "";
/** Derives the hourly balances and positions from fills and entries, as the upgrade of an older exchange does. */
export const RECOUNT_HOURS = `DELETE FROM balance_hours; DELETE FROM position_hours;
  ${HOURLY.slice(HOURLY.indexOf("INSERT INTO balance_hours"))}`;

/** Recomputes the accounts' daily activity from fills and entries, after a test has moved those in time. */
export const RECOUNT_ACTIVITY = `UPDATE accounts SET (activity_day, activity_used) =
  (SELECT coalesce(max(day), 0), coalesce(used, 0) FROM (
    SELECT day, sum(amount) AS used FROM (
      SELECT created_at / 86400000 AS day, price * quantity * 100 AS amount FROM fills
        WHERE side = 1 AND user_id = accounts.user_id
      UNION ALL SELECT created_at / 86400000, -amount FROM entries WHERE type = 'split' AND user_id = accounts.user_id)
    GROUP BY day))`;

/** Makes the candles anew from the fills, after a test has moved those in time. */
export const RECOUNT_CANDLES = `DELETE FROM candles;
  INSERT INTO candles SELECT outcome_id, length, began, (SELECT price FROM fills WHERE id = first), high, low,
      (SELECT price FROM fills WHERE id = last), volume, last
    FROM (SELECT outcome_id, length, created_at - created_at % (length * 60000) AS began, min(id) AS first,
        max(id) AS last, max(price) AS high, min(price) AS low, sum(quantity) AS volume
      FROM fills CROSS JOIN (SELECT 1 AS length UNION ALL SELECT 5 UNION ALL SELECT 60 UNION ALL SELECT 1440)
      WHERE role = 1 GROUP BY 1, 2, 3)`;
