/** The books before any batch of the log, from the nearest place that has them. Never writes. */
import { readHeader } from "../log/batch-format.ts";
import { BrokenLog } from "../log/broken-log.ts";
import type { LogFiles, LogPlace } from "../log/log-files.ts";
import { EMPTY_OPENING, type Opening, OpeningTracker } from "../log/opening.ts";
import { openReadOnly } from "../util/wal-database.ts";
import { snapshotBatch, snapshotPath } from "./base-tables.ts";
import { loadOpening } from "./load/opening.ts";

/** The books before the log's first batch, which no archive has: none before the first of all; those of an older exchange. */
function firstOpening(first: number, { archives }: LogPlace, path: string): Opening {
  if (first === 1) return EMPTY_OPENING;
  if (snapshotBatch(archives) !== first - 1) {
    throw new BrokenLog(`${path} begins with batch ${first}, and nothing has the books before it`);
  }
  const tables = openReadOnly(snapshotPath(archives));
  try {
    return loadOpening(tables);
  } finally {
    tables.close();
  }
}

/**
 * The books before a batch. Follows the log from the last archive before it on. @param path names the log in the error
 * @throws BrokenLog if nothing has them
 */
export function openingBefore(files: LogFiles, place: LogPlace, batch: number, path: string): Opening {
  const nearest = files.archives.findLast(({ first, opening }) => opening && first <= batch);
  const archive = nearest === undefined ? null : files.archiveOf(nearest.first);
  const from = archive === null ? (files.range()?.first ?? 1) : archive.description.first;
  const opening = archive?.opening() ?? firstOpening(from, place, path);
  if (from === batch) return opening;
  const books = new OpeningTracker(opening);
  for (const body of files.bodies(from)) {
    if (readHeader(body).batch === batch) break;
    books.follow(body);
  }
  return books.opening();
}
