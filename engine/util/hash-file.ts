/** The SHA-256 of a file, read in slices. */
import { createHash, type Hash } from "node:crypto";
import { closeSync, openSync, readSync } from "node:fs";

const SLICE_BYTES = 2 ** 20;

/** Returns the SHA-256 of the file's first bytes, to be digested or continued. @param bytes how many: all where it has fewer */
export function hashFile(path: string, bytes = Number.POSITIVE_INFINITY): Hash {
  const hash = createHash("sha256");
  const slice = Buffer.allocUnsafe(SLICE_BYTES);
  const file = openSync(path, "r");
  try {
    for (let at = 0; at < bytes; ) {
      const read = readSync(file, slice, 0, Math.min(slice.length, bytes - at), at);
      if (read === 0) break;
      hash.update(slice.subarray(0, read));
      at += read;
    }
  } finally {
    closeSync(file);
  }
  return hash;
}
