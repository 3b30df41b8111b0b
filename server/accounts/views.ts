/** The caller's account and tokens as JSON. It decides nothing about who may see them. */

import type { Ledger } from "../../engine/ledger.ts";
import { utcDay } from "../../engine/money.ts";
import { dailyLimitOf } from "./principal.ts";
import type { Challenge } from "./second-factor-sign-in.ts";
import type { SignedIn } from "./sign-in.ts";
import type { User } from "./types.ts";

/** What accounts need of the exchange: the users' activity of the day. */
export interface LedgerOwner {
  readonly ledger: Ledger;
}

export function userView(user: User, { ledger }: LedgerOwner, now: number): object {
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

/** @param shown the refresh token, null where the cookie holds it */
export function signedInJson(
  { accessToken, user }: SignedIn,
  shown: string | null,
  exchange: LedgerOwner,
  now: number,
): string {
  return JSON.stringify({ access_token: accessToken, refresh_token: shown, user: userView(user, exchange, now) });
}

/** The response to the first step of a sign-in that needs a second one. */
export function challengeJson({ challenge, methods, passkey, expiresAt }: Challenge): string {
  return JSON.stringify({ challenge, methods, passkey, expires_at: expiresAt });
}

/** The response to a sign-in, with the refresh token in the body. */
export function firstStepJson(found: SignedIn | Challenge, exchange: LedgerOwner, now: number): string {
  return "challenge" in found ? challengeJson(found) : signedInJson(found, found.refreshToken, exchange, now);
}
