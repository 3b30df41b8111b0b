/**
 * The only import of better-sqlite3; opens every database. Version 13 comes with its binaries, but needs Node-API 10, which Node 20
 * lacks: there it crashes. Node 20 gets version 12, which in turn aborts on Node 24 since 24.19 (its finalizers run outside
 * an environment: nodejs/node#65446).
 */

import { createRequire } from "node:module";
import type Database from "better-sqlite3";
import { majorOf, PlatformError, thisPlatform, whyNot } from "./node-support.ts";

export type Sqlite = typeof Database;

/** npm installs those whose `engines` allow this Node. */
const PACKAGES = ["better-sqlite3-12", "better-sqlite3"] as const;
const FIRST_ON_NODE_API = 13;
const NODE_API = 10;
const FIRST_NODE_WITHOUT_12 = 22;

let loaded: { readonly Sqlite: Sqlite; readonly path: string } | null = null;

/** A version that isn't for this Node must not be loaded: it may end the process without a message. */
function runsHere(version: string): boolean {
  if (Number.parseInt(version, 10) >= FIRST_ON_NODE_API) return Number(process.versions["napi"]) >= NODE_API;
  return majorOf(process.versions.node) < FIRST_NODE_WITHOUT_12;
}

function load(): { readonly Sqlite: Sqlite; readonly path: string } {
  const require = createRequire(import.meta.url);
  for (const name of PACKAGES) {
    try {
      const { version } = require(`${name}/package.json`) as { version: string };
      if (!runsHere(version)) continue;
      const Sqlite = require(name) as Sqlite;
      // The first database loads the binary.
      new Sqlite(":memory:").close();
      return { Sqlite, path: require.resolve(name) };
    } catch {
      // Not installed, or compiled for another Node: try the next one.
    }
  }
  throw new PlatformError(whyNot("better-sqlite3", thisPlatform()));
}

/** @throws PlatformError if no version can be loaded */
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
