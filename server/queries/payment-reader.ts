/**
 * Reads deposits, withdrawals and settlements by themselves, of one user or of all. To be called in a read transaction.
 */
import type Database from "better-sqlite3";
import type { WithdrawalRow } from "../../engine/log/rows.ts";
import { buildPage, type HistoryPage, type OwnPageOptions, type PageOptions } from "../http/paging.ts";
import type { ReversibleDeposit } from "../wallet/types.ts";

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

/** One entry of money that reached a user or the house, was taken back, or left the house. */
export interface Payment {
  id: number;
  userId: number;
  /** micro-USDC, negative where it was taken back or left the house. */
  amount: number;
  reference: string;
  /** The deposit that it takes back, or a part of it; null for others. */
  reverses: number | null;
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
  /** For each reference, the deposit, reversal or payment of the house that has it, in any case. */
  payments(options: { references: readonly string[] }): (Payment | null)[];
  /** The deposit with this id; null if there is none, and for a reversal. */
  reversibleDeposit(options: { id: number }): ReversibleDeposit | null;
  withdrawals(options: WithdrawalsOptions): HistoryPage<Withdrawal>;
  withdrawal(options: { id: number }): Withdrawal | null;
  /** The withdrawal that was paid with this reference, in any case. */
  withdrawalPaidWith(options: { reference: string }): number | null;
  settlements(options: SettlementsOptions): HistoryPage;
}

const PAYMENT_COLUMNS = "id, user_id AS userId, amount, reference, reverses, created_at AS createdAt";
/** The row with a reference in any case: the same spelling first, since older rows may differ in nothing else. */
const WITH_REFERENCE = `WHERE reference = @reference COLLATE NOCASE AND reference IS NOT NULL
  ORDER BY reference = @reference COLLATE BINARY DESC, id LIMIT 1`;
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

function prepareDeposits(db: Database.Database): Pick<PaymentReader, "deposits" | "payments" | "reversibleDeposit"> {
  const ofUser = db.prepare(
    `SELECT ${PAYMENT_COLUMNS} FROM entries INDEXED BY rare_entries
     WHERE ${RARE_ENTRIES} AND user_id = @userId AND type = 'deposit' AND id < @before ORDER BY id DESC LIMIT @limit`,
  );
  const all = db.prepare(
    `SELECT ${PAYMENT_COLUMNS} FROM entries INDEXED BY deposits
     WHERE type = 'deposit' AND id < @before ORDER BY id DESC LIMIT @limit`,
  );
  const byReference = db.prepare(
    `SELECT ${PAYMENT_COLUMNS} FROM entries INDEXED BY entries_by_reference ${WITH_REFERENCE}`,
  );
  const reversible = db.prepare(
    `SELECT user_id AS userId, amount,
       (SELECT coalesce(-sum(amount), 0) FROM entries INDEXED BY reversals WHERE reverses = @id) AS reversed
     FROM entries WHERE id = @id AND type = 'deposit' AND amount > 0`,
  );
  return {
    deposits({ userId, before, limit }) {
      const read = userId === null ? all : ofUser;
      return byId(read.all({ ...(userId !== null && { userId }), before, limit: limit + 1 }), limit);
    },
    payments({ references }) {
      return references.map((reference) => (byReference.get({ reference }) as Payment | undefined) ?? null);
    },
    reversibleDeposit: ({ id }) => (reversible.get({ id }) as ReversibleDeposit | undefined) ?? null,
  };
}

function prepareWithdrawals(
  db: Database.Database,
): Pick<PaymentReader, "withdrawals" | "withdrawal" | "withdrawalPaidWith"> {
  const withdrawals = (from: string): Database.Statement =>
    db.prepare(
      `SELECT ${WITHDRAWAL_COLUMNS} FROM withdrawals ${from} AND id < @before
         AND (@status IS NULL OR status = @status) ORDER BY id DESC LIMIT @limit`,
    );
  const ofUser = withdrawals("INDEXED BY withdrawals_by_user WHERE user_id = @userId");
  const pending = withdrawals("INDEXED BY pending_withdrawals WHERE status = 'pending'");
  const all = withdrawals("WHERE TRUE");
  const paidWith = db
    .prepare(`SELECT id FROM withdrawals INDEXED BY withdrawals_by_reference ${WITH_REFERENCE}`)
    .pluck();
  const withId = db.prepare(`SELECT ${WITHDRAWAL_COLUMNS} FROM withdrawals WHERE id = ?`);
  return {
    withdrawals({ userId, status = null, before, limit }) {
      const read = userId !== null ? ofUser : status === "pending" ? pending : all;
      return byId(read.all({ ...(userId !== null && { userId }), status, before, limit: limit + 1 }), limit);
    },
    withdrawalPaidWith: ({ reference }) => (paidWith.get({ reference }) as number | undefined) ?? null,
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
