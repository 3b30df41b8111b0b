/**
 * Notices that a file which is held open is no longer the one under its name: somebody moved, deleted or replaced it, and
 * all that is written to it is lost with the process. Reads no contents.
 */
import { type Stats, statSync } from "node:fs";
import { stat } from "node:fs/promises";

const identityOf = ({ dev, ino }: Stats): string => `${dev}/${ino}`;

export class FileGuard {
  private readonly identities: ReadonlyMap<string, string>;

  /** @param paths files that exist, and are open */
  constructor(paths: readonly string[]) {
    this.identities = new Map(paths.map((path) => [path, identityOf(statSync(path))]));
  }

  /** The path under which another file lies, or none; null where all are in their places. */
  async changed(): Promise<string | null> {
    for (const [path, identity] of this.identities) {
      try {
        if (identityOf(await stat(path)) !== identity) return path;
      } catch (error) {
        // Anything else (too many open files, a slow network) says nothing about the file.
        if ((error as NodeJS.ErrnoException).code === "ENOENT") return path;
      }
    }
    return null;
  }
}
