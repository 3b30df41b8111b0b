/** Reads candles as the API shows them: ascending, without a gap. */
import type Database from "better-sqlite3";
import { MarketStatus } from "../../engine/constants.ts";
import { MS_PER_HOUR } from "../../engine/money.ts";

const MINUTE_MS = 60_000;

export interface CandlesOptions {
  outcomeId: number;
  /** The length of a candle; one of CANDLE_MINUTES. */
  minutes: number;
  /** When the first and the last wanted candle open, ms. */
  first: number;
  last: number;
}

/** Prices in BPS, volume in shares. */
type Candle = [openTime: number, open: number, high: number, low: number, close: number, volume: number];

/** An outcome's candles since a moment, with the one before it, which gives the price until then. */
const FROM_FIRST = `outcome_id = @outcomeId AND interval = @minutes AND open_time >= coalesce(
  (SELECT max(open_time) FROM candles WHERE outcome_id = @outcomeId AND interval = @minutes AND open_time < @first), @first)`;

/** Returns a reader that gives the JSON array of `[open_time, open, high, low, close, volume]`. */
export function prepareCandles(db: Database.Database): (options: CandlesOptions) => string {
  const rows = db
    .prepare(
      `SELECT open_time, open, high, low, close, volume FROM candles
       WHERE ${FROM_FIRST} AND open_time <= @last ORDER BY open_time`,
    )
    .raw();
  return (options) => {
    const candles = new Map<number, Candle>();
    for (const row of rows.all(options) as Candle[]) candles.set(row[0], row);
    return candlesJson(candles, options.first, options.last, options.minutes * MINUTE_MS);
  };
}

/** Returns a reader of the last prices before some ascending times, multiples of a candle's length; null before the first trade. */
export function preparePrices(
  db: Database.Database,
): (outcomeId: number, minutes: number, times: readonly number[]) => (number | null)[] {
  const closes = db
    .prepare(`SELECT open_time, close FROM candles WHERE ${FROM_FIRST} AND open_time < @last ORDER BY open_time`)
    .raw();
  return (outcomeId, minutes, times) => {
    const rows = closes.all({ outcomeId, minutes, first: times[0], last: times.at(-1) }) as [number, number][];
    let next = 0;
    let price: number | null = null;
    return times.map((at) => {
      for (; next < rows.length && rows[next]![0] < at; next++) price = rows[next]![1];
      return price;
    });
  };
}

/** Returns a reader of the price at the end of each hour since a moment, ms: see History.hourlyPrices. */
export function prepareHourlyPrices(db: Database.Database): (options: { since: number }) => Int32Array {
  const outcomes = db
    .prepare("SELECT outcomes.id FROM markets JOIN outcomes ON market_id = markets.id WHERE status IN (?, ?)")
    .pluck();
  const closes = db
    .prepare(`SELECT open_time / ${MS_PER_HOUR}, close FROM candles WHERE ${FROM_FIRST} ORDER BY open_time`)
    .raw();
  return ({ since }) => {
    const found: number[] = [];
    for (const outcomeId of outcomes.all(MarketStatus.open, MarketStatus.halted) as number[]) {
      for (const [hour, close] of closes.all({ outcomeId, minutes: 60, first: since }) as [number, number][])
        found.push(outcomeId, hour, close);
    }
    return Int32Array.from(found);
  };
}

/** Starts with the first trade; a candle without trades repeats the last price. */
function candlesJson(candles: ReadonlyMap<number, Candle>, first: number, last: number, step: number): string {
  let before: Candle | null = null;
  for (const candle of candles.values()) {
    if (candle[0] < first && (before === null || candle[0] > before[0])) before = candle;
  }
  let price = before === null ? 0 : before[4];
  const items: string[] = [];
  for (let openTime = first; openTime <= last; openTime += step) {
    const candle = candles.get(openTime);
    if (candle !== undefined) {
      const [, open, high, low, close, volume] = candle;
      items.push(`[${openTime},${open},${high},${low},${close},${volume}]`);
      price = close;
    } else if (price > 0) items.push(`[${openTime},${price},${price},${price},${price},0]`);
  }
  return `[${items.join(",")}]`;
}
