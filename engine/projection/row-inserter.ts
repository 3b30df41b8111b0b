/**
 * Writes rows of one table, up to 32 to a statement: half of an insert's cost is the call. Values go over as
 * arguments: better-sqlite3 takes longer to read them out of an array (16 orders of 19 values: 28 µs an insert against 19).
 * OR FAIL, because ABORT would make SQLite keep a statement journal for multi-row inserts; a failure ends the
 * transaction (and the process) either way. REPLACE overwrites a row of the same key in one search, an upsert takes two.
 */
import type Database from "better-sqlite3";

/** Rows of a statement, most first; the largest is what is gathered. */
const CHUNKS = [32, 16, 4, 1] as const;
const MAX_ROWS = CHUNKS[0];

export type SqlValue = number | string | null;

export class RowInserter {
  /** The values of pending rows; `next()` says where one starts. */
  readonly params: SqlValue[];
  private readonly statements: readonly Database.Statement[];
  private readonly columns: number;
  private rows = 0;
  /** The id of the row that was written last. */
  lastId: number | bigint = 0;

  /**
   * @param table with its columns in the order of `values` @param values of a row: "?" where `params` has it
   * @param upsert an ON CONFLICT clause: what becomes of a row whose key is there
   */
  constructor(
    db: Database.Database,
    table: string,
    values: readonly string[],
    conflict: "FAIL" | "REPLACE" = "FAIL",
    upsert = "",
  ) {
    const row = `(${values.join(",")})`;
    const rows = (count: number): string => new Array<string>(count).fill(row).join(",");
    this.statements = CHUNKS.map((count) =>
      db.prepare(`INSERT OR ${conflict} INTO ${table} VALUES ${rows(count)} ${upsert}`),
    );
    this.columns = values.filter((value) => value === "?").length;
    this.params = new Array<SqlValue>(this.columns * MAX_ROWS).fill(null);
  }

  /** Makes room for a row and answers the index of its first value in `params`. All its values must be set. */
  next(): number {
    if (this.rows === MAX_ROWS) this.flush();
    return this.rows++ * this.columns;
  }

  /** Writes what is pending. */
  flush(): void {
    const { params, columns, rows } = this;
    for (let done = 0, chunk = 0; done < rows; ) {
      const count = CHUNKS[chunk]!;
      if (rows - done < count) {
        chunk++;
        continue;
      }
      const statement = this.statements[chunk]!;
      const values = count === MAX_ROWS ? params : params.slice(done * columns, (done + count) * columns);
      this.lastId = statement.run(...values).lastInsertRowid;
      done += count;
    }
    this.rows = 0;
  }
}
