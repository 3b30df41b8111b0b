/**
 * Appends batches to journal.db: collects the parts of one body and makes it durable with one INSERT, which commits. An
 * error is final: nothing is retried. Knows no ring and no meaning of a record.
 */
import type Database from "better-sqlite3";
import { RECORD_BYTES } from "../ring/records.ts";
import { assert } from "../util/assert.ts";
import {
  type BatchHeader,
  bodyBytes,
  FLAG_STARTED,
  HASH_BYTES,
  HEADER_BYTES,
  hashOf,
  previousHash,
  readHeader,
  writeHeader,
} from "./batch-format.ts";
import { BrokenLog } from "./broken-log.ts";

const INITIAL_BYTES = 2 ** 20;

/** Where the log continues. */
export interface LogEnd {
  readonly exchange: number;
  /** The last batch; 0 for none. */
  readonly batch: number;
  /** Records up to and including it. */
  readonly records: number;
  /** ms */
  readonly at: number;
  /** The SHA-256 of its body. */
  readonly hash: Buffer;
}

export const NO_HASH = Buffer.alloc(HASH_BYTES);

/** The end of the log in the database, or null if it has no batch. @throws BrokenLog if the last batch is damaged */
export function readLogEnd(db: Database.Database): LogEnd | null {
  const select = db.prepare("SELECT number, body FROM batches ORDER BY number DESC LIMIT 1").raw();
  const [row, body] = (select.get() ?? []) as [number?, Buffer?];
  if (row === undefined || body === undefined) return null;
  const header = headerOf(row, body);
  if (header.batch !== row) throw new BrokenLog(`journal.db has batch ${header.batch} in the place of batch ${row}`);
  return endAfter(header, body);
}

/** Where the log ends with a batch. */
export function endAfter({ exchange, batch, recordsBefore, records, at }: BatchHeader, body: Buffer): LogEnd {
  return { exchange, batch, records: recordsBefore + records, at, hash: hashOf(body) };
}

function headerOf(row: number, body: Buffer): BatchHeader {
  try {
    return readHeader(body);
  } catch (error) {
    throw new BrokenLog(`batch ${row}, the last in journal.db, can't be read: ${(error as Error).message}`);
  }
}

export class LogAppender {
  private end: LogEnd;
  private flags = FLAG_STARTED;
  /** The body of the open batch. */
  private body = Buffer.alloc(INITIAL_BYTES);
  private length = 0;
  private records = 0;
  private texts = 0;
  /** True from `begin` until the commit. */
  private isOpen = false;
  private hasRequests = false;
  /** The last batch's number of the last entry before it. */
  private lastEntry = 0;
  private readonly insert: Database.Statement;

  constructor(db: Database.Database, end: LogEnd) {
    assert(end.batch >= 0 && end.records >= 0, "a log ends at a batch, or before the first");
    assert(end.hash.length === HASH_BYTES, "a log's end has a hash");
    this.end = end;
    this.insert = db.prepare("INSERT INTO batches VALUES (?, ?, ?)");
  }

  /** The last batch. */
  get last(): LogEnd {
    return this.end;
  }

  /** Begins a batch; drops one that was begun and not committed. */
  begin(): void {
    this.length = HEADER_BYTES;
    this.records = 0;
    this.texts = 0;
    this.isOpen = true;
    this.hasRequests = false;
  }

  /** Copies records, before any text. */
  addRecords(bytes: Uint8Array): void {
    assert(this.isOpen, "a batch is open");
    assert(this.texts === 0 && !this.hasRequests, "records come before texts and requests");
    assert(bytes.length % RECORD_BYTES === 0, "records are whole");
    this.reserve(bytes.length);
    this.body.set(bytes, this.length);
    this.length += bytes.length;
    this.records += bytes.length / RECORD_BYTES;
  }

  /** Copies one record's text, before any request. @param bytes its maximum length @param write writes it; returns its end */
  addText(bytes: number, write: (body: Buffer, at: number) => number): void {
    assert(this.isOpen && !this.hasRequests, "texts come before requests");
    this.reserve(bytes);
    const end = write(this.body, this.length);
    assert(end >= this.length && end <= this.length + bytes, "a text stays within its maximum length");
    this.texts += end - this.length;
    this.length = end;
  }

  /** Copies a request, after all texts. */
  addRequest(payload: Uint8Array): void {
    assert(this.isOpen && payload.length > 0, "a request has a content");
    this.hasRequests = true;
    this.reserve(payload.length + 4);
    this.body.writeUInt32LE(payload.length, this.length);
    this.body.set(payload, this.length + 4);
    this.length += payload.length + 4;
  }

  /**
   * Makes the batch durable; returns the bytes of its body.
   * @param at ms; a time before the last batch's is raised @param lastEntry before this batch
   */
  commit(at: number, lastEntry: number): number {
    const { exchange, records: recordsBefore, hash } = this.end;
    const { records, texts, flags, length } = this;
    const batch = this.end.batch + 1;
    const time = Math.max(this.end.at, at);
    const writes = length - HEADER_BYTES - records * RECORD_BYTES - texts;
    const header = { batch, at: time, recordsBefore, lastEntry, exchange, records, texts, writes, flags };
    assert(this.isOpen, "a batch is open");
    assert(records > 0 || writes > 0, "no batch is empty");
    assert(bodyBytes(header) === length, "a body is the sum of its parts");
    assert(lastEntry >= this.lastEntry, "entries' numbers never fall");
    writeHeader(this.body, header, hash);
    const body = this.body.subarray(0, length);
    const { changes } = this.insert.run(batch, time, body);
    assert(changes === 1, "a batch is one row");
    assert(previousHash(body).equals(hash), "a batch names the hash of the one before");
    const written = readHeader(body);
    assert(written.batch === batch && written.recordsBefore === recordsBefore, "a header says what was meant");
    this.isOpen = false;
    this.lastEntry = lastEntry;
    this.end = { exchange, batch, records: recordsBefore + records, at: time, hash: hashOf(body) };
    this.flags = 0;
    return length;
  }

  private reserve(bytes: number): void {
    if (this.length + bytes <= this.body.length) return;
    const grown = Buffer.alloc(Math.max(2 * this.body.length, this.length + bytes));
    this.body.copy(grown, 0, 0, this.length);
    this.body = grown;
  }
}
