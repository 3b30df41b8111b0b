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
import { CheckedLog, rebuildBase, rebuildTables } from "../../engine/projection/rebuild.ts";
import { differingTables, hashTables } from "../../engine/projection/table-hashes.ts";
import { type Finding, verifyDatabase } from "../../engine/projection/verify.ts";
import { openExisting } from "../util/data-folder.ts";
import { ProgressBar } from "./progress-bar.ts";

const LINKED = "the log's batches follow each other";
const REBUILT = "the tables are what the log says";
const IN_MEMORY_BYTES = 2 ** 30;

/** The log beside a tables' file: of a data folder, or of a backup named NAME.db. */
function logBeside(tables: string): LogPlace {
  const name = basename(tables);
  const folder = dirname(tables);
  const journal = join(folder, name === "exchange.db" ? "journal.db" : journalNameOf(name));
  return { journal: existsSync(journal) ? journal : null, archives: join(folder, "log") };
}

/** The name of the log in a backup whose tables have this name. */
export const journalNameOf = (tables: string): string => tables.replace(/(\.db)?$/, ".journal.db");

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
  if (place.journal === null) {
    return [{ name: LINKED, ok: true, figures: `not checked: there is no log beside ${file}` }];
  }
  const files = new LogFiles(place);
  try {
    return verifyOpenLog(tables, file, place, files);
  } catch (error) {
    if (error instanceof BrokenLog) return [{ name: LINKED, ok: false, figures: error.message }];
    throw error;
  } finally {
    files.close();
  }
}

function verifyOpenLog(tables: Database.Database, file: string, place: LogPlace, files: LogFiles): Finding[] {
  const projected = loadProjection(tables);
  if (files.range() === null) {
    const ok = projected.hash === "";
    return [
      {
        name: LINKED,
        ok,
        figures: ok ? "the log is empty" : `the log is empty, the tables are of batch ${projected.batch}`,
      },
    ];
  }
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
  log.read((number) => bar.show(number, log.last));
  bar.end();
  return [linked, { name: REBUILT, ok: true, figures: `not checked: the log begins with batch ${log.first}` }];
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

/** Builds the tables from the log, and compares all rows. */
function compare(tables: Database.Database, file: string, { archives }: LogPlace, log: CheckedLog): Finding {
  const { batch } = loadProjection(tables);
  const isSmall = statSync(file).size < IN_MEMORY_BYTES && !existsSync(snapshotPath(archives));
  const folder = mkdtempSync(join(tmpdir(), "exchange-verify-"));
  const bar = new ProgressBar("log");
  try {
    const path = isSmall ? ":memory:" : join(folder, "tables.db");
    const onProgress = (done: number, last: number): void => bar.show(done, last);
    const rebuilt = rebuildTables({ path, archives, log, until: batch, onProgress });
    bar.end();
    const hashes = hashTables(rebuilt);
    rebuilt.close();
    const differing = differingTables(hashTables(tables), hashes).map((name) => name || "the schema");
    const figures =
      differing.length === 0 ? `${hashes.size - 1} tables as of batch ${batch}` : `differing: ${differing.join(", ")}`;
    return { name: REBUILT, ok: differing.length === 0, figures };
  } finally {
    rmSync(folder, { recursive: true });
  }
}
