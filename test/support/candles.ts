/** Candles computed from the list of trades in the plain way, to compare with the exchange's. */

export type CandleJson = readonly [
  openTime: number,
  open: number,
  high: number,
  low: number,
  close: number,
  volume: number,
];

export interface PlainTrade {
  readonly price: number;
  readonly quantity: number;
  /** ms */
  readonly at: number;
}

export const STEPS_MS = { "1m": 60_000, "5m": 300_000, "1h": 3_600_000, "1d": 86_400_000 } as const;
export type Interval = keyof typeof STEPS_MS;
export const INTERVALS = Object.keys(STEPS_MS) as Interval[];

/** Of one outcome's trades, oldest first: the candles that overlap `from` to `to`, from the first trade on. */
export function plainCandles(trades: readonly PlainTrade[], step: number, from: number, to: number): CandleJson[] {
  const traded = new Map<number, PlainTrade[]>();
  for (const trade of trades) {
    const openTime = Math.floor(trade.at / step) * step;
    if (!traded.has(openTime)) traded.set(openTime, []);
    traded.get(openTime)!.push(trade);
  }
  const earlier = [...traded.keys()].filter((openTime) => openTime + step <= from);
  let price = earlier.length === 0 ? null : traded.get(Math.max(...earlier))!.at(-1)!.price;
  const candles: CandleJson[] = [];
  for (let openTime = Math.floor(from / step) * step; openTime <= to; openTime += step) {
    const found = traded.get(openTime);
    if (found !== undefined) {
      const prices = found.map((trade) => trade.price);
      const volume = found.reduce((sum, { quantity }) => sum + quantity, 0);
      candles.push([openTime, prices[0]!, Math.max(...prices), Math.min(...prices), prices.at(-1)!, volume]);
      price = prices.at(-1)!;
    } else if (price !== null) candles.push([openTime, price, price, price, price, 0]);
  }
  return candles;
}
