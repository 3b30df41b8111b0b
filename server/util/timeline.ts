/**
 * A monotonic source of timestamps: milliseconds since the epoch that never decrease, whatever steps the machine's clock
 * takes and however long the exchange was down. Commands and writes are stamped here when they are handed over,
 * so that ids and times rise together. Limits, expiries and deadlines follow the machine's clock instead.
 */
export class Timeline {
  private last: number;

  /** @param last no time on record is later */
  constructor(last: number) {
    this.last = last;
  }

  /** @param now the machine's clock, ms @returns `now`, or the last stamp where that is later */
  stamp(now: number): number {
    if (now > this.last) this.last = now;
    return this.last;
  }

  /** How far the machine's clock is behind the last stamp, ms; 0 where it is not. */
  lag(now: number): number {
    return Math.max(0, this.last - now);
  }
}
