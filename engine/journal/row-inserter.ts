/**
 * Writes rows of one table, sixteen to a statement: half of an insert's cost is the call. Values go over as arguments:
 * better-sqlite3 takes longer to read them out of an array (16 orders of 19 values: 28 µs an insert against 19).
 * OR FAIL, because ABORT would make SQLite keep a statement journal for multi-row inserts; a failure ends the
 * transaction (and the process) either way. REPLACE overwrites a row of the same key in one search, an upsert takes two.
 */
import type Database from "better-sqlite3";

const CHUNK_ROWS = 16;

export type SqlValue = number | string | null;

export class RowInserter {
  /** The values of pending rows; `next()` says where one starts. */
  readonly params: SqlValue[];
  private readonly many: Database.Statement;
  private readonly one: Database.Statement;
  private readonly columns: number;
  private rows = 0;

  /** @param table with its columns in the order of `values` @param values of a row: "?" where `params` has it */
  constructor(db: Database.Database, table: string, values: readonly string[], conflict: "FAIL" | "REPLACE" = "FAIL") {
    const row = `(${values.join(",")})`;
    const columns = values.filter((value) => value === "?").length;
    this.one = db.prepare(`INSERT OR ${conflict} INTO ${table} VALUES ${row}`);
    this.many = db.prepare(`INSERT OR ${conflict} INTO ${table} VALUES ${new Array(CHUNK_ROWS).fill(row).join(",")}`);
    this.columns = columns;
    this.params = new Array<SqlValue>(columns * CHUNK_ROWS).fill(null);
  }

  /** Makes room for a row and answers the index of its first value in `params`. All its values must be set. */
  next(): number {
    if (this.rows === CHUNK_ROWS) this.write();
    return this.rows++ * this.columns;
  }

  /** Writes what is pending. */
  flush(): void {
    if (this.rows === CHUNK_ROWS) this.write();
    for (let row = 0; row < this.rows; row++) {
      this.one.run(...this.params.slice(row * this.columns, (row + 1) * this.columns));
    }
    this.rows = 0;
  }

  private write(): void {
    this.many.run(...this.params);
    this.rows = 0;
  }
}
