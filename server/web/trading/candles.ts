/** Price candles of an outcome, extended live by trades. */

import { useEffect } from "preact/hooks";
import { exchangeTime } from "../clock.ts";
import { request } from "../session.ts";
import { subscribe } from "../stream.ts";
import type { Candles, Trade } from "../types.ts";
import { useBatched } from "../ui/throttle.ts";
import { type Fetched, useFetch } from "../ui/use-data.ts";

export type Interval = "1m" | "5m" | "1h" | "1d";

/** [open time in ms; open, high, low, close in BPS; volume in shares] */
export type Candle = readonly [at: number, open: number, high: number, low: number, close: number, volume: number];

export const INTERVAL_MS: Readonly<Record<Interval, number>> = {
  "1m": 60_000,
  "5m": 300_000,
  "1h": 3_600_000,
  "1d": 86_400_000,
};

const MAX_CANDLES = 500;

/** Fetches the candles of an outcome and extends them with each trade. */
export function useCandles(marketId: number, outcomeId: number, interval: Interval): Fetched<readonly Candle[]> {
  const loaded = useFetch<readonly Candle[]>(async (signal) => {
    const query = { outcome_id: outcomeId, interval, from: exchangeTime() - MAX_CANDLES * INTERVAL_MS[interval] };
    const { items } = await request<Candles>("GET", `/markets/${marketId}/candles`, { query, signal });
    return items as unknown as Candle[];
  }, `${outcomeId} ${interval}`);
  const { set, reload } = loaded;
  const add = useBatched((trades: readonly Trade[]) => {
    const own = trades.filter(({ outcome_id }) => outcome_id === outcomeId);
    if (own.length === 0) return;
    set((before) => own.reduce((candles, trade) => withTrade(candles, trade, INTERVAL_MS[interval]), before));
  });
  useEffect(
    () => subscribe("trades", marketId, null, ({ data }) => add(data), reload),
    [marketId, outcomeId, interval],
  );
  return loaded;
}

/** Applies a trade to the candles. @param length of a candle, ms */
function withTrade(
  candles: readonly Candle[],
  { price, quantity, created_at }: Trade,
  length: number,
): readonly Candle[] {
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
