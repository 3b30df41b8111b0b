/** The terms that an operator can set for one user: limits, fees and rebates. A null term means the default applies. */

export interface UserTerms {
  /** micro-USDC of activity per UTC day. */
  dailyLimit: number | null;
  /** BPS of the notional. */
  tradingFee: number | null;
  makerRebate: number | null;
  /** For orders placed with a PAT. */
  patRebate: number | null;
  /** BPS of the 1 USDC of each complete set that the user merges. */
  mergeFee: number | null;
  /** The multiplier for each rate limit. */
  rateLimitFactor: number | null;
  maxLiveOrders: number | null;
}

/** Every term at its default. */
export const DEFAULT_TERMS: UserTerms = {
  dailyLimit: null,
  tradingFee: null,
  makerRebate: null,
  patRebate: null,
  mergeFee: null,
  rateLimitFactor: null,
  maxLiveOrders: null,
};
/** The names of all terms. */
export const TERM_NAMES = Object.keys(DEFAULT_TERMS) as (keyof UserTerms)[];
