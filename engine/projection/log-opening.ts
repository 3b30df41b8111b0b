/** The books before any batch of the log, from the nearest place that has them. Never writes. */
import { existsSync } from "node:fs";
import { readHeader } from "../log/batch-format.ts";
import { BrokenLog } from "../log/broken-log.ts";
import type { LogFiles, LogPlace } from "../log/log-files.ts";
import { EMPTY_OPENING, type Opening, OpeningTracker } from "../log/opening.ts";
import { openReadOnly } from "../util/wal-database.ts";
import { snapshotBatch, snapshotPath } from "./base-tables.ts";
import { loadOpening } from "./load/opening.ts";

/**
 * The books before the log's first batch: an archive's opening; none before the first of all; those of an older exchange.
 * @throws BrokenLog if nothing has them
 */
export function firstOpening(files: LogFiles, { archives }: LogPlace, path: string): Opening {
  const first = files.range()?.first ?? 1;
  const archive = files.archiveOf(first);
  const archived = archive?.opening() ?? null;
  if (archived !== null) return archived;
  if (archive === null && first === 1) return EMPTY_OPENING;
  if (!existsSync(snapshotPath(archives)) || snapshotBatch(archives) !== first - 1) {
    throw new BrokenLog(`${path} begins with batch ${first}, and nothing has the books before it`);
  }
  const tables = openReadOnly(snapshotPath(archives));
  try {
    return loadOpening(tables);
  } finally {
    tables.close();
  }
}

/** The books before a batch. Follows the log from the last archive before it on. @throws BrokenLog if nothing has them */
export function openingBefore(files: LogFiles, place: LogPlace, batch: number, path: string): Opening {
  const nearest = files.archives.findLast(({ first, opening }) => opening && first <= batch);
  const archive = nearest === undefined ? null : files.archiveOf(nearest.first);
  const from = archive === null ? (files.range()?.first ?? 1) : archive.description.first;
  const opening = archive?.opening() ?? firstOpening(files, place, path);
  if (from === batch) return opening;
  const books = new OpeningTracker(opening);
  for (const body of files.bodies(from)) {
    if (readHeader(body).batch === batch) break;
    books.follow(body);
  }
  return books.opening();
}
