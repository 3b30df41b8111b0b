/** What the projector writes and what the schema has. */
import { expect, test } from "vitest";
import { migrate } from "../../../engine/projection/database.ts";
import { rowsOf, TABLES } from "../../../engine/projection/tables.ts";
import { openSqlite } from "../../../engine/util/sqlite.ts";

test("each table that the projector writes in bulk lists every column of the schema once", () => {
  const db = openSqlite(":memory:");
  migrate(db);
  for (const { name, columns, at } of TABLES) {
    const inSchema = db.prepare("SELECT name FROM pragma_table_info(?)").pluck().all(name);
    expect([...columns].sort(), name).toEqual(inSchema.sort());
    expect(
      columns.map((column) => at[column]),
      name,
    ).toEqual(columns.map((_, i) => i));
  }
  db.close();
});

test("a row's values stand where its table says", () => {
  const db = openSqlite(":memory:");
  migrate(db);
  const positions = TABLES.find(({ name }) => name === "positions")!;
  db.exec("INSERT INTO positions (realized_pnl, cost, quantity, outcome_id, user_id) VALUES (-5, 4, 3, 2, 1)");
  const [row] = [...rowsOf(db, positions)];
  expect(row?.[positions.at["realized_pnl"]!]).toBe(-5);
  expect(row).toEqual([1, 2, 3, 4, -5]);
  db.close();
});
