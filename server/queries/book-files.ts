/** Reads the files of book history: a market's days, and pieces of a day's file. Never writes; reads no database. */
import { closeSync, openSync, readSync } from "node:fs";
import { join } from "node:path";
import { daysBetween, startOfDay } from "../../engine/log/archive-format.ts";
import { datesOf, madeDates, marketFolder, readMarketDay } from "../book-history/history-folder.ts";
import type { HistoryFile, MarketDay } from "../book-history/types.ts";

const DAY_MS = 86_400_000;

/** Days since the epoch: the ids of a list of days. */
const dayNumber = (date: string): number => startOfDay(date) / DAY_MS;

export interface BookDaysOptions {
  readonly marketId: number;
  /** The page's days are before this one, in days since the epoch. */
  readonly before: number;
  readonly limit: number;
  /** The market's first day: later ones that weren't made are missing, up to the newest that was. */
  readonly since: string;
}

/** Consecutive days that have no files because they weren't made, or were deleted. */
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
  return {
    days({ marketId, before, limit, since }: BookDaysOptions): BookDays {
      const dates = datesOf(folder, marketId).filter((date) => dayNumber(date) < before);
      const found = dates.slice(-limit).reverse();
      const last = found.at(-1);
      const items = found.map((date) => readMarketDay(folder, marketId, date)).filter((day) => day !== null);
      const next = last !== undefined && dates.length > found.length ? dayNumber(last) : null;
      return { items, next, missing: missingDays(madeDates(folder), since) };
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

/** @param dates that were made, in ascending order: what follows them isn't made yet */
function missingDays(dates: readonly string[], since: string): MissingDays[] {
  const made = new Set(dates);
  const newest = dates.at(-1) ?? "";
  const missing: { from: string; to: string }[] = [];
  let isGap = false;
  for (const date of daysBetween(since, newest)) {
    if (made.has(date)) isGap = false;
    else if (isGap) missing.at(-1)!.to = date;
    else {
      missing.push({ from: date, to: date });
      isGap = true;
    }
  }
  return missing;
}
