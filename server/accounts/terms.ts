/**
 * An account's own terms where they differ from the defaults, as operators and seed files write them: their JSON names
 * and bounds, and the mapping to the names of engine/projection/load.ts. Knows no route and no user.
 */

import Type, { type Static } from "typebox";
import { MAX_MERGE_FEE_BPS, MAX_MONEY_MICRO, MAX_OWN_RATE_BPS } from "../../engine/limits.ts";
import type { UserTerms } from "../../engine/log/user-terms.ts";
import { closed, nullable } from "../http/schemas.ts";

import { MAX_OWN_LIVE_ORDERS, MAX_OWN_REBATE_BPS, MAX_RATE_LIMIT_FACTOR } from "./limits.ts";

const integer = (minimum: number, maximum: number, description: string) =>
  nullable(Type.Integer({ minimum, maximum, description }));
const OF_NOTIONAL = "BPS of the notional";
const terms = {
  daily_limit: integer(0, MAX_MONEY_MICRO, "of daily activity (entries into positions) a UTC day, micro-USDC"),
  trading_fee: integer(0, MAX_OWN_RATE_BPS, OF_NOTIONAL),
  maker_rebate: integer(0, MAX_OWN_REBATE_BPS, OF_NOTIONAL),
  pat_rebate: integer(0, MAX_OWN_REBATE_BPS, OF_NOTIONAL),
  merge_fee: integer(0, MAX_MERGE_FEE_BPS, "BPS of 1 USDC for each complete set that is merged"),
  rate_limit_factor: integer(1, MAX_RATE_LIMIT_FACTOR, "multiplies the limits of the user"),
  max_live_orders: integer(1, MAX_OWN_LIVE_ORDERS, "orders that may be live at one time"),
};

/** Null: the default. */
export const Terms = closed(terms);
/** A missing term stays the same; null: back to the default. */
export const TermsChange = Type.Partial(Terms, { additionalProperties: false });
export type TermsChange = Static<typeof TermsChange>;

const FIELDS = {
  daily_limit: "dailyLimit",
  trading_fee: "tradingFee",
  maker_rebate: "makerRebate",
  pat_rebate: "patRebate",
  merge_fee: "mergeFee",
  rate_limit_factor: "rateLimitFactor",
  max_live_orders: "maxLiveOrders",
} as const satisfies Record<keyof typeof terms, keyof UserTerms>;

/** The names of all terms in JSON. */
export const TERM_FIELDS = Object.keys(FIELDS) as (keyof typeof FIELDS)[];

export function termsIn(change: TermsChange): Partial<UserTerms> {
  return Object.fromEntries(
    Object.entries(change).map(([name, value]) => [FIELDS[name as keyof typeof FIELDS], value]),
  );
}

export function termsView(terms: UserTerms): Static<typeof Terms> {
  return Object.fromEntries(TERM_FIELDS.map((name) => [name, terms[FIELDS[name]]])) as Static<typeof Terms>;
}
