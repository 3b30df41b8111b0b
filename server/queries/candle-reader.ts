/**
 * Reads candles as the API shows them: ascending, without a gap. Rows are write-behind (engine/projection/candles.ts), so
 * the trades that they lack are added here. To be called in a read transaction: rows and trades must be of one moment.
 */
import type Database from "better-sqlite3";

const MINUTE_MS = 60_000;

export interface CandlesOptions {
  outcomeId: number;
  /** The length of a candle; one of CANDLE_MINUTES. */
  minutes: number;
  /** When the first and the last wanted candle open, ms. */
  first: number;
  last: number;
}

/** Prices in BPS, volume in shares. It includes the trades up to `lastFill`. */
type Candle = [
  openTime: number,
  open: number,
  high: number,
  low: number,
  close: number,
  volume: number,
  lastFill: number,
];
type TradeRow = [id: number, price: number, quantity: number, at: number];

/** Returns a reader that gives the JSON array of `[open_time, open, high, low, close, volume]`. */
export function prepareCandles(db: Database.Database): (options: CandlesOptions) => string {
  // The row before the first wanted one gives the price until then.
  const rows = db
    .prepare(
      `SELECT open_time, open, high, low, close, volume, last_fill_id FROM candles
       WHERE outcome_id = @outcomeId AND interval = @minutes AND open_time <= @last AND open_time >= coalesce(
         (SELECT max(open_time) FROM candles WHERE outcome_id = @outcomeId AND interval = @minutes
          AND open_time < @first), @first)
       ORDER BY open_time`,
    )
    .raw();
  const tail = db
    .prepare(
      `SELECT id, price, quantity, created_at FROM fills
       WHERE id > (SELECT value FROM meta WHERE key = 'candles_fill') AND role = 1 AND outcome_id = ? ORDER BY id`,
    )
    .raw();
  return (options) => {
    const candles = new Map<number, Candle>();
    const written = rows.all(options) as Candle[];
    for (const row of written) candles.set(row[0], row);
    // Candles before the row that is carried forward are not shown.
    const [oldest] = written;
    const since = oldest !== undefined && oldest[0] < options.first ? oldest[0] : 0;
    const step = options.minutes * MINUTE_MS;
    for (const trade of tail.all(options.outcomeId) as TradeRow[]) {
      const openTime = trade[3] - (trade[3] % step);
      if (openTime >= since && openTime <= options.last) addTrade(candles, openTime, trade);
    }
    return candlesJson(candles, options.first, options.last, step);
  };
}

function addTrade(candles: Map<number, Candle>, openTime: number, [id, price, quantity]: TradeRow): void {
  const candle = candles.get(openTime);
  if (candle === undefined) {
    candles.set(openTime, [openTime, price, price, price, price, quantity, id]);
    return;
  }
  if (id <= candle[6]) return;
  candle[2] = Math.max(candle[2], price);
  candle[3] = Math.min(candle[3], price);
  candle[4] = price;
  candle[5] += quantity;
  candle[6] = id;
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
