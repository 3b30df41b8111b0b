/** Changes to a user's row and terms: applied to memory at once, and returned as the write that makes them durable. */

import { TERM_NAMES, type UserTerms } from "../../engine/log/user-terms.ts";
import { makerRebateBps, tradingFeeBps } from "../../engine/money.ts";
import { badRequest } from "../errors.ts";
import type { RequestedWrite } from "../writes/types.ts";
import type { User } from "./types.ts";

type Changes = Partial<
  Pick<
    User,
    | ("passwordHash" | "emailVerifiedAt" | "phone" | "phoneVerifiedAt" | "kycTier" | "suspendedAt" | "role")
    | ("watchlist" | "notifications" | "priceAlerts")
  >
>;

/** Verifying both email and phone reaches tier 1: section "Account KYC tiers" of the specification. */
export function changeUser(user: User, changes: Changes): RequestedWrite {
  Object.assign(user, changes);
  const reached = user.kycTier === 0 && user.emailVerifiedAt !== null && user.phoneVerifiedAt !== null;
  if (reached) user.kycTier = 1;
  const all: Changes = reached ? { ...changes, kycTier: 1 } : changes;
  return { kind: "update", table: "users", id: user.id, set: all };
}

/** True for an unverified registration, which can do nothing else. Accounts that operators created are exempt. */
export function mustVerify({ emailVerifiedAt, role, isSeeded }: User): boolean {
  return emailVerifiedAt === null && role !== "operator" && isSeeded !== true;
}

/**
 * No rebate may exceed the account's trading fee, so that nobody earns money by trading with themselves. Checks the
 * account's own terms or the defaults. Contract, section 6.
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
 * Writes all terms, so that two concurrent requests for different terms both take effect.
 * @throws ApiError 40000 if a rebate would exceed the fee; nothing changes then
 */
export function changeTerms(user: User, changes: Partial<UserTerms>): RequestedWrite {
  checkRates({ ...user, ...changes });
  Object.assign(user, changes);
  const terms = Object.fromEntries(TERM_NAMES.map((name) => [name, user[name]])) as unknown as UserTerms;
  return { kind: "setTerms", userId: user.id, ...terms };
}
