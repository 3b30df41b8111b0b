/**
 * Makes days of history from a data folder's log: what follows the last run, for the server, or days by hand. Reads both
 * databases, and writes only in the folder of history.
 */
import { existsSync, rmSync } from "node:fs";
import { dayOf, daysBefore, daysBetween, endOfDay, startOfDay } from "../../engine/log/archive-format.ts";
import { readHeader } from "../../engine/log/batch-format.ts";
import { LogFiles, type LogPlace } from "../../engine/log/log-files.ts";
import { loadProjection } from "../../engine/projection/load/projection.ts";
import { openingBefore } from "../../engine/projection/log-opening.ts";
import { openReadOnly } from "../../engine/util/wal-database.ts";
import type { KnownMarkets } from "./book-follower.ts";
import { DayMaker } from "./day-maker.ts";
import { madeDates, makingFolder, removeDaysBefore, sizeOf } from "./history-folder.ts";

export interface HistoryPlace {
  readonly log: LogPlace;
  /** exchange.db */
  readonly tables: string;
  /** The folder of history. */
  readonly folder: string;
}

export interface HistoryRun extends HistoryPlace {
  /** Only what was committed before, ms. */
  readonly until: number;
  /** Older days are deleted; 0: none. */
  readonly days: number;
}

export interface HistoryResult {
  /** The size of all files. */
  readonly bytes: number;
  /** False while a day that ended before `until` isn't complete: the log has no commit of a later one yet. */
  readonly isWhole: boolean;
}

/** Goes on from where the last run stopped. @throws BrokenLog, or Error where the disk fails */
export function makeHistory({ log, tables, folder, until, days }: HistoryRun): HistoryResult {
  const { projected, known } = readTables(tables);
  const files = new LogFiles(log);
  const maker = new DayMaker({ folder, making: makingFolder(folder) });
  try {
    const range = files.range();
    if (range === null) return { bytes: sizeOf(folder), isWhole: true };
    // Without its rows, or where the log has lost what follows, it begins again with what the log has.
    if (!maker.resume() || maker.next < range.first) {
      const oldest = days === 0 ? 0 : startOfDay(daysBefore(dayOf(until), days));
      const batch = Math.max(range.first, files.firstSince(oldest));
      maker.begin({ batch, opening: openingBefore(files, log, batch, folder), known });
    }
    const wanted = new BodiesUntil(files, projected, until);
    maker.follow(wanted.from(maker.next));
    maker.publish(wanted.nextAt);
    maker.store();
    if (days > 0) removeDaysBefore(folder, daysBefore(dayOf(until), days));
    return { bytes: sizeOf(folder), isWhole: wanted.nextAt !== null || maker.day === dayOf(until) };
  } finally {
    maker.close();
    files.close();
  }
}

export interface MadeDays {
  /** Those that are made now. */
  readonly days: readonly string[];
  /** Days whose log was deleted: they can't be made any more. */
  readonly missing: readonly string[];
}

/** Makes the days `from` to `to` that aren't there. @throws BrokenLog, or Error where the disk fails */
export function makeDays({ log, tables, folder }: HistoryPlace, from: string, to: string): MadeDays {
  const { projected, known } = existsSync(tables) ? readTables(tables) : NO_TABLES;
  const files = new LogFiles(log);
  const making = `${makingFolder(folder)}-${process.pid}`;
  const maker = new DayMaker({ folder, making });
  try {
    const lostBefore = beginningOf(files);
    const end = endOfDay(to);
    const wanted = [...daysBetween(from, dayOf(end))];
    const missing = wanted.filter((date) => date < lostBefore);
    const first = files.firstSince(startOfDay(from));
    maker.begin({ batch: first, opening: openingBefore(files, log, first, folder), known });
    const bodies = new BodiesUntil(files, projected, end);
    maker.follow(bodies.from(first));
    maker.publish(bodies.nextAt);
    const made = new Set(madeDates(folder));
    return { days: wanted.filter((date) => made.has(date)), missing };
  } finally {
    maker.close();
    files.close();
    rmSync(making, { recursive: true, force: true });
  }
}

const NO_TABLES = { projected: Number.POSITIVE_INFINITY, known: [] };

/** The last batch that the tables include, and the markets that they know. */
function readTables(path: string): { readonly projected: number; readonly known: KnownMarkets } {
  const db = openReadOnly(path);
  try {
    const { batch } = loadProjection(db);
    const markets = db.prepare("SELECT market_id, min(id), count(*) FROM outcomes GROUP BY market_id ORDER BY 1");
    return { projected: batch, known: markets.raw().all() as [number, number, number][] };
  } finally {
    db.close();
  }
}

/** The log's batches before a moment, as far as the tables include them. */
class BodiesUntil {
  /** When the first one from that moment on was committed, ms; null before it was found, or where there is none yet. */
  nextAt: number | null = null;
  private readonly files: LogFiles;
  private readonly projected: number;
  private readonly until: number;

  constructor(files: LogFiles, projected: number, until: number) {
    this.files = files;
    this.projected = projected;
    this.until = until;
  }

  *from(first: number): Generator<Buffer> {
    for (const body of this.files.bodies(first)) {
      const { batch, at } = readHeader(body);
      if (batch > this.projected) return;
      if (at >= this.until) {
        this.nextAt = at;
        return;
      }
      yield body;
    }
  }
}

/** The day of the log's first batch, where earlier ones were deleted; else "": before its first batch there was nothing. */
function beginningOf(files: LogFiles): string {
  const first = files.range()?.first ?? 1;
  if (first === 1) return "";
  for (const body of files.bodies(first)) return dayOf(readHeader(body).at);
  return "";
}
