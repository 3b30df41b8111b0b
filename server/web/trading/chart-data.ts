/** The price candles of a market's outcomes over a range of time, extended live by trades. */

import { useEffect } from "preact/hooks";
import { exchangeTime } from "../clock.ts";
import { endOf } from "../market-facts.ts";
import { request } from "../session.ts";
import { subscribe } from "../stream.ts";
import type { Candles, Market, Outcome, Trade } from "../types.ts";
import { useBatched } from "../ui/throttle.ts";
import { type Fetched, useFetch } from "../ui/use-data.ts";
import { type Candle, type ChartData, DAY_MS, MAX_CANDLES, withTrade } from "./candles.ts";

type Interval = "1m" | "5m" | "1h" | "1d";

const MINUTE_MS = 60_000;
const HOUR_MS = 3_600_000;

const INTERVAL_MS: Readonly<Record<Interval, number>> = {
  "1m": MINUTE_MS,
  "5m": 5 * MINUTE_MS,
  "1h": HOUR_MS,
  "1d": DAY_MS,
};

export type Range = "1H" | "6H" | "1D" | "1W" | "1M" | "All";

/** How far back each range goes, ms; null: to the market's beginning. Candles of a few hundred points at most. */
const RANGES: Readonly<Record<Range, readonly [length: number | null, interval: Interval]>> = {
  "1H": [HOUR_MS, "1m"],
  "6H": [6 * HOUR_MS, "5m"],
  "1D": [DAY_MS, "5m"],
  "1W": [7 * DAY_MS, "1h"],
  "1M": [30 * DAY_MS, "1h"],
  All: [null, "1d"],
};
export const RANGE_NAMES = Object.keys(RANGES) as readonly Range[];

/** A history of at most so many days is drawn by the hour. */
const HOURLY_DAYS = 60;

/** Charts draw at most so many outcomes: as many as there are colours. */
export const MAX_DRAWN = 8;

const startOf = ({ created_at, opens_at }: Market): number => opens_at ?? created_at;

/** The span of a range, and the candles to draw it with. */
function spanOf(market: Market, range: Range): { from: number; to: number | null; interval: Interval } {
  const to = endOf(market);
  const until = to ?? exchangeTime();
  const [length, usual] = RANGES[range];
  const age = until - startOf(market);
  const interval = range !== "All" ? usual : age < DAY_MS ? "5m" : age < HOURLY_DAYS * DAY_MS ? "1h" : "1d";
  const reach = length === null ? age : Math.min(length, age);
  const from = until - Math.min(reach, (MAX_CANDLES - 1) * INTERVAL_MS[interval]);
  return { from: Math.floor(from), to, interval };
}

/** The longest usual range that the market's age fills. */
export function defaultRange(market: Market): Range {
  const age = (endOf(market) ?? exchangeTime()) - startOf(market);
  return age > 2 * DAY_MS ? "1W" : age > 6 * HOUR_MS ? "1D" : age > HOUR_MS ? "6H" : "1H";
}

/** Fetches the candles of the outcomes, and extends them with each trade. */
export function useChartData(market: Market, outcomes: readonly Outcome[], range: Range): Fetched<ChartData> {
  const ids = outcomes.map(({ id }) => id);
  const key = `${market.id} ${ids.join()} ${range} ${endOf(market) === null}`;
  const loaded = useFetch<ChartData>(async (signal) => {
    const { from, to, interval } = spanOf(market, range);
    const lists = await Promise.all(
      ids.map((id) => {
        const query = { outcome_id: id, interval, from, to };
        return request<Candles>("GET", `/markets/${market.id}/candles`, { query, signal });
      }),
    );
    const candles = new Map(ids.map((id, i) => [id, (lists[i]?.items ?? []) as unknown as Candle[]] as const));
    return { candles, step: INTERVAL_MS[interval] };
  }, key);
  const { set, reload } = loaded;
  const add = useBatched((trades: readonly Trade[]) => set((before) => trades.reduce(withTrade, before)));
  useEffect(() => subscribe("trades", market.id, null, ({ data }) => add(data), reload), [key]);
  return loaded;
}
