/**
 * The log of a data folder: its archives, and journal.db, which continues them. Reads across the files without a seam while
 * the exchange moves batches from the journal to an archive. Never writes.
 */
import { existsSync, statSync } from "node:fs";
import { dirname, join } from "node:path";
import type Database from "better-sqlite3";
import { whyNoFile } from "../util/path-kind.ts";
import { openReadOnly } from "../util/wal-database.ts";
import { type ArchiveDescription, ArchiveList, archivePath } from "./archive-format.ts";
import { ArchiveReader } from "./archive-reader.ts";
import { readHeader } from "./batch-format.ts";
import { LogGap, requireFile } from "./broken-log.ts";
import type { LogReader } from "./log-reader.ts";

/** Bodies read from the journal at a time. */
const SLICE = 16;

/** Where the log is. */
export interface LogPlace {
  /** journal.db; null for archives alone. */
  readonly journal: string | null;
  /** The folder of the archives, which may not exist. */
  readonly archives: string;
}

/** The archives beside a journal. */
export const archivesBeside = (journal: string): string => join(dirname(journal), "log");

/** The log of a data folder. */
export function logOf(dataDir: string): LogPlace {
  const journal = join(dataDir, "journal.db");
  return { journal: existsSync(journal) ? journal : null, archives: archivesBeside(journal) };
}

export function openLogReader(dataDir: string): LogFiles {
  return new LogFiles(logOf(dataDir));
}

export class LogFiles implements LogReader {
  private readonly list: ArchiveList;
  private readonly journal: Database.Database | null;
  private readonly select: Database.Statement | null;

  constructor({ journal, archives }: LogPlace) {
    this.list = new ArchiveList(archives);
    if (journal !== null) requireFile(journal);
    this.journal = journal === null ? null : openReadOnly(journal);
    const slice = `SELECT number, body FROM batches WHERE number >= ? ORDER BY number LIMIT ${SLICE}`;
    this.select = this.journal?.prepare(slice).raw() ?? null;
  }

  /** The archives, oldest first. @throws BrokenLog */
  get archives(): readonly ArchiveDescription[] {
    return this.list.read();
  }

  /** The first and the last batch; null if there is none. */
  range(): { readonly first: number; readonly last: number } | null {
    const journal = this.journalRange();
    const first = this.archives[0]?.first ?? journal?.first;
    const last = journal?.last ?? this.archives.at(-1)?.last;
    return first === undefined || last === undefined ? null : { first, last };
  }

  /** The first batch at or after a time, ms; one past the last if there is none. */
  firstSince(at: number): number {
    const archive = this.archives.find(({ last_at }) => last_at >= at);
    const journal = this.journalRange();
    if (archive === undefined) {
      if (this.journal !== null && journal !== null)
        return firstBatchSince(this.journal, at, journal.first, journal.last);
      return (this.archives.at(-1)?.last ?? 0) + 1;
    }
    for (const body of this.bodies(archive.first)) {
      const header = readHeader(body);
      if (header.at >= at) return header.batch;
    }
    return archive.last + 1;
  }

  /** @throws LogGap if a batch between the first and the last is missing, BrokenLog if a file is damaged */
  *bodies(first: number): Generator<Buffer> {
    let next = first;
    for (;;) {
      const found = (this.select?.all(next) ?? []) as [number: number, body: Buffer][];
      const number = found[0]?.[0];
      if (number === next) {
        for (const [number, body] of found) {
          if (number !== next) break;
          yield body;
          next++;
        }
        continue;
      }
      if (number === undefined) {
        const last = this.journalRange()?.last ?? this.archives.at(-1)?.last ?? 0;
        // The journal always has the last batch.
        if (next > last) return;
        // It may have been appended since the journal was read, or moved to an archive.
        if (this.hasJournal(next)) continue;
      }
      const archive = this.archiveOf(next);
      if (archive === null) {
        throw new LogGap(
          `the log lacks batch ${next}: an archive is missing from ${this.list.folder}`,
          this.after(next),
        );
      }
      yield* archive.bodies(next);
      next = archive.description.last + 1;
    }
  }

  /** The first batch after one that is missing. */
  private after(missing: number): number {
    const begins = this.archives.filter((archive) => this.hasFile(archive)).map(({ first }) => first);
    const journal = this.journalRange()?.first ?? Number.POSITIVE_INFINITY;
    return Math.min(...[...begins, journal].filter((first) => first > missing));
  }

  private hasFile({ day }: ArchiveDescription): boolean {
    return existsSync(archivePath(this.list.folder, day));
  }

  private hasJournal(batch: number): boolean {
    const range = this.journalRange();
    return range !== null && range.first <= batch && batch <= range.last;
  }

  /** The archive with a batch; null if there is none. */
  archiveOf(batch: number): ArchiveReader | null {
    const found = this.archives.find(({ first, last }) => first <= batch && batch <= last);
    return found === undefined || !this.hasFile(found)
      ? null
      : new ArchiveReader(archivePath(this.list.folder, found.day), found);
  }

  /**
   * What is wrong with the archives from a batch on, one line each: batches that no file has, files of another size than
   * their description's. Reads no batch. @throws BrokenLog if a description can't be read
   */
  faults(from: number): string[] {
    const faults: string[] = [];
    let expected = from;
    const journal = this.journalRange();
    for (const archive of this.archives.filter(({ last }) => last >= from)) {
      const path = archivePath(this.list.folder, archive.day);
      const why = whyNoFile(path);
      if (why !== null) faults.push(`${path} ${why}`);
      const size = why === null ? statSync(path, { throwIfNoEntry: false })?.size : archive.bytes;
      if (size === undefined) continue;
      if (archive.first > expected) faults.push(gapOf(expected, archive.first - 1));
      if (size !== archive.bytes) faults.push(`${path} has ${size} bytes, and should have ${archive.bytes}`);
      expected = Math.max(expected, archive.last + 1);
    }
    if (journal !== null && journal.first > expected) faults.push(gapOf(expected, journal.first - 1));
    return faults;
  }

  close(): void {
    this.journal?.close();
  }

  /** The first and the last batch of the journal; null if it has none. */
  journalRange(): { readonly first: number; readonly last: number } | null {
    const ends = "SELECT (SELECT min(number) FROM batches) AS first, (SELECT max(number) FROM batches) AS last";
    const range = this.journal?.prepare(ends).get() as { first: number | null; last: number | null } | undefined;
    const { first = null, last = null } = range ?? {};
    return first === null || last === null ? null : { first, last };
  }
}

const gapOf = (first: number, last: number): string => `batches ${first} to ${last} are missing`;

/** The first of the journal's batches `first..last` at or after a time, ms; one past the last if there is none. */
export function firstBatchSince(journal: Database.Database, at: number, first: number, last: number): number {
  const select = journal.prepare("SELECT at FROM batches WHERE number = ?").pluck();
  let [low, high] = [first, last + 1];
  while (low < high) {
    const middle = Math.floor((low + high) / 2);
    if ((select.get(middle) as number) < at) low = middle + 1;
    else high = middle;
  }
  return low;
}
