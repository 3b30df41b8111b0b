/** Migrates exchange.db's schema. */
import type Database from "better-sqlite3";
import { MIGRATIONS } from "./schema.ts";
import { indexedWords } from "./search-words.ts";

/** The database is of a newer version of this program. */
export class NewerSchema extends Error {}

/** Runs the missing migrations, each in its own transaction. @throws NewerSchema */
export function migrate(db: Database.Database): void {
  const version = Number(db.pragma("user_version", { simple: true }));
  if (version > MIGRATIONS.length) {
    throw new NewerSchema(
      `the database has schema ${version}, this program knows schema ${MIGRATIONS.length}: run a newer one`,
    );
  }
  const words = (...texts: (string | null)[]): string => indexedWords(...texts);
  db.function("search_words", { varargs: true, deterministic: true }, words as (...values: unknown[]) => string);
  // A migration may sort more rows than memory holds.
  db.pragma("temp_store = FILE");
  for (const [i, migration] of MIGRATIONS.slice(version).entries()) {
    db.transaction(() => {
      db.exec(migration);
      db.pragma(`user_version = ${version + i + 1}`);
    }).immediate();
  }
  db.pragma("temp_store = MEMORY");
}
