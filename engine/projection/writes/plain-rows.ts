/** Inserts and updates rows of tables that need no logic of their own. */
import type Database from "better-sqlite3";
import type { InsertRow, UpdateRow } from "../../log/writes.ts";
import { columnOf } from "../columns.ts";

/** Returns a function that inserts or updates a row of any plain table; prepares each set of columns once. */
export function preparePlainRows(db: Database.Database): (write: InsertRow | UpdateRow) => void {
  const statements = new Map<string, Database.Statement>();
  const statement = (sql: string): Database.Statement => {
    let found = statements.get(sql);
    if (found === undefined) {
      found = db.prepare(sql);
      statements.set(sql, found);
    }
    return found;
  };
  return (write) => {
    if (write.kind === "update") {
      const set = Object.keys(write.set).map((name) => `${columnOf(name)} = ?`);
      const run = statement(`UPDATE ${write.table} SET ${set.join(", ")} WHERE id = ?`);
      run.run(...Object.values(write.set), write.id);
      return;
    }
    const columns = Object.keys(write.row).map(columnOf);
    const bound = columns.map(() => "?").join(", ");
    const run = statement(`INSERT INTO ${write.table} (${columns.join(", ")}) VALUES (${bound})`);
    run.run(...Object.values(write.row));
  };
}
