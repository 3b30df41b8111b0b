/**
 * Changes of a user's row: in memory at once, and the write that makes them durable. And what holds for a user: its own
 * terms where an operator set some, else what holds for everybody.
 */

import { makerRebateBps, tradingFeeBps } from "../../engine/money.ts";
import { TERM_NAMES, type UserTerms } from "../../engine/projection/user-terms.ts";
import type { AccountWrite } from "../../engine/projection/writes/account-write.ts";
import { badRequest } from "../errors.ts";
import type { User } from "./types.ts";

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

/** A registration that nobody confirmed: it can do nothing else. Accounts that operators made need not. */
export function mustVerify({ emailVerifiedAt, role, isSeeded }: User): boolean {
  return emailVerifiedAt === null && role !== "operator" && isSeeded !== true;
}

/**
 * No account gets more for a resting order than it pays on its own sales: what it sells to itself must not earn it
 * anything. Counts what an account has, its own terms or everybody's. Contract, section 6.
 * @throws ApiError 40000 naming the rebate and the fee
 */
export function checkRates(terms: Pick<UserTerms, "tradingFee" | "makerRebate" | "patRebate">): void {
  const fee = tradingFeeBps(terms);
  for (const [name, own, isPat] of [
    ["maker_rebate", terms.makerRebate, false],
    ["pat_rebate", terms.patRebate, true],
  ] as const) {
    const rebate = makerRebateBps(terms, isPat);
    if (rebate <= fee) continue;
    const whose = own === null ? " (the default)" : "";
    throw badRequest(`${name}: ${rebate} BPS${whose} exceeds the account's trading_fee of ${fee} BPS`);
  }
}

/**
 * Two requests that change different terms at one time both count: each writes all of them as they are now.
 * @throws ApiError 40000 where the rebates would exceed the fee; then nothing changed
 */
export function changeTerms(user: User, changes: Partial<UserTerms>): AccountWrite {
  checkRates({ ...user, ...changes });
  Object.assign(user, changes);
  const terms = Object.fromEntries(TERM_NAMES.map((name) => [name, user[name]])) as unknown as UserTerms;
  return { kind: "setTerms", userId: user.id, ...terms };
}
