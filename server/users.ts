/** Changes of a user's row: in memory at once, and the write that makes them durable. */
import type { AccountWrite } from "../engine/journal/writes.ts";
import type { User } from "./accounts.ts";

type Changes = Partial<
  Pick<User, "passwordHash" | "emailVerifiedAt" | "phone" | "phoneVerifiedAt" | "kycTier" | "suspendedAt">
>;

/** Tier 1 is reached with the second of e-mail and phone. Section "Account KYC tiers" of the specification. */
export function changeUser(user: User, changes: Changes): AccountWrite {
  Object.assign(user, changes);
  const reached = user.kycTier === 0 && user.emailVerifiedAt !== null && user.phoneVerifiedAt !== null;
  if (reached) user.kycTier = 1;
  const all: Changes = reached ? { ...changes, kycTier: 1 } : changes;
  return { kind: "update", table: "users", id: user.id, set: all };
}
