/** Which log book history is made of, and when: on a box that trades, and on one that follows it. */
import { existsSync, readdirSync } from "node:fs";
import { historyFolder } from "../book-history/history-folder.ts";
import type { Logger } from "../logger.ts";
import { BookHistory } from "../service/book-history.ts";
import type { Config } from "./config.ts";
import type { ExchangeDatabase } from "./database.ts";

/** Longer than a box that follows needs for the last hour of a day. */
const FOLLOWERS_FIRST_MS = 180_000;

interface BookHistorySetup {
  readonly config: Config;
  readonly logger: Logger;
  readonly database: Pick<ExchangeDatabase, "path" | "journalPath" | "archives" | "logSince">;
  readonly isFollower: boolean;
}

/** A box that follows makes a day first: whoever has a complete day's file from the active box finds it there after a takeover. */
export function createBookHistory({ config, database, logger, isFollower }: BookHistorySetup): BookHistory {
  const { path: tables, journalPath: journal, archives, logSince } = database;
  // Archives have earlier batches than the journal.
  const since = existsSync(archives) && readdirSync(archives).length > 0 ? 0 : logSince;
  const { dataDir, historyDays: days, standby } = config;
  const job = { log: { journal, archives }, tables, folder: historyFolder(dataDir), days };
  const lateMs = standby === null || isFollower ? 0 : FOLLOWERS_FIRST_MS;
  return new BookHistory({ job: config.history ? job : null, since, lateMs, logger });
}
