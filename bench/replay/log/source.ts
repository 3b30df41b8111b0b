/**
 * The log that a replay reads: an archive by itself, or a journal.db or data folder with the archives that it continues.
 * The replay checks each batch.
 */
import { existsSync, statSync } from "node:fs";
import { BrokenLog } from "../../../engine/log/broken-log.ts";
import { archivesBeside, LogFiles, type LogPlace, logOf } from "../../../engine/log/log-files.ts";
import type { Opening } from "../../../engine/log/opening.ts";
import { openingBefore } from "../../../engine/projection/log-opening.ts";
import { ArchiveFile } from "./archive-file.ts";

const ARCHIVE = ".log.gz";
const MIB = 2 ** 20;

export interface LogSource {
  readonly opening: Opening;
  readonly bodies: Iterable<Buffer>;
  /** The work, and how much of it is done after a batch. */
  readonly unit: string;
  readonly total: number;
  done(batches: number): number;
  close(): void;
}

/** @throws BrokenLog with a message for the log's owner */
export function openLogSource(path: string): LogSource {
  if (!existsSync(path)) throw new BrokenLog(`there is no ${path}`);
  if (path.endsWith(ARCHIVE)) return openArchive(path);
  const isFolder = statSync(path).isDirectory();
  return openFiles(isFolder ? logOf(path) : { journal: path, archives: archivesBeside(path) }, path);
}

function openArchive(path: string): LogSource {
  const archive = new ArchiveFile(path);
  return {
    opening: archive.opening,
    bodies: archive.bodies(),
    unit: "MiB",
    total: Math.ceil(archive.bytes / MIB),
    done: () => Math.floor(archive.read / MIB),
    close: () => archive.close(),
  };
}

function openFiles(place: LogPlace, path: string): LogSource {
  const files = new LogFiles(place);
  const range = files.range();
  if (range === null) throw new BrokenLog(`${path} has no log`);
  return {
    opening: openingBefore(files, place, range.first, path),
    bodies: files.bodies(range.first),
    unit: "batches",
    total: range.last - range.first + 1,
    done: (batches) => batches,
    close: () => files.close(),
  };
}
