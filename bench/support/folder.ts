/**
 * Temporary folders of a bench: under data/ beside the program, which is on the disk that an exchange would use (the
 * system's temporary folder may be in memory, where a commit costs nothing), or in the system's temporary folder if
 * that isn't writable.
 */
import { mkdirSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { ROOT } from "./root.ts";

const DATA = fileURLToPath(new URL("data", ROOT));
const folders = new Set<string>();

process.once("exit", () => {
  for (const folder of folders) remove(folder);
});
// A signal's default action would skip the removal at exit.
for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"] as const) process.once(signal, () => process.exit(1));

/** Creates a folder that is removed when this process ends, at the latest. */
export function makeFolder(name: string): string {
  const folder = makeIn(DATA, name) ?? mkdtempSync(join(tmpdir(), `${name}-`));
  folders.add(folder);
  return folder;
}

function makeIn(parent: string, name: string): string | null {
  try {
    mkdirSync(parent, { recursive: true });
    return mkdtempSync(join(parent, `${name}-`));
  } catch {
    return null;
  }
}

/** Retries, because a process that was just killed may still have created a file. */
function remove(folder: string): void {
  rmSync(folder, { recursive: true, force: true, maxRetries: 5 });
}

export function removeFolder(folder: string): void {
  remove(folder);
  folders.delete(folder);
}
