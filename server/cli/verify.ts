/**
 * `admin verify`: checks that the tables are what the log says, the log's hash chain, and every invariant. Reads a running
 * exchange's files, a stopped one's or a backup's; never writes to them.
 */
import { existsSync, mkdtempSync, rmSync, statSync } from "node:fs";
import { tmpdir } from "node:os";
import { basename, dirname, join } from "node:path";
import type Database from "better-sqlite3";
import { archivePath } from "../../engine/log/archive-format.ts";
import { ArchiveReader } from "../../engine/log/archive-reader.ts";
import { BrokenLog } from "../../engine/log/broken-log.ts";
import { LogFiles, type LogPlace } from "../../engine/log/log-files.ts";
import { snapshotPath } from "../../engine/projection/base-tables.ts";
import { loadProjection, type Projection } from "../../engine/projection/load/projection.ts";
import { Projector } from "../../engine/projection/projector.ts";
import { CheckedLog, rebuildBase, rebuildTables } from "../../engine/projection/rebuild.ts";
import { differingTables, hashTables } from "../../engine/projection/table-hashes.ts";
import { type Finding, verifyDatabase } from "../../engine/projection/verify.ts";
import { openSqlite } from "../../engine/util/sqlite.ts";
import { journalNameOf, openExisting } from "../util/data-folder.ts";
import { ProgressBar } from "./progress-bar.ts";

const LINKED = "the log's batches follow each other";
const REBUILT = "the tables are what the log says";
const IN_MEMORY_BYTES = 2 ** 30;

/** The log beside a tables' file: of a data folder, or of a backup named NAME.db. */
function logBeside(tables: string): LogPlace & { readonly expected: string } {
  const name = basename(tables);
  const folder = dirname(tables);
  const expected = join(folder, name === "exchange.db" ? "journal.db" : journalNameOf(name));
  return { journal: existsSync(expected) ? expected : null, archives: join(folder, "log"), expected };
}

/** All findings about the tables' file and, if there is a log beside it, about the log. */
export function verifyFiles(file: string): Finding[] {
  const tables = openExisting(file);
  try {
    // One read transaction: all that is compared is of one moment.
    return tables.transaction(() => {
      const invariants = verifyDatabase(tables);
      return [...verifyLog(tables, file), ...invariants];
    })();
  } finally {
    tables.close();
  }
}

function verifyLog(tables: Database.Database, file: string): Finding[] {
  const place = logBeside(file);
  const projected = loadProjection(tables);
  if (place.journal === null) return [withoutLog(projected, place.expected)];
  let files: LogFiles | null = null;
  try {
    files = new LogFiles(place);
    return verifyOpenLog(tables, file, place, files);
  } catch (error) {
    if (error instanceof BrokenLog) return [{ name: LINKED, ok: false, figures: error.message }];
    throw error;
  } finally {
    files?.close();
  }
}

/** Only tables that no batch was projected into need no log: those of an exchange that never started with one. */
function withoutLog({ batch, hash }: Projection, expected: string): Finding {
  const ok = hash === "";
  const figures = ok ? "there is no log yet" : `there is no ${expected}, and the tables contain batch ${batch} of it`;
  return { name: LINKED, ok, figures };
}

function verifyOpenLog(tables: Database.Database, file: string, place: LogPlace, files: LogFiles): Finding[] {
  const projected = loadProjection(tables);
  const lost = lossOf(projected, files, place);
  if (lost !== null) return [{ name: LINKED, ok: false, figures: lost }];
  if (files.range() === null) return [{ name: LINKED, ok: true, figures: "the log is empty" }];
  const log = new CheckedLog(files);
  for (const archive of files.archives) checkFile(place, archive.day);
  const mismatch = mismatchOf(projected, log);
  if (mismatch !== null) return [{ name: LINKED, ok: false, figures: mismatch }];
  const linked = {
    name: LINKED,
    ok: true,
    figures: `batches ${log.first} to ${log.last}, ${files.archives.length} archives`,
  };
  if (rebuildBase(log, place.archives) !== null) return [linked, compare(tables, file, place, log)];
  const bar = new ProgressBar("log");
  log.read((number, _body, hash) => {
    if (number === projected.batch && hash() !== projected.hash) {
      throw new BrokenLog(`the hash of batch ${number} differs between log and tables`);
    }
    bar.show(number, log.last);
  });
  bar.end();
  return [linked, projectRest(file, projected, log)];
}

/** Which part of the log is gone; null if none is. Days that LOG_DAYS removed are before `logBegins`. */
function lossOf({ batch, hash, logBegins }: Projection, files: LogFiles, { archives }: LogPlace): string | null {
  const journal = files.journalRange();
  const archived = files.archives.at(-1)?.last ?? 0;
  if (archived > (journal?.last ?? 0)) {
    return `the archives end with batch ${archived}, journal.db with ${journal?.last ?? 0}`;
  }
  const range = files.range();
  if (range === null) return hash === "" ? null : `the log is empty, the tables are of batch ${batch}`;
  if (range.first <= logBegins) return null;
  return `the log begins with batch ${range.first}, and should with ${logBegins}: ${archives} lacks archives`;
}

/** Why the tables can't be of this log; null if they can. */
function mismatchOf({ exchange, batch }: Projection, log: CheckedLog): string | null {
  if (exchange !== log.exchange) return "the tables and the log belong to different exchanges";
  return batch > log.last ? `the tables contain batch ${batch}, the log ends at ${log.last}` : null;
}

/** The archive's file is the one that its description names: its opening too, which no hash of a batch covers. */
function checkFile({ archives }: LogPlace, day: string): void {
  const reader = ArchiveReader.open(archivePath(archives, day));
  if (reader.hashFile() !== reader.description.sha256) throw new BrokenLog(`the archive of ${day} was changed`);
}

/** Builds the tables from the log, compares all rows, and projects the rest of the log as the next start will. */
function compare(tables: Database.Database, file: string, { archives }: LogPlace, log: CheckedLog): Finding {
  const { batch } = loadProjection(tables);
  const isSmall = statSync(file).size < IN_MEMORY_BYTES && !existsSync(snapshotPath(archives));
  return inFolder((folder) => {
    const path = isSmall ? ":memory:" : join(folder, "tables.db");
    const bar = new ProgressBar("log");
    const onProgress = (done: number, last: number): void => bar.show(done, last);
    let hashes = new Map<string, string>();
    const pause = { batch, run: (rebuilt: Database.Database) => void (hashes = hashTables(rebuilt)) };
    rebuildTables({ path, archives, log, until: log.last, pause, onProgress }).close();
    bar.end();
    const differing = differingTables(hashTables(tables), hashes).map((name) => name || "the schema");
    const figures =
      differing.length === 0 ? `${hashes.size - 1} tables as of batch ${batch}` : `differing: ${differing.join(", ")}`;
    return { name: REBUILT, ok: differing.length === 0, figures };
  });
}

/** Projects what the tables lack into a copy, as the next start will. */
function projectRest(file: string, { batch }: Projection, log: CheckedLog): Finding {
  const figures = `not checked: the log begins with batch ${log.first}`;
  if (batch === log.last) return { name: REBUILT, ok: true, figures };
  return inFolder((folder) => {
    const path = join(folder, "tables.db");
    copyTables(file, path);
    const copy = openSqlite(path);
    try {
      const projector = new Projector(copy, log.files, { checksHashes: true });
      for (const body of log.files.bodies(projector.point.batch + 1)) {
        if (projector.point.batch >= log.last) break;
        projector.apply(body);
      }
      projector.commit();
    } finally {
      copy.close();
    }
    return { name: REBUILT, ok: true, figures };
  });
}

/** A running exchange's tables may be some batches further than those that are verified. */
function copyTables(file: string, path: string): void {
  const tables = openExisting(file);
  try {
    tables.pragma("query_only = OFF");
    tables.prepare("VACUUM INTO ?").run(path);
  } finally {
    tables.close();
  }
}

/** Reports what the projector refuses as a finding: the next start would refuse it, too. */
function inFolder(check: (folder: string) => Finding): Finding {
  const folder = mkdtempSync(join(tmpdir(), "exchange-verify-"));
  try {
    return check(folder);
  } catch (error) {
    if (error instanceof BrokenLog) throw error;
    return { name: REBUILT, ok: false, figures: `the log can't be projected: ${(error as Error).message}` };
  } finally {
    rmSync(folder, { recursive: true });
  }
}
