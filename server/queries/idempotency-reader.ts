/** Reads Idempotency-Keys that memory may no longer hold. To be called in a read transaction. */
import type Database from "better-sqlite3";
import type { DoneRequest, KeyLookup } from "./types.ts";

/** Looks up a user's key among those since a moment, ms. */
export function prepareKeyLookup(
  db: Database.Database,
): (options: { userId: number; key: string; since: number }) => KeyLookup {
  const keptKey = db.prepare(
    `SELECT request, subject, fee, created_at AS createdAt FROM idempotency_keys
     WHERE user_id = @userId AND key = @key AND created_at > @since`,
  );
  const keptKeys = db.prepare(
    "SELECT count(*) AS count, min(created_at) AS oldest FROM idempotency_keys WHERE user_id = @userId AND created_at > @since",
  );
  return (options) => {
    const { userId, since } = options;
    const found = (keptKey.get(options) as DoneRequest | undefined) ?? null;
    return { found, ...(keptKeys.get({ userId, since }) as { count: number; oldest: number | null }) };
  };
}
