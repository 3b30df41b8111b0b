/** Deletes obsolete rows of accounts in small slices. Which rows are obsolete is written here once, for readers too. */
import type Database from "better-sqlite3";
import { MAX_SWEPT_ROWS } from "../../limits.ts";
import type { WriteOf } from "../../log/writes.ts";

const NO_SESSION = "NOT EXISTS (SELECT 1 FROM sessions WHERE grant_id = t.id)";
const NO_GRANT = "NOT EXISTS (SELECT 1 FROM oauth_grants WHERE client_id = t.id)";
const BY_ID = "ORDER BY id";
/** An index on a time returns rows in its own order: sorting them by id would read all of them. */
const AS_FOUND = "";

/** The obsolete rows of each table `t`, and the order in which they go. Referring rows come first. */
const OBSOLETE = [
  ["sessions", "ended_at < @endedBefore", AS_FOUND],
  ["sessions", "ended_at IS NULL AND expires_at < @endedBefore", AS_FOUND],
  ["email_tokens", "used_at IS NOT NULL", BY_ID],
  ["email_tokens", "used_at IS NULL AND expires_at < @at", AS_FOUND],
  ["personal_access_tokens", "revoked_at IS NOT NULL", BY_ID],
  ["oauth_grants", `revoked_at IS NOT NULL AND ${NO_SESSION}`, BY_ID],
  ["oauth_clients", `deleted_at IS NOT NULL AND ${NO_GRANT}`, BY_ID],
] as const;

/** The newest row of each table stays, so that its id isn't assigned again after a start. */
const rowsOf = (table: string, obsolete: string): string =>
  `SELECT id FROM ${table} t WHERE ${obsolete} AND id < (SELECT max(id) FROM ${table})`;

/** When rows become obsolete, ms: sessions that ended before `endedBefore`, links that expired before `at`. */
export interface SweepTimes {
  readonly endedBefore: number;
  readonly at: number;
}

/** Returns a function that deletes some obsolete rows of each kind. */
export function prepareSweep(db: Database.Database): (write: WriteOf<"sweep">) => void {
  const statements = OBSOLETE.map(([table, obsolete, order]) =>
    db.prepare(`DELETE FROM ${table} WHERE id IN (${rowsOf(table, obsolete)} ${order} LIMIT ${MAX_SWEPT_ROWS})`),
  );
  return ({ endedBefore, at }) => {
    for (const statement of statements) statement.run({ endedBefore, at });
  };
}

/** Returns a function that tells whether a sweep would delete rows. */
export function prepareObsoleteRows(db: Database.Database): (times: SweepTimes) => boolean {
  const exists = OBSOLETE.map(([table, obsolete]) => `EXISTS (${rowsOf(table, obsolete)})`);
  const find = db.prepare(`SELECT ${exists.join(" OR ")}`).pluck();
  return ({ endedBefore, at }) => find.get({ endedBefore, at }) === 1;
}
