/** Markets, outcomes and what happens to their books: shapes that every room may name. */

import type { Depth } from "./depth.ts";

/** A match from its taker's side. */
export interface Trade {
  readonly outcomeId: number;
  readonly side: number;
  readonly price: number;
  readonly quantity: number;
  readonly matchType: number;
  readonly matchId: number;
  /** The taker's; it rises within a market. */
  readonly fillId: number;
  /** ms since the epoch */
  readonly at: number;
}

export interface Outcome {
  readonly id: number;
  readonly name: string;
  lastPrice: number | null;
  volume: number;
  book: Depth | null;
  /** Someone is told of its book's changes: only then are they listed. */
  isWatched: boolean;
  ticker: TickerState;
}

export interface Market {
  readonly id: number;
  readonly slug: string;
  readonly question: string;
  /** Changed by the registry's `describe` alone: lists and searches must hear of it. */
  readonly description: string | null;
  readonly category: string | null;
  readonly closesAt: number | null;
  readonly eventId: number | null;
  /** Changed by the registry's `setStatus` alone: lists by status must hear of it. */
  readonly status: number;
  opensAt: number | null;
  readonly createdAt: number;
  /** The user whose proposal it was. */
  readonly proposedBy: number | null;
  /** How the proposal was decided. */
  decision: { readonly note: string | null; readonly at: number } | null;
  /** How it ended: BPS of each outcome. */
  resolution: { readonly payouts: readonly number[]; readonly note: string | null; readonly at: number } | null;
  /** Its holders are being paid: nothing may move its shares. */
  isSettling: boolean;
  readonly firstOutcomeId: number;
  readonly outcomes: readonly Outcome[];
  /** Shares by the hour that began at `hour * 3600000`, for the volume of the last 24 hours. */
  hourly: Map<number, number> | null;
  /** Of `trade.created`; starts where the match counter stood, so that it never falls back over a restart. */
  tradeSequence: number;
  /** Where its latest trade is among the recent ones. */
  newestTrade: number;
  /** Rises whenever one of its books changes, and when that was last applied; at first when it was loaded or made. */
  booksVersion: number;
  booksAt: number;
  readonly addedAt: number;
  /** Someone is told of its trades: only then are the messages made. */
  isWatched: boolean;
  /** Outcomes whose tickers, and whose implied books, somebody is told of. */
  tickers: number;
  impliedFollowers: number;
}

/** Whether a ticker has subscribers, and whether it changed since they were sent the last one. */
export const TickerState = { unwatched: 0, sent: 1, changed: 2 } as const;
export type TickerState = (typeof TickerState)[keyof typeof TickerState];
