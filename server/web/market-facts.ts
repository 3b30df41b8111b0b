/** What follows from a market's state. */
import { exchangeTime } from "./clock.ts";
import type { Market, Outcome } from "./types.ts";

/** Two outcomes: the second is the opposite of the first. */
export const isBinary = ({ outcomes }: Pick<Market, "outcomes">): boolean => outcomes.length === 2;

/** It has a book: orders rest in it, traded or halted. */
export const isRunning = ({ status }: Pick<Market, "status">): boolean => status === "open" || status === "halted";

/**
 * How far each outcome has moved in 24 hours, BPS by index; null where it had not been traded. Of two outcomes, the second
 * moves against the first.
 */
export function dayChanges({ outcomes }: Pick<Market, "outcomes">): readonly (number | null)[] {
  const own = outcomes.map(({ last_price, price_24h_ago }) =>
    last_price === null || price_24h_ago === null ? null : last_price - price_24h_ago,
  );
  if (!isBinary({ outcomes })) return own;
  const [first = null, second = null] = own;
  const change = first ?? (second === null ? null : -second);
  return [change, change === null ? null : -change];
}

/** Of those that have a book, the market that was traded most in 24 hours. */
export const mostTraded = (markets: readonly Market[]): Market | undefined =>
  markets.filter(isRunning).sort((a, b) => b.volume_24h - a.volume_24h)[0];

/** The outcome that pays in full; undefined without one, or before the market is resolved. */
export const winnerOf = ({ outcomes, resolution }: Pick<Market, "outcomes" | "resolution">): Outcome | undefined =>
  outcomes.find(({ id }) => id === resolution?.outcome_id);

/** When the market ended, ms; null while it can be traded. */
export function endOf(market: Market): number | null {
  const { resolution, closes_at } = market;
  if (isRunning(market)) return null;
  const ends = [resolution?.resolved_at ?? null, closes_at].filter((at): at is number => at !== null);
  return ends.length === 0 ? null : Math.min(...ends, exchangeTime());
}
