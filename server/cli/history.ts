/** `admin history`: makes days of book history by hand, from the log or from archives; also while a server runs. */
import { logOf } from "../../engine/log/log-files.ts";
import { historyFolder } from "../book-history/history-folder.ts";
import { type MadeDays, makeDays } from "../book-history/make-days.ts";
import { tablesPath } from "../util/data-folder.ts";
import { UsageError } from "./commands.ts";

const DATE = /^\d{4}-\d{2}-\d{2}$/;

/** @throws UsageError where a date is none, Error with one line if the log is broken */
export function makeHistoryOf(dataDir: string, from: string, to: string): MadeDays {
  for (const date of [from, to]) if (!isDate(date)) throw new UsageError(`not a day like 2026-11-24: ${date}`);
  if (from > to) throw new UsageError(`${from} is after ${to}`);
  return makeDays({ log: logOf(dataDir), tables: tablesPath(dataDir), folder: historyFolder(dataDir) }, from, to);
}

function isDate(text: string): boolean {
  const time = DATE.test(text) ? Date.parse(text) : Number.NaN;
  return !Number.isNaN(time) && new Date(time).toISOString().startsWith(text);
}
