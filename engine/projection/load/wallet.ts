/** Loads pending withdrawals and open approvals at startup. Never writes. */
import type Database from "better-sqlite3";
import type { ApprovalRow, WithdrawalRow } from "../../log/rows.ts";

/** Pending withdrawals, which hold their amounts, oldest first. */
export function loadPendingWithdrawals(db: Database.Database): WithdrawalRow[] {
  return db
    .prepare(
      `SELECT id, user_id AS userId, amount, address, created_at AS createdAt FROM withdrawals
       WHERE status = 'pending' ORDER BY id`,
    )
    .all() as WithdrawalRow[];
}

/** First approvals that wait for a second one. */
export function loadApprovals(db: Database.Database): ApprovalRow[] {
  return db
    .prepare(
      `SELECT id, action, subject, reference, details, actor, created_at AS createdAt FROM approvals
       WHERE ended_at IS NULL ORDER BY id`,
    )
    .all() as ApprovalRow[];
}
