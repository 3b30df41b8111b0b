/** Variables that name a file. */
import { readFileSync } from "node:fs";
import { resolve } from "node:path";
import { ConfigError } from "../errors.ts";

/** The absolute path of a file that can be read; null where the variable isn't set. @throws ConfigError naming the variable */
export function readFileName(name: string, value: string | undefined): string | null {
  if (value === undefined) return null;
  try {
    readFileSync(value);
  } catch (error) {
    throw new ConfigError(`${name}: cannot read "${value}" (${(error as NodeJS.ErrnoException).code})`);
  }
  return resolve(value);
}

/** The text of a file that a person wrote; null where it isn't UTF-8. @throws Error where it can't be read */
export function readUtf8(path: string): string | null {
  const bytes = readFileSync(path);
  try {
    return new TextDecoder("utf-8", { fatal: true }).decode(bytes);
  } catch {
    return null;
  }
}
