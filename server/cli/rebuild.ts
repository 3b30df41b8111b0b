/**
 * `admin rebuild`: rebuilds exchange.db from the log beside the old one, checks it, and replaces the old one if asked.
 * Only while no server runs.
 */
import { existsSync } from "node:fs";
import type Database from "better-sqlite3";
import { LogFiles, logOf } from "../../engine/log/log-files.ts";
import { DamagedTables, loadProjection } from "../../engine/projection/load/projection.ts";
import { CheckedLog, rebuildFile } from "../../engine/projection/rebuild.ts";
import { MIGRATIONS } from "../../engine/projection/schema.ts";
import { differingTables, hashTables } from "../../engine/projection/table-hashes.ts";
import { publishFile } from "../../engine/util/durable-file.ts";
import { removeDatabase } from "../../engine/util/wal-database.ts";
import { installCopy } from "../backup/install-copy.ts";
import { lockDataFolder, openExisting, tablesPath } from "../util/data-folder.ts";
import { ProgressBar } from "./progress-bar.ts";

const DAMAGE_CODES: ReadonlySet<string> = new Set(["SQLITE_CORRUPT", "SQLITE_NOTADB", "SQLITE_ERROR"]);
const OTHER_LOG = "restore the log that belongs to them, or move exchange.db away to rebuild without it";

export interface Rebuilt {
  readonly ok: boolean;
  readonly file: string;
  /** The last batch of the log. */
  readonly batch: number;
  /** The tables in which the old exchange.db differs as of its last batch; null if there was none to compare. */
  readonly compared: { readonly batch: number; readonly differing: readonly string[] } | null;
  readonly replaced: boolean;
}

/**
 * @param replaces also an existing exchange.db
 * @throws Error if the folder is in use, the log is broken, or the tables have more than the log
 */
export function rebuild(dataDir: string, replaces: boolean): Rebuilt {
  const lock = lockDataFolder(dataDir);
  installCopy(dataDir);
  const place = logOf(dataDir);
  const log = new LogFiles(place);
  const [tables, path] = [tablesPath(dataDir), `${tablesPath(dataDir)}.rebuilt`];
  try {
    removeDatabase(path);
    const compared = build(path, tables, place.archives, new CheckedLog(log));
    const batch = log.range()?.last ?? 0;
    const isNew = !existsSync(tables);
    const ok = compared === null || compared.differing.length === 0;
    const replaced = isNew || replaces;
    if (replaced) {
      // The log decides: it has all that the old file had.
      removeDatabase(tables);
      publishFile(path, tables);
    } else if (ok) removeDatabase(path);
    return { ok: ok || replaced, file: replaced || ok ? tables : path, batch, compared, replaced };
  } finally {
    log.close();
    lock.close();
  }
}

/** Builds and checks the new file. @returns how the old one compares */
function build(path: string, old: string, archives: string, log: CheckedLog): Rebuilt["compared"] {
  const bar = new ProgressBar("rebuild");
  const onProgress = (done: number, last: number): void => bar.show(done, last);
  const live = readOld(old, log);
  let compared: Rebuilt["compared"] = null;
  const pause = live && {
    batch: live.batch,
    run: (tables: Database.Database): void => {
      const differing = differingTables(hashTables(tables), live.hashes);
      compared = { batch: live.batch, differing: differing.map((name) => name || "the schema") };
    },
  };
  rebuildFile({ path, archives, log, onProgress, ...(pause && { pause }) });
  bar.end();
  return compared;
}

/** The old tables; null if there are none, or none of this schema to compare. @throws Error if the log isn't theirs */
function readOld(path: string, log: CheckedLog): { batch: number; hashes: Map<string, string> } | null {
  if (!existsSync(path)) return null;
  let db: Database.Database | null = null;
  try {
    db = openExisting(path);
    if (db.pragma("user_version", { simple: true }) !== MIGRATIONS.length) return null;
    const { batch, exchange } = loadProjection(db);
    if (exchange !== log.exchange) throw new Error(`exchange.db is of another exchange than the log: ${OTHER_LOG}`);
    if (batch > log.last) {
      throw new Error(`exchange.db contains batch ${batch}, the log ends at ${log.last}: ${OTHER_LOG}`);
    }
    return { batch, hashes: hashTables(db) };
  } catch (error) {
    // A damaged file can't be compared; the new one replaces it.
    const isDamage = error instanceof DamagedTables || DAMAGE_CODES.has(String((error as { code?: unknown }).code));
    if (isDamage) return null;
    throw error;
  } finally {
    db?.close();
  }
}
