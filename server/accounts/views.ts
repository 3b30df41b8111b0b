/** The caller's account as JSON. It decides nothing about who may see it. */

import type { Ledger } from "../../engine/ledger.ts";
import { dailyLimitOf } from "./principal.ts";
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
    daily_activity: { used: ledger.activityNow(user.id, now), limit: dailyLimitOf(user) },
    created_at: user.createdAt,
  };
}
