/**
 * One run of the log's upkeep: archives finished days, and deletes archives that the tables don't refer to any more. Never
 * writes to a database.
 */
import { rmSync } from "node:fs";
import type Database from "better-sqlite3";
import { archiveFinishedDays, deleteArchivesBefore, outdatedArchives } from "../../engine/log/archiving.ts";
import type { Opening } from "../../engine/log/opening.ts";
import { snapshotBatch, snapshotPath } from "../../engine/projection/base-tables.ts";
import { loadOpening } from "../../engine/projection/load/opening.ts";
import { loadProjection } from "../../engine/projection/load/projection.ts";
import { openReadOnly } from "../../engine/util/wal-database.ts";

export interface UpkeepJob {
  readonly journal: string;
  readonly tables: string;
  /** The folder of the archives. */
  readonly archives: string;
  /** 0: no archive is deleted. */
  readonly logDays: number;
}

export interface UpkeepResult {
  /** The last batch in an archive; 0 for none. */
  readonly archived: number;
  /** Archives of batches before this one are outdated; null if none is. */
  readonly forgetBefore: number | null;
}

/** @throws BrokenLog, or Error where the disk fails */
export function keepLog({ journal: path, tables, archives, logDays }: UpkeepJob): UpkeepResult {
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
    const outdated = logDays === 0 ? null : (outdatedArchives(archives, logDays, at).at(-1) ?? null);
    return { archived, forgetBefore: outdated === null ? null : outdated.last + 1 };
  });
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
