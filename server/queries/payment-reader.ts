/**
 * Reads deposits, withdrawals and settlements by themselves, of one user or of all. To be called in a read transaction.
 */
import type Database from "better-sqlite3";
import type { WithdrawalRow } from "../../engine/projection/load/wallet.ts";
import { buildPage, type HistoryPage, type OwnPageOptions, type PageOptions } from "../http/paging.ts";

export interface DepositsOptions extends PageOptions {
  /** Null for all users and the house. */
  userId: number | null;
}

export interface WithdrawalsOptions extends DepositsOptions {
  status?: string | undefined;
}

export interface SettlementsOptions extends OwnPageOptions {
  marketId?: number | undefined;
}

/** One entry of money that reached a user or the house, or left the house. */
export interface Payment {
  id: number;
  userId: number;
  /** micro-USDC, negative where it left the house. */
  amount: number;
  reference: string;
  createdAt: number;
}

/** A withdrawal of any status. */
export interface Withdrawal extends WithdrawalRow {
  status: string;
  reference: string | null;
  note: string | null;
  decidedAt: number | null;
}

export interface PaymentReader {
  deposits(options: DepositsOptions): HistoryPage<Payment>;
  /** For each reference, the deposit or payment of the house that has it. */
  payments(options: { references: readonly string[] }): (Payment | null)[];
  withdrawals(options: WithdrawalsOptions): HistoryPage<Withdrawal>;
  withdrawal(options: { id: number }): Withdrawal | null;
  /** True if a withdrawal was paid with this reference. */
  isWithdrawalReference(options: { reference: string }): boolean;
  settlements(options: SettlementsOptions): HistoryPage;
}

const PAYMENT_COLUMNS = "id, user_id AS userId, amount, reference, created_at AS createdAt";
const WITHDRAWAL_COLUMNS = `id, user_id AS userId, amount, address, status, reference, note, created_at AS createdAt,
  decided_at AS decidedAt`;

/** @param rows one more than the page has, where there is one */
function byId<T extends { id: number }>(rows: readonly unknown[], limit: number): HistoryPage<T> {
  return buildPage(
    rows as readonly T[],
    limit,
    (row) => row,
    ({ id }) => id,
  );
}

/** Types of entries that have an index of their own, rare_entries. */
const RARE_TYPES: readonly string[] = ["deposit", "withdrawal", "settlement"];
/** The condition of that index. */
export const RARE_ENTRIES = `type IN (${RARE_TYPES.map((type) => `'${type}'`).join(", ")})`;
export const hasRareType = (type: string): boolean => RARE_TYPES.includes(type);

export function preparePayments(db: Database.Database): PaymentReader {
  return { ...prepareDeposits(db), ...prepareWithdrawals(db), settlements: prepareSettlements(db) };
}

function prepareDeposits(db: Database.Database): Pick<PaymentReader, "deposits" | "payments"> {
  const ofUser = db.prepare(
    `SELECT ${PAYMENT_COLUMNS} FROM entries INDEXED BY rare_entries
     WHERE ${RARE_ENTRIES} AND user_id = @userId AND type = 'deposit' AND id < @before ORDER BY id DESC LIMIT @limit`,
  );
  const all = db.prepare(
    `SELECT ${PAYMENT_COLUMNS} FROM entries INDEXED BY deposits
     WHERE type = 'deposit' AND id < @before ORDER BY id DESC LIMIT @limit`,
  );
  const byReference = db.prepare(`SELECT ${PAYMENT_COLUMNS} FROM entries WHERE reference = ?`);
  return {
    deposits({ userId, before, limit }) {
      const read = userId === null ? all : ofUser;
      return byId(read.all({ ...(userId !== null && { userId }), before, limit: limit + 1 }), limit);
    },
    payments({ references }) {
      return references.map((reference) => (byReference.get(reference) as Payment | undefined) ?? null);
    },
  };
}

function prepareWithdrawals(
  db: Database.Database,
): Pick<PaymentReader, "withdrawals" | "withdrawal" | "isWithdrawalReference"> {
  const withdrawals = (from: string): Database.Statement =>
    db.prepare(
      `SELECT ${WITHDRAWAL_COLUMNS} FROM withdrawals ${from} AND id < @before
         AND (@status IS NULL OR status = @status) ORDER BY id DESC LIMIT @limit`,
    );
  const ofUser = withdrawals("INDEXED BY withdrawals_by_user WHERE user_id = @userId");
  const pending = withdrawals("INDEXED BY pending_withdrawals WHERE status = 'pending'");
  const all = withdrawals("WHERE TRUE");
  const hasReference = db.prepare("SELECT EXISTS (SELECT 1 FROM withdrawals WHERE reference = ?)").pluck();
  const withId = db.prepare(`SELECT ${WITHDRAWAL_COLUMNS} FROM withdrawals WHERE id = ?`);
  return {
    withdrawals({ userId, status = null, before, limit }) {
      const read = userId !== null ? ofUser : status === "pending" ? pending : all;
      return byId(read.all({ ...(userId !== null && { userId }), status, before, limit: limit + 1 }), limit);
    },
    isWithdrawalReference: ({ reference }) => hasReference.get(reference) === 1,
    withdrawal({ id }) {
      return (withId.get(id) as Withdrawal | undefined) ?? null;
    },
  };
}

function prepareSettlements(db: Database.Database): PaymentReader["settlements"] {
  const ofUser = db.prepare(
    `SELECT e.id, e.market_id, e.outcome_id, quantity, payout, amount, cost, amount - cost AS realized_pnl, created_at
     FROM entries e INDEXED BY rare_entries CROSS JOIN outcomes ON outcomes.id = e.outcome_id
     WHERE ${RARE_ENTRIES} AND user_id = @userId AND type = 'settlement' AND e.id < @before
       AND (@marketId IS NULL OR e.market_id = @marketId) ORDER BY e.id DESC LIMIT @limit`,
  );
  return ({ userId, marketId = null, before, limit }) =>
    byId(ofUser.all({ userId, marketId, before, limit: limit + 1 }), limit);
}
