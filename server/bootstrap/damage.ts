/** Turns what a damaged, missing or locked file throws at the start into one line for the operator. */
import { AssertionError } from "node:assert";
import { BrokenLog } from "../../engine/log/broken-log.ts";
import { NewerSchema } from "../../engine/projection/database.ts";
import { DamagedTables } from "../../engine/projection/load/projection.ts";
import { ConfigError } from "../errors.ts";

const BY_ANOTHER =
  "by another program: end its transaction (a shell with BEGIN, VACUUM, a tool that copies databases), see docs/operations.md";

/** What SQLite's codes begin with, and what they mean for a file. */
const SQLITE_CODES: readonly (readonly [prefix: RegExp, means: (file: string, message: string) => string])[] = [
  [/^SQLITE_BUSY/, (file) => `${file} is locked ${BY_ANOTHER}`],
  [/^SQLITE_FULL/, (file) => `the disk of ${file} is full: free space`],
  [/^SQLITE_(READONLY|CANTOPEN|PERM|AUTH)/, (file, message) => `${file} can't be opened for writing (${message})`],
  [/^SQLITE_IOERR/, (file, message) => `the disk of ${file} failed (${message})`],
  [/^SQLITE_/, damaged],
];

/**
 * The ConfigError that explains an error of the files; any other error unchanged.
 * @param file that was being read
 */
export function explainDamage(thrown: unknown, file = "exchange.db or journal.db"): unknown {
  if (!(thrown instanceof Error) || thrown instanceof ConfigError) return thrown;
  if (thrown instanceof BrokenLog || thrown instanceof NewerSchema) return ofFolder(thrown.message);
  if (thrown instanceof DamagedTables) return ofFolder(damaged("exchange.db", thrown.message));
  if (thrown instanceof AssertionError)
    return ofFolder(`an invariant doesn't hold: ${thrown.message}; see docs/operations.md`);
  const { code, syscall, message } = thrown as NodeJS.ErrnoException;
  const explained = SQLITE_CODES.find(([prefix]) => prefix.test(String(code)))?.[1];
  if (explained !== undefined) return ofFolder(explained(file, message));
  return syscall === undefined ? thrown : new ConfigError(message);
}

const ofFolder = (line: string): ConfigError => new ConfigError(`DATA_DIR: ${line.replace(/\s+/g, " ")}`);

/** What is to be done about a file with damaged content. */
export function damaged(file: string, finding: string): string {
  const remedy = file === "exchange.db" ? "rebuild it from the log or restore a back-up" : "restore a back-up";
  return `${file} is damaged (${finding}): ${remedy}, see docs/operations.md`;
}
