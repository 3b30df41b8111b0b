/** Two files with the same rows have the same hashes, however the rows were written; the tables that differ are named. */
import type Database from "better-sqlite3";
import { expect, test } from "vitest";
import { migrate } from "../../../engine/projection/database.ts";
import { differingTables, hashTables } from "../../../engine/projection/table-hashes.ts";
import { openSqlite } from "../../../engine/util/sqlite.ts";

const word = (id: number, words: string): string =>
  `INSERT INTO market_words (rowid, words) VALUES (${id}, '${words}');`;
const position = (user: number, outcome: number): string =>
  `INSERT INTO positions VALUES (${user}, ${outcome}, 1, 0, 0);`;

function fileWith(...statements: string[]): Database.Database {
  const db = openSqlite(":memory:");
  migrate(db);
  db.exec(`UPDATE projection SET exchange = 1; ${statements.join("")}`);
  return db;
}

const differing = (a: Database.Database, b: Database.Database): string[] =>
  differingTables(hashTables(a), hashTables(b));

test("the order in which rows and indexed words were written doesn't matter", () => {
  const a = fileWith(position(2, 1), position(1, 2), position(1, 1), word(1, "red green"), word(2, "blue"));
  const b = fileWith(
    word(2, "blue"),
    word(3, "gone"),
    "DELETE FROM market_words WHERE rowid = 3;",
    word(1, "green red"),
  );
  b.exec(`${position(1, 1)} ${position(1, 2)} ${position(2, 1)}`);
  expect(differing(a, b)).toEqual([]);
});

test("tables with other rows, other types or another schema are named", () => {
  const a = fileWith(position(1, 1), word(1, "red"), "INSERT INTO events VALUES (1, '1', 'x', NULL, NULL, 1);");
  const b = fileWith(position(1, 2), word(1, "rod"), "INSERT INTO events VALUES (1, '1', 'x', '', NULL, 1);");
  expect(differing(a, b)).toEqual(["events", "market_words", "positions"]);
  a.exec("DROP INDEX deposits");
  expect(differing(a, b)).toEqual(["", "events", "market_words", "positions"]);
  const many = Array.from({ length: 1_500 }, (_, i) => position(3, i + 1));
  const c = fileWith(...many);
  const d = fileWith(...many, "UPDATE positions SET cost = 1 WHERE outcome_id = 1400;");
  expect(differing(c, d)).toEqual(["positions"]);
});
