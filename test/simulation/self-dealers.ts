/**
 * Accounts that trade only with each other, in their own markets, on the best possible terms. No one else brings money to
 * these markets, so whatever the dealers do, they never have more than they paid in.
 */
import { ensure } from "../engine/book/harness.ts";
import { MICRO_PER_SET } from "../support/reference.ts";
import type { Committed } from "./committed.ts";

const DEALERS = 3;
/** Smaller exchanges have none: they belong to tests with a fixed course. */
const LEAST_USERS = 5;
const OWN_MARKET = "dealers-";

/** The dealers' share of all actions, and how they behave: their prices cross, so that everything matches. */
export const DEALING = 0.2;
export const DEALERS_MOOD = { gap: -120, depth: 3, cancels: 0.5, most: 60, sweeps: 0, focuses: false };

/** The dealers among `users` users: the last ones. */
export function dealersOf(users: number): number[] {
  return users < LEAST_USERS ? [] : Array.from({ length: DEALERS }, (_, i) => users - i);
}

export const ownSlug = (name: string): string => OWN_MARKET + name;
export const isOwnMarket = ({ slug }: { readonly slug: string }): boolean => slug.startsWith(OWN_MARKET);

/** The terms of a dealer: any that an operator can set, even rebates above fees. */
export function dealersTerms(pick: (rates: readonly (number | null)[]) => number | null) {
  return {
    tradingFee: pick([null, 0, 0, 1, 5, 1_000]),
    makerRebate: pick([null, 0, 150]),
    patRebate: pick([null, 1, 150]),
    mergeFee: pick([null, 0, 0, 7, 1_000]),
  };
}

/**
 * The dealers' wealth, with each set of their markets at its final 1 USDC, never exceeds what they deposited and didn't
 * withdraw. @param markets theirs
 */
export function expectNoProfit(record: Committed, dealers: readonly number[], markets: readonly number[]): void {
  const known = new Set(dealers);
  let worth = 0;
  for (const user of dealers) worth += record.account(user).balance;
  for (const id of markets) worth += record.markets.get(id)!.sets * MICRO_PER_SET;
  for (const [user, { holdings }] of record.accounts) {
    for (const [outcome, { quantity }] of holdings) {
      const isOwn = markets.includes(record.marketOf[outcome]!);
      ensure(quantity === 0 || isOwn === known.has(user), `user ${user} has shares of outcome ${outcome}`);
    }
  }
  let paidIn = 0;
  for (const [, user, type, amount] of record.entries) {
    if (known.has(Number(user)) && (type === "deposit" || type === "withdrawal")) paidIn += Number(amount);
  }
  ensure(worth <= paidIn, `the dealers paid ${paidIn} in and have ${worth}`);
}
