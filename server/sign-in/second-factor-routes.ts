/** The routes of second factors: the second step of a sign-in, the owner's settings, and resets by operators. */

import type { SecondFactorRow } from "../../engine/log/rows.ts";
import type { Accounts } from "../accounts/accounts.ts";
import { type Approvals, approvalView, withFirstApproval } from "../accounts/approvals.ts";
import { contextOf } from "../accounts/audit.ts";
import { PROOF_MS } from "../accounts/limits.ts";
import { noteOf, OPERATOR, operatorOf } from "../accounts/operator.ts";
import { SignIn } from "../accounts/schemas.ts";
import { ApiError, ErrorKind, notFound } from "../errors.ts";
import { OWN_SESSION, pathId, type Route, route, SECRET_ONCE, SIGNS_IN } from "../http/route.ts";
import { Nothing } from "../http/schemas.ts";
import { NoteOnly } from "../http/text-schemas.ts";
import { secondFactorResetRequestedMail } from "../messages/mail-templates.ts";
import type { Notifier } from "../messages/notifier.ts";
import type { Passkeys } from "./passkeys.ts";
import * as F from "./second-factor-schemas.ts";
import type { SecondFactorSettings } from "./second-factor-settings.ts";
import type { SecondFactors } from "./second-factors.ts";
import { COOKIE_GUARDS, SessionCookie } from "./session-cookie.ts";
import type { SignInContext } from "./sign-in-routes.ts";
import { signedInJson } from "./views.ts";

const RESET = "second_factor.reset";

export interface SecondFactorContext extends SignInContext {
  readonly accounts: Accounts;
  readonly approvals: Approvals;
  readonly notifier: Notifier;
  readonly factors: SecondFactors;
  readonly factorSettings: SecondFactorSettings;
  readonly passkeys: Passkeys;
}

export function createSecondFactorRoutes(context: SecondFactorContext): Route[] {
  return [secondStepRoute(context), ...proofRoutes(context), ...enrolmentRoutes(context), resetRoute(context)];
}

function secondStepRoute({ auth, exchange, publicUrl }: SecondFactorContext): Route {
  const kept = new SessionCookie(publicUrl);
  return route({
    method: "POST",
    path: "/auth/login/second-factor",
    idempotencyKey: SIGNS_IN,
    summary:
      "Complete a sign-in with a second factor: a code (from an authenticator app, or a recovery code) or a passkey. Five " +
      "wrong ones end the challenge; cookie: true works as for POST /auth/login",
    rateClass: "identifier",
    headers: ["user-agent", ...COOKIE_GUARDS],
    body: F.SecondStep,
    response: SignIn,
    async handler(request) {
      const { challenge, code, passkey, cookie = false } = request.body;
      if (cookie) kept.mayUse(request.headers);
      const found = await auth.finishSignIn(challenge, { code, passkey }, contextOf(request));
      if (!cookie) return signedInJson(found, found.refreshToken, exchange, request.now);
      request.reply.header("Set-Cookie", kept.keep(found, request.now));
      return signedInJson(found, null, exchange, request.now);
    },
  });
}

// ---------------------------------------------------------------- the owner's

function proofRoutes({ factors, factorSettings, passkeys }: SecondFactorContext): Route[] {
  return [
    route({
      ...OWN_SESSION,
      method: "GET",
      path: "/me/second-factors",
      summary: "The caller's second factors, newest first, and the number of remaining recovery codes",
      response: F.SecondFactors,
      handler({ principal, now }) {
        const { userId, credential, hasSecondFactor } = principal;
        return JSON.stringify({
          items: factors.of(userId).reverse().map(factorView),
          next_cursor: null,
          recovery_codes_left: factors.codesLeft(userId),
          required: factorSettings.isRequiredOf(credential.user),
          session: hasSecondFactor,
          passkeys: passkeys.rejection,
          proof: factorSettings.proofsOf(principal, now),
        });
      },
    }),
    route({
      ...OWN_SESSION,
      method: "POST",
      path: "/me/second-factors/proof",
      idempotencyKey: "harmless",
      summary: `Prove ownership with the password or a code: the session may then change second factors for ${PROOF_MS / 60_000} minutes`,
      body: F.OwnerProof,
      response: Nothing,
      async handler(request) {
        const proof = request.body;
        await factorSettings.prove(request.principal, proof, contextOf(request));
        return "null";
      },
    }),
  ];
}

function enrolmentRoutes({ factorSettings }: SecondFactorContext): Route[] {
  return [
    route({
      ...OWN_SESSION,
      method: "POST",
      path: "/me/second-factors",
      idempotencyKey: SECRET_ONCE,
      summary: "Start adding a second factor, after a proof; it takes effect once confirmed",
      body: F.NewSecondFactor,
      response: F.Enrolment,
      status: 201,
      handler(request) {
        const { kind, name = null } = request.body;
        const begun = factorSettings.begin(request.principal, kind, name, contextOf(request));
        const { pending, secret, uri, options } = begun;
        const { id, expiresAt: expires_at } = pending;
        const enrolment = { id, kind, name: pending.name, status: "pending", secret, uri, options, expires_at };
        return JSON.stringify(enrolment);
      },
    }),
    route({
      ...OWN_SESSION,
      method: "POST",
      path: "/me/second-factors/:id/confirm",
      idempotencyKey: { instead: "a factor is confirmed once, and only one response can show its recovery codes" },
      summary:
        "Confirm a second factor with one of its codes, or with the browser's response. The first one comes with recovery codes and " +
        "ends all other sessions",
      body: F.Confirmation,
      response: F.Confirmed,
      async handler(request) {
        const id = pathId(request.params[0], "second factor");
        const shown = request.body;
        const { factor, codes } = await factorSettings.confirm(request.principal, id, shown, contextOf(request));
        return JSON.stringify({ factor: factorView(factor), recovery_codes: codes });
      },
    }),
    route({
      ...OWN_SESSION,
      method: "POST",
      path: "/me/second-factors/recovery-codes",
      idempotencyKey: { instead: "only one response can show the codes; if it is lost, replace them again" },
      summary: "Replace the recovery codes, after a proof",
      response: F.RenewedCodes,
      status: 201,
      async handler(request) {
        const recovery_codes = await factorSettings.renewCodes(request.principal, contextOf(request));
        return JSON.stringify({ recovery_codes });
      },
    }),
    route({
      ...OWN_SESSION,
      method: "DELETE",
      path: "/me/second-factors/:id",
      summary: "Remove a second factor, after a proof; removing the last one also removes the recovery codes",
      response: Nothing,
      async handler(request) {
        const id = pathId(request.params[0], "second factor");
        await factorSettings.remove(request.principal, id, contextOf(request));
        return "null";
      },
    }),
  ];
}

function factorView({ id, kind, name, createdAt, lastUsedAt }: SecondFactorRow): object {
  return { id, kind, name, created_at: createdAt, last_used_at: lastUsedAt };
}

// ---------------------------------------------------------------- operators'

/** Two operators must request a reset, whatever the two-person rule covers. */
function resetRoute({ accounts, approvals, factors, factorSettings, notifier }: SecondFactorContext): Route {
  return route({
    ...OPERATOR,
    method: "POST",
    path: "/admin/users/:id/second-factors/reset",
    idempotencyKey: "harmless",
    summary:
      "Remove the second factors of a user who lost them and end the user's sessions, once another operator has requested the same",
    body: NoteOnly,
    response: F.FactorReset,
    async handler(request) {
      const user = accounts.user(pathId(request.params[0], "user"));
      if (user === undefined) throw notFound("user");
      const own = factors.of(user.id);
      if (own.length === 0) throw new ApiError(ErrorKind.conflict, "the account has no second factor");
      const [operator, context] = [operatorOf(request), contextOf(request)];
      // The second operator approves the removal of today's factors: an old approval doesn't cover newer ones.
      const details = { email: user.email, factors: own.map(({ id }) => id) };
      const action = { rule: "always", action: RESET, subject: user.id, details, userId: user.id } as const;
      const isFirst = approvals.find(RESET, user.id) === null;
      const requested = await approvals.request(action, operator, context, (ending, first) =>
        factorSettings.reset(user, withFirstApproval({ note: noteOf(request) }, first), operator, context, ending),
      );
      const { approval } = requested;
      if (approval !== null && isFirst) notifier.sendMail(secondFactorResetRequestedMail(user.email));
      return JSON.stringify({ done: approval === null, approval: approval && approvalView(approval) });
    },
  });
}
