/**
 * The folder of book history, by market and day (UTC). A day's description is written last: without it a file isn't there.
 * What belongs to a complete day never changes.
 *
 *   17/2026-11-24.json                    a market's day: MarketDay, with the names, sizes and hashes of both files
 *   17/2026-11-24.parquet, .jsonl.gz      of a complete day; 2026-11-24.4711.parquet has the first 4,711 rows of another
 *   days/2026-11-24.json                  HistoryDay: the day was made, also where nothing changed
 *   making/                               the rows of the day that is being made, and where its maker stands
 */
import { existsSync, mkdirSync, readdirSync, readFileSync, rmdirSync, rmSync, statSync } from "node:fs";
import { join } from "node:path";
import { BrokenLog } from "../../engine/log/broken-log.ts";
import { syncPath, writeDurably } from "../../engine/util/durable-file.ts";
import type { HistoryDay, MarketDay } from "./types.ts";

const FORMAT = 1;
const DESCRIPTION = /^(\d{4}-\d{2}-\d{2})\.json$/;
const FILE = /^(\d{4}-\d{2}-\d{2})\./;

export const historyFolder = (dataDir: string): string => join(dataDir, "history");
export const marketFolder = (folder: string, market: number): string => join(folder, String(market));
export const makingFolder = (folder: string): string => join(folder, "making");
const daysFolder = (folder: string): string => join(folder, "days");

/** The dates that were made, in ascending order. */
export const madeDates = (folder: string): string[] => describedDates(daysFolder(folder));

/** The dates of a market's files, in ascending order. */
export const datesOf = (folder: string, market: number): string[] => describedDates(marketFolder(folder, market));

/** Null where the day wasn't made. @throws BrokenLog if its description is damaged or of another format */
export const readDay = (folder: string, date: string): HistoryDay | null =>
  readDescription<HistoryDay>(join(daysFolder(folder), `${date}.json`));

/** Null where the market has no files of the day. @throws BrokenLog if its description is damaged or of another format */
export const readMarketDay = (folder: string, market: number, date: string): MarketDay | null =>
  readDescription<MarketDay>(join(marketFolder(folder, market), `${date}.json`));

export function writeDay(folder: string, day: HistoryDay): void {
  writeDescription(daysFolder(folder), day.date, day);
}

/** Makes a market's files visible, which are complete and synced. */
export function writeMarketDay(folder: string, day: MarketDay): void {
  writeDescription(marketFolder(folder, day.market), day.date, day);
}

/** Deletes a market's files of a day that no description names any more. @param kept names that clients may still read */
export function removeUnnamed(folder: string, market: number, date: string, kept: readonly string[] = []): void {
  const path = marketFolder(folder, market);
  const day = readMarketDay(folder, market, date);
  const named = new Set([`${date}.json`, ...kept]);
  if (day !== null) named.add(day.parquet.name).add(day.jsonLines.name);
  for (const name of namesIn(path)) {
    if (FILE.exec(name)?.[1] === date && !named.has(name)) rmSync(join(path, name), { force: true });
  }
}

/** Deletes the days before `date`, oldest first. A description goes first: without it a file isn't there. */
export function removeDaysBefore(folder: string, date: string): void {
  for (const each of madeDates(folder).filter((made) => made < date)) {
    for (const market of readDay(folder, each)?.markets ?? []) {
      const path = marketFolder(folder, market);
      rmSync(join(path, `${each}.json`), { force: true });
      removeUnnamed(folder, market, each);
      if (existsSync(path) && readdirSync(path).length === 0) rmdirSync(path);
    }
    rmSync(join(daysFolder(folder), `${each}.json`));
    syncPath(daysFolder(folder));
  }
}

/** Bytes of all files, 0 where there is no folder. */
export function sizeOf(path: string): number {
  const found = statSync(path, { throwIfNoEntry: false });
  if (found === undefined) return 0;
  return found.isDirectory() ? namesIn(path).reduce((sum, name) => sum + sizeOf(join(path, name)), 0) : found.size;
}

function describedDates(path: string): string[] {
  return namesIn(path)
    .map((name) => DESCRIPTION.exec(name)?.[1])
    .filter((date) => date !== undefined)
    .sort();
}

const namesIn = (path: string): string[] => (existsSync(path) ? readdirSync(path) : []);

function readDescription<T>(path: string): T | null {
  let text: string;
  try {
    text = readFileSync(path, "utf8");
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "ENOENT") return null;
    throw error;
  }
  let description: { readonly format?: unknown; readonly day: T };
  try {
    description = JSON.parse(text) as typeof description;
  } catch (error) {
    throw new BrokenLog(`${path}: ${(error as Error).message}`);
  }
  if (description.format !== FORMAT) {
    throw new BrokenLog(`${path} has format ${description.format}, this program reads format ${FORMAT}`);
  }
  return description.day;
}

function writeDescription(path: string, date: string, day: HistoryDay | MarketDay): void {
  mkdirSync(path, { recursive: true });
  const text = `${JSON.stringify({ format: FORMAT, day })}\n`;
  writeDurably(join(path, `${date}.json`), (append) => append(Buffer.from(text)));
}
