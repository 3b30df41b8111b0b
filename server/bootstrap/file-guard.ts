/**
 * Detects that an open file is no longer the one under its name: someone moved, deleted or replaced it, and everything
 * written to it is lost with the process. Reads no contents.
 */
import { type Stats, statSync } from "node:fs";
import { stat } from "node:fs/promises";

const identityOf = ({ dev, ino }: Stats): string => `${dev}/${ino}`;

export class FileGuard {
  private readonly identities: ReadonlyMap<string, string>;

  /** @param paths of open files */
  constructor(paths: readonly string[]) {
    this.identities = new Map(paths.map((path) => [path, identityOf(statSync(path))]));
  }

  /** The first path that names another file or none; null where all are in place. */
  async changed(): Promise<string | null> {
    for (const [path, identity] of this.identities) {
      try {
        if (identityOf(await stat(path)) !== identity) return path;
      } catch (error) {
        // Any other error (too many open files, a slow network) says nothing about the file.
        if ((error as NodeJS.ErrnoException).code === "ENOENT") return path;
      }
    }
    return null;
  }
}
