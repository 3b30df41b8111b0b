/**
 * The latest trades of all markets in one ring of flat arrays; each entry links to the market's trade before it, so that
 * memory does not depend on the number of markets. Serves a page only if no trade of it can be missing; otherwise the
 * database does, with the same cursors (ids of takers' fills) and the same bytes.
 */
import { MAX_TRADES_WALKED } from "./limits.ts";
import { tradeJson } from "./trade-json.ts";
import type { Trade } from "./types.ts";

/** Link before the market's first trade. */
export const NO_TRADE = -1;
/** Link to trades that only the database has. */
export const OLD_TRADES = -2;

/** Layout of `terms`: side 0..1 | match type 2..3 | fills of the match before the taker's 4..15. */
const SIDE_MASK = 3;
const TYPE_SHIFT = 2;
const TYPE_MASK = 3;
const LEGS_SHIFT = 4;

/** Which trades a page contains. */
export interface TradeFilters {
  readonly outcomeId?: number | undefined;
  /** ms, both included. */
  readonly from?: number | undefined;
  readonly to?: number | undefined;
}

export interface TradePage {
  /** JSON texts, newest first. */
  readonly items: string[];
  /** The fill id to continue below; null at the end. */
  readonly next: number | null;
}

export class RecentTrades {
  private readonly capacity: number;
  private readonly mask: number;
  /** Trades ever added: a trade's index is its number modulo the capacity. */
  private count = 0;
  private readonly before: Float64Array;
  private readonly fillIds: Float64Array;
  private readonly times: Float64Array;
  private readonly outcomes: Int32Array;
  private readonly quantities: Int32Array;
  private readonly prices: Uint16Array;
  private readonly terms: Uint16Array;

  /** @param capacity a power of two */
  constructor(capacity: number) {
    this.capacity = capacity;
    this.mask = capacity - 1;
    this.before = new Float64Array(capacity);
    this.fillIds = new Float64Array(capacity);
    this.times = new Float64Array(capacity);
    this.outcomes = new Int32Array(capacity);
    this.quantities = new Int32Array(capacity);
    this.prices = new Uint16Array(capacity);
    this.terms = new Uint16Array(capacity);
  }

  /**
   * Adds a trade; returns its number.
   * @param before the number of the market's previous trade, NO_TRADE or OLD_TRADES
   */
  add(before: number, { outcomeId, side, price, quantity, matchType, matchId, fillId, at }: Trade): number {
    const number = this.count++;
    const i = number & this.mask;
    this.before[i] = before;
    this.fillIds[i] = fillId;
    this.times[i] = at;
    this.outcomes[i] = outcomeId;
    this.quantities[i] = quantity;
    this.prices[i] = price;
    this.terms[i] = side | (matchType << TYPE_SHIFT) | ((fillId - matchId) << LEGS_SHIFT);
    return number;
  }

  /**
   * The market's matching trades below the fill `below`, newest first; null if only the database may have some of them.
   * @param newest the number of the market's latest trade, NO_TRADE or OLD_TRADES
   * @param below a fill id, or null for the newest
   */
  page(
    marketId: number,
    newest: number,
    below: number | null,
    limit: number,
    filters: TradeFilters = {},
  ): TradePage | null {
    // The client saw fill `below`, possibly in a page of the database, so newer trades may exist that are not here yet.
    if (below !== null && (!this.has(newest) || this.fillIds[newest & this.mask]! < below)) return null;
    const found: number[] = [];
    let number = newest;
    for (let step = 0; step < MAX_TRADES_WALKED && number !== NO_TRADE; step++) {
      if (!this.has(number)) return null;
      const i = number & this.mask;
      number = this.before[i]!;
      if ((below !== null && this.fillIds[i]! >= below) || !this.fits(i, filters)) continue;
      if (found.length === limit) return { items: this.texts(marketId, found), next: this.fillIds[found.at(-1)!]! };
      found.push(i);
    }
    return number === NO_TRADE ? { items: this.texts(marketId, found), next: null } : null;
  }

  private fits(i: number, { outcomeId, from, to }: TradeFilters): boolean {
    if (outcomeId !== undefined && this.outcomes[i] !== outcomeId) return false;
    return (from === undefined || this.times[i]! >= from) && (to === undefined || this.times[i]! <= to);
  }

  private has(number: number): boolean {
    return number >= 0 && this.count - number <= this.capacity;
  }

  private texts(marketId: number, places: readonly number[]): string[] {
    return places.map((i) => {
      const terms = this.terms[i]!;
      const fillId = this.fillIds[i]!;
      return tradeJson(marketId, {
        outcomeId: this.outcomes[i]!,
        side: terms & SIDE_MASK,
        price: this.prices[i]!,
        quantity: this.quantities[i]!,
        matchType: (terms >> TYPE_SHIFT) & TYPE_MASK,
        matchId: fillId - (terms >> LEGS_SHIFT),
        fillId,
        at: this.times[i]!,
      });
    });
  }
}
