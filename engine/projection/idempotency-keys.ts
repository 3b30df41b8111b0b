/**
 * Rows of Idempotency-Keys. Each is inserted in the transaction of its effect, so that no crash leaves one without the
 * other. Owned by the projector. The gateway decides which request may act and how it responds to a repeat
 * (server/http/idempotency.ts).
 */
import type Database from "better-sqlite3";
import { IDEMPOTENCY_KEY_MS, MAX_KEYS_PRUNED } from "../limits.ts";
import type { KeptRequest } from "../log/request.ts";

export class IdempotencyKeys {
  private readonly insert: Database.Statement;
  private readonly prune: Database.Statement;
  private readonly insertAwaited: Database.Statement;
  private readonly deleteAwaited: Database.Statement;
  private readonly deleteAllAwaited: Database.Statement;
  /** Requests whose command's event hasn't arrived, by its correlation id; the table awaited_keys has the same. */
  private readonly awaited = new Map<number, KeptRequest>();

  constructor(db: Database.Database) {
    // Replaces an expired row.
    this.insert = db.prepare(
      "INSERT OR REPLACE INTO idempotency_keys (user_id, key, request, subject, fee, created_at) VALUES (?, ?, ?, ?, ?, ?)",
    );
    this.prune = db.prepare(
      `DELETE FROM idempotency_keys WHERE (user_id, key) IN
         (SELECT user_id, key FROM idempotency_keys WHERE created_at <= ? ORDER BY created_at LIMIT ${MAX_KEYS_PRUNED})`,
    );
    this.insertAwaited = db.prepare(
      "INSERT OR REPLACE INTO awaited_keys (reference, user_id, key, request, created_at) VALUES (?, ?, ?, ?, ?)",
    );
    this.deleteAwaited = db.prepare("DELETE FROM awaited_keys WHERE reference = ?");
    this.deleteAllAwaited = db.prepare("DELETE FROM awaited_keys");
    const rows = db
      .prepare("SELECT reference, user_id AS userId, key, request, created_at AS at FROM awaited_keys")
      .all();
    for (const row of rows as (KeptRequest & { reference: number })[]) this.awaited.set(row.reference, row);
  }

  /** A start of the exchange: correlation ids begin again, and commands without an event were never executed. */
  start(): void {
    this.awaited.clear();
    this.deleteAllAwaited.run();
  }

  /** Expects the event of the command. The gateway posts the request before the command, so the event can't be first. */
  await(correlationId: number, request: KeptRequest): void {
    this.awaited.set(correlationId, request);
    this.insertAwaited.run(correlationId, request.userId, request.key, request.request, request.at);
  }

  /** A command's event has arrived. @param subject the resulting entry @param fee micro-USDC charged */
  arrived(correlationId: number, subject: number, fee: number): void {
    const request = this.awaited.get(correlationId);
    if (request === undefined) return;
    this.awaited.delete(correlationId);
    this.deleteAwaited.run(correlationId);
    this.keep(request, subject, fee);
  }

  /** Inserts a row inside the effect's transaction, and prunes more old rows than it adds. @param subject the created row */
  keep({ userId, key, request, at }: KeptRequest, subject: number, fee: number): void {
    this.prune.run(at - IDEMPOTENCY_KEY_MS);
    this.insert.run(userId, key, request, subject, fee, at);
  }
}
