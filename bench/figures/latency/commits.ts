/**
 * The duration of one commit at FULL by itself: plain SQLite, one transaction with the batch of one order, as the
 * exchange's log has it, in a database on the same disk.
 */
import type Database from "better-sqlite3";
import { openSqlite } from "../../../engine/util/sqlite.ts";
import { openReadOnly } from "../../../engine/util/wal-database.ts";

export class Commits {
  private readonly db: Database.Database;
  private readonly insert: Database.Statement;
  private readonly batch: readonly unknown[];
  private last = 0;

  /** @param journalFile a log whose last batch is of one order @param path of the database to make */
  constructor(journalFile: string, path: string) {
    const journal = openReadOnly(journalFile);
    const batch = journal.prepare("SELECT at, body FROM batches ORDER BY number DESC LIMIT 1").raw().get() as unknown[];
    journal.close();
    this.db = openSqlite(path);
    this.db.pragma("journal_mode = WAL");
    this.db.pragma("synchronous = FULL");
    this.db.exec("CREATE TABLE batches (number INTEGER PRIMARY KEY, at INTEGER NOT NULL, body BLOB NOT NULL) STRICT");
    this.insert = this.db.prepare("INSERT INTO batches VALUES (?, ?, ?)");
    this.batch = batch;
  }

  /** The duration of each commit, ms. */
  time(count: number): number[] {
    return Array.from({ length: count }, () => {
      const start = performance.now();
      this.insert.run(++this.last, ...this.batch);
      return performance.now() - start;
    });
  }

  close(): void {
    this.db.close();
  }
}
