/**
 * Changes of a user's row: in memory at once, and the write that makes them durable. And what holds for a user: its own
 * terms where an operator set some, else what holds for everybody.
 */
import { TERM_NAMES, type UserTerms } from "../engine/journal/load.ts";
import type { AccountWrite } from "../engine/journal/writes.ts";
import { DAILY_ACTIVITY_LIMIT_MICRO } from "../engine/limits.ts";
import type { User } from "./accounts.ts";

type Changes = Partial<
  Pick<User, "passwordHash" | "emailVerifiedAt" | "phone" | "phoneVerifiedAt" | "kycTier" | "suspendedAt" | "role">
>;

/** Tier 1 is reached with the second of e-mail and phone. Section "Account KYC tiers" of the specification. */
export function changeUser(user: User, changes: Changes): AccountWrite {
  Object.assign(user, changes);
  const reached = user.kycTier === 0 && user.emailVerifiedAt !== null && user.phoneVerifiedAt !== null;
  if (reached) user.kycTier = 1;
  const all: Changes = reached ? { ...changes, kycTier: 1 } : changes;
  return { kind: "update", table: "users", id: user.id, set: all };
}

/** Two requests that change different terms at one time both count: each writes all of them as they are now. */
export function changeTerms(user: User, changes: Partial<UserTerms>): AccountWrite {
  Object.assign(user, changes);
  const terms = Object.fromEntries(TERM_NAMES.map((name) => [name, user[name]])) as unknown as UserTerms;
  return { kind: "setTerms", userId: user.id, ...terms };
}

/** What the user may trade on a UTC day, micro-USDC. */
export function dailyLimitOf({ dailyLimit, kycTier }: User): number {
  return dailyLimit ?? DAILY_ACTIVITY_LIMIT_MICRO[kycTier] ?? 0;
}
