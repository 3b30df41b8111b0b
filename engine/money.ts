/**
 * The exchange's arithmetic: notionals, fees and rebates in integer micro-USDC. Source: contract, section 2, "Money".
 * Every product stays below 2^53 by the bounds of limits.ts, so each result is exact.
 */
import { Side } from "./constants.ts";
import { FULL_PRICE_BPS, MAKER_REBATE_BPS, MICRO_PER_BPS, PAT_REBATE_BPS, TRADING_FEE_BPS } from "./limits.ts";

/** The cost of `quantity` shares at `priceBps`, micro-USDC. */
export function notionalMicro(priceBps: number, quantity: number): number {
  return priceBps * quantity * MICRO_PER_BPS;
}

/** What a fill did to the balance before fee and rebate, micro-USDC: negative for a buyer. @param fill its price in BPS */
export function tradedMicro({ side, price, quantity }: { side: number; price: number; quantity: number }): number {
  const notional = notionalMicro(price, quantity);
  return side === Side.buy ? -notional : notional;
}

/**
 * What the last prices of a market's outcomes leave of a complete set, because exactly one outcome pays: BPS, and how many
 * outcomes without a price (null) share it.
 */
function leftOver(prices: readonly (number | null)[]): { rest: number; unpriced: number } {
  let rest = FULL_PRICE_BPS;
  let unpriced = 0;
  for (const price of prices) {
    if (price === null) unpriced++;
    else rest -= price;
  }
  return { rest: Math.max(0, rest), unpriced };
}

/**
 * The price of an outcome by the last prices of all, BPS: its own, or where all others have one, what these leave. Null
 * if unknown.
 */
export function markPrice(prices: readonly (number | null)[], index: number): number | null {
  const own = prices[index] ?? null;
  if (own !== null) return own;
  const { rest, unpriced } = leftOver(prices);
  return unpriced === 1 ? rest : null;
}

/** The worth of shares of an outcome, micro-USDC: as `markPrice`, and outcomes without a price share equally what is left. */
export function valueMicro(prices: readonly (number | null)[], index: number, quantity: number): number {
  const own = prices[index] ?? null;
  if (own !== null) return notionalMicro(own, quantity);
  const { rest, unpriced } = leftOver(prices);
  return Math.floor(notionalMicro(rest, quantity) / unpriced);
}

/** The seller's trading fee of 1.5 %, rounded up: ceil(n * 150 / 10000) with n = 100 * price * quantity. */
export function tradingFeeMicro(priceBps: number, quantity: number): number {
  return Math.ceil((priceBps * quantity * 3) / 2);
}

/** The resting side's rebate, rounded down: 5 BPS of the notional, 10 BPS for orders placed with a PAT. */
export function makerRebateMicro(priceBps: number, quantity: number, pat: boolean): number {
  return Math.floor((priceBps * quantity) / (pat ? 10 : 20));
}

/** A user's trading fee on sales, BPS: individual, or the default. */
export function tradingFeeBps({ tradingFee }: { readonly tradingFee: number | null }): number {
  return tradingFee ?? TRADING_FEE_BPS;
}

/** The rebate of a user's resting order, BPS: individual, or the default. @param pat the order was placed with a PAT */
export function makerRebateBps(
  { makerRebate, patRebate }: { readonly makerRebate: number | null; readonly patRebate: number | null },
  pat: boolean,
): number {
  return pat ? (patRebate ?? PAT_REBATE_BPS) : (makerRebate ?? MAKER_REBATE_BPS);
}

/** A user's merge fee, BPS of 1 USDC per set: individual, or `usual`. */
export function mergeFeeBps({ mergeFee }: { readonly mergeFee: number | null }, usual: number): number {
  return mergeFee ?? usual;
}

/** The fee for merging `quantity` complete sets, micro-USDC. Exact, because a set is 1 USDC. */
export function mergeFeeMicro(quantity: number, feeBps: number): number {
  return quantity * feeBps * MICRO_PER_BPS;
}

/** ceil(n * fee / 10000), for a user with an individual fee. @param feeBps BPS of the notional */
export function ownFeeMicro(priceBps: number, quantity: number, feeBps: number): number {
  const hundredfold = priceBps * quantity;
  const floor = mulDivFloor(hundredfold, feeBps, MICRO_PER_BPS);
  // Round up if the division left a remainder.
  return ((hundredfold % MICRO_PER_BPS) * feeBps) % MICRO_PER_BPS === 0 ? floor : floor + 1;
}

/** floor(n * rebate / 10000), for a user with an individual rebate. @param rebateBps BPS of the notional */
export function ownRebateMicro(priceBps: number, quantity: number, rebateBps: number): number {
  return mulDivFloor(priceBps * quantity, rebateBps, MICRO_PER_BPS);
}

/** floor(a * b / c) for non-negative integers, exact even if a * b exceeds 2^53. */
export function mulDivFloor(a: number, b: number, c: number): number {
  const product = a * b;
  if (product <= Number.MAX_SAFE_INTEGER) return Math.floor(product / c);
  return Number((BigInt(a) * BigInt(b)) / BigInt(c));
}

/** One of `count` equal parts of `amount`; the remainder goes to the first parts. @param index from 0 */
export function equalPart(amount: number, index: number, count: number): number {
  const part = Math.floor(amount / count);
  return index < amount - part * count ? part + 1 : part;
}

export const MS_PER_HOUR = 3_600_000;
export const MS_PER_DAY = 86_400_000;

/** The UTC day of a time, in days since the epoch. */
export function utcDay(atMs: number): number {
  return Math.floor(atMs / MS_PER_DAY);
}
