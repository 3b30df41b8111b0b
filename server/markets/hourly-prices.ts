/**
 * The price of an outcome at the end of each hour of the last week. It gives the outcome's change in 24 hours and its
 * sparkline without a read of the database. 0 stands for "not traded yet".
 */
const HOURS = 7 * 24;
export const HOURS_A_DAY = 24;
/** A sparkline is 128 pixels wide: one price for each four hours. */
const SPARKLINE_STEP = 4;

export class HourlyPrices {
  /** By hour modulo HOURS: the last price when the hour ended. */
  private readonly prices = new Uint16Array(HOURS);
  /** The hour of the newest trade, counted from the epoch. */
  private newest: number;

  constructor(hour: number) {
    this.newest = hour;
  }

  /** Records a trade. After a step back of the clock it counts for the newest hour. @param price BPS */
  record(hour: number, price: number): void {
    const last = this.prices[this.newest % HOURS]!;
    const skipped = Math.min(hour - this.newest, HOURS);
    for (let back = 1; back < skipped; back++) this.prices[(hour - back) % HOURS] = last;
    if (hour > this.newest) this.newest = hour;
    this.prices[this.newest % HOURS] = price;
  }

  /** The last price before an hour began, BPS; null where it had not been traded. @param hour at most a week back */
  before(hour: number): number | null {
    const at = Math.min(hour - 1, this.newest);
    const price = at <= this.newest - HOURS ? 0 : this.prices[at % HOURS]!;
    return price === 0 ? null : price;
  }

  /** Prices in steps of four hours since a week ago or the first trade, the oldest first, up to the last price, BPS. */
  sparkline(hour: number): number[] {
    const prices: number[] = [];
    for (let back = HOURS - SPARKLINE_STEP; back >= 0; back -= SPARKLINE_STEP) {
      const price = this.before(hour + 1 - back);
      if (price !== null) prices.push(price);
    }
    return prices;
  }
}
