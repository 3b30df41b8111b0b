/** The routes of the caller's own account: its record, phone and identity. */

import { OWN_SESSION, type Route, route } from "../http/route.ts";
import { Nothing, nullable } from "../http/schemas.ts";
import type { Accounts } from "./accounts.ts";
import { contextOf } from "./audit.ts";
import type { KycVerification } from "./kyc.ts";
import { readPhoneNumber } from "./phone-numbers.ts";
import * as S from "./schemas.ts";
import { type LedgerOwner, userView } from "./views.ts";

export interface AccountRouteContext {
  readonly accounts: Accounts;
  readonly kyc: KycVerification;
  readonly exchange: LedgerOwner;
}

export function createAccountRoutes(context: AccountRouteContext): Route[] {
  return [ownRoute(context), ...identityRoutes(context)];
}

// ---------------------------------------------------------------- the account

function ownRoute({ exchange }: AccountRouteContext): Route {
  return route({
    method: "GET",
    path: "/me",
    summary: "The caller's account; third parties don't see email and phone",
    access: "user",
    response: S.Account,
    handler({ principal, now }) {
      const view = userView(principal.credential.user, exchange, now);
      return JSON.stringify(principal.kind === "oauth" ? { ...view, email: null, phone: null } : view);
    },
  });
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
        const context = contextOf(request);
        await kyc.sendPhoneCode(request.principal, await readPhoneNumber(phone), context);
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
