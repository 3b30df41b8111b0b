/**
 * Bounds how often one message is logged: what strangers can cause without limit, such as mails that fail, must not fill the
 * disk. Of each message so many lines a minute are logged; what was left out is counted.
 */

/** Lines of one message a minute. */
export const MAX_LINES_A_MINUTE = 60;
const MINUTE_MS = 60_000;
/** Messages that are counted by themselves. */
const MAX_MESSAGES = 1_000;
/** Counts what doesn't find a place of its own. */
const OTHERS = "others";

export class LineLimit {
  private counts = new Map<string, number>();
  private since = Number.NEGATIVE_INFINITY;

  /** Whether a line with the message may be logged. @param now by a clock that nobody sets, ms */
  admits(message: string, now: number): boolean {
    if (this.counts.size === 0) this.since = now;
    const key = this.counts.has(message) || this.counts.size < MAX_MESSAGES ? message : OTHERS;
    const count = (this.counts.get(key) ?? 0) + 1;
    this.counts.set(key, count);
    return count <= MAX_LINES_A_MINUTE;
  }

  /** The messages of the last minute that had more lines, with the number that was left out; null until it is over. */
  leftOut(now: number): readonly { readonly message: string; readonly lines: number }[] | null {
    if (now < this.since + MINUTE_MS || this.counts.size === 0) return null;
    const over = [...this.counts].filter(([, count]) => count > MAX_LINES_A_MINUTE);
    this.counts = new Map();
    return over.map(([message, count]) => ({ message, lines: count - MAX_LINES_A_MINUTE }));
  }
}
