/**
 * Rows of Idempotency-Keys: each enters in the transaction of the effect that it stands for, so that no crash leaves one
 * without the other. Owned by the journal. Which request may act, and what a repeat is answered, is the gateway's business
 * (server/http/idempotency.ts).
 */
import type Database from "better-sqlite3";
import { IDEMPOTENCY_KEY_MS, MAX_KEYS_PRUNED } from "../limits.ts";

/** A request with an Idempotency-Key whose effect is on its way. */
export interface KeptRequest {
  readonly userId: number;
  readonly key: string;
  /** What was asked for: method, path and body. Another request with the key says something else. */
  readonly request: string;
  /** ms since the epoch. */
  readonly at: number;
  /**
   * The reference of the command whose event is the effect (a split, a merge); null where the writes that come with it
   * are, and the first of them makes its subject.
   */
  readonly reference: number | null;
}

export class IdempotencyKeys {
  private readonly insert: Database.Statement;
  private readonly prune: Database.Statement;
  /** Commands on their way, by their reference. */
  private readonly awaited = new Map<number, KeptRequest>();

  constructor(db: Database.Database) {
    // Replaces a row that is too old to count.
    this.insert = db.prepare(
      "INSERT OR REPLACE INTO idempotency_keys (user_id, key, request, subject, fee, created_at) VALUES (?, ?, ?, ?, ?, ?)",
    );
    this.prune = db.prepare(
      `DELETE FROM idempotency_keys WHERE (user_id, key) IN
         (SELECT user_id, key FROM idempotency_keys WHERE created_at <= ? ORDER BY created_at LIMIT ${MAX_KEYS_PRUNED})`,
    );
  }

  /** The command's event will come: no earlier than this, because the gateway posts it before the command. */
  await(request: KeptRequest): void {
    this.awaited.set(request.reference!, request);
  }

  /** A command's event is here. @param subject the entry that it made @param fee micro-USDC that it cost */
  arrived(reference: number, subject: number, fee: number): void {
    const request = this.awaited.get(reference);
    if (request === undefined) return;
    this.awaited.delete(reference);
    this.keep(request, subject, fee);
  }

  /** Inside the effect's transaction. Takes some old rows away, more than it adds. @param subject what the request made */
  keep({ userId, key, request, at }: KeptRequest, subject: number, fee: number): void {
    this.prune.run(at - IDEMPOTENCY_KEY_MS);
    this.insert.run(userId, key, request, subject, fee, at);
  }
}
