/** Loads pending withdrawals and open approvals at startup. Never writes. */
import type Database from "better-sqlite3";

/** A pending withdrawal. */
export interface WithdrawalRow {
  id: number;
  userId: number;
  amount: number;
  address: string;
  createdAt: number;
}

/** The first of two approvals. */
export interface ApprovalRow {
  id: number;
  action: string;
  subject: number;
  /** Distinguishes several approvals of one subject; "" if there can only be one. */
  reference: string;
  details: string;
  actor: string;
  createdAt: number;
}

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
