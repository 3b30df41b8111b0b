/**
 * One run of the log's upkeep: archives finished days, and deletes archives that the tables don't refer to any more. Never
 * writes to a database.
 */
import { rmSync } from "node:fs";
import type Database from "better-sqlite3";
import { dayOf, daysBefore } from "../../engine/log/archive-format.ts";
import { archiveFinishedDays, deleteArchivesBefore, outdatedArchives } from "../../engine/log/archiving.ts";
import type { Opening } from "../../engine/log/opening.ts";
import { snapshotBatch, snapshotPath } from "../../engine/projection/base-tables.ts";
import { loadOpening } from "../../engine/projection/load/opening.ts";
import { loadProjection } from "../../engine/projection/load/projection.ts";
import { openReadOnly } from "../../engine/util/wal-database.ts";
import { readDay } from "../book-history/history-folder.ts";

export interface UpkeepJob {
  readonly journal: string;
  readonly tables: string;
  /** The folder of the archives. */
  readonly archives: string;
  /** 0: no archive is deleted. */
  readonly logDays: number;
  /** Book history: an archive is deleted once its day is made. Null where none is made. */
  readonly history: { readonly folder: string; readonly days: number } | null;
}

export interface UpkeepResult {
  /** The last batch in an archive; 0 for none. */
  readonly archived: number;
  /** Archives of batches before this one are outdated; null if none is. */
  readonly forgetBefore: number | null;
}

/** @throws BrokenLog, or Error where the disk fails */
export function keepLog({ journal: path, tables, archives, logDays, history }: UpkeepJob): UpkeepResult {
  const { batch, at, logBegins } = withReader(tables, loadProjection);
  // The tables forgot these batches in an earlier run, so no read needs them now.
  deleteArchivesBefore(archives, logBegins);
  if ((snapshotBatch(archives) ?? logBegins) + 1 < logBegins) rmSync(snapshotPath(archives));
  return withReader(path, (journal) => {
    const archived = archiveFinishedDays({
      folder: archives,
      journal,
      projected: batch,
      openingOf: openingIn(archives),
    });
    const outdated = logDays === 0 ? [] : outdatedArchives(archives, logDays, at);
    const unread = outdated.findIndex(({ day }) => needsHistory(history, day, at));
    const last = outdated.at(unread < 0 ? -1 : unread - 1);
    return { archived, forgetBefore: unread === 0 || last === undefined ? null : last.last + 1 };
  });
}

/** True where the day's archive is all that its history can still be made from. */
function needsHistory(history: UpkeepJob["history"], day: string, at: number): boolean {
  if (history === null) return false;
  const { folder, days } = history;
  if (days > 0 && day < daysBefore(dayOf(at), days)) return false;
  try {
    return readDay(folder, day)?.isComplete !== true;
  } catch {
    // A damaged description is made anew from the archive, which must not end with it.
    return true;
  }
}

/** The books of the snapshot, if the log begins after it. */
function openingIn(archives: string): (batch: number) => Opening | null {
  return (batch) => (snapshotBatch(archives) === batch - 1 ? withReader(snapshotPath(archives), loadOpening) : null);
}

function withReader<T>(path: string, read: (db: Database.Database) => T): T {
  const db = openReadOnly(path);
  try {
    return read(db);
  } finally {
    db.close();
  }
}
