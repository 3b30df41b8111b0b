/**
 * The log's part of a backup: copies archives, which never change, into the backup's folder, and checks that the copies of
 * the tables and the log belong together. Never changes the exchange's own files.
 */
import { copyFileSync, existsSync, linkSync, mkdirSync, realpathSync, rmSync, statSync } from "node:fs";
import { type ArchiveDescription, ArchiveList, archivePath, descriptionPath } from "../../engine/log/archive-format.ts";
import { ArchiveReader } from "../../engine/log/archive-reader.ts";
import { BrokenLog, requireFile } from "../../engine/log/broken-log.ts";
import { LogChain } from "../../engine/log/chain.ts";
import { LogFiles, type LogPlace } from "../../engine/log/log-files.ts";
import { snapshotPath } from "../../engine/projection/base-tables.ts";
import { loadProjection } from "../../engine/projection/load/projection.ts";
import { MIGRATIONS } from "../../engine/projection/schema.ts";
import { PARTIAL, publishFile, syncPath } from "../../engine/util/durable-file.ts";
import { openExisting } from "../util/data-folder.ts";

/** The copy of journal.db; its batches. */
export interface CopiedLog {
  readonly file: string;
  readonly bytes: number;
  /** The first batch in the file. */
  readonly first: number;
}

/** The last commit in a backup, and when it was made (ms). */
export interface BackupEnd {
  readonly sequence: number;
  readonly committed_at: number;
}

/** How many archives were copied now, and how many an earlier backup had copied. */
export interface CopiedArchives {
  readonly archives_copied: number;
  readonly archives_kept: number;
}

/** Copies the archives that the folder `to` lacks, as further names of the same files where that is possible. */
export function copyArchives(from: string, to: string): CopiedArchives {
  const archives = new ArchiveList(from).read();
  if (archives.length > 0 || existsSync(snapshotPath(from))) mkdirSync(to, { recursive: true });
  let [copied, kept] = [0, 0];
  if (existsSync(to) && existsSync(from) && realpathSync(to) === realpathSync(from)) {
    return { archives_copied: 0, archives_kept: archives.length };
  }
  for (const archive of archives) {
    if (isCopied(archive, to)) kept++;
    else if (copyArchive(archive, from, to)) copied++;
  }
  if (existsSync(snapshotPath(from)) && !existsSync(snapshotPath(to))) place(snapshotPath(from), snapshotPath(to));
  return { archives_copied: copied, archives_kept: kept };
}

/** @throws Error if the folder has another archive of that day */
function isCopied({ day, sha256, bytes }: ArchiveDescription, to: string): boolean {
  if (!existsSync(descriptionPath(to, day))) return false;
  const { description } = ArchiveReader.open(archivePath(to, day));
  if (description.sha256 !== sha256 || statSync(archivePath(to, day)).size !== bytes) {
    throw new Error(`${archivePath(to, day)} is not this exchange's archive of that day: use another folder`);
  }
  return true;
}

/** The description comes last: it makes the copy complete. Returns false if the exchange has deleted the archive meanwhile. */
function copyArchive({ day }: ArchiveDescription, from: string, to: string): boolean {
  for (const pathOf of [archivePath, descriptionPath]) {
    if (!existsSync(pathOf(from, day))) return false;
    place(pathOf(from, day), pathOf(to, day));
    if (pathOf === archivePath) continue;
    const copied = ArchiveReader.open(archivePath(to, day));
    if (copied.hashFile() !== copied.description.sha256) throw new BrokenLog(`the archive of ${day} was changed`);
  }
  return true;
}

function place(source: string, target: string): void {
  requireFile(source);
  const partial = target + PARTIAL;
  rmSync(partial, { force: true });
  try {
    linkSync(source, partial);
  } catch {
    // Another file system, or one without links.
    copyFileSync(source, partial);
    syncPath(partial);
  }
  publishFile(partial, target);
}

/**
 * Checks each batch of the copied log, and that it continues the copied tables.
 * @returns no `end` for a log that is empty still
 * @throws BrokenLog, Error
 */
export function checkPair(tables: string, place: LogPlace): Pick<CopiedLog, "first"> & { readonly end?: BackupEnd } {
  const log = new LogFiles(place);
  const db = openExisting(tables);
  try {
    const range = log.journalRange();
    if (db.pragma("user_version", { simple: true }) !== MIGRATIONS.length) {
      throw new Error("the tables are of another version than this program: start the exchange on them first");
    }
    const { batch, hash, exchange } = loadProjection(db);
    if (range === null) {
      if (hash !== "") throw new BrokenLog(`the tables contain batch ${batch}, the log is empty`);
      return { first: 0 };
    }
    const chain = new LogChain(range.first > batch ? { batch, hash } : null);
    // Batches between the tables and journal.db may be in an archive by now.
    for (const body of log.bodies(Math.min(range.first, batch + 1))) {
      const { batch: next } = chain.next(body);
      if (next === batch && chain.hash !== hash)
        throw new BrokenLog(`the hash of batch ${batch} differs between log and tables`);
    }
    const { last } = chain;
    if (last === null || last.batch < batch || last.exchange !== exchange) {
      throw new BrokenLog("log and tables don't belong together");
    }
    return { first: range.first, end: { sequence: last.batch, committed_at: last.at } };
  } finally {
    db.close();
    log.close();
  }
}
