/**
 * Cuts the end off journal.db where another box's log went on differently. What is cut stays in a file of its own, which
 * `admin log --file` reads.
 */
import { mkdirSync } from "node:fs";
import { dirname, join } from "node:path";
import type Database from "better-sqlite3";
import { assert } from "../util/assert.ts";
import { writeDurably } from "../util/durable-file.ts";
import { openSqlite } from "../util/sqlite.ts";
import { emptyWal } from "../util/wal-database.ts";
import { readHeader } from "./batch-format.ts";
import { SCHEMA } from "./database.ts";
import { JournalReader } from "./log-reader.ts";

/** Digits of the last hash in a file's name: two tails with the same numbers are two files. */
const HASH_CHARS = 8;

/** What was cut. */
export interface Cut {
  readonly first: number;
  readonly last: number;
  /** The file that has it. */
  readonly path: string;
}

export interface Tail {
  /** The last batch that stays. */
  readonly after: number;
  readonly last: number;
  /** The SHA-256 of the last batch. */
  readonly hash: Buffer;
}

/**
 * Saves the batches after one, durably, then deletes them in one transaction. Interrupted, it can be called again.
 * @param db journal.db, open for writing @throws SqliteError, Error where the disk fails: then nothing is deleted
 */
export function cutTail(db: Database.Database, { after, last, hash }: Tail, folder: string): Cut {
  assert(after > 0 && after < last, "a tail follows a batch");
  const path = join(folder, `${after + 1}-${last}-${hash.toString("hex").slice(0, HASH_CHARS)}.db`);
  saveTail(db, after, path);
  db.prepare("DELETE FROM batches WHERE number > ?").run(after);
  emptyWal(db);
  return { first: after + 1, last, path };
}

function saveTail(db: Database.Database, after: number, path: string): void {
  mkdirSync(dirname(path), { recursive: true });
  writeDurably(path, (_append, partial) => {
    const saved = openSqlite(partial);
    try {
      saved.exec(SCHEMA);
      const insert = saved.prepare("INSERT INTO batches VALUES (?, ?, ?)");
      saved.transaction(() => {
        for (const body of new JournalReader(db).bodies(after + 1)) {
          const { batch, at } = readHeader(body);
          insert.run(batch, at, body);
        }
      })();
    } finally {
      saved.close();
    }
  });
}
