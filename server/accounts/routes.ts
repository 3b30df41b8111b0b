/** The routes of the caller's own account: its record, password, phone and identity, tokens and sessions. */

import { notFound } from "../errors.ts";
import { ownList, pageJson } from "../http/paging.ts";
import { OWN_SESSION, pathId, type Route, route, SECRET_ONCE } from "../http/route.ts";
import { Nothing, nullable, PageQuery, pageOf } from "../http/schemas.ts";
import type { Accounts } from "./accounts.ts";
import { actorOf, contextOf } from "./audit.ts";
import type { Pat, Session } from "./credentials.ts";
import type { KycVerification } from "./kyc.ts";
import type { Pats } from "./pats.ts";
import { readPhoneNumber } from "./phone-numbers.ts";
import * as S from "./schemas.ts";
import type { Sessions } from "./sessions.ts";
import { createSignInRoutes } from "./sign-in-routes.ts";
import { createSocialSignInRoutes, type SocialSignInContext } from "./social-sign-in-routes.ts";
import type { Principal } from "./types.ts";
import { userView } from "./views.ts";

export interface AccountRouteContext extends SocialSignInContext {
  readonly accounts: Accounts;
  readonly sessions: Sessions;
  readonly pats: Pats;
  readonly kyc: KycVerification;
}

export function createAccountRoutes(context: AccountRouteContext): Route[] {
  return [
    ...createSignInRoutes(context),
    ...createSocialSignInRoutes(context),
    ...ownRoutes(context),
    ...identityRoutes(context),
    ...tokenRoutes(context),
    ...sessionRoutes(context),
  ];
}

// ---------------------------------------------------------------- the account

function ownRoutes({ auth, exchange }: AccountRouteContext): Route[] {
  return [
    route({
      method: "GET",
      path: "/me",
      summary: "The caller's account; third parties don't see email and phone",
      access: "user",
      response: S.Account,
      handler({ principal, now }) {
        const view = userView(principal.credential.user, exchange, now);
        return JSON.stringify(principal.kind === "oauth" ? { ...view, email: null, phone: null } : view);
      },
    }),
    route({
      ...OWN_SESSION,
      method: "POST",
      path: "/me/password",
      idempotencyKey: "harmless",
      summary: "Change the password; ends all other sessions",
      body: S.PasswordChange,
      response: Nothing,
      async handler(request) {
        const body = request.body;
        await auth.changePassword(request.principal, body.current, body.new, contextOf(request));
        return "null";
      },
    }),
  ];
}

function identityRoutes({ accounts, exchange, kyc }: AccountRouteContext): Route[] {
  return [
    route({
      ...OWN_SESSION,
      method: "POST",
      path: "/me/phone",
      idempotencyKey: { instead: "each request sends a new code, and the last one counts" },
      summary: "Send a verification code to a phone number",
      body: S.PhoneNumber,
      response: Nothing,
      status: 202,
      async handler(request) {
        const { phone } = request.body;
        await kyc.sendPhoneCode(request.principal, readPhoneNumber(phone), contextOf(request));
        return "null";
      },
    }),
    route({
      ...OWN_SESSION,
      method: "POST",
      path: "/me/phone/verify",
      idempotencyKey: "harmless",
      summary: "Verify the phone number with the code; five wrong codes invalidate it",
      body: S.PhoneCode,
      response: S.User,
      async handler(request) {
        const { code } = request.body;
        const user = await kyc.verifyPhone(request.principal, code, contextOf(request));
        return JSON.stringify(userView(user, exchange, request.now));
      },
    }),
    route({
      ...OWN_SESSION,
      method: "POST",
      path: "/me/identity",
      summary: "Apply for KYC tier 2 with a government ID; an operator decides",
      minTier: 1,
      idempotencyKey: { instead: "only one application can be pending, GET shows it" },
      body: S.IdentityDocument,
      response: S.IdentityApplication,
      status: 201,
      async handler(request) {
        const row = await kyc.applyForTier2(request.principal, request.body, contextOf(request));
        return identityJson(row);
      },
    }),
    route({
      ...OWN_SESSION,
      method: "GET",
      path: "/me/identity",
      summary: "The caller's latest application for KYC tier 2, null without one",
      response: nullable(S.IdentityApplication),
      handler({ principal }) {
        const row = accounts.identityApplication(principal.userId);
        return row === undefined || row.id === 0 ? "null" : identityJson(row);
      },
    }),
  ];
}

function identityJson(row: NonNullable<ReturnType<Accounts["identityApplication"]>>): string {
  const { id, documentType, country, status, note, createdAt, decidedAt } = row;
  const times = { created_at: createdAt, decided_at: decidedAt };
  return JSON.stringify({ id, document_type: documentType, country, status, note, ...times });
}

// ---------------------------------------------------------------- tokens and sessions

function tokenRoutes({ accounts, pats }: AccountRouteContext): Route[] {
  return [
    route({
      ...OWN_SESSION,
      method: "GET",
      path: "/me/personal-access-tokens",
      summary: "The caller's personal access tokens, newest first",
      query: PageQuery,
      response: pageOf(S.Pat),
      handler: ({ principal, query }) =>
        pageJson(ownList("/me/personal-access-tokens", principal), accounts.pats.of(principal.userId), query, patView),
    }),
    route({
      ...OWN_SESSION,
      method: "POST",
      path: "/me/personal-access-tokens",
      idempotencyKey: SECRET_ONCE,
      summary: "Create a personal access token; only this response shows its text",
      body: S.NewPat,
      response: S.CreatedPat,
      status: 201,
      async handler(request) {
        const { name, scopes, expires_at = null, allowed_ips = null } = request.body;
        const wish = { name, scopes, expiresAt: expires_at, allowedIps: allowed_ips };
        const { pat, token } = await pats.create(request.principal, wish, contextOf(request));
        return JSON.stringify({ ...patView(pat), token });
      },
    }),
    route({
      ...OWN_SESSION,
      method: "DELETE",
      path: "/me/personal-access-tokens/:id",
      summary: "Revoke a personal access token immediately and close its sockets",
      response: Nothing,
      async handler(request) {
        await pats.revoke(request.principal, pathId(request.params[0], "token"), contextOf(request));
        return "null";
      },
    }),
  ];
}

function patView({ row, lastUsedAt }: Pat): object {
  return {
    id: row.id,
    name: row.name,
    scopes: row.scopes.split(" "),
    prefix: row.prefix,
    allowed_ips: row.allowedAddresses?.split(" ") ?? null,
    created_at: row.createdAt,
    last_used_at: lastUsedAt === 0 ? null : lastUsedAt,
    expires_at: row.expiresAt,
  };
}

function sessionRoutes({ accounts, sessions }: AccountRouteContext): Route[] {
  return [
    route({
      ...OWN_SESSION,
      method: "GET",
      path: "/me/sessions",
      summary: "The caller's sessions, newest first",
      query: PageQuery,
      response: pageOf(S.Session),
      handler({ principal, query }) {
        const own = accounts.sessions.of(principal.userId).filter(({ grant }) => grant === null);
        return pageJson(ownList("/me/sessions", principal), own, query, (session) => sessionView(session, principal));
      },
    }),
    route({
      ...OWN_SESSION,
      method: "DELETE",
      path: "/me/sessions",
      summary: "End the caller's other sessions immediately and close their sockets; grants to third parties stay",
      response: Nothing,
      async handler(request) {
        await sessions.endOthers(request.principal, "ended_by_user", contextOf(request));
        return "null";
      },
    }),
    route({
      ...OWN_SESSION,
      method: "DELETE",
      path: "/me/sessions/:id",
      summary: "End a session immediately and close its sockets",
      response: Nothing,
      async handler(request) {
        const { principal, params } = request;
        const session = accounts.sessions.get(pathId(params[0], "session"));
        if (session === undefined || session.user.id !== principal.userId || session.grant !== null) {
          throw notFound("session");
        }
        await sessions.end([session], "ended_by_user", actorOf(principal), contextOf(request));
        return "null";
      },
    }),
  ];
}

function sessionView(session: Session, asking: Principal): object {
  const { row, lastUsedAt } = session;
  return {
    id: row.id,
    method: row.method,
    current: session === asking.credential,
    second_factor: session.hasSecondFactor,
    user_agent: row.userAgent,
    address: row.address,
    created_at: row.createdAt,
    last_used_at: lastUsedAt,
    expires_at: row.expiresAt,
  };
}
