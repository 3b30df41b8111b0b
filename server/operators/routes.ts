/** Operators' routes of users: accounts, suspensions, terms, identity applications; and the audit log. */

import type { Static } from "typebox";
import { assert } from "../../engine/util/assert.ts";
import type { Accounts } from "../accounts/accounts.ts";
import { type Approvals, approvalView, withFirstApproval } from "../accounts/approvals.ts";
import { audit, contextOf } from "../accounts/audit.ts";
import type { KycVerification } from "../accounts/kyc.ts";
import { checkNotOwn, noteOf, OPERATOR, operatorOf } from "../accounts/operator.ts";
import type { Suspensions } from "../accounts/suspensions.ts";
import { TERM_FIELDS, TermsChange, termsIn, termsView } from "../accounts/terms.ts";
import type { User } from "../accounts/types.ts";
import { changeTerms, checkRates } from "../accounts/users.ts";
import { userView } from "../accounts/views.ts";
import { badRequest, notFound } from "../errors.ts";
import { checkSpan, Listing } from "../http/paging.ts";
import { pathId, type Route, type RouteRequest, route } from "../http/route.ts";
import { pageOf } from "../http/schemas.ts";
import { NoteOnly } from "../http/text-schemas.ts";
import { balanceView } from "../markets/views.ts";
import { type History, historyPage } from "../queries/history.ts";
import type { SecondFactors } from "../sign-in/second-factors.ts";
import type { Exchange } from "../trading/exchange.ts";
import type { LogWriter } from "../writes/log-writer.ts";
import { MAX_USERS_WALKED } from "./limits.ts";
import * as S from "./schemas.ts";

export interface OperatorRouteContext {
  readonly exchange: Exchange;
  readonly accounts: Accounts;
  readonly history: History;
  readonly writer: LogWriter;
  readonly kyc: KycVerification;
  readonly suspensions: Suspensions;
  readonly factors: SecondFactors;
  readonly approvals: Approvals;
}

const SET_TERMS = "user.set_terms";

export function createOperatorRoutes(context: OperatorRouteContext): Route[] {
  return [...userRoutes(context), termsRoute(context), ...applicationRoutes(context), auditRoute(context)];
}

// ---------------------------------------------------------------- users

function userRoutes(context: OperatorRouteContext): Route[] {
  const { accounts, suspensions } = context;
  return [
    route({
      ...OPERATOR,
      method: "GET",
      path: "/admin/users",
      summary: "Users, newest first",
      query: S.UsersQuery,
      response: S.Users,
      handler({ query, now }) {
        const { limit: _limit, cursor: _cursor, ...filters } = query;
        const listing = new Listing("/admin/users", filters);
        const { users, next } = usersPage(accounts, listing, query);
        return listing.json(
          users.map((user) => userJson(user, context, now)),
          next,
        );
      },
    }),
    route({
      ...OPERATOR,
      method: "GET",
      path: "/admin/users/:id",
      summary: "One user",
      response: S.OperatorUser,
      handler: (request) => userJson(userIn(request, context), context, request.now),
    }),
    route({
      ...OPERATOR,
      method: "POST",
      path: "/admin/users/:id/suspend",
      idempotencyKey: "harmless",
      summary:
        "Suspend a user: end its sessions for good, reject its tokens and sign-ins, close its sockets and cancel its orders",
      body: NoteOnly,
      response: S.OperatorUser,
      async handler(request) {
        const user = userIn(request, context);
        await suspensions.suspend(user, noteOf(request), operatorOf(request), contextOf(request));
        return userJson(user, context, request.now);
      },
    }),
    route({
      ...OPERATOR,
      method: "POST",
      path: "/admin/users/:id/restore",
      idempotencyKey: "harmless",
      summary: "End a suspension; `tokens` says what becomes of the user's tokens and grants to third parties",
      body: S.Restoration,
      response: S.OperatorUser,
      async handler(request) {
        const user = userIn(request, context);
        const { note = null, tokens = "revoke" } = request.body;
        await suspensions.restore(user, { note, tokens }, operatorOf(request), contextOf(request));
        return userJson(user, context, request.now);
      },
    }),
  ];
}

function termsRoute(context: OperatorRouteContext): Route {
  const { writer, approvals } = context;
  return route({
    ...OPERATOR,
    method: "PATCH",
    path: "/admin/users/:id/terms",
    summary:
      "Set the user's own daily limit, fees and rate limits; null restores the default. Takes two operators if the two-person rule covers terms",
    body: TermsChange,
    response: S.OperatorUser,
    async handler(request) {
      const user = userIn(request, context);
      const operator = operatorOf(request);
      const requestContext = contextOf(request);
      checkNotOwn(operator, user.id);
      const { body } = request;
      // In a fixed order, whatever the request's: the second operator's details must be equal.
      const named = TERM_FIELDS.filter((name) => name in body);
      if (named.length === 0) throw badRequest(`${TERM_FIELDS.join(", ")}: give one of them or more`);
      const details = Object.fromEntries(named.map((name) => [name, body[name]]));
      checkRates({ ...user, ...termsIn(body) });
      const change = { action: SET_TERMS, userId: user.id, subject: user.id, details };
      await approvals.request({ ...change, rule: "terms" }, operator, requestContext, async (ending, first) => {
        const line = audit(requestContext, operator.actor, { ...change, details: withFirstApproval(details, first) });
        await writer.write([changeTerms(user, termsIn(body)), ...ending], [line]);
      });
      return userJson(user, context, request.now);
    },
  });
}

/** Returns the user whom a path names. @throws ApiError 4040 */
function userIn({ params }: RouteRequest, { accounts }: OperatorRouteContext): User {
  const user = accounts.user(pathId(params[0], "user"));
  if (user === undefined) throw notFound("user");
  return user;
}

/** A user's record, with a pending change of its terms. */
function userJson(user: User, context: OperatorRouteContext, now: number): string {
  const approval = context.approvals.find(SET_TERMS, user.id);
  const terms_approval = approval && approvalView(approval);
  return JSON.stringify({ ...operatorUserView(user, context, now), terms_approval });
}

function operatorUserView(user: User, { exchange, factors }: OperatorRouteContext, now: number): object {
  return {
    ...userView(user, exchange, now),
    suspended_at: user.suspendedAt,
    second_factors: factors.of(user.id).length,
    balance: balanceView(exchange.ledger, user.id),
    terms: termsView(user),
  };
}

/** Returns the matching users among those that one read scans, and the id to continue below. */
function usersPage(
  accounts: Accounts,
  listing: Listing,
  query: Static<typeof S.UsersQuery>,
): { users: User[]; next: number | null } {
  const { email, role, kyc_tier, suspended, ...rest } = query;
  const { before, limit } = listing.page(rest);
  const fits = (user: User | undefined): user is User =>
    user !== undefined &&
    user.id < before &&
    (role === undefined || user.role === role) &&
    (kyc_tier === undefined || user.kycTier === kyc_tier) &&
    (suspended === undefined || (user.suspendedAt !== null) === suspended);
  if (email !== undefined) return { users: [accounts.userByEmail(email.toLowerCase())].filter(fits), next: null };
  const users: User[] = [];
  let id = Math.min(before - 1, accounts.lastUserId);
  const floor = Math.max(0, id - MAX_USERS_WALKED);
  for (; id > floor && users.length < limit; id--) {
    const user = accounts.user(id);
    if (fits(user)) users.push(user);
  }
  return { users, next: id > 0 ? id + 1 : null };
}

// ---------------------------------------------------------------- identity applications

function applicationRoutes({ accounts, history, kyc }: OperatorRouteContext): Route[] {
  const decisionRoute = (name: "approve" | "refuse", summary: string): Route =>
    route({
      ...OPERATOR,
      method: "POST",
      path: `/admin/identity-applications/:id/${name}`,
      idempotencyKey: "harmless",
      summary,
      body: NoteOnly,
      response: S.OperatorApplication,
      async handler(request) {
        const id = pathId(request.params[0], "application");
        const found = await history.application(id);
        if (found === null) throw notFound("application");
        const user = accounts.user(found.user_id);
        assert(user !== undefined, "an application belongs to a user");
        const decision = { isApproved: name === "approve", note: noteOf(request) };
        await kyc.decide(user, id, decision, operatorOf(request), contextOf(request));
        return JSON.stringify(await history.application(id));
      },
    });
  return [
    route({
      ...OPERATOR,
      method: "GET",
      path: "/admin/identity-applications",
      summary: "Applications for KYC tier 2 in one status, newest first; pending ones by default",
      query: S.ApplicationsQuery,
      response: pageOf(S.OperatorApplication),
      handler({ query }) {
        const { status = "pending", email, ...rest } = query;
        const filters = { status: String(status), email: email?.toLowerCase() };
        const listing = new Listing("/admin/identity-applications", filters);
        return historyPage(listing, history.applications({ ...listing.page(rest), ...filters }));
      },
    }),
    decisionRoute("approve", "Give the applicant KYC tier 2"),
    decisionRoute("refuse", "Reject the application; the user may apply again"),
  ];
}

// ---------------------------------------------------------------- the audit log

function auditRoute({ history }: OperatorRouteContext): Route {
  return route({
    ...OPERATOR,
    method: "GET",
    path: "/admin/audit-log",
    summary: "All changes of money and access and who made them, newest first",
    query: S.AuditQuery,
    response: S.AuditLog,
    handler({ query }) {
      const { user_id, actor, action, from, to, ...rest } = query;
      checkSpan(query);
      const filters = { userId: user_id, actor, action, from, to };
      const listing = new Listing("/admin/audit-log", filters);
      return historyPage(listing, history.audits({ ...listing.page(rest), ...filters }));
    },
  });
}
