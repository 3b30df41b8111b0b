/**
 * The exchange's time, learned from what it sends. The clock of the computer that shows the page may be wrong by days, or be
 * set while the page is open: ages and "in the future" count by the exchange's time alone.
 */

/** A message may be so late. What looks slower shows that the computer's clock was set. */
const MAX_DELAY_MS = 5_000;
/** What the computer's clock lacks; null until the exchange has said something. */
let offsetMs: number | null = null;

/** ms since the epoch. */
export const exchangeTime = (): number => Date.now() + (offsetMs ?? 0);

/** Learns from a message that the exchange sent at this time, ms. The least delayed one counts. */
export function learnTime(sentAt: number): void {
  const offset = sentAt - Date.now();
  if (offsetMs === null || offset > offsetMs || offset < offsetMs - MAX_DELAY_MS) offsetMs = offset;
}

/** Learns from the `Date` of a response, which may come from a cache: an early one doesn't count. */
export function learnDate(date: string | null): void {
  const offset = Date.parse(date ?? "") - Date.now();
  if (!Number.isNaN(offset) && (offsetMs === null || offset > offsetMs)) offsetMs = offset;
}
