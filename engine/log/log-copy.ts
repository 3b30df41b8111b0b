/**
 * journal.db of a box that follows another one's log: appends batches as they come, byte by byte, after checking that each
 * continues the one before. The file's only writer. An error of the database is final.
 */
import type Database from "better-sqlite3";
import { assert } from "../util/assert.ts";
import { emptyWal } from "../util/wal-database.ts";
import { endAfter, type LogEnd, NO_HASH, readLogEnd } from "./append.ts";
import { type BatchHeader, hashOf, previousHash, readHeader } from "./batch-format.ts";
import { BrokenLog } from "./broken-log.ts";
import { type Cut, cutTail } from "./truncate.ts";

/** Pages in the WAL before a commit copies them into the file. */
const WAL_PAGES = 1_000;

/** A batch that belongs to a log that went on separately. */
export class DivergedLog extends Error {
  /** @param batch the last one that both logs may share */
  constructor(batch: number) {
    super(`this box's log isn't the stream's: they went on separately after batch ${batch}`);
  }
}

export class LogCopy {
  private db: Database.Database;
  private insert: Database.Statement;
  private select: Database.Statement;
  /** Null before the first batch, of whatever exchange. */
  private last: LogEnd | null;

  /** @param db journal.db, open for writing */
  constructor(db: Database.Database) {
    ({ insert: this.insert, select: this.select } = prepare(db));
    this.db = db;
    this.last = readLogEnd(db);
  }

  /** Closes the file, and goes on with the one that `swap` opens: a later copy of the same log. */
  replace(swap: () => Database.Database): void {
    this.close();
    this.db = swap();
    ({ insert: this.insert, select: this.select } = prepare(this.db));
    this.last = readLogEnd(this.db);
  }

  /** Null before the first batch. */
  get end(): LogEnd | null {
    return this.last;
  }

  /** The last batch; 0 for none. */
  get batch(): number {
    return this.last?.batch ?? 0;
  }

  /** The oldest batch that the file has; null for none. */
  get first(): number | null {
    return this.db.prepare("SELECT min(number) FROM batches").pluck().get() as number | null;
  }

  /** The SHA-256 of a batch's body; null where the file doesn't have it. */
  hashOf(batch: number): Buffer | null {
    return this.endAt(batch)?.hash ?? null;
  }

  /** Where the log ends with a batch; null where the file doesn't have it. */
  endAt(batch: number): LogEnd | null {
    if (batch === this.last?.batch) return this.last;
    const body = this.select.get(batch) as Buffer | undefined;
    return body === undefined ? null : endAfter(headerOf(body), body);
  }

  /**
   * Appends the bodies that the log lacks, in one transaction; returns where the log ended after each of them. Those that it
   * has must be the same. @throws DivergedLog, BrokenLog: then nothing is appended
   */
  append(bodies: readonly Buffer[]): readonly LogEnd[] {
    const before = this.last;
    const ends: LogEnd[] = [];
    try {
      this.db.transaction(() => {
        for (const body of bodies) {
          const header = headerOf(body);
          if (header.batch <= this.batch) this.requireSame(header.batch, body);
          else ends.push(this.appendNext(header, body));
        }
      })();
    } catch (error) {
      this.last = before;
      throw error;
    }
    return ends;
  }

  /** @throws DivergedLog where the log has another batch there */
  private requireSame(batch: number, body: Buffer): void {
    const own = this.hashOf(batch);
    // Batches that only archives have were confirmed long ago.
    if (own !== null && !own.equals(hashOf(body))) throw new DivergedLog(batch - 1);
  }

  private appendNext(header: BatchHeader, body: Buffer): LogEnd {
    const { batch, at, exchange, recordsBefore } = header;
    const { last } = this;
    if (batch !== this.batch + 1) throw new BrokenLog(`batch ${this.batch} of the log is followed by batch ${batch}`);
    if (!previousHash(body).equals(last?.hash ?? NO_HASH)) throw new DivergedLog(batch - 1);
    const continues = last === null || (exchange === last.exchange && at >= last.at);
    if (!continues || recordsBefore !== (last?.records ?? 0)) {
      throw new BrokenLog(`batch ${batch} of the log doesn't continue the one before`);
    }
    const { changes } = this.insert.run(batch, at, body);
    assert(changes === 1, "a batch is one row");
    this.last = endAfter(header, body);
    return this.last;
  }

  /** Ends the log with a batch that the file has; what came after it stays in a file of the folder. @throws as cutTail */
  cutAfter(batch: number, folder: string): Cut {
    const end = this.endAt(batch);
    assert(end !== null && this.last !== null, "the log has the batch that it is to end with");
    const cut = cutTail(this.db, { after: batch, last: this.last.batch, hash: this.last.hash }, folder);
    this.last = end;
    return cut;
  }

  /** Empties the WAL and closes the file, unless it is closed. */
  close(): void {
    if (!this.db.open) return;
    emptyWal(this.db);
    this.db.close();
  }
}

function prepare(db: Database.Database): Readonly<Record<"insert" | "select", Database.Statement>> {
  // Nobody's request waits here.
  db.pragma(`wal_autocheckpoint = ${WAL_PAGES}`);
  return {
    insert: db.prepare("INSERT INTO batches VALUES (?, ?, ?)"),
    select: db.prepare("SELECT body FROM batches WHERE number = ?").pluck(),
  };
}

function headerOf(body: Buffer): BatchHeader {
  try {
    return readHeader(body);
  } catch (error) {
    throw new BrokenLog(`a batch that came from another box is damaged: ${(error as Error).message}`);
  }
}
