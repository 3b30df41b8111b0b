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
