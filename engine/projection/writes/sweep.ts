/** Deletes obsolete rows of accounts in small slices. */
import type Database from "better-sqlite3";
import { MAX_SWEPT_ROWS } from "../../limits.ts";
import type { WriteOf, WriteResult } from "./account-write.ts";

/**
 * Returns a function that deletes some obsolete rows of each kind, referring rows first. The result's id is the number
 * of deleted rows. The newest row of each table stays, so that SQLite doesn't assign its id again.
 */
export function prepareSweep(db: Database.Database): (write: WriteOf<"sweep">) => WriteResult {
  const rows = (table: string, obsolete: string, order = "ORDER BY id"): string =>
    `DELETE FROM ${table} WHERE id IN (SELECT id FROM ${table} t WHERE ${obsolete}
       AND id < (SELECT max(id) FROM ${table}) ${order} LIMIT ${MAX_SWEPT_ROWS})`;
  // An index on a time returns rows in its own order: sorting them by id would read all of them.
  const AS_FOUND = "";
  const noSession = "NOT EXISTS (SELECT 1 FROM sessions WHERE grant_id = t.id)";
  const noGrant = "NOT EXISTS (SELECT 1 FROM oauth_grants WHERE client_id = t.id)";
  const statements = [
    rows("sessions", "ended_at < @endedBefore", AS_FOUND),
    rows("sessions", "ended_at IS NULL AND expires_at < @endedBefore", AS_FOUND),
    rows("email_tokens", "used_at IS NOT NULL"),
    rows("email_tokens", "used_at IS NULL AND expires_at < @at", AS_FOUND),
    rows("personal_access_tokens", "revoked_at IS NOT NULL"),
    rows("oauth_grants", `revoked_at IS NOT NULL AND ${noSession}`),
    rows("oauth_clients", `deleted_at IS NOT NULL AND ${noGrant}`),
  ].map((sql) => db.prepare(sql));
  return ({ endedBefore, at }) => {
    let count = 0;
    for (const statement of statements) count += statement.run({ endedBefore, at }).changes;
    return { id: count, created: count > 0 };
  };
}
