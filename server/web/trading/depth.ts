/**
 * Order book ladders, the depth implied by mint and merge, and the estimated execution of an order against both. Pure:
 * prices in BPS, quantities in shares, money in micro-USDC.
 */
import { FULL_PRICE_BPS, MIN_PRICE_BPS } from "../../../engine/limits.ts";
import { notionalMicro, ownFeeMicro } from "../../../engine/money.ts";

export type Level = readonly [price: number, quantity: number];

/** Best level first. */
export interface Ladder {
  readonly bids: readonly Level[];
  readonly asks: readonly Level[];
}

/** A price level with its total quantity and the part of it that mint or merge implies. */
export interface DepthLevel {
  readonly price: number;
  readonly quantity: number;
  readonly implied: number;
}

const EMPTY_LADDER: Ladder = { bids: [], asks: [] };

/** A position in one outcome's levels. */
interface Cursor {
  readonly levels: readonly Level[];
  index: number;
  price: number;
  /** Quantity left at this level. */
  left: number;
}

/**
 * The levels that mint (asks) or merge (bids) implies on an outcome. Each step matches the best level of every other
 * outcome's book, bids to mint and asks to merge, with the smallest quantity among them.
 * @param others the books of the market's other outcomes
 */
function impliedLevels(others: readonly Ladder[], side: "bids" | "asks"): Level[] {
  const cursors: Cursor[] = [];
  for (const ladder of others) {
    const levels = side === "asks" ? ladder.bids : ladder.asks;
    const [best] = levels;
    if (best === undefined) return [];
    cursors.push({ levels, index: 0, price: best[0], left: best[1] });
  }
  const implied: [number, number][] = [];
  for (;;) {
    const rest = FULL_PRICE_BPS - cursors.reduce((sum, cursor) => sum + cursor.price, 0);
    // Bids of three or more outcomes can sum to over 10000: an ask is at least 1 then, but there is no bid below 1.
    if (rest < MIN_PRICE_BPS && side === "bids") return implied;
    const price = Math.max(rest, MIN_PRICE_BPS);
    const quantity = Math.min(...cursors.map(({ left }) => left));
    const last = implied.at(-1);
    if (last?.[0] === price) last[1] += quantity;
    else implied.push([price, quantity]);
    for (const cursor of cursors) {
      cursor.left -= quantity;
      if (cursor.left !== 0) continue;
      const next = cursor.levels[++cursor.index];
      if (next === undefined) return implied;
      [cursor.price, cursor.left] = next;
    }
  }
}

/** Returns the implied ladder of an outcome. @param books by outcome id */
export function impliedLadder(books: ReadonlyMap<number, Ladder>, outcomeIds: readonly number[], id: number): Ladder {
  const others = outcomeIds.filter((each) => each !== id).map((each) => books.get(each) ?? EMPTY_LADDER);
  return { bids: impliedLevels(others, "bids"), asks: impliedLevels(others, "asks") };
}

/** Combines the direct and implied levels of a side, best first. */
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

/** All levels of an outcome, best first: those of its book, and those that mint and merge imply. */
export interface Depth {
  readonly bids: readonly DepthLevel[];
  readonly asks: readonly DepthLevel[];
}

/** @param books by outcome id @returns null until all books are known */
export function depthOf(books: ReadonlyMap<number, Ladder>, outcomeIds: readonly number[], id: number): Depth | null {
  const direct = books.get(id);
  if (direct === undefined || books.size < outcomeIds.length) return null;
  const implied = impliedLadder(books, outcomeIds, id);
  return {
    bids: combineDepth(direct.bids, implied.bids, "bids"),
    asks: combineDepth(direct.asks, implied.asks, "asks"),
  };
}

export interface Estimate {
  /** Shares that would fill now. */
  readonly quantity: number;
  readonly notional: number;
  /** The seller's fee. */
  readonly fee: number;
  /** Price of the last share filled; null if nothing fills. */
  readonly worstPrice: number | null;
  /** Part of it would fill by mint or merge. */
  readonly isImplied: boolean;
}

/**
 * Estimates how an order would fill now.
 * @param depth the opposite side, best first
 * @param limit the order's worst price
 * @param feeBps seller's fee; 0 for a buyer
 */
export function estimate(depth: readonly DepthLevel[], isBuy: boolean, limit: number, wanted: number, feeBps: number) {
  let left = wanted;
  let notional = 0;
  let fee = 0;
  let worstPrice: number | null = null;
  let isImplied = false;
  for (const { price, quantity, implied } of depth) {
    if (left === 0 || (isBuy ? price > limit : price < limit)) break;
    const filled = Math.min(left, quantity);
    left -= filled;
    notional += notionalMicro(price, filled);
    fee += ownFeeMicro(price, filled, feeBps);
    worstPrice = price;
    // At the same price, direct matches come first.
    if (implied > 0 && filled > quantity - implied) isImplied = true;
  }
  return { quantity: wanted - left, notional, fee, worstPrice, isImplied } satisfies Estimate;
}

/** Applies book deltas. @param levels quantity by price @param changes quantity 0 removes a level */
export function applyChanges(levels: Map<number, number>, changes: readonly (readonly number[])[]): void {
  for (const [price, quantity] of changes as readonly Level[]) {
    if (quantity === 0) levels.delete(price);
    else levels.set(price, quantity);
  }
}
