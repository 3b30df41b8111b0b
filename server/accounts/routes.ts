/** The routes of accounts: sign-up and sign-in, the caller's own record, tokens, sessions and clients. */

import type { Static } from "typebox";
import { utcDay } from "../../engine/money.ts";
import { ApiError, asApiError, badRequest, ErrorKind, notFound } from "../errors.ts";
import { cookieIn, setCookie } from "../http/cookies.ts";
import { Listing } from "../http/paging.ts";
import { pathId, type Route, type RouteRequest, route } from "../http/route.ts";
import { Nothing, PageQuery, pageOf } from "../http/schemas.ts";
import type { OAuth } from "../oauth/oauth.ts";
import {
  AskingClient,
  AuthorizeDecision,
  CreatedOAuthClient,
  NewOAuthClient,
  OAuthClient as OAuthClientSchema,
  OAuthGrant,
  RedirectTo,
} from "../oauth/schemas.ts";
import type { Params } from "../oauth/types.ts";
import type { Exchange } from "../trading/exchange.ts";
import type { Accounts } from "./accounts.ts";
import { actorOf, contextOf, type RequestContext } from "./audit.ts";
import type { Pat, Session } from "./credentials.ts";
import type { KycVerification } from "./kyc.ts";
import { REFRESH_GRACE_MS } from "./limits.ts";
import type { Pats } from "./pats.ts";
import { readPhoneNumber } from "./phone-numbers.ts";
import { dailyLimitOf } from "./principal.ts";
import * as S from "./schemas.ts";
import { FirstStep } from "./second-factor-schemas.ts";
import type { Challenge } from "./second-factor-sign-in.ts";
import { COOKIE_GUARDS, SessionCookie } from "./session-cookie.ts";
import type { Sessions } from "./sessions.ts";
import type { SignedIn, SignInService } from "./sign-in.ts";
import { ATTEMPT_MS, type SocialSignIn } from "./social-sign-in.ts";
import type { Grant, OAuthClient, Principal, User } from "./types.ts";

export interface SignInContext {
  readonly exchange: Exchange;
  /** The service's own address. */
  readonly publicUrl: () => string;
}

export interface AccountRouteContext extends SignInContext {
  readonly accounts: Accounts;
  readonly auth: SignInService;
  readonly sessions: Sessions;
  readonly pats: Pats;
  readonly kyc: KycVerification;
  readonly oauth: OAuth;
  readonly social: SocialSignIn;
}

/** What only the user's own sign-in may do. */
export const OWN_SESSION = { access: "user", tokens: ["session"] } as const;
/** Of a browser that was sent to an identity provider, which sends it back with a GET from its own site. */
const ATTEMPT_COOKIE = "social_sign_in";
const ATTEMPT_RULES = { sameSite: "lax", maxAge: ATTEMPT_MS / 1_000 } as const;

export function createAccountRoutes(context: AccountRouteContext): Route[] {
  return [...signInRoutes(context), ...ownRoutes(context), ...tokenRoutes(context), ...clientRoutes(context)];
}

// ---------------------------------------------------------------- sign-up and sign-in

/** @param shown the refresh token, null where it is in the cookie */
export function signedInJson(
  { accessToken, user }: SignedIn,
  shown: string | null,
  exchange: Exchange,
  now: number,
): string {
  return JSON.stringify({ access_token: accessToken, refresh_token: shown, user: userView(user, exchange, now) });
}

/** The first step's answer where there is a second one. */
function challengeJson({ challenge, methods, passkey, expiresAt }: Challenge): string {
  return JSON.stringify({ challenge, methods, passkey, expires_at: expiresAt });
}

function signInRoutes({ auth, exchange, social, publicUrl }: AccountRouteContext): Route[] {
  const cookie = new SessionCookie(publicUrl);
  /** What a sign-in whose refresh token stands in the body is answered with. */
  const answer = ({ now }: RouteRequest, found: SignedIn | Challenge): string =>
    "challenge" in found ? challengeJson(found) : signedInJson(found, found.refreshToken, exchange, now);
  const failurePage = ({ kind, message }: ApiError): string =>
    `${publicUrl()}/sign-in?error=${kind.code}&message=${encodeURIComponent(message)}`;
  const refreshByCookie = async (request: RouteRequest): Promise<string> => {
    const { headers, now, reply } = request;
    const kept = cookie.read(headers["cookie"]!);
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
  const mailRoute = (path: string, summary: string, send: (email: string, context: RequestContext) => void): Route =>
    route({
      method: "POST",
      path,
      summary: `${summary}; the answer is always the same`,
      rateClass: "mail",
      body: S.EmailOnly,
      response: Nothing,
      status: 202,
      handler(request) {
        const { email } = request.body as Static<typeof S.EmailOnly>;
        send(email.toLowerCase(), contextOf(request));
        return "null";
      },
    });
  return [
    route({
      method: "POST",
      path: "/auth/register",
      summary: "Make an account and mail its verification link",
      rateClass: "mail",
      headers: ["user-agent"],
      body: S.Registration,
      response: S.User,
      status: 201,
      async handler(request) {
        const { email, password } = request.body as Static<typeof S.Registration>;
        const user = await auth.register(email.toLowerCase(), password, contextOf(request));
        return JSON.stringify(userView(user, exchange, request.now));
      },
    }),
    route({
      method: "POST",
      path: "/auth/verify-email",
      summary:
        "Verify the e-mail address with the token of the mailed link and the account's password, which the account's " +
        "own session may leave out; ends all access from before, except that session",
      knowsHolder: true,
      body: S.EmailVerification,
      response: S.User,
      async handler(request) {
        const { token, password = null } = request.body as Static<typeof S.EmailVerification>;
        const user = await auth.verifyEmail(token, password, request.principal, contextOf(request));
        return JSON.stringify(userView(user, exchange, request.now));
      },
    }),
    mailRoute(
      "/auth/resend-verification",
      "Mail another verification link where the address waits for one",
      (email, context) => auth.resendVerification(email, context),
    ),
    route({
      method: "POST",
      path: "/auth/login",
      summary:
        "Sign in with e-mail and password. With cookie: true the refresh token comes in an HttpOnly cookie that " +
        "POST /auth/refresh takes, and refresh_token is null; the Content-Type must be application/json then. An account " +
        "with a second factor is answered with a challenge for POST /auth/login/second-factor in the place of tokens",
      rateClass: "identifier",
      headers: ["user-agent", ...COOKIE_GUARDS],
      body: S.Credentials,
      response: FirstStep,
      async handler(request) {
        const { email, password, cookie: inCookie = false } = request.body as Static<typeof S.Credentials>;
        // Or a page of another site could sign its visitors in as somebody else.
        if (inCookie) cookie.mayUse(request.headers);
        const found = await auth.login(email.toLowerCase(), password, contextOf(request));
        if (!inCookie || "challenge" in found) return answer(request, found);
        request.reply.header("Set-Cookie", cookie.keep(found, request.now));
        return signedInJson(found, null, exchange, request.now);
      },
    }),
    route({
      method: "POST",
      path: "/auth/refresh",
      summary:
        "New tokens for a refresh token, which is spent; one that comes twice ends the session. Without one in the body " +
        "that of the cookie counts, and the next comes in the cookie, with refresh_token null; the one spent last is " +
        `good for ${REFRESH_GRACE_MS / 1_000} s more there, for pages that load twice at once`,
      rateClass: "refresh",
      headers: ["cookie", ...COOKIE_GUARDS],
      body: S.RefreshToken,
      response: S.Tokens,
      async handler(request) {
        const { refresh_token } = request.body as Static<typeof S.RefreshToken>;
        if (refresh_token === undefined) return refreshByCookie(request);
        const { accessToken, refreshToken } = await auth.refresh(refresh_token, contextOf(request));
        return JSON.stringify({ access_token: accessToken, refresh_token: refreshToken });
      },
    }),
    route({
      ...OWN_SESSION,
      method: "POST",
      path: "/auth/logout",
      unverified: true,
      summary: "End the session at once, with its sockets; takes the cookie away",
      headers: ["cookie"],
      response: Nothing,
      async handler(request) {
        await auth.logout(request.principal!, contextOf(request));
        if (cookie.read(request.headers["cookie"]!) !== null) request.reply.header("Set-Cookie", cookie.remove());
        return "null";
      },
    }),
    mailRoute(
      "/auth/forgot-password",
      "Mail a link to set a password where the address has an account",
      (email, context) => auth.forgotPassword(email, context),
    ),
    route({
      method: "POST",
      path: "/auth/reset-password",
      summary: "Set a password with the token of the mailed link; ends every session, personal access token and grant",
      body: S.PasswordReset,
      response: Nothing,
      async handler(request) {
        const { token, password } = request.body as Static<typeof S.PasswordReset>;
        await auth.resetPassword(token, password, contextOf(request));
        return "null";
      },
    }),
    route({
      method: "GET",
      path: "/auth/social",
      summary: "Identity providers offered in a jurisdiction",
      query: S.JurisdictionQuery,
      response: S.SocialProviders,
      handler({ query }) {
        const { jurisdiction = null } = query as Static<typeof S.JurisdictionQuery>;
        return JSON.stringify({ providers: social.offered(jurisdiction), jurisdictions: social.jurisdictions() });
      },
    }),
    route({
      method: "GET",
      path: "/auth/social/:provider",
      summary:
        "Sign in through an identity provider: sends the browser there. With return_to, a path on the web page, the " +
        "sign-in ends at the page, with the refresh token in the cookie; without it with JSON",
      query: S.SocialStartQuery,
      response: Nothing,
      status: 302,
      failurePage,
      async handler({ params, query, now, reply }) {
        const { jurisdiction = null, return_to = null } = query as Static<typeof S.SocialStartQuery>;
        const { location, state, binding } = await social.start(params[0], jurisdiction, now, return_to);
        reply.header("Set-Cookie", setCookie(attemptCookie(state), binding, ATTEMPT_RULES, publicUrl()));
        reply.redirect(location);
        return undefined;
      },
    }),
    route({
      method: "GET",
      path: "/auth/social/:provider/callback",
      summary:
        "Where the identity provider sends the browser back to: answers as a sign-in does, or, where that began with " +
        "return_to, sends the browser to /sign-in/done?to= of the web page, or to /sign-in?error=&message=; where the " +
        "account has a second factor, to /sign-in?to= with the challenge in the fragment, which no server is sent",
      headers: ["user-agent", "cookie"],
      query: S.CallbackQuery,
      response: FirstStep,
      failurePage,
      async handler(request) {
        const { params, query, now, headers, reply } = request;
        const given = query as Record<string, string>;
        const state = given["state"] ?? "";
        const signIn = async (): Promise<SignedIn | Challenge> => {
          const binding = cookieIn(headers["cookie"]!, attemptCookie(state), publicUrl());
          const identity = await social.finish(params[0], new URLSearchParams(given).toString(), binding, now);
          return auth.signInBy(params[0], identity, contextOf(request));
        };
        const returnTo = social.returnTo(state);
        if (returnTo === null) {
          return answer(request, await signIn());
        }
        // No token stands in a URL: the page gets its own by the cookie.
        try {
          const found = await signIn();
          const to = encodeURIComponent(returnTo);
          if ("challenge" in found) {
            reply.redirect(`${publicUrl()}/sign-in?to=${to}#${encodeURIComponent(challengeJson(found))}`);
          } else {
            reply.header("Set-Cookie", cookie.keep(found, now));
            reply.redirect(`${publicUrl()}/sign-in/done?to=${to}`);
          }
        } catch (thrown) {
          const error = asApiError(thrown);
          reply.redirect(failurePage(error), error);
        }
        return undefined;
      },
    }),
  ];
}

/** Each attempt has a cookie of its own, so that two tabs don't meet. */
function attemptCookie(state: string): string {
  return `${ATTEMPT_COOKIE}_${state.replaceAll(/[^A-Za-z0-9_-]/g, "").slice(0, 16)}`;
}

function isUnauthenticated(error: unknown): boolean {
  return error instanceof ApiError && error.kind === ErrorKind.unauthenticated;
}

// ---------------------------------------------------------------- the caller

function ownRoutes({ auth, accounts, exchange, kyc }: AccountRouteContext): Route[] {
  return [
    route({
      method: "GET",
      path: "/me",
      summary: "The caller's account; a third party is not told e-mail and phone",
      access: "user",
      response: S.Account,
      handler({ principal, now }) {
        const view = userView(principal!.credential.user, exchange, now);
        return JSON.stringify(principal!.kind === "oauth" ? { ...view, email: null, phone: null } : view);
      },
    }),
    route({
      ...OWN_SESSION,
      method: "POST",
      path: "/me/password",
      summary: "Change the password; ends the other sessions",
      body: S.PasswordChange,
      response: Nothing,
      async handler(request) {
        const body = request.body as Static<typeof S.PasswordChange>;
        await auth.changePassword(request.principal!, body.current, body.new, contextOf(request));
        return "null";
      },
    }),
    route({
      ...OWN_SESSION,
      method: "POST",
      path: "/me/phone",
      summary: "Send a code to a phone number",
      body: S.PhoneNumber,
      response: Nothing,
      status: 202,
      async handler(request) {
        const { phone } = request.body as Static<typeof S.PhoneNumber>;
        await kyc.sendPhoneCode(request.principal!, readPhoneNumber(phone), contextOf(request));
        return "null";
      },
    }),
    route({
      ...OWN_SESSION,
      method: "POST",
      path: "/me/phone/verify",
      summary: "Verify the phone number with the code; five wrong codes end it",
      body: S.PhoneCode,
      response: S.User,
      async handler(request) {
        const { code } = request.body as Static<typeof S.PhoneCode>;
        const user = await kyc.verifyPhone(request.principal!, code, contextOf(request));
        return JSON.stringify(userView(user, exchange, request.now));
      },
    }),
    route({
      ...OWN_SESSION,
      method: "POST",
      path: "/me/identity",
      summary: "Apply for KYC tier 2 with a government ID; an operator decides",
      minTier: 1,
      body: S.IdentityDocument,
      response: S.IdentityApplication,
      status: 201,
      async handler(request) {
        const body = request.body as Static<typeof S.IdentityDocument>;
        const document = { ...body, document_type: String(body.document_type) };
        const row = await kyc.applyForTier2(request.principal!, document, contextOf(request));
        return identityJson(row);
      },
    }),
    route({
      ...OWN_SESSION,
      method: "GET",
      path: "/me/identity",
      summary: "The caller's last application for KYC tier 2",
      response: S.IdentityApplication,
      handler({ principal }) {
        const row = accounts.identityApplication(principal!.userId);
        if (row === undefined || row.id === 0) throw notFound("application");
        return identityJson(row);
      },
    }),
  ];
}

export function userView(user: User, { ledger }: Exchange, now: number): object {
  return {
    id: user.id,
    email: user.email,
    email_verified: user.emailVerifiedAt !== null,
    phone: user.phone,
    phone_verified: user.phoneVerifiedAt !== null,
    kyc_tier: user.kycTier,
    role: user.role,
    daily_activity: { used: ledger.activity(user.id, utcDay(now)), limit: dailyLimitOf(user) },
    created_at: user.createdAt,
  };
}

function identityJson(row: NonNullable<ReturnType<Accounts["identityApplication"]>>): string {
  const { id, documentType, country, status, note, createdAt, decidedAt } = row;
  const times = { created_at: createdAt, decided_at: decidedAt };
  return JSON.stringify({ id, document_type: documentType, country, status, note, ...times });
}

// ---------------------------------------------------------------- tokens and sessions

function tokenRoutes({ accounts, pats, sessions }: AccountRouteContext): Route[] {
  return [
    route({
      ...OWN_SESSION,
      method: "GET",
      path: "/me/personal-access-tokens",
      summary: "The caller's personal access tokens, newest first",
      query: PageQuery,
      response: pageOf(S.Pat),
      handler: ({ principal, query }) =>
        page(ownList("/me/personal-access-tokens", principal!), accounts.pats.of(principal!.userId), query, patView),
    }),
    route({
      ...OWN_SESSION,
      method: "POST",
      path: "/me/personal-access-tokens",
      summary: "Make a personal access token; its text is shown this once",
      body: S.NewPat,
      response: S.CreatedPat,
      status: 201,
      async handler(request) {
        const { name, scopes, expires_at = null, allowed_ips = null } = request.body as Static<typeof S.NewPat>;
        const wish = { name, scopes: scopes as string[], expiresAt: expires_at, allowedIps: allowed_ips };
        const { pat, token } = await pats.create(request.principal!, wish, contextOf(request));
        return JSON.stringify({ ...patView(pat), token });
      },
    }),
    route({
      ...OWN_SESSION,
      method: "DELETE",
      path: "/me/personal-access-tokens/:id",
      summary: "Revoke a personal access token at once, with its sockets",
      response: Nothing,
      async handler(request) {
        await pats.revoke(request.principal!, pathId(request.params[0], "token"), contextOf(request));
        return "null";
      },
    }),
    route({
      ...OWN_SESSION,
      method: "GET",
      path: "/me/sessions",
      summary: "The caller's sessions, newest first",
      query: PageQuery,
      response: pageOf(S.Session),
      handler({ principal, query }) {
        const own = accounts.sessions.of(principal!.userId).filter(({ grant }) => grant === null);
        return page(ownList("/me/sessions", principal!), own, query, (session) => sessionView(session, principal!));
      },
    }),
    route({
      ...OWN_SESSION,
      method: "DELETE",
      path: "/me/sessions",
      summary: "End the caller's other sessions at once, with their sockets; what third parties were given stays",
      response: Nothing,
      async handler(request) {
        await sessions.endOthers(request.principal!, "ended_by_user", contextOf(request));
        return "null";
      },
    }),
    route({
      ...OWN_SESSION,
      method: "DELETE",
      path: "/me/sessions/:id",
      summary: "End a session at once, with its sockets",
      response: Nothing,
      async handler(request) {
        const { principal, params } = request;
        const session = accounts.sessions.get(pathId(params[0], "session"));
        if (session === undefined || session.user.id !== principal!.userId || session.grant !== null) {
          throw notFound("session");
        }
        await sessions.end([session], "ended_by_user", actorOf(principal!), contextOf(request));
        return "null";
      },
    }),
  ];
}

/** A list of the caller's own, without filters. */
export const ownList = (name: string, { userId }: Principal): Listing => new Listing(name, { userId });

/** A page of a caller's few rows. */
export function page<T extends { readonly id: number }>(
  listing: Listing,
  rows: readonly T[],
  query: unknown,
  view: (row: T) => object,
): string {
  const { before, limit } = listing.page(query as Static<typeof PageQuery>);
  const found = rows.filter(({ id }) => id < before).sort((a, b) => b.id - a.id);
  const shown = found.slice(0, limit);
  const next = found.length > limit ? shown.at(-1)!.id : null;
  return listing.json(
    shown.map((row) => JSON.stringify(view(row))),
    next,
  );
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

// ---------------------------------------------------------------- third parties

function clientRoutes({ accounts, oauth }: AccountRouteContext): Route[] {
  return [
    route({
      ...OWN_SESSION,
      method: "GET",
      path: "/me/oauth-grants",
      summary: "What the caller lets third parties do, newest first",
      query: PageQuery,
      response: pageOf(OAuthGrant),
      handler({ principal, query }) {
        const rows = accounts.grants.of(principal!.userId).map((grant) => ({ id: grant.row.id, grant }));
        return page(ownList("/me/oauth-grants", principal!), rows, query, ({ grant }) => grantView(grant));
      },
    }),
    route({
      ...OWN_SESSION,
      method: "DELETE",
      path: "/me/oauth-grants/:id",
      summary: "Revoke all access of the third party at once",
      response: Nothing,
      async handler(request) {
        await oauth.grants.revoke(request.principal!, pathId(request.params[0], "grant"), contextOf(request));
        return "null";
      },
    }),
    route({
      ...OWN_SESSION,
      method: "GET",
      path: "/me/oauth-clients",
      summary: "The caller's third-party clients, newest first",
      query: PageQuery,
      response: pageOf(OAuthClientSchema),
      handler({ principal, query }) {
        const rows = accounts.clients.of(principal!.userId).map((client) => ({ id: client.row.id, client }));
        return page(ownList("/me/oauth-clients", principal!), rows, query, ({ client }) => clientView(client));
      },
    }),
    route({
      ...OWN_SESSION,
      method: "GET",
      path: "/me/oauth-clients/:id",
      summary: "One of the caller's third-party clients",
      response: OAuthClientSchema,
      handler({ principal, params }) {
        const client = accounts.clients.get(pathId(params[0], "client"));
        if (client === undefined || client.row.userId !== principal!.userId) throw notFound("client");
        return JSON.stringify(clientView(client));
      },
    }),
    route({
      ...OWN_SESSION,
      method: "POST",
      path: "/me/oauth-clients",
      summary: "Register a third-party client; its secret is shown this once",
      rateClass: "registration",
      body: NewOAuthClient,
      response: CreatedOAuthClient,
      status: 201,
      async handler(request) {
        const { name, redirect_uris, confidential } = request.body as Static<typeof NewOAuthClient>;
        const wish = { name, redirectUris: redirect_uris, isConfidential: confidential };
        const { client, secret } = await oauth.clients.create(request.principal!, wish, contextOf(request));
        return JSON.stringify({ ...clientView(client), client_secret: secret });
      },
    }),
    route({
      ...OWN_SESSION,
      method: "DELETE",
      path: "/me/oauth-clients/:id",
      summary: "Remove a third-party client, and all access that it was given",
      response: Nothing,
      async handler(request) {
        await oauth.clients.remove(request.principal!, pathId(request.params[0], "client"), contextOf(request));
        return "null";
      },
    }),
    route({
      ...OWN_SESSION,
      method: "GET",
      path: "/oauth/clients/:client_id",
      summary: "A third-party client as the consent page shows it to whoever is to decide",
      response: AskingClient,
      handler({ params }) {
        const client = accounts.clientByName(params[0]);
        if (client === undefined) throw notFound("client");
        const { clientId: client_id, name, createdAt: created_at } = client.row;
        return JSON.stringify({ client_id, name, redirect_uris: client.redirectUris, created_at });
      },
    }),
    route({
      ...OWN_SESSION,
      method: "POST",
      path: "/oauth/authorize",
      summary: "The user's decision on the consent page: answers where to send the browser",
      body: AuthorizeDecision,
      response: RedirectTo,
      async handler(request) {
        const { decision, ...params } = request.body as Static<typeof AuthorizeDecision>;
        const isApproved = decision === "approve";
        const location = await oauth.authorization.decide(
          params as Params,
          request.principal!,
          isApproved,
          contextOf(request),
        );
        return JSON.stringify({ redirect_to: location });
      },
    }),
  ];
}

function clientView({ row, redirectUris }: OAuthClient): object {
  return {
    id: row.id,
    client_id: row.clientId,
    name: row.name,
    redirect_uris: redirectUris,
    confidential: row.secretHash !== null,
    created_at: row.createdAt,
  };
}

function grantView({ row, client, lastUsedAt }: Grant): object {
  return {
    id: row.id,
    client_id: client.row.clientId,
    client_name: client.row.name,
    scopes: row.scopes.split(" "),
    created_at: row.createdAt,
    last_used_at: lastUsedAt === 0 ? null : lastUsedAt,
  };
}
