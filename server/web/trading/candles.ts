/** The price candles of a market's outcomes. Pure: prices in BPS, times in ms since the epoch. */
import { FULL_PRICE_BPS } from "../../../engine/limits.ts";
import type { Outcome, Trade } from "../types.ts";

/** [open time in ms; open, high, low, close in BPS; volume in shares] */
export type Candle = readonly [at: number, open: number, high: number, low: number, close: number, volume: number];

export const DAY_MS = 86_400_000;

/** The API's bound. */
export const MAX_CANDLES = 1_500;
export interface ChartData {
  /** By outcome id, oldest first; empty without a trade. */
  readonly candles: ReadonlyMap<number, readonly Candle[]>;
  /** ms */
  readonly step: number;
}

/** Applies a trade to its outcome's candles. */
export function withTrade(data: ChartData, trade: Trade): ChartData {
  const own = data.candles.get(trade.outcome_id);
  if (own === undefined) return data;
  return { ...data, candles: new Map(data.candles).set(trade.outcome_id, addTrade(own, trade, data.step)) };
}

/** @param length of a candle, ms */
function addTrade(candles: readonly Candle[], { price, quantity, created_at }: Trade, length: number) {
  const at = created_at - (created_at % length);
  const last = candles.at(-1);
  if (last === undefined || at > last[0]) {
    const between: Candle[] = [];
    // Without trades, the price stays.
    const first = Math.max((last?.[0] ?? at) + length, at - MAX_CANDLES * length);
    for (let gap = first; gap < at && last !== undefined; gap += length) {
      between.push([gap, last[4], last[4], last[4], last[4], 0]);
    }
    return [...candles, ...between, [at, price, price, price, price, quantity] as const].slice(-MAX_CANDLES);
  }
  if (at < last[0]) return candles;
  const [, open, high, low, , volume] = last;
  const changed: Candle = [at, open, Math.max(high, price), Math.min(low, price), price, volume + quantity];
  return [...candles.slice(0, -1), changed];
}

/** Of two outcomes, one that never traded is 100 % minus the other. */
export function withOpposite(outcomes: readonly Outcome[], { candles, ...rest }: ChartData): ChartData {
  const [first, second] = outcomes;
  if (outcomes.length !== 2 || first === undefined || second === undefined) return { candles, ...rest };
  const of = (id: number): readonly Candle[] => candles.get(id) ?? [];
  const mirrored = (id: number): readonly Candle[] =>
    of(id).map(([at, open, high, low, close]) => [
      at,
      FULL_PRICE_BPS - open,
      FULL_PRICE_BPS - low,
      FULL_PRICE_BPS - high,
      FULL_PRICE_BPS - close,
      0,
    ]);
  if (of(first.id).length === 0) return { ...rest, candles: new Map(candles).set(first.id, mirrored(second.id)) };
  if (of(second.id).length === 0) return { ...rest, candles: new Map(candles).set(second.id, mirrored(first.id)) };
  return { candles, ...rest };
}
