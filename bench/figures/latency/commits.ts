/**
 * The duration of one commit at FULL by itself: plain SQLite, one transaction with the two rows of an order (its own
 * and that of its first update), with the values of an exchange's rows, in a database on the same disk.
 */
import type Database from "better-sqlite3";
import { openReadOnly } from "../../../engine/projection/database.ts";
import { openSqlite } from "../../../engine/util/sqlite.ts";

export class Commits {
  private readonly db: Database.Database;
  private readonly commit: (id: number) => void;
  private last = 0;

  /** @param exchangeFile a database with at least one order @param path of the database to make */
  constructor(exchangeFile: string, path: string) {
    const exchange = openReadOnly(exchangeFile);
    const newest = (table: string): Record<string, number | string | null> =>
      exchange.prepare(`SELECT * FROM ${table} ORDER BY id DESC LIMIT 1`).get() as Record<
        string,
        number | string | null
      >;
    const rows = (["orders", "order_updates"] as const).map((table) => [table, newest(table)] as const);
    exchange.close();
    this.db = openSqlite(path);
    this.db.pragma("journal_mode = WAL");
    this.db.pragma("synchronous = FULL");
    const inserts = rows.map(([table, { id: _, ...row }]) => {
      const columns = Object.keys(row);
      this.db.exec(`CREATE TABLE ${table} (id INTEGER PRIMARY KEY, ${columns.join(", ")})`);
      const insert = this.db.prepare(`INSERT INTO ${table} VALUES (?, ${columns.map(() => "?").join(", ")})`);
      const values = Object.values(row);
      return (id: number) => insert.run(id, ...values);
    });
    this.commit = this.db.transaction((id: number) => {
      for (const insert of inserts) insert(id);
    });
  }

  /** The duration of each commit, ms. */
  time(count: number): number[] {
    return Array.from({ length: count }, () => {
      const start = performance.now();
      this.commit(++this.last);
      return performance.now() - start;
    });
  }

  close(): void {
    this.db.close();
  }
}
