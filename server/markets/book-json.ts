/**
 * Order books as the JSON of REST and the WebSocket, built once per state of a book and cached until it changes. `ts` is
 * when that state was applied, so that one text serves every client.
 */
import { Side } from "../../engine/constants.ts";
import { MAX_PRICE_BPS } from "../../engine/limits.ts";
import type { Level } from "./depth.ts";
import { addLevels } from "./depth.ts";
import { impliedSide } from "./implied-books.ts";
import type { MarketRegistry } from "./registry.ts";
import type { Market, Outcome } from "./types.ts";

/** Which part of a book a client requests. */
export interface BookView {
  /** Levels per side; all by default. */
  readonly depth?: number | undefined;
  /** Include the liquidity that mint and merge imply. */
  readonly implied?: boolean | undefined;
}

/** Greater than every depth, for cache keys. */
const DEPTHS = 2 ** 14;

/** The cache key: positive for outcomes, negative for markets. */
function keyOf(id: number, depth: number, implied: boolean): number {
  return id * 2 * DEPTHS + depth * 2 + (implied ? 1 : 0);
}

/** The `data` of GET /orderbook/:market_id/:outcome_id; without a view also of book.snapshot. */
export function bookJson(registry: MarketRegistry, market: Market, outcome: Outcome, view: BookView = {}): string {
  const { book } = outcome;
  const { depth = MAX_PRICE_BPS, implied = false } = view;
  // A depth that includes every level equals none. The implied book may be deeper than the book.
  const levels = implied || depth < (book?.depth ?? 0) ? depth : MAX_PRICE_BPS;
  const sequence = sequenceOf(registry, market, outcome, implied);
  const make = (): string => {
    const at = implied ? market.booksAt : (book?.at ?? market.addedAt);
    const head = `{"market_id":${market.id},"outcome_id":${outcome.id},"sequence":${sequence},"ts":${at},`;
    return `${head}${laddersJson(market, outcome, levels, implied)}}`;
  };
  return registry.bookTexts.get(keyOf(outcome.id, levels, implied), implied ? market.booksVersion : sequence, make);
}

/** The same book as numbers, and when its state was applied, ms. */
export function bookSides(
  market: Market,
  outcome: Outcome,
  { implied = false }: BookView,
): { at: number; sides: Sides & { implied: Sides | null } } {
  const { book } = outcome;
  if (implied) return { at: market.booksAt, sides: impliedLadders(market, outcome, MAX_PRICE_BPS) };
  const [bids, asks] = [Side.buy, Side.sell].map((side) => book?.levels(side, MAX_PRICE_BPS) ?? []) as [
    Level[],
    Level[],
  ];
  return { at: book?.at ?? market.addedAt, sides: { bids, asks, implied: null } };
}

/** The `data` of GET /markets/:id/orderbook. */
export function marketBooksJson(registry: MarketRegistry, market: Market, view: BookView): string {
  const { depth = MAX_PRICE_BPS, implied = false } = view;
  const make = (): string => {
    const books = market.outcomes.map((outcome) => {
      const sequence = sequenceOf(registry, market, outcome, implied);
      return `{"outcome_id":${outcome.id},"sequence":${sequence},${laddersJson(market, outcome, depth, implied)}}`;
    });
    return `{"market_id":${market.id},"ts":${market.booksAt},"outcomes":[${books.join(",")}]}`;
  };
  return registry.bookTexts.get(-keyOf(market.id, depth, implied), market.booksVersion, make);
}

/** The implied book has a sequence of its own. */
function sequenceOf(registry: MarketRegistry, market: Market, outcome: Outcome, implied: boolean): number {
  return implied ? registry.implied.sequence(market, outcome) : registry.bookSequence(outcome);
}

function laddersJson(market: Market, outcome: Outcome, depth: number, implied: boolean): string {
  const { book } = outcome;
  if (!implied) {
    const bids = book?.levelsJson(Side.buy, depth) ?? "[]";
    return `"bids":${bids},"asks":${book?.levelsJson(Side.sell, depth) ?? "[]"}`;
  }
  return JSON.stringify(impliedLadders(market, outcome, depth)).slice(1, -1);
}

interface Sides {
  readonly bids: readonly Level[];
  readonly asks: readonly Level[];
}

/** Both sides including the implied liquidity, and under `implied` that part alone. */
function impliedLadders(market: Market, { id, book }: Outcome, depth: number): Sides & { implied: Sides } {
  const implied = { bids: impliedSide(market, id, Side.buy, depth), asks: impliedSide(market, id, Side.sell, depth) };
  return {
    bids: addLevels(book?.levels(Side.buy, depth) ?? [], implied.bids, Side.buy, depth),
    asks: addLevels(book?.levels(Side.sell, depth) ?? [], implied.asks, Side.sell, depth),
    implied,
  };
}
