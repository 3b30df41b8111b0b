/**
 * Withdrawals: a user requests one, the amount is held at once, an operator pays or refuses it. Owns the pending ones. One
 * request at a time decides a withdrawal, so that exactly one of a cancel and a payment wins. Owned by the gateway thread.
 */

import type { KeptRequest } from "../../engine/log/request.ts";
import type { ApprovalRow, WithdrawalRow } from "../../engine/log/rows.ts";
import type { Accounts } from "../accounts/accounts.ts";
import { type Approvals, withFirstApproval } from "../accounts/approvals.ts";
import { actorOf, audit, type RequestContext } from "../accounts/audit.ts";
import { checkNotOwn, type Operator } from "../accounts/operator.ts";
import type { Principal } from "../accounts/types.ts";
import { ApiError, ErrorKind, notFound } from "../errors.ts";
import { withdrawalPaidMail, withdrawalRefusedMail, withdrawalRequestedMail } from "../messages/mail-templates.ts";
import type { Notifier } from "../messages/notifier.ts";
import type { History } from "../queries/history.ts";
import type { Withdrawal } from "../queries/payment-reader.ts";
import type { Exchange } from "../trading/exchange.ts";
import { checkBalance } from "../trading/order-checks.ts";
import { HourlyLimit } from "../util/hourly-limit.ts";
import { KeyedMutex } from "../util/keyed-mutex.ts";
import type { LogWriter } from "../writes/log-writer.ts";
import type { RequestedWrite } from "../writes/types.ts";
import { MAX_PENDING_WITHDRAWALS, MAX_WITHDRAWAL_MAILS_PER_HOUR } from "./limits.ts";

const PAY = "withdrawal.pay";
const BEING_DECIDED = "the withdrawal is being decided: try again";
/** Operators decide by hand, so there is no exact time. */
const RETRY_AFTER_S = 60;
const UNDECIDED = { status: "pending", reference: null, note: null, decidedAt: null } as const;

/** How an operator paid a withdrawal. */
export interface PaymentRecord {
  /** The payment's id in the external system. */
  readonly reference: string | null;
  readonly note: string | null;
}

/** What a user requests. */
export interface WithdrawalRequest {
  /** micro-USDC */
  readonly amount: number;
  readonly address: string;
}

/** A withdrawal as the response to its request shows it, whatever happened to it since. */
export function pendingWithdrawal(
  userId: number,
  id: number,
  request: WithdrawalRequest,
  createdAt: number,
): Withdrawal {
  return { id, userId, ...request, createdAt, ...UNDECIDED };
}

export interface WithdrawalsOptions {
  readonly exchange: Exchange;
  readonly accounts: Accounts;
  readonly history: History;
  readonly writer: LogWriter;
  readonly approvals: Approvals;
  readonly notifier: Notifier;
}

export class Withdrawals {
  private readonly options: WithdrawalsOptions;
  private readonly pending = new Map<number, WithdrawalRow>();
  private readonly deciding = new KeyedMutex<WithdrawalRow>(BEING_DECIDED);
  private readonly mails = new HourlyLimit(MAX_WITHDRAWAL_MAILS_PER_HOUR);
  /** Pending withdrawals by user, including those that are not durable yet. */
  private readonly counts = new Map<number, number>();

  /** @param rows withdrawals pending at the last commit, whose amounts are held from now on */
  constructor(options: WithdrawalsOptions, rows: readonly WithdrawalRow[]) {
    this.options = options;
    for (const row of rows) {
      options.exchange.cash.hold(row.userId, row.amount);
      this.count(row.userId, 1);
      this.pending.set(row.id, row);
    }
  }

  /**
   * @param kept the record of a request with an Idempotency-Key
   * @throws ApiError 42201; 42900 when the user has too many pending withdrawals
   */
  async request(
    principal: Principal,
    { amount, address }: WithdrawalRequest,
    context: RequestContext,
    kept: KeptRequest | null,
  ): Promise<Withdrawal> {
    const { exchange, writer, notifier } = this.options;
    const { userId } = principal;
    if ((this.counts.get(userId) ?? 0) >= MAX_PENDING_WITHDRAWALS) {
      const text = `at most ${MAX_PENDING_WITHDRAWALS} withdrawals may be pending`;
      throw new ApiError(ErrorKind.limitExceeded, text, RETRY_AFTER_S);
    }
    checkBalance(exchange.ledger, userId, amount);
    exchange.cash.hold(userId, amount);
    this.count(userId, 1);
    const made = { userId, amount, address, status: "pending", createdAt: context.now };
    const write: RequestedWrite = { kind: "insert", table: "withdrawals", row: made };
    const change = { action: "withdrawal.request", userId, details: { amount, address } };
    const line = audit(context, actorOf(principal), change);
    const id = await writer.insert(write, [line], kept).catch((error) => {
      this.count(userId, -1);
      exchange.cash.release(userId, amount);
      throw error;
    });
    const row: WithdrawalRow = { id, userId, amount, address, createdAt: made.createdAt };
    this.pending.set(id, row);
    // Requesting and canceling in a loop must not fill a mailbox, or the mail queue of everybody.
    if (this.mails.consume(String(userId), context.now)) {
      notifier.sendMail(withdrawalRequestedMail(principal.credential.user.email, amount, address));
    }
    return pendingWithdrawal(userId, id, { amount, address }, made.createdAt);
  }

  /** By its owner. @throws ApiError 4040, 40900 unless it is pending */
  async cancel(principal: Principal, id: number, context: RequestContext): Promise<Withdrawal> {
    const found = this.pending.get(id);
    if (found === undefined || found.userId !== principal.userId) throw await this.whyNot(id, principal.userId);
    return this.deciding.run(found, () => this.end(found, "canceled", null, actorOf(principal), context));
  }

  /** By an operator. @throws ApiError 4040, 40300 for the operator's own, 40900 unless it is pending */
  async refuse(id: number, note: string | null, operator: Operator, context: RequestContext): Promise<Withdrawal> {
    const found = this.pending.get(id);
    if (found === undefined) throw await this.whyNot(id, null);
    checkNotOwn(operator, found.userId);
    return this.deciding.run(found, async () => {
      const refused = await this.end(found, "refused", note, operator.actor, context);
      this.options.notifier.sendMail(withdrawalRefusedMail(this.emailOf(found), found.amount));
      return refused;
    });
  }

  /**
   * By an operator, or the second of two. A repeat with the same reference, in any case, returns the payment again.
   * @throws ApiError 4040, 40900 unless it is pending, and for a suspended user; as `Approvals.request`
   */
  async pay(
    id: number,
    payout: PaymentRecord,
    operator: Operator,
    context: RequestContext,
  ): Promise<{ withdrawal: Withdrawal; approval: ApprovalRow | null }> {
    const found = this.pending.get(id);
    if (found !== undefined) return this.deciding.run(found, () => this.payOut(found, payout, operator, context));
    const withdrawal = await this.options.history.withdrawal(id);
    const reference = payout.reference?.toLowerCase();
    const isSame = reference !== undefined && withdrawal?.reference?.toLowerCase() === reference;
    if (withdrawal === null || !isSame) throw rejectionOf(withdrawal);
    return { withdrawal, approval: null };
  }

  private async payOut(
    found: WithdrawalRow,
    typed: PaymentRecord,
    operator: Operator,
    context: RequestContext,
  ): Promise<{ withdrawal: Withdrawal; approval: ApprovalRow | null }> {
    const { accounts, approvals, writer, notifier } = this.options;
    const { id, userId, amount, address } = found;
    const reference = typed.reference && approvals.spelled(PAY, id, typed.reference);
    const payout = { reference, note: typed.note };
    checkNotOwn(operator, userId);
    if (accounts.existingUser(userId).suspendedAt !== null) throw conflict("the user is suspended");
    const details = { user_id: userId, amount, address, ...payout };
    const request = { rule: "withdrawals", action: PAY, subject: id, details, userId } as const;
    let decidedAt = context.now;
    const { approval } = await approvals.request(request, operator, context, async (ending, first) => {
      const write: RequestedWrite = { kind: "payWithdrawal", id, userId, amount, ...payout, at: decidedAt };
      const change = { action: PAY, userId, subject: id, details: withFirstApproval(details, first) };
      await writer.write([write, ...ending], [audit(context, operator.actor, change)]);
      decidedAt = write.at;
    });
    if (approval !== null) return { withdrawal: { ...found, ...UNDECIDED }, approval };
    this.forget(found);
    notifier.sendMail(withdrawalPaidMail(this.emailOf(found), amount, address));
    return { withdrawal: { ...found, status: "paid", ...payout, decidedAt }, approval: null };
  }

  /** Ends a withdrawal without payment, and with it a first approval. */
  private async end(
    found: WithdrawalRow,
    status: "canceled" | "refused",
    note: string | null,
    actor: string,
    context: RequestContext,
  ): Promise<Withdrawal> {
    const { exchange, approvals, writer } = this.options;
    const { id, userId, amount } = found;
    const decidedAt = context.now;
    const write: RequestedWrite = { kind: "update", table: "withdrawals", id, set: { status, note, decidedAt } };
    const action = `withdrawal.${status === "canceled" ? "cancel" : "refuse"}`;
    const line = audit(context, actor, { action, userId, subject: id, details: { amount, note } });
    await writer.write([write, ...approvals.endingWrites(PAY, id, decidedAt)], [line]);
    approvals.forget({ action: PAY, subject: id });
    this.forget(found);
    exchange.cash.release(userId, amount);
    return { ...found, ...UNDECIDED, status, note, decidedAt };
  }

  /** Drops expired mail counts. */
  forgetExpired(now: number): void {
    this.mails.forgetExpired(now);
  }

  /** Why a withdrawal cannot be decided. @param userId its owner if it must be the caller's; null: anybody's */
  private async whyNot(id: number, userId: number | null): Promise<ApiError> {
    const found = await this.options.history.withdrawal(id);
    return rejectionOf(found === null || (userId !== null && found.userId !== userId) ? null : found);
  }

  private emailOf({ userId }: WithdrawalRow): string {
    return this.options.accounts.existingUser(userId).email;
  }

  private forget({ id, userId }: WithdrawalRow): void {
    this.pending.delete(id);
    this.count(userId, -1);
  }

  private count(userId: number, change: number): void {
    const count = (this.counts.get(userId) ?? 0) + change;
    if (count === 0) this.counts.delete(userId);
    else this.counts.set(userId, count);
  }
}

/** The error for a withdrawal that is not pending in memory. */
function rejectionOf(found: Withdrawal | null): ApiError {
  if (found === null) return notFound("withdrawal");
  // Its request or its end is durable, but the gateway has not received the reply yet.
  return conflict(found.status === "pending" ? BEING_DECIDED : `the withdrawal is ${found.status}`);
}

function conflict(message: string): ApiError {
  return new ApiError(ErrorKind.conflict, message);
}
