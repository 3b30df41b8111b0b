/**
 * Loads at startup what the gateway needs to assign row ids: the last id of each table, the ids of deleted accounts, and
 * the hashes of revoked tokens that no sweep has deleted yet. Never writes.
 */
import type Database from "better-sqlite3";

/** The tables whose rows get their ids from the gateway, but for users, whose ids are used again. */
const COUNTED_TABLES = [
  ...(["events", "markets", "personal_access_tokens", "sessions", "email_tokens", "identity_applications"] as const),
  ...(["oauth_clients", "oauth_grants", "social_identities", "withdrawals", "approvals"] as const),
  ...(["second_factors", "recovery_codes"] as const),
] as const;
export type CountedTable = (typeof COUNTED_TABLES)[number];

export interface LastIds {
  readonly rows: ReadonlyMap<CountedTable, number>;
  /** The largest id that any account ever had. */
  readonly user: number;
  /** The ids of deleted accounts, which new ones may get. */
  readonly freeUsers: readonly number[];
  /** By hash: tokens that are revoked and still have a row. */
  readonly revokedTokens: ReadonlyMap<string, number>;
}

export function loadLastIds(db: Database.Database): LastIds {
  const last = (table: string): number => Number(db.prepare(`SELECT coalesce(max(id), 0) FROM ${table}`).pluck().get());
  const revoked = db.prepare("SELECT token_hash, id FROM personal_access_tokens WHERE revoked_at IS NOT NULL").raw();
  return {
    rows: new Map(COUNTED_TABLES.map((table) => [table, last(table)])),
    user: Math.max(last("users"), last("free_user_ids")),
    freeUsers: db.prepare("SELECT id FROM free_user_ids").pluck().all() as number[],
    revokedTokens: new Map(revoked.all() as [string, number][]),
  };
}
