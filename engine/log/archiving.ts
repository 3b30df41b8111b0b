/**
 * Moves finished days of the log into archives, and deletes archives that nothing needs any more. A day is finished once
 * the tables include a batch of a later day: the log's own times decide, never a clock. Never writes to journal.db: the
 * log stage deletes what this file has archived. One run at a time.
 */
import { existsSync, mkdirSync, readdirSync, rmSync } from "node:fs";
import { join } from "node:path";
import type Database from "better-sqlite3";
import { PARTIAL, syncPath } from "../util/durable-file.ts";
import { writeArchive } from "./archive.ts";
import {
  type ArchiveDescription,
  ArchiveList,
  archivePath,
  dayOf,
  daysBefore,
  descriptionPath,
  endOfDay,
} from "./archive-format.ts";
import { ArchiveReader } from "./archive-reader.ts";
import { BrokenLog } from "./broken-log.ts";
import { firstBatchSince } from "./log-files.ts";
import { JournalReader } from "./log-reader.ts";
import { EMPTY_OPENING, type Opening, OpeningTracker } from "./opening.ts";

const COMPRESSED = /^(\d{4}-\d{2}-\d{2})\.log\.gz$/;

export interface ArchivingOptions {
  /** The folder of the archives. */
  readonly folder: string;
  readonly journal: Database.Database;
  /** The last batch that the tables include. */
  readonly projected: number;
  /** The books before a batch, where no archive is before it; null if they are unknown. */
  readonly openingOf: (batch: number) => Opening | null;
}

/** Removes what an interrupted run left, then archives each finished day. @returns the last batch in an archive, 0 for none */
export function archiveFinishedDays(options: ArchivingOptions): number {
  const { folder, journal, projected } = options;
  mkdirSync(folder, { recursive: true });
  removeLeftovers(folder);
  const list = new ArchiveList(folder);
  let books: OpeningTracker | null = null;
  for (;;) {
    const previous = list.read().at(-1) ?? null;
    const first = nextBatch(journal, previous);
    const day = first === null ? null : finishedDay(journal, first, projected);
    if (first === null || day === null) return previous?.last ?? 0;
    const opening: Opening | null = books === null ? openingAfter(options, previous, first) : books.opening();
    books = opening === null ? null : (books ?? new OpeningTracker(opening));
    writeArchive({
      folder,
      day: day.day,
      bodies: batchesUntil(journal, first, day.last),
      previous: previous === null ? null : { batch: previous.last, hash: previous.last_hash },
      opening,
      onBody: (body) => books?.follow(body),
    });
  }
}

/** The archives that are older than `days` days before the one of `at` (ms). */
export function outdatedArchives(folder: string, days: number, at: number): ArchiveDescription[] {
  const oldest = daysBefore(dayOf(at), days);
  return new ArchiveList(folder).read().filter(({ day }) => day < oldest);
}

/** Deletes archives whose batches are all before `batch`, oldest first. The description goes first: it makes an archive complete. */
export function deleteArchivesBefore(folder: string, batch: number): void {
  const obsolete = new ArchiveList(folder).read().filter(({ last }) => last < batch);
  for (const { day } of obsolete) {
    rmSync(descriptionPath(folder, day));
    syncPath(folder);
    rmSync(archivePath(folder, day), { force: true });
  }
}

/** Deletes files of a run that a crash ended. */
function removeLeftovers(folder: string): void {
  for (const name of readdirSync(folder)) {
    const day = COMPRESSED.exec(name)?.[1];
    const isPartial = name.endsWith(PARTIAL) || (day !== undefined && !existsSync(descriptionPath(folder, day)));
    if (isPartial) rmSync(join(folder, name), { force: true });
  }
}

/** The first batch that no archive has; null if there is none. @throws BrokenLog if the journal lacks it */
function nextBatch(journal: Database.Database, previous: ArchiveDescription | null): number | null {
  const from = (previous?.last ?? 0) + 1;
  const next = journal.prepare("SELECT min(number) FROM batches WHERE number >= ?").pluck().get(from) as number | null;
  if (next !== null && previous !== null && next !== from) {
    throw new BrokenLog(
      `the log lacks batch ${from}: the archive of ${previous.day} ends before, journal.db begins later`,
    );
  }
  return next;
}

/** The day of a batch and its last batch; null if the day isn't over for the tables. */
function finishedDay(
  journal: Database.Database,
  first: number,
  projected: number,
): { day: string; last: number } | null {
  if (projected < first) return null;
  const at = journal.prepare("SELECT at FROM batches WHERE number = ?").pluck().get(first) as number;
  const day = dayOf(at);
  const next = firstBatchSince(journal, endOfDay(day), first, projected);
  return next > projected ? null : { day, last: next - 1 };
}

function* batchesUntil(journal: Database.Database, first: number, last: number): Generator<Buffer> {
  let number = first;
  for (const body of new JournalReader(journal).bodies(first)) {
    yield body;
    if (number++ === last) return;
  }
}

/** The books after an archive, or before the log's first batch. */
function openingAfter(options: ArchivingOptions, previous: ArchiveDescription | null, first: number): Opening | null {
  if (previous === null) return first === 1 ? EMPTY_OPENING : options.openingOf(first);
  const archive = new ArchiveReader(archivePath(options.folder, previous.day), previous);
  const opening = archive.opening();
  if (opening === null) return null;
  const books = new OpeningTracker(opening);
  for (const body of archive.bodies(previous.first)) books.follow(body);
  return books.opening();
}
