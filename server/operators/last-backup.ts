/**
 * When the last back-up succeeded, in `last-backup.json` of the data folder: `admin backup` writes it, the metrics read it.
 * It says nothing about the copy's whereabouts today: verify-backup.sh does.
 */
import { renameSync, writeFileSync } from "node:fs";
import { readFile } from "node:fs/promises";
import { join } from "node:path";

const FILE = "last-backup.json";

/** Notes that a back-up ended at `at` (ms). @throws Error where the data folder cannot be written to */
export function noteBackup(dataDir: string, at: number, backup: object): void {
  const path = join(dataDir, FILE);
  const partial = `${path}.${process.pid}.part`;
  writeFileSync(partial, `${JSON.stringify({ at, ...backup })}\n`, { mode: 0o600 });
  renameSync(partial, path);
}

/** When the last back-up ended (ms); 0 if there was none, or its note cannot be read. */
export async function lastBackupAt(dataDir: string): Promise<number> {
  try {
    const { at } = JSON.parse(await readFile(join(dataDir, FILE), "utf8")) as { at: unknown };
    return Number.isSafeInteger(at) ? (at as number) : 0;
  } catch {
    return 0;
  }
}
