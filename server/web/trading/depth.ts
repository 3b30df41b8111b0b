/**
 * Order books as ladders of levels, what mint and merge offer beside them, and what an order would come to against both.
 * Pure: prices in BPS, quantities in shares, money in micro-USDC.
 */
import { FULL_PRICE_BPS, MIN_PRICE_BPS } from "../../../engine/limits.ts";
import { notionalMicro, ownFeeMicro } from "../../../engine/money.ts";

export type Level = readonly [price: number, quantity: number];

/** The best first. */
export interface Ladder {
  readonly bids: readonly Level[];
  readonly asks: readonly Level[];
}

/** A price with all that is offered at it, and the part of it that mint or merge offers. */
export interface DepthLevel {
  readonly price: number;
  readonly quantity: number;
  readonly implied: number;
}

export const EMPTY_LADDER: Ladder = { bids: [], asks: [] };

/**
 * What mint (asks) or merge (bids) offers on an outcome: each step takes the best of every other outcome's book, bids to
 * mint and asks to merge, and the smallest quantity among them.
 * @param others the books of the market's other outcomes
 */
function impliedLevels(others: readonly Ladder[], side: "bids" | "asks"): Level[] {
  const taken = others.map((ladder) => (side === "asks" ? ladder.bids : ladder.asks));
  const at = taken.map(() => 0);
  const left = taken.map((levels) => levels[0]?.[1] ?? 0);
  const levels: [number, number][] = [];
  if (left.includes(0)) return levels;
  for (;;) {
    const sum = taken.reduce((total, each, i) => total + each[at[i]!]![0], 0);
    const rest = FULL_PRICE_BPS - sum;
    // The bids of three and more outcomes can pass 10000: a share costs 1 at least, but none is bought below that.
    if (rest < MIN_PRICE_BPS && side === "bids") return levels;
    const price = Math.max(rest, MIN_PRICE_BPS);
    const quantity = Math.min(...left);
    const last = levels.at(-1);
    if (last?.[0] === price) last[1] += quantity;
    else levels.push([price, quantity]);
    for (const [i, each] of taken.entries()) {
      left[i]! -= quantity;
      if (left[i] !== 0) continue;
      const next = each[++at[i]!];
      if (next === undefined) return levels;
      left[i] = next[1];
    }
  }
}

/** One outcome's implied ladder. @param books by outcome */
export function impliedLadder(books: ReadonlyMap<number, Ladder>, outcomeIds: readonly number[], id: number): Ladder {
  const others = outcomeIds.filter((each) => each !== id).map((each) => books.get(each) ?? EMPTY_LADDER);
  return { bids: impliedLevels(others, "bids"), asks: impliedLevels(others, "asks") };
}

/** Both ladders of a side as one, the best first. */
export function combineDepth(direct: readonly Level[], implied: readonly Level[], side: "bids" | "asks"): DepthLevel[] {
  const sign = side === "asks" ? 1 : -1;
  const byPrice = new Map<number, DepthLevel>();
  for (const [price, quantity] of direct) byPrice.set(price, { price, quantity, implied: 0 });
  for (const [price, quantity] of implied) {
    const found = byPrice.get(price)?.quantity ?? 0;
    byPrice.set(price, { price, quantity: found + quantity, implied: quantity });
  }
  return [...byPrice.values()].sort((a, b) => sign * (a.price - b.price));
}

export interface Estimate {
  /** Shares that would be traded at once. */
  readonly quantity: number;
  readonly notional: number;
  /** What a seller pays of it. */
  readonly fee: number;
  /** Of the last share; null where nothing would be traded. */
  readonly worstPrice: number | null;
  /** Mint or merge would take part. */
  readonly isImplied: boolean;
}

/**
 * What an order would trade at once, against what is on offer now.
 * @param offers what it would meet, the best first
 * @param limit its worst price
 * @param feeBps of a seller; 0 of a buyer
 */
export function estimate(offers: readonly DepthLevel[], isBuy: boolean, limit: number, wanted: number, feeBps: number) {
  let left = wanted;
  let notional = 0;
  let fee = 0;
  let worstPrice: number | null = null;
  let isImplied = false;
  for (const { price, quantity, implied } of offers) {
    if (left === 0 || (isBuy ? price > limit : price < limit)) break;
    const taken = Math.min(left, quantity);
    left -= taken;
    notional += notionalMicro(price, taken);
    fee += ownFeeMicro(price, taken, feeBps);
    worstPrice = price;
    // At equal price what rests in the book itself goes first.
    if (implied > 0 && taken > quantity - implied) isImplied = true;
  }
  return { quantity: wanted - left, notional, fee, worstPrice, isImplied } satisfies Estimate;
}

/** Changes levels as a message says. @param levels by price @param changes quantity 0: the level is gone */
export function applyChanges(levels: Map<number, number>, changes: readonly (readonly number[])[]): void {
  for (const [price, quantity] of changes as readonly Level[]) {
    if (quantity === 0) levels.delete(price);
    else levels.set(price, quantity);
  }
}
