/** Changes of a user's row: in memory at once, and the write that makes them durable. */
import type { AccountWrite } from "../engine/journal/writes.ts";
import type { User } from "./accounts.ts";

const COLUMNS = {
  passwordHash: "password_hash",
  emailVerifiedAt: "email_verified_at",
  phone: "phone",
  phoneVerifiedAt: "phone_verified_at",
  kycTier: "kyc_tier",
  suspendedAt: "suspended_at",
} as const;

type Changes = Partial<Pick<User, keyof typeof COLUMNS>>;

/** Tier 1 is reached with the second of e-mail and phone. Section "Account KYC tiers" of the specification. */
export function changeUser(user: User, changes: Changes): AccountWrite {
  Object.assign(user, changes);
  const reached = user.kycTier === 0 && user.emailVerifiedAt !== null && user.phoneVerifiedAt !== null;
  if (reached) user.kycTier = 1;
  const all: Changes = reached ? { ...changes, kycTier: 1 } : changes;
  const named = Object.entries(all).map(([name, value]) => [COLUMNS[name as keyof Changes], value]);
  return { kind: "update", table: "users", id: user.id, set: Object.fromEntries(named) };
}
