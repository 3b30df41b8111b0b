/** The routes of the caller's own access: the password, personal access tokens, sessions. */
import type { Accounts } from "../accounts/accounts.ts";
import { actorOf, contextOf } from "../accounts/audit.ts";
import type { Pat, Session } from "../accounts/credentials.ts";
import * as S from "../accounts/schemas.ts";
import type { Principal } from "../accounts/types.ts";
import { notFound } from "../errors.ts";
import { ownList, pageJson } from "../http/paging.ts";
import { OWN_SESSION, pathId, type Route, route, SECRET_ONCE } from "../http/route.ts";
import { Nothing, PageQuery, pageOf } from "../http/schemas.ts";
import type { Pats } from "./pats.ts";
import type { Sessions } from "./sessions.ts";
import type { SignInService } from "./sign-in.ts";

export interface TokenRouteContext {
  readonly accounts: Accounts;
  readonly sessions: Sessions;
  readonly pats: Pats;
  readonly auth: SignInService;
}

export function createTokenRoutes(context: TokenRouteContext): Route[] {
  return [passwordRoute(context), ...tokenRoutes(context), ...sessionRoutes(context)];
}

function passwordRoute({ auth }: TokenRouteContext): Route {
  return route({
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
  });
}

function tokenRoutes({ accounts, pats }: TokenRouteContext): Route[] {
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
        const fields = { name, scopes, expiresAt: expires_at, allowedIps: allowed_ips };
        const { pat, token } = await pats.create(request.principal, fields, contextOf(request));
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

function sessionRoutes({ accounts, sessions }: TokenRouteContext): Route[] {
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
