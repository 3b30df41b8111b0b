/** Reads the files of book history: a market's days, and pieces of a day's file. Never writes; reads no database. */
import { closeSync, openSync, readSync } from "node:fs";
import { join } from "node:path";
import { dayOf, daysBetween, endOfDay, startOfDay } from "../../engine/log/archive-format.ts";
import { datesOf, madeDates, marketFolder, readDay, readMarketDay } from "../book-history/history-folder.ts";
import type { HistoryFile, MarketDay } from "../book-history/types.ts";

const DAY_MS = 86_400_000;

/** Days since the epoch: the ids of a list of days. */
const dayNumber = (date: string): number => startOfDay(date) / DAY_MS;

export interface BookDaysOptions {
  readonly marketId: number;
  /** The page's days are before this one, in days since the epoch. */
  readonly before: number;
  readonly limit: number;
  /** The market's first day, and the current one: those between that have neither a file nor an end are missing. */
  readonly since: string;
  readonly today: string;
}

/** Consecutive days that have no files, and may have had changes: they weren't made, aren't over, or were deleted. */
export interface MissingDays {
  readonly from: string;
  readonly to: string;
}

export interface BookDays {
  /** Newest first. */
  readonly items: readonly MarketDay[];
  /** The day to continue below, or null at the end. */
  readonly next: number | null;
  readonly missing: readonly MissingDays[];
}

export interface BookFileOptions {
  readonly marketId: number;
  readonly date: string;
  readonly isParquet: boolean;
}

export interface BookFile extends HistoryFile {
  readonly isComplete: boolean;
}

export interface BookPieceOptions {
  readonly marketId: number;
  readonly name: string;
  /** Bytes. */
  readonly from: number;
  readonly length: number;
}

/** @param folder of book history, which may not exist */
export function prepareBookFiles(folder: string) {
  /** A complete day stays so. */
  const complete = new Set<string>();
  const isComplete = (date: string): boolean => {
    if (!complete.has(date) && readDay(folder, date)?.isComplete === true) complete.add(date);
    return complete.has(date);
  };
  return {
    days({ marketId, before, limit, since, today }: BookDaysOptions): BookDays {
      const all = datesOf(folder, marketId);
      const dates = all.filter((date) => dayNumber(date) < before);
      const found = dates.slice(-limit).reverse();
      const last = found.at(-1);
      const items = found.map((date) => readMarketDay(folder, marketId, date)).filter((day) => day !== null);
      const next = last !== undefined && dates.length > found.length ? dayNumber(last) : null;
      const made = madeDates(folder);
      const known = new Set([...all, ...made.filter((date) => date >= since && isComplete(date))]);
      // The log's clock may be ahead of this one.
      const newest = made.reduce((latest, date) => (date > latest ? date : latest), today);
      return { items, next, missing: missingDays(known, since, newest) };
    },

    /** Null where the market has no files of that day. */
    file({ marketId, date, isParquet }: BookFileOptions): BookFile | null {
      const day = readMarketDay(folder, marketId, date);
      if (day === null) return null;
      return { ...(isParquet ? day.parquet : day.jsonLines), isComplete: day.isComplete };
    },

    /** Null where the file was replaced by a longer one. */
    piece({ marketId, name, from, length }: BookPieceOptions): Uint8Array | null {
      let file: number;
      try {
        file = openSync(join(marketFolder(folder, marketId), name), "r");
      } catch (error) {
        if ((error as NodeJS.ErrnoException).code === "ENOENT") return null;
        throw error;
      }
      try {
        const bytes = new Uint8Array(length);
        let at = 0;
        for (let read = -1; at < length && read !== 0; at += read)
          read = readSync(file, bytes, at, length - at, from + at);
        return at === length ? bytes : null;
      } finally {
        closeSync(file);
      }
    },
  };
}

/** @param known the days that have files, or had no change */
function missingDays(known: ReadonlySet<string>, since: string, newest: string): MissingDays[] {
  const missing: { from: string; to: string }[] = [];
  let isGap = false;
  for (const date of daysBetween(since, dayOf(endOfDay(newest)))) {
    if (known.has(date)) isGap = false;
    else if (isGap) missing.at(-1)!.to = date;
    else {
      missing.push({ from: date, to: date });
      isGap = true;
    }
  }
  return missing;
}
