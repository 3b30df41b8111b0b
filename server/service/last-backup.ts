/**
 * The time of the last successful backup, in `last-backup.json` of the data folder: `admin backup` writes it, the metrics
 * read it. It does not show whether the copy still exists: verify-backup.sh checks that.
 */
import { renameSync, writeFileSync } from "node:fs";
import { readFile } from "node:fs/promises";
import { join } from "node:path";

const FILE = "last-backup.json";

/** Records a backup that ended at `at` (ms). @throws Error where the data folder can't be written to */
export function recordBackup(dataDir: string, at: number, backup: object): void {
  const path = join(dataDir, FILE);
  const partial = `${path}.${process.pid}.part`;
  writeFileSync(partial, `${JSON.stringify({ at, ...backup })}\n`, { mode: 0o600 });
  renameSync(partial, path);
}

/** When the last backup ended, ms; 0 where there was none or its record can't be read. */
export async function lastBackupAt(dataDir: string): Promise<number> {
  try {
    const { at } = JSON.parse(await readFile(join(dataDir, FILE), "utf8")) as { at: unknown };
    return Number.isSafeInteger(at) ? (at as number) : 0;
  } catch {
    return 0;
  }
}
