/**
 * A copy of another box's files in `DATA_DIR/copy/`: `out` is made for others, `in` grows, `ready` is complete, `install` is
 * taking its place. Each step is one rename, so that a start goes on where the one before was killed.
 */
import { copyFileSync, existsSync, mkdirSync, readdirSync, renameSync, rmSync } from "node:fs";
import { basename, join } from "node:path";
import { PARTIAL, syncPath } from "../../engine/util/durable-file.ts";
import { removeDatabase } from "../../engine/util/wal-database.ts";
import { archiveFolder, copyFolder, journalPath, tablesPath } from "../util/data-folder.ts";

/** The folder of a copy that is made for another box. */
export const outgoingCopy = (dataDir: string): string => join(copyFolder(dataDir), "out");
/** The folder of a copy that comes from one, and the file that says what belongs to it. */
export const incomingCopy = (dataDir: string): string => join(copyFolder(dataDir), "in");
export const incomingManifest = (dataDir: string): string => join(copyFolder(dataDir), "in.json");
const readyCopy = (dataDir: string): string => join(copyFolder(dataDir), "ready");
const installing = (dataDir: string): string => join(copyFolder(dataDir), "install");

/** The incoming copy is complete and durable: the next `installCopy` puts it in place of the exchange's own files. */
export function markReady(dataDir: string): void {
  renameSync(incomingCopy(dataDir), readyCopy(dataDir));
  syncPath(copyFolder(dataDir));
}

/**
 * Puts a complete copy in place of the files of the folder, which nobody has open. Does nothing where there is none, and
 * deletes what was made for others. @throws Error of the file system: called again, it goes on
 */
export function installCopy(dataDir: string): void {
  if (!existsSync(copyFolder(dataDir))) return;
  rmSync(outgoingCopy(dataDir), { recursive: true, force: true });
  const [ready, install] = [readyCopy(dataDir), installing(dataDir)];
  if (existsSync(ready)) {
    rmSync(install, { recursive: true, force: true });
    // The folder may be a link to a disk of its own.
    for (const path of filesIn(archiveFolder(dataDir))) rmSync(path);
    for (const path of [tablesPath(dataDir), journalPath(dataDir)]) removeDatabase(path);
    syncPath(dataDir);
    renameSync(ready, install);
    syncPath(copyFolder(dataDir));
  }
  if (!existsSync(install)) return;
  moveFiles(archiveFolder(install), archiveFolder(dataDir));
  moveFiles(install, dataDir);
  rmSync(install, { recursive: true });
}

function moveFiles(from: string, to: string): void {
  const files = filesIn(from);
  if (files.length === 0) return;
  mkdirSync(to, { recursive: true });
  for (const path of files) moveFile(path, join(to, basename(path)));
  syncPath(to);
}

/** The paths of its files; none of a folder that isn't there. */
export function filesIn(folder: string): string[] {
  if (!existsSync(folder)) return [];
  const entries = readdirSync(folder, { withFileTypes: true });
  return entries.filter((entry) => !entry.isDirectory()).map(({ name }) => join(folder, name));
}

function moveFile(from: string, to: string): void {
  try {
    renameSync(from, to);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== "EXDEV") throw error;
    copyFileSync(from, to + PARTIAL);
    syncPath(to + PARTIAL);
    renameSync(to + PARTIAL, to);
    rmSync(from);
  }
}

/** Deletes what came of a copy that isn't needed. */
export function removeIncoming(dataDir: string): void {
  for (const path of [incomingCopy(dataDir), incomingManifest(dataDir)]) rmSync(path, { recursive: true, force: true });
}

/** Makes an empty folder for a copy to others. */
export function emptyOutgoing(dataDir: string): string {
  const folder = outgoingCopy(dataDir);
  rmSync(folder, { recursive: true, force: true });
  mkdirSync(folder, { recursive: true });
  return folder;
}
