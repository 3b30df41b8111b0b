/** Requests for deposits and withdrawals, and the check that an account's transactions add up. */

import type { Static } from "typebox";
import { expect } from "vitest";
import type { Approval } from "../../server/accounts/schemas.ts";
import type {
  Deposit,
  NewDepositAnswer,
  OwnWithdrawal,
  Withdrawal,
  WithdrawalDecision,
  WithdrawalWithTrail,
} from "../../server/wallet/schemas.ts";

import type { Answer, Client, TransactionJson } from "./client.ts";
import { rowsOf } from "./data-dir.ts";

/** An EVM address with its checksum. */
export const ADDRESS = "0x5aAeb6053F3E94C9b9A09f33669435E7Ef1BeAed";

export type DepositJson = Static<typeof Deposit>;
export type NewDepositJson = Static<typeof NewDepositAnswer>;
export type WithdrawalJson = Static<typeof OwnWithdrawal>;
export type AdminWithdrawalJson = Static<typeof Withdrawal>;
export type WithdrawalWithTrailJson = Static<typeof WithdrawalWithTrail>;
export type DecisionJson = Static<typeof WithdrawalDecision>;
export type ApprovalJson = Static<typeof Approval>;

export const ask = (user: Client, amount: number, address = ADDRESS): Promise<Answer<WithdrawalJson>> =>
  user.request("POST", "/wallet/withdrawals", { body: { amount, address } });

export const withdraw = (user: Client, amount: number, address = ADDRESS): Promise<WithdrawalJson> =>
  user.data("POST", "/wallet/withdrawals", { amount, address });

export const cancel = (user: Client, id: number): Promise<Answer<WithdrawalJson>> =>
  user.request("DELETE", `/wallet/withdrawals/${id}`);

export const pay = (operator: Client, id: number, body: object = {}): Promise<Answer<DecisionJson>> =>
  operator.request("POST", `/admin/withdrawals/${id}/pay`, { body });

export const refuse = (operator: Client, id: number, body: object = {}): Promise<Answer<DecisionJson>> =>
  operator.request("POST", `/admin/withdrawals/${id}/refuse`, { body });

export const deposit = (operator: Client, userId: number, amount: number, reference: string): Promise<DepositJson> =>
  operator.data("POST", "/admin/deposits", { user_id: userId, amount, reference });

/** Each transaction's balance follows from the previous one, up to the user's balance. */
export async function expectAddsUp(user: Client): Promise<void> {
  let sum = 0;
  for (const { id, amount, balance_after } of (await user.all<TransactionJson>("/wallet/transactions")).reverse()) {
    sum += amount;
    expect([id, balance_after]).toEqual([id, sum]);
  }
  expect((await user.balance()).total).toBe(sum);
}

export interface AuditLine {
  readonly action: string;
  readonly actor: string;
  readonly user_id: number | null;
  readonly subject: number | null;
  readonly details: unknown;
}

/** The audit log's lines of a request. */
export function auditOf(dataDir: string, { headers }: Answer): AuditLine[] {
  const sql = "SELECT action, actor, user_id, subject, details FROM audit_log WHERE request_id = ? ORDER BY id";
  return rowsOf<AuditLine>(dataDir, sql, String(headers["x-request-id"])).map((line) => {
    return { ...line, details: JSON.parse(String(line.details)) };
  });
}
