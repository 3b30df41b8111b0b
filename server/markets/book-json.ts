/**
 * Order books as the JSON that REST and the WebSocket answer, made once for each state of a book and kept until it
 * changes. `ts` is when that state was applied, so that one text serves all who ask.
 */
import { Side } from "../../engine/constants.ts";
import { MAX_PRICE_BPS } from "../../engine/limits.ts";
import type { Level } from "./depth.ts";
import { addLevels } from "./depth.ts";
import { impliedSide } from "./implied-books.ts";
import type { MarketRegistry } from "./registry.ts";
import type { Market, Outcome } from "./types.ts";

/** What of a book is shown. */
export interface BookView {
  /** Levels a side; all of them by default. */
  readonly depth?: number | undefined;
  /** With what mint and merge offer. */
  readonly implied?: boolean | undefined;
}

/** Above every depth, for the key's sake. */
const DEPTHS = 2 ** 14;

/** Texts of outcomes have positive keys, those of markets negative ones. */
function keyOf(id: number, depth: number, implied: boolean): number {
  return id * 2 * DEPTHS + depth * 2 + (implied ? 1 : 0);
}

/** The `data` of GET /orderbook/:market_id/:outcome_id. With no view given, that of book.snapshot too. */
export function bookJson(registry: MarketRegistry, market: Market, outcome: Outcome, view: BookView = {}): string {
  const { book } = outcome;
  const { depth = MAX_PRICE_BPS, implied = false } = view;
  // A depth that shows all is the same as none. What is implied may be deeper than the book.
  const shown = implied || depth < (book?.depth ?? 0) ? depth : MAX_PRICE_BPS;
  const sequence = sequenceOf(registry, market, outcome, implied);
  const make = (): string => {
    const at = implied ? market.booksAt : (book?.at ?? market.addedAt);
    const head = `{"market_id":${market.id},"outcome_id":${outcome.id},"sequence":${sequence},"ts":${at},`;
    return `${head}${laddersJson(market, outcome, shown, implied)}}`;
  };
  return registry.bookTexts.get(keyOf(outcome.id, shown, implied), implied ? market.booksVersion : sequence, make);
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

/** A book with what mint and merge offer is numbered by itself. */
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

/** Both sides with what mint and merge offer in them, and that part alone under `implied`. */
function impliedLadders(market: Market, { id, book }: Outcome, depth: number): Sides & { implied: Sides } {
  const implied = { bids: impliedSide(market, id, Side.buy, depth), asks: impliedSide(market, id, Side.sell, depth) };
  return {
    bids: addLevels(book?.levels(Side.buy, depth) ?? [], implied.bids, Side.buy, depth),
    asks: addLevels(book?.levels(Side.sell, depth) ?? [], implied.asks, Side.sell, depth),
    implied,
  };
}
