/**
 * Operators' routes of payments: deposits to users and to the house, their reversals, and withdrawals from the house. Each
 * counts once per reference, in any case. A repeat gets the first reply; one that spells the reference differently is also
 * told which payment it repeats. Under the two-person rule, an operator's first request is an approval.
 */
import { SEED_REFERENCE } from "../../engine/limits.ts";
import type { ApprovalRow } from "../../engine/log/rows.ts";
import { HOUSE } from "../../engine/log/writes.ts";
import { assert } from "../../engine/util/assert.ts";
import type { Accounts } from "../accounts/accounts.ts";
import { type ApprovalOutcome, type Approvals, approvalView, withFirstApproval } from "../accounts/approvals.ts";
import { audit, contextOf } from "../accounts/audit.ts";
import { OPERATOR, operatorOf } from "../accounts/operator.ts";
import { ApiError, badRequest, ErrorKind, notFound } from "../errors.ts";
import { Listing } from "../http/paging.ts";
import { pathId, type Route, type RouteRequest, route } from "../http/route.ts";
import { pageOf } from "../http/schemas.ts";
import { historyPage } from "../queries/history.ts";
import type { Payment } from "../queries/payment-reader.ts";
import type { RequestedWrite } from "../writes/types.ts";
import { checkReversible, checkSamePayment, type PaymentWrite } from "./payment-writes.ts";
import { ownPaymentView, type WalletRouteContext } from "./routes.ts";
import * as S from "./schemas.ts";

const DEPOSIT = "wallet.deposit";
const REVERSE_DEPOSIT = "wallet.reverse_deposit";
const DEPOSIT_TO_HOUSE = "house.deposit";
const REVERSE_DEPOSIT_TO_HOUSE = "house.reverse_deposit";
const WITHDRAW_FROM_HOUSE = "house.withdraw";
/** Payments have a key of their own. */
const REFERENCE_INSTEAD = { instead: "the reference makes a repeat safe" } as const;

export interface MoneyAdminContext extends WalletRouteContext {
  readonly accounts: Accounts;
  readonly approvals: Approvals;
}

/** A payment that an operator requests. */
interface PaymentWish {
  readonly action: string;
  /** As it will be on record. */
  readonly payment: Pick<Payment, "userId" | "amount" | "reference" | "reverses">;
  readonly write: Exclude<PaymentWrite, { kind: "payWithdrawal" }>;
  /** Everything that both operators must agree on. */
  readonly details: object;
  /** Rejects a payment that can't be made, before its first approval. */
  check?(): void;
}

interface BookedPayment {
  readonly payment: Payment;
  /** The reference was on record: this request changed nothing. */
  readonly isRepeat: boolean;
}

export function createPaymentRoutes(context: MoneyAdminContext): Route[] {
  return [...depositRoutes(context), depositsRoute(context), reversalRoute(context), houseWithdrawalRoute(context)];
}

/** Books the payment, or stores the first of two approvals. @throws ApiError 40300, 40900, 42201; what `check` throws */
async function book(
  { history, writer, approvals }: MoneyAdminContext,
  request: RouteRequest,
  { action, payment: wanted, write, details, check }: PaymentWish,
): Promise<ApprovalOutcome<BookedPayment>> {
  const { userId, reference } = wanted;
  const context = contextOf(request);
  const operator = operatorOf(request);
  const owner = userId === HOUSE ? null : userId;
  const act = async (ending: readonly RequestedWrite[], first: ApprovalRow | null): Promise<BookedPayment> => {
    const change = { action, userId: owner, details: withFirstApproval(details, first) };
    const [result] = await writer.write([write, ...ending], [audit(context, operator.actor, change)]);
    assert(result !== undefined, "a write has a result");
    if (result.created) return { payment: { ...wanted, id: result.id, createdAt: write.at }, isRepeat: false };
    const payment = await history.payment(reference);
    assert(payment !== null, "a reference in use has a payment");
    return { payment, isRepeat: true };
  };
  const done = async (): Promise<BookedPayment | null> => {
    const payment = await history.payment(reference);
    if (payment === null) {
      check?.();
      return null;
    }
    checkSamePayment(payment, wanted);
    return { payment, isRepeat: true };
  };
  // Of withdrawals from the house, one waits for its second approval at a time; of deposits and reversals, one a reference.
  const [rule, key] =
    write.kind === "withdrawFromHouse" ? (["withdrawals", ""] as const) : (["deposits", reference] as const);
  const requested = { rule, action, subject: userId, reference: key, details, userId: owner };
  return approvals.request(requested, operator, context, act, done);
}

// ---------------------------------------------------------------- deposits

function depositRoutes(context: MoneyAdminContext): Route[] {
  const { accounts, approvals } = context;
  const deposit = async (request: RouteRequest, userId: number, amount: number, typed: string): Promise<string> => {
    checkReference(typed);
    const action = userId === HOUSE ? DEPOSIT_TO_HOUSE : DEPOSIT;
    const reference = approvals.spelled(action, userId, typed);
    const payment = { userId, amount, reference, reverses: null };
    const write = { kind: "deposit", userId, amount, reference, at: request.now } as const;
    const booking = { action, payment, write, details: { amount, reference } };
    return responseOf(typed, payment, await book(context, request, booking));
  };
  return [
    route({
      ...OPERATOR,
      method: "POST",
      path: "/admin/deposits",
      idempotencyKey: REFERENCE_INSTEAD,
      summary:
        "Credit a user with a deposit, once per reference; takes two operators if the two-person rule covers deposits",
      body: S.NewDeposit,
      response: S.NewDepositAnswer,
      status: 201,
      async handler(request) {
        const { user_id, amount, reference } = request.body;
        if (accounts.user(user_id) === undefined) throw notFound("user");
        return deposit(request, user_id, amount, reference);
      },
    }),
    route({
      ...OPERATOR,
      method: "POST",
      path: "/admin/house/deposits",
      idempotencyKey: REFERENCE_INSTEAD,
      summary: "Fund the house account, once per reference; takes two operators if the two-person rule covers deposits",
      body: S.HousePayment,
      response: S.NewDepositAnswer,
      status: 201,
      handler(request) {
        const { amount, reference } = request.body;
        return deposit(request, HOUSE, amount, reference);
      },
    }),
  ];
}

function reversalRoute(context: MoneyAdminContext): Route {
  const { exchange, history, approvals, totals } = context;
  return route({
    ...OPERATOR,
    method: "POST",
    path: "/admin/deposits/:id/reverse",
    idempotencyKey: REFERENCE_INSTEAD,
    summary:
      "Take back a deposit, or a part of it, at most what is available; takes two operators if the two-person rule covers deposits",
    body: S.Reversal,
    response: S.NewDepositAnswer,
    status: 201,
    async handler(request) {
      const { amount, reference: typed, note = null } = request.body;
      checkReference(typed);
      const depositId = pathId(request.params[0], "deposit");
      const found = await history.reversibleDeposit(depositId);
      if (found === null) throw notFound("deposit");
      const { userId } = found;
      const action = userId === HOUSE ? REVERSE_DEPOSIT_TO_HOUSE : REVERSE_DEPOSIT;
      const reference = approvals.spelled(action, userId, typed);
      const payment = { userId, amount: -amount, reference, reverses: depositId };
      const write = { kind: "reverseDeposit", userId, depositId, amount, reference, at: request.now } as const;
      const details = { deposit: depositId, amount, reference, note };
      const check = (): void => {
        const available = userId === HOUSE ? totals().house : exchange.ledger.available(userId);
        checkReversible(found, depositId, amount, available);
      };
      return responseOf(typed, payment, await book(context, request, { action, payment, write, details, check }));
    },
  });
}

function depositsRoute({ history }: MoneyAdminContext): Route {
  return route({
    ...OPERATOR,
    method: "GET",
    path: "/admin/deposits",
    summary: "All deposits and their reversals, the house's included, newest first",
    query: S.UserQuery,
    response: pageOf(S.Deposit),
    handler({ query }) {
      const { user_id = null, ...rest } = query;
      const listing = new Listing("/admin/deposits", { user_id });
      return historyPage(listing, history.deposits({ userId: user_id, ...listing.page(rest) }), paymentView);
    },
  });
}

function paymentView(payment: Payment): object {
  return { ...ownPaymentView(payment), user_id: ownerOf(payment) };
}

function ownerOf({ userId }: Pick<Payment, "userId">): number | null {
  return userId === HOUSE ? null : userId;
}

/**
 * @param typed the reference of the request
 * @param wanted what the response shows while it waits for its second approval
 */
function responseOf(
  typed: string,
  wanted: PaymentWish["payment"],
  { approval, result }: ApprovalOutcome<BookedPayment>,
): string {
  if (approval === null) {
    return JSON.stringify({ ...paymentView(result.payment), ...repeatedBy(typed, result), approval: null });
  }
  const { amount, reference, reverses } = wanted;
  const waiting = { id: null, amount, reference, reverses, created_at: null, user_id: ownerOf(wanted) };
  return JSON.stringify({ ...waiting, approval: approvalView(approval) });
}

/** Which payment a request repeats, if it spells its reference differently: a plain repeat gets the first reply. */
function repeatedBy(typed: string, { payment, isRepeat }: BookedPayment): { repeats?: number } {
  return isRepeat && payment.reference !== typed ? { repeats: payment.id } : {};
}

/** @throws ApiError 40000 for a reference reserved for seeds */
function checkReference(reference: string): void {
  if (reference.toLowerCase().startsWith(SEED_REFERENCE)) {
    throw badRequest(`reference: must not begin with ${SEED_REFERENCE}`);
  }
}

// ---------------------------------------------------------------- the house

function houseWithdrawalRoute(context: MoneyAdminContext): Route {
  return route({
    ...OPERATOR,
    method: "POST",
    path: "/admin/house/withdrawals",
    idempotencyKey: REFERENCE_INSTEAD,
    summary:
      "Withdraw from the house account, once per reference; takes two operators if the two-person rule covers withdrawals",
    body: S.HousePayment,
    response: S.HouseWithdrawal,
    status: 201,
    async handler(request) {
      const { amount, reference: typed } = request.body;
      checkReference(typed);
      const reference = context.approvals.spelled(WITHDRAW_FROM_HOUSE, HOUSE, typed);
      const booked = await book(context, request, {
        action: WITHDRAW_FROM_HOUSE,
        payment: { userId: HOUSE, amount: -amount, reference, reverses: null },
        write: { kind: "withdrawFromHouse", amount, reference, at: request.now },
        details: { amount, reference },
        check() {
          const { house } = context.totals();
          if (amount <= house) return;
          throw new ApiError(ErrorKind.insufficientBalance, `needs ${amount} micro-USDC, the house has ${house}`);
        },
      });
      if (booked.approval !== null) {
        return JSON.stringify({ withdrawal: null, approval: approvalView(booked.approval) });
      }
      const { id, createdAt, ...paid } = booked.result.payment;
      const withdrawal = { id, amount: -paid.amount, reference: paid.reference, created_at: createdAt };
      return JSON.stringify({ withdrawal, ...repeatedBy(typed, booked.result), approval: null });
    },
  });
}
