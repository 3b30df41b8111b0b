/**
 * The only import of better-sqlite3; opens every database. Version 13 comes with its binaries, but needs Node-API 10, which Node 20
 * lacks: there it crashes. Node 20 gets version 12, which in turn aborts on Node 24 since 24.19 (its finalizers run outside
 * an environment: nodejs/node#65446).
 */

import { createRequire } from "node:module";
import type Database from "better-sqlite3";
import { PlatformError, thisPlatform, whyNot } from "./node-support.ts";

export type Sqlite = typeof Database;

/** Version 13 needs it. */
const NODE_API = 10;
/** The one for this Node: the other one may end the process without a message. */
const PACKAGE = Number(process.versions["napi"]) >= NODE_API ? "better-sqlite3" : "better-sqlite3-12";

let loaded: { readonly Sqlite: Sqlite; readonly path: string } | null = null;

function load(): { readonly Sqlite: Sqlite; readonly path: string } {
  const require = createRequire(import.meta.url);
  try {
    const Sqlite = require(PACKAGE) as Sqlite;
    // The first database loads the binary.
    new Sqlite(":memory:").close();
    return { Sqlite, path: require.resolve(PACKAGE) };
  } catch {
    // Not installed, or compiled for another Node.
    throw new PlatformError(whyNot("better-sqlite3", thisPlatform()));
  }
}

/** @throws PlatformError if it cannot be loaded */
export function loadSqlite(): Sqlite {
  return (loaded ??= load()).Sqlite;
}

/** The file from which `loadSqlite` loads it, for a process of another program. @throws PlatformError */
export function sqlitePath(): string {
  return (loaded ??= load()).path;
}

/** @throws PlatformError, SqliteError */
export function openSqlite(path: string, options: Database.Options = {}): Database.Database {
  const Sqlite = loadSqlite();
  return new Sqlite(path, options);
}
