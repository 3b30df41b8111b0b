/**
 * The one clock of everything on record: milliseconds since the epoch that never fall, whatever steps the machine's clock
 * takes and however long the exchange was down. Commands and account writes get their time here when they are handed
 * over, so that ids and times rise together. Limits, expiries and deadlines follow the machine's clock instead.
 */
export class Timeline {
  private last: number;

  /** @param last no time on record is later */
  constructor(last: number) {
    this.last = last;
  }

  /** @param now what the machine's clock says, ms @returns it, or the last time given where that is later */
  stamp(now: number): number {
    if (now > this.last) this.last = now;
    return this.last;
  }

  /** How far the machine's clock is behind the last time given, ms; 0 where it is not. */
  lag(now: number): number {
    return Math.max(0, this.last - now);
  }
}
