/**
 * Hashes of the content of each table of exchange.db, and of its schema: two files with the same hashes have the same rows.
 * `admin rebuild` and the tests compare a projection of the log with another one. Streams rows; never writes to the file.
 */
import { createHash } from "node:crypto";
import type Database from "better-sqlite3";

/** Neither SQLite's own tables, nor those that Litestream keeps in a database that it replicates. */
const OURS = "name NOT LIKE 'sqlite#_%' ESCAPE '#' AND name NOT LIKE '#_litestream#_%' ESCAPE '#'";
/** Rows hashed at a time. */
const CHUNK = 512;

interface Table {
  readonly name: string;
  readonly sql: string;
}

interface Column {
  readonly name: string;
  /** Its place in the primary key, from 1; 0 outside it. */
  readonly pk: number;
}

/** The SHA-256 in hex of each table's rows in the order of its primary key, by the table's name; the schema has the key "". */
export function hashTables(db: Database.Database): Map<string, string> {
  return db.transaction(() => {
    const tables = db
      .prepare(`SELECT name, sql FROM sqlite_schema WHERE type = 'table' AND ${OURS} ORDER BY name`)
      .all() as Table[];
    const indexes = tables.filter(({ sql }) => /^CREATE VIRTUAL TABLE/i.test(sql)).map(({ name }) => name);
    const isPartOf = (name: string, index: string): boolean => name === index || name.startsWith(`${index}_`);
    const plain = tables.filter(({ name }) => !indexes.some((index) => isPartOf(name, index)));
    const hashes = new Map<string, string>();
    for (const { name } of plain) hashes.set(name, hashRows(db, name));
    for (const name of indexes) hashes.set(name, hashWords(db, name));
    hashes.set("", hashSchema(db));
    return hashes;
  })();
}

/** The names of the tables whose content differs; "" is the schema. */
export function differingTables(a: ReadonlyMap<string, string>, b: ReadonlyMap<string, string>): string[] {
  return [...new Set([...a.keys(), ...b.keys()])].filter((name) => a.get(name) !== b.get(name)).sort();
}

function hashRows(db: Database.Database, table: string): string {
  const columns = db.pragma(`table_info(${table})`) as Column[];
  const key = columns.filter(({ pk }) => pk > 0).sort((a, b) => a.pk - b.pk);
  const names = (list: readonly Column[]): string => list.map(({ name }) => name).join(", ");
  return hashLines(
    db.prepare(
      `SELECT json_array(${names(columns)}) FROM ${table} ORDER BY ${key.length === 0 ? "rowid" : names(key)}`,
    ),
  );
}

/** @param lines gives one text per row */
function hashLines(lines: Database.Statement): string {
  const hash = createHash("sha256");
  let chunk: unknown[] = [];
  for (const line of lines.pluck().iterate()) {
    chunk.push(line);
    if (chunk.length < CHUNK) continue;
    hash.update(`${chunk.join("\n")}\n`);
    chunk = [];
  }
  return hash.update(chunk.join("\n")).digest("hex");
}

/** A search index: which words its rows have. How FTS5 stores them depends on how they were added. */
function hashWords(db: Database.Database, table: string): string {
  // A read-only connection may have temporary tables, but not with `query_only`.
  const isQueryOnly = db.pragma("query_only", { simple: true });
  db.pragma("query_only = OFF");
  db.exec(`CREATE VIRTUAL TABLE temp.instances USING fts5vocab(main, ${table}, instance)`);
  const hash = hashLines(db.prepare("SELECT json_array(term, doc) FROM temp.instances ORDER BY term, doc"));
  db.exec("DROP TABLE temp.instances");
  db.pragma(`query_only = ${isQueryOnly}`);
  return hash;
}

function hashSchema(db: Database.Database): string {
  return hashLines(
    db.prepare(
      `SELECT json_array(type, name, tbl_name, sql) FROM sqlite_schema WHERE sql IS NOT NULL AND ${OURS}
       ORDER BY type, name`,
    ),
  );
}
