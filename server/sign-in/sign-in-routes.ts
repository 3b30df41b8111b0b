/** The routes of sign-up and sign-in by password: registration, verification, sessions, password resets. */

import { contextOf, type RequestContext } from "../accounts/audit.ts";
import { REFRESH_GRACE_MS } from "../accounts/limits.ts";
import * as S from "../accounts/schemas.ts";
import type { Principal } from "../accounts/types.ts";
import { type LedgerOwner, userView } from "../accounts/views.ts";
import { ApiError, badRequest, ErrorKind } from "../errors.ts";
import { OWN_SESSION, type Route, type RouteRequest, route, SIGNS_IN } from "../http/route.ts";
import { Nothing } from "../http/schemas.ts";
import { FirstStep } from "./second-factor-schemas.ts";
import { COOKIE_GUARDS, SessionCookie } from "./session-cookie.ts";
import type { SignInService } from "./sign-in.ts";
import { firstStepJson, signedInJson } from "./views.ts";

export interface SignInContext {
  readonly exchange: LedgerOwner;
  readonly auth: SignInService;
  /** The service's own address. */
  readonly publicUrl: () => string;
}

export function createSignInRoutes(context: SignInContext): Route[] {
  const cookie = new SessionCookie(context.publicUrl);
  return [
    ...addressRoutes(context),
    loginRoute(context, cookie),
    refreshRoute(context, cookie),
    logoutRoute(context, cookie),
    ...resetRoutes(context),
  ];
}

/** A route that mails a link, and responds alike whether the address has an account or not. */
function mailRoute(path: string, summary: string, send: (email: string, context: RequestContext) => void): Route {
  return route({
    method: "POST",
    path,
    idempotencyKey: { instead: "ask for another link after a lost response" },
    summary: `${summary}; the response is always the same`,
    rateClass: "mail",
    body: S.EmailOnly,
    response: Nothing,
    status: 202,
    handler(request) {
      send(request.body.email.toLowerCase(), contextOf(request));
      return "null";
    },
  });
}

// ---------------------------------------------------------------- registration and email address

function addressRoutes({ auth, exchange }: SignInContext): Route[] {
  return [
    route({
      method: "POST",
      path: "/auth/register",
      idempotencyKey: { instead: "an address can be registered once" },
      summary: "Create an account and mail its verification link",
      rateClass: "sign_up",
      headers: ["user-agent"],
      body: S.Registration,
      response: S.User,
      status: 201,
      async handler(request) {
        const { email, password } = request.body;
        const user = await auth.register(email.toLowerCase(), password, contextOf(request));
        return JSON.stringify(userView(user, exchange, request.now));
      },
    }),
    route({
      method: "POST",
      path: "/auth/verify-email",
      idempotencyKey: SIGNS_IN,
      summary:
        "Verify the email address with the token of the mailed link and the account's password, which the account's " +
        "own session may omit; ends all earlier access except that session",
      optionalAuth: true,
      body: S.EmailVerification,
      response: S.User,
      async handler(request) {
        const { token, password = null } = request.body;
        const user = await auth.verifyEmail(token, password, request.principal, contextOf(request));
        return JSON.stringify(userView(user, exchange, request.now));
      },
    }),
    mailRoute(
      "/auth/resend-verification",
      "Mail another verification link to an unverified address",
      (email, context) => auth.resendVerification(email, context),
    ),
  ];
}

// ---------------------------------------------------------------- sessions

function loginRoute({ auth, exchange }: SignInContext, cookie: SessionCookie): Route {
  return route({
    method: "POST",
    path: "/auth/login",
    idempotencyKey: SIGNS_IN,
    summary:
      "Sign in with email and password. With cookie: true, an HttpOnly cookie that POST /auth/refresh accepts holds the " +
      "refresh token, and refresh_token is null; the Content-Type must then be application/json. For an account with a " +
      "second factor, the response is a challenge for POST /auth/login/second-factor instead of tokens",
    rateClass: "identifier",
    headers: ["user-agent", ...COOKIE_GUARDS],
    body: S.Credentials,
    response: FirstStep,
    async handler(request) {
      const { email, password, cookie: inCookie = false } = request.body;
      // Otherwise a page of another site could sign its visitors in to an account of its own.
      if (inCookie) cookie.mayUse(request.headers);
      const found = await auth.login(email.toLowerCase(), password, contextOf(request));
      if (!inCookie || "challenge" in found) return firstStepJson(found, exchange, request.now);
      request.reply.header("Set-Cookie", cookie.keep(found, request.now));
      return signedInJson(found, null, exchange, request.now);
    },
  });
}

type CookieRequest = RouteRequest<unknown, unknown, Principal | null, "cookie" | (typeof COOKIE_GUARDS)[number]>;

function refreshRoute({ auth }: SignInContext, cookie: SessionCookie): Route {
  const refreshByCookie = async (request: CookieRequest): Promise<string> => {
    const { headers, now, reply } = request;
    const kept = cookie.read(headers.cookie);
    if (kept === null) throw badRequest("refresh_token: required");
    cookie.mayUse(headers);
    try {
      const tokens = await auth.refreshByCookie(kept, contextOf(request));
      reply.header("Set-Cookie", cookie.keep(tokens, now));
      return JSON.stringify({ access_token: tokens.accessToken, refresh_token: null });
    } catch (error) {
      if (isUnauthenticated(error)) reply.header("Set-Cookie", cookie.remove());
      throw error;
    }
  };
  return route({
    method: "POST",
    path: "/auth/refresh",
    idempotencyKey: SIGNS_IN,
    summary:
      "Exchange a refresh token for new tokens. Each refresh token works once; a second use ends the session. Without one " +
      "in the body, the cookie's counts: the cookie then holds the next one, refresh_token is null, and the token spent " +
      `last stays valid for ${REFRESH_GRACE_MS / 1_000} s, for pages that load twice at once`,
    rateClass: "refresh",
    headers: ["cookie", ...COOKIE_GUARDS],
    body: S.RefreshToken,
    response: S.Tokens,
    async handler(request) {
      const { refresh_token } = request.body;
      if (refresh_token === undefined) return refreshByCookie(request);
      const { accessToken, refreshToken } = await auth.refresh(refresh_token, contextOf(request));
      return JSON.stringify({ access_token: accessToken, refresh_token: refreshToken });
    },
  });
}

function isUnauthenticated(error: unknown): boolean {
  return error instanceof ApiError && error.kind === ErrorKind.unauthenticated;
}

function logoutRoute({ auth }: SignInContext, cookie: SessionCookie): Route {
  return route({
    ...OWN_SESSION,
    method: "POST",
    path: "/auth/logout",
    idempotencyKey: "harmless",
    unverified: true,
    summary: "End the session immediately, close its sockets and remove the cookie",
    headers: ["cookie"],
    response: Nothing,
    async handler(request) {
      await auth.logout(request.principal, contextOf(request));
      if (cookie.read(request.headers.cookie) !== null) request.reply.header("Set-Cookie", cookie.remove());
      return "null";
    },
  });
}

// ---------------------------------------------------------------- forgotten passwords

function resetRoutes({ auth }: SignInContext): Route[] {
  return [
    mailRoute(
      "/auth/forgot-password",
      "Mail a link to set a new password, if the address has an account",
      (email, context) => auth.forgotPassword(email, context),
    ),
    route({
      method: "POST",
      path: "/auth/reset-password",
      idempotencyKey: "harmless",
      summary:
        "Set a password with the token of the mailed link; ends every session, personal access token and grant of the account",
      body: S.PasswordReset,
      response: Nothing,
      async handler(request) {
        const { token, password } = request.body;
        await auth.resetPassword(token, password, contextOf(request));
        return "null";
      },
    }),
  ];
}
