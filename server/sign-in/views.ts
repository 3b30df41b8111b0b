/** What a sign-in responds with, as JSON. */
import { type LedgerOwner, userView } from "../accounts/views.ts";
import type { Challenge } from "./second-factor-sign-in.ts";
import type { SignedIn } from "./sign-in.ts";

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
