/** Operators' routes of money: payments (payment-routes.ts), decisions on withdrawals, pending approvals. */

import { assert } from "../../engine/util/assert.ts";
import { approvalView } from "../accounts/approvals.ts";
import { contextOf } from "../accounts/audit.ts";
import { noteOf, OPERATOR, operatorOf } from "../accounts/operator.ts";
import { Approval } from "../accounts/schemas.ts";
import { notFound } from "../errors.ts";
import { Listing, pageJson } from "../http/paging.ts";
import { pathId, type Route, route } from "../http/route.ts";
import { PageQuery, pageOf } from "../http/schemas.ts";
import { NoteOnly } from "../http/text-schemas.ts";
import { historyPage } from "../queries/history.ts";
import type { Withdrawal } from "../queries/payment-reader.ts";
import { createPaymentRoutes, type MoneyAdminContext } from "./payment-routes.ts";
import { ownWithdrawalView } from "./routes.ts";
import * as S from "./schemas.ts";

export function createMoneyAdminRoutes(context: MoneyAdminContext): Route[] {
  return [
    ...createPaymentRoutes(context),
    ...withdrawalRoutes(context),
    trailRoute(context),
    ...approvalRoutes(context),
  ];
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
