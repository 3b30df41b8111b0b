/** The routes of sign-in through identity providers. The browser carries each attempt in a cookie of its own. */

import { contextOf } from "../accounts/audit.ts";
import * as S from "../accounts/schemas.ts";
import { type ApiError, asApiError } from "../errors.ts";
import { cookieIn, setCookie } from "../http/cookies.ts";
import { type Route, route } from "../http/route.ts";
import { Nothing } from "../http/schemas.ts";
import { FirstStep } from "./second-factor-schemas.ts";
import type { Challenge } from "./second-factor-sign-in.ts";
import { SessionCookie } from "./session-cookie.ts";
import type { SignedIn } from "./sign-in.ts";
import type { SignInContext } from "./sign-in-routes.ts";
import { ATTEMPT_MS, type SocialSignIn } from "./social-sign-in.ts";
import { challengeJson, firstStepJson } from "./views.ts";

export interface SocialSignInContext extends SignInContext {
  readonly social: SocialSignIn;
}

const ATTEMPT_COOKIE = "social_sign_in";
/** Lax: the identity provider sends the browser back with a GET from its own site. */
const ATTEMPT_RULES = { sameSite: "lax", maxAge: ATTEMPT_MS / 1_000 } as const;

export function createSocialSignInRoutes(context: SocialSignInContext): Route[] {
  const { publicUrl } = context;
  const failurePage = ({ kind, message }: ApiError): string =>
    `${publicUrl()}/sign-in?error=${kind.code}&message=${encodeURIComponent(message)}`;
  return [...startRoutes(context, failurePage), callbackRoute(context, failurePage)];
}

type FailurePage = NonNullable<Route["failurePage"]>;

function startRoutes({ social, publicUrl }: SocialSignInContext, failurePage: FailurePage): Route[] {
  return [
    route({
      method: "GET",
      path: "/auth/social",
      summary: "The identity providers of a jurisdiction",
      query: S.JurisdictionQuery,
      response: S.SocialProviders,
      handler({ query }) {
        const { jurisdiction = null } = query;
        return JSON.stringify({ providers: social.offered(jurisdiction), jurisdictions: social.jurisdictions() });
      },
    }),
    route({
      method: "GET",
      path: "/auth/social/:provider",
      summary:
        "Sign in through an identity provider: redirects the browser there. With return_to, a path on the web page, the " +
        "sign-in ends at that page with the refresh token in the cookie; without it, the callback responds with JSON",
      query: S.SocialStartQuery,
      response: Nothing,
      status: 302,
      failurePage,
      async handler({ params, query, now, reply }) {
        const { jurisdiction = null, return_to = null } = query;
        const { location, state, binding } = await social.start(params[0], jurisdiction, now, return_to);
        reply.header("Set-Cookie", setCookie(attemptCookie(state), binding, ATTEMPT_RULES, publicUrl()));
        reply.redirect(location);
        return undefined;
      },
    }),
  ];
}

function callbackRoute({ auth, exchange, social, publicUrl }: SocialSignInContext, failurePage: FailurePage): Route {
  const cookie = new SessionCookie(publicUrl);
  return route({
    method: "GET",
    path: "/auth/social/:provider/callback",
    writes: true,
    summary:
      "The identity provider redirects the browser here. Responds like a sign-in; or, if the sign-in began with return_to, " +
      "redirects to /sign-in/done?to= of the web page, or to /sign-in?error=&message= on failure. If the account has a second " +
      "factor, redirects to /sign-in?to= with the challenge in the fragment, which browsers send to no server",
    headers: ["user-agent", "cookie"],
    query: S.CallbackQuery,
    response: FirstStep,
    failurePage,
    async handler(request) {
      const { params, query, now, headers, reply } = request;
      const given = query as Record<string, string>;
      const { state = "" } = query;
      const signIn = async (): Promise<SignedIn | Challenge> => {
        const binding = cookieIn(headers.cookie, attemptCookie(state), publicUrl());
        const identity = await social.finish(params[0], new URLSearchParams(given).toString(), binding, now);
        return auth.signInBy(params[0], identity, contextOf(request));
      };
      const returnTo = social.returnTo(state);
      if (returnTo === null) return firstStepJson(await signIn(), exchange, now);
      // No URL contains a token: the page gets its own by the cookie.
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
  });
}

/** Each attempt has its own cookie, so that two tabs don't interfere. */
function attemptCookie(state: string): string {
  return `${ATTEMPT_COOKIE}_${state.replaceAll(/[^A-Za-z0-9_-]/g, "").slice(0, 16)}`;
}
