/** Says what a path is before anything opens it: opening a pipe would wait for ever. */
import { accessSync, constants, lstatSync, type Stats, statSync } from "node:fs";

/** Why the path isn't a readable file, in words that follow its name; null if it is one, or if nothing is there. */
export function whyNoFile(path: string): string | null {
  return whyNot(path, "file", (stats) => stats.isFile());
}

/** The same for a folder. */
export function whyNoFolder(path: string): string | null {
  return whyNot(path, "folder", (stats) => stats.isDirectory());
}

function whyNot(path: string, wanted: string, is: (stats: Stats) => boolean): string | null {
  try {
    if (lstatSync(path, { throwIfNoEntry: false }) === undefined) return null;
    const stats = statSync(path, { throwIfNoEntry: false });
    if (stats === undefined) return "is a link to nothing";
    if (!is(stats)) return `is a ${kindOf(stats)}, not a ${wanted}`;
    accessSync(path, constants.R_OK);
    return null;
  } catch (error) {
    return `can't be read (${(error as NodeJS.ErrnoException).code})`;
  }
}

function kindOf(stats: Stats): string {
  if (stats.isFile()) return "file";
  if (stats.isDirectory()) return "folder";
  if (stats.isFIFO()) return "pipe";
  return stats.isSocket() ? "socket" : "device";
}
