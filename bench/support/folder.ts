/**
 * Folders that a bench makes and removes again: under data/ beside the program, which is on the disk that an exchange
 * would use (the system's temporary folder may be memory, where a commit costs nothing), or where that cannot be
 * written, in the system's temporary folder.
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
// A signal's default action would skip what is removed at exit.
for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"] as const) process.once(signal, () => process.exit(1));

/** A new folder that goes with this process at the latest. */
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

/** Tries again where a process that was just killed still made a file. */
function remove(folder: string): void {
  rmSync(folder, { recursive: true, force: true, maxRetries: 5 });
}

export function removeFolder(folder: string): void {
  remove(folder);
  folders.delete(folder);
}
