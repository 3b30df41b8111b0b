/** Files that are either complete or absent after a crash: written under another name, synced, then renamed. */
import { closeSync, fsyncSync, openSync, renameSync, rmSync, writeSync } from "node:fs";
import { dirname } from "node:path";

/** The ending of a file that isn't complete. */
export const PARTIAL = ".part";

/** Syncs a file, or the names in a folder. */
export function syncPath(path: string): void {
  const descriptor = openSync(path, "r");
  try {
    fsyncSync(descriptor);
  } finally {
    closeSync(descriptor);
  }
}

/** Gives a complete and synced file its name, replacing one that has it. */
export function publishFile(partial: string, path: string): void {
  renameSync(partial, path);
  syncPath(dirname(path));
}

/**
 * Writes a file through `write`, readable by its owner only. If that throws, nothing is left.
 * @param ending of the file until it is complete @returns what `write` returns
 */
export function writeDurably<T>(
  path: string,
  write: (append: (bytes: Uint8Array) => void, partial: string) => T,
  ending = PARTIAL,
): T {
  const partial = path + ending;
  const descriptor = openSync(partial, "w", 0o600);
  let result: T;
  try {
    result = write((bytes) => appendAll(descriptor, bytes), partial);
    fsyncSync(descriptor);
  } catch (error) {
    rmSync(partial, { force: true });
    throw error;
  } finally {
    closeSync(descriptor);
  }
  publishFile(partial, path);
  return result;
}

function appendAll(descriptor: number, bytes: Uint8Array): void {
  for (let at = 0; at < bytes.length; ) at += writeSync(descriptor, bytes, at);
}
