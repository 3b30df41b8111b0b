/** Reads the batches of the log in their order. Never writes. */
import type Database from "better-sqlite3";
import { readHeader } from "./batch-format.ts";

export interface LogReader {
  /** The body of each batch from `first` on, in ascending order, up to the end of the log. */
  bodies(first: number): Iterable<Buffer>;
}

/** Bodies read at a time. */
const SLICE = 16;

/** The log as if it ended with a batch. */
export function readThrough(log: LogReader, last: number): LogReader {
  return {
    *bodies(first: number): Generator<Buffer> {
      if (first > last) return;
      for (const body of log.bodies(first)) {
        yield body;
        if (readHeader(body).batch >= last) return;
      }
    },
  };
}

/** The batches that journal.db holds. */
export class JournalReader implements LogReader {
  private readonly select: Database.Statement;

  constructor(db: Database.Database) {
    this.select = db.prepare(`SELECT body FROM batches WHERE number >= ? ORDER BY number LIMIT ${SLICE}`).pluck();
  }

  *bodies(first: number): Generator<Buffer> {
    let next = first;
    for (;;) {
      const found = this.select.all(next) as Buffer[];
      yield* found;
      if (found.length < SLICE) return;
      next = readHeader(found.at(-1)!).batch + 1;
    }
  }
}
