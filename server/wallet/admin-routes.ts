/** Operators' routes of money: deposits, decisions on withdrawals, the house account, pending approvals. */

import { SEED_REFERENCE } from "../../engine/limits.ts";
import type { ApprovalRow } from "../../engine/projection/load/wallet.ts";
import { HOUSE } from "../../engine/projection/writes/account-write.ts";
import { assert } from "../../engine/util/assert.ts";
import type { Accounts } from "../accounts/accounts.ts";
import { type Approvals, approvalView, withFirstApproval } from "../accounts/approvals.ts";
import { audit, contextOf } from "../accounts/audit.ts";
import { noteOf, OPERATOR, operatorOf } from "../accounts/operator.ts";
import { Approval } from "../accounts/schemas.ts";
import type { RequestedWrite } from "../accounts/types.ts";
import { ApiError, badRequest, ErrorKind, notFound } from "../errors.ts";
import { Listing, pageJson } from "../http/paging.ts";
import { pathId, type Route, type RouteRequest, route } from "../http/route.ts";
import { PageQuery, pageOf } from "../http/schemas.ts";
import { NoteOnly } from "../http/text-schemas.ts";
import { historyPage } from "../queries/history.ts";
import type { Payment, Withdrawal } from "../queries/payment-reader.ts";
import { ownPaymentView, ownWithdrawalView, type WalletRouteContext } from "./routes.ts";
import * as S from "./schemas.ts";

const DEPOSIT = "wallet.deposit";
const DEPOSIT_TO_HOUSE = "house.deposit";
const WITHDRAW_FROM_HOUSE = "house.withdraw";

export interface MoneyAdminContext extends WalletRouteContext {
  readonly accounts: Accounts;
  readonly approvals: Approvals;
}

export function createMoneyAdminRoutes(context: MoneyAdminContext): Route[] {
  return [
    ...depositRoutes(context),
    depositsRoute(context),
    houseWithdrawalRoute(context),
    ...withdrawalRoutes(context),
    trailRoute(context),
    ...approvalRoutes(context),
  ];
}

// ---------------------------------------------------------------- deposits

function depositRoutes({ accounts, history, writer, approvals }: MoneyAdminContext): Route[] {
  /**
   * Credits once per reference: a repeat gets the first response. Under the two-person rule, an operator's first request
   * is an approval, for this reference alone.
   */
  const deposit = async (request: RouteRequest, userId: number, amount: number, reference: string): Promise<string> => {
    checkReference(reference);
    const operator = operatorOf(request);
    const context = contextOf(request);
    const owner = userId === HOUSE ? null : userId;
    const details = { amount, reference };
    const action = owner === null ? DEPOSIT_TO_HOUSE : DEPOSIT;
    const wish = { rule: "deposits", action, subject: userId, reference, details, userId: owner } as const;
    const credit = async (ending: readonly RequestedWrite[], first: ApprovalRow | null): Promise<Payment> => {
      const write: RequestedWrite = { kind: "deposit", userId, amount, reference, at: context.now };
      const change = { action, userId: owner, details: withFirstApproval(details, first) };
      const [result] = await writer.write([write, ...ending], [audit(context, operator.actor, change)]);
      assert(result !== undefined, "a write has a result");
      const { id, created } = result;
      return created ? { id, userId, amount, reference, createdAt: write.at } : paymentOf(history, reference);
    };
    const done = (): Promise<Payment | null> => paid(history, reference, userId, amount);
    const { approval, result } = await approvals.request(wish, operator, context, credit, done);
    if (approval === null) return JSON.stringify(depositView(result));
    const waiting = { id: null, amount, reference, created_at: null, user_id: owner };
    return JSON.stringify({ ...waiting, approval: approvalView(approval) });
  };
  return [
    route({
      ...OPERATOR,
      method: "POST",
      path: "/admin/deposits",
      idempotencyKey: { instead: "the reference makes a repeat safe" },
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
      idempotencyKey: { instead: "the reference makes a repeat safe" },
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

function depositsRoute({ history }: MoneyAdminContext): Route {
  return route({
    ...OPERATOR,
    method: "GET",
    path: "/admin/deposits",
    summary: "All deposits, the house's included, newest first",
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
  return { ...ownPaymentView(payment), user_id: payment.userId === HOUSE ? null : payment.userId };
}

/** A credited deposit: no approval is pending. */
function depositView(payment: Payment): object {
  return { ...paymentView(payment), approval: null };
}

/** Returns the payment that already has a reference. */
async function paymentOf(history: WalletRouteContext["history"], reference: string): Promise<Payment> {
  const found = await history.payment(reference);
  assert(found !== null, "a reference in use has a payment");
  return found;
}

/** Returns the payment with this reference, or null. @throws ApiError 40900 if that payment is a different one */
async function paid(
  history: WalletRouteContext["history"],
  reference: string,
  userId: number,
  amount: number,
): Promise<Payment | null> {
  const found = await history.payment(reference);
  if (found !== null && (found.userId !== userId || found.amount !== amount)) {
    throw new ApiError(ErrorKind.conflict, "reference: another one has it");
  }
  return found;
}

/** @throws ApiError 40000 for a reference reserved for seeds */
function checkReference(reference: string): void {
  if (reference.startsWith(SEED_REFERENCE)) throw badRequest(`reference: must not begin with ${SEED_REFERENCE}`);
}

// ---------------------------------------------------------------- the house

function houseWithdrawalRoute({ history, writer, approvals, totals }: MoneyAdminContext): Route {
  const done = (payment: Payment): string =>
    JSON.stringify({ withdrawal: ownPaymentView({ ...payment, amount: -payment.amount }), approval: null });
  return route({
    ...OPERATOR,
    method: "POST",
    path: "/admin/house/withdrawals",
    idempotencyKey: { instead: "the reference makes a repeat safe" },
    summary:
      "Withdraw from the house account, once per reference; takes two operators if the two-person rule covers withdrawals",
    body: S.HousePayment,
    response: S.HouseWithdrawal,
    status: 201,
    async handler(request) {
      const { amount, reference } = request.body;
      checkReference(reference);
      const before = async (): Promise<Payment | null> => {
        const found = await paid(history, reference, HOUSE, -amount);
        const { house } = totals();
        if (found === null && amount > house) {
          throw new ApiError(ErrorKind.insufficientBalance, `needs ${amount} micro-USDC, the house has ${house}`);
        }
        return found;
      };
      const details = { amount, reference };
      const wish = { action: WITHDRAW_FROM_HOUSE, subject: HOUSE, details, userId: null };
      const context = contextOf(request);
      const operator = operatorOf(request);
      const pay = async (ending: readonly RequestedWrite[], first: ApprovalRow | null): Promise<Payment> => {
        const write: RequestedWrite = { kind: "withdrawFromHouse", amount, reference, at: context.now };
        const line = audit(context, operator.actor, {
          ...wish,
          subject: null,
          details: withFirstApproval(details, first),
        });
        const [result] = await writer.write([write, ...ending], [line]);
        assert(result !== undefined, "a write has a result");
        const { id, created } = result;
        const made = { id, userId: HOUSE, amount: -amount, reference, createdAt: write.at };
        return created ? made : paymentOf(history, reference);
      };
      const answer = await approvals.request({ ...wish, rule: "withdrawals" }, operator, context, pay, before);
      if (answer.approval === null) return done(answer.result);
      return JSON.stringify({ withdrawal: null, approval: approvalView(answer.approval) });
    },
  });
}

// ---------------------------------------------------------------- withdrawals

function withdrawalRoutes({ accounts, history, withdrawals }: MoneyAdminContext): Route[] {
  const withdrawalView = (withdrawal: Withdrawal): object => {
    const { userId } = withdrawal;
    const user = accounts.user(userId);
    assert(user !== undefined, "a withdrawal belongs to a user");
    return { ...ownWithdrawalView(withdrawal), user_id: userId, email: user.email };
  };
  return [
    route({
      ...OPERATOR,
      method: "GET",
      path: "/admin/withdrawals",
      summary: "All withdrawals, newest first",
      query: S.AllWithdrawalsQuery,
      response: pageOf(S.Withdrawal),
      handler({ query }) {
        const { status, user_id = null, ...rest } = query;
        const filters = { userId: user_id, status };
        const listing = new Listing("/admin/withdrawals", filters);
        return historyPage(listing, history.withdrawals({ ...filters, ...listing.page(rest) }), withdrawalView);
      },
    }),
    route({
      ...OPERATOR,
      method: "GET",
      path: "/admin/withdrawals/:id",
      summary: "One withdrawal, with the history of its user's account: who credited the money that it pays out",
      response: S.WithdrawalWithTrail,
      async handler({ params }) {
        const found = await history.withdrawal(pathId(params[0], "withdrawal"));
        if (found === null) throw notFound("withdrawal");
        return JSON.stringify({ ...withdrawalView(found), trail: await history.trail(found.userId) });
      },
    }),
    route({
      ...OPERATOR,
      method: "POST",
      path: "/admin/withdrawals/:id/pay",
      idempotencyKey: "harmless",
      summary: "Mark a withdrawal as paid; under the two-person rule, once another operator has requested the same",
      body: S.WithdrawalPayment,
      response: S.WithdrawalDecision,
      async handler(request) {
        const id = pathId(request.params[0], "withdrawal");
        const { reference = null, note = null } = request.body;
        const decided = await withdrawals.pay(id, { reference, note }, operatorOf(request), contextOf(request));
        const approval = decided.approval && approvalView(decided.approval);
        return JSON.stringify({ withdrawal: withdrawalView(decided.withdrawal), approval });
      },
    }),
    route({
      ...OPERATOR,
      method: "POST",
      path: "/admin/withdrawals/:id/refuse",
      idempotencyKey: "harmless",
      summary: "Reject a withdrawal and release its amount to the user",
      body: NoteOnly,
      response: S.WithdrawalDecision,
      async handler(request) {
        const id = pathId(request.params[0], "withdrawal");
        const refused = await withdrawals.refuse(id, noteOf(request), operatorOf(request), contextOf(request));
        return JSON.stringify({ withdrawal: withdrawalView(refused), approval: null });
      },
    }),
  ];
}

function trailRoute({ accounts, history }: MoneyAdminContext): Route {
  return route({
    ...OPERATOR,
    method: "GET",
    path: "/admin/users/:id/trail",
    summary: "The history of a user's account: deposits, terms and identity decisions, and who made them",
    response: S.Trail,
    async handler({ params }) {
      const user = accounts.user(pathId(params[0], "user"));
      if (user === undefined) throw notFound("user");
      return JSON.stringify(await history.trail(user.id));
    },
  });
}

// ---------------------------------------------------------------- approvals

function approvalRoutes({ approvals }: MoneyAdminContext): Route[] {
  return [
    route({
      ...OPERATOR,
      method: "GET",
      path: "/admin/approvals",
      summary: "Pending first approvals, newest first",
      query: PageQuery,
      response: pageOf(Approval),
      handler: ({ query }) => pageJson(new Listing("/admin/approvals", {}), approvals.pending(), query, approvalView),
    }),
    route({
      ...OPERATOR,
      method: "DELETE",
      path: "/admin/approvals/:id",
      summary: "Withdraw a first approval, the operator's own or another's",
      response: Approval,
      async handler(request) {
        const id = pathId(request.params[0], "approval");
        return JSON.stringify(approvalView(await approvals.revoke(id, operatorOf(request), contextOf(request))));
      },
    }),
  ];
}
