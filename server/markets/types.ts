/** Markets, outcomes and trades: shapes that every room may name. */

import type { MarketStatus } from "../../engine/constants.ts";
import type { Depth } from "./depth.ts";
import type { HourlyPrices } from "./hourly-prices.ts";

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
  /** Null until it is traded, or known to have been. */
  hourlyPrices: HourlyPrices | null;
  book: Depth | null;
  /** Its book has followers: only then are changes published. */
  isWatched: boolean;
  ticker: TickerState;
  /** Null without price alerts. */
  alertBand: AlertBand | null;
}

/** A trade at one of these prices, or beyond, fires an alert: the nearest alerts' prices, BPS. */
export interface AlertBand {
  readonly above: number;
  readonly below: number;
}

export interface Market {
  readonly id: number;
  readonly slug: string;
  readonly question: string;
  /** Only the registry's `describe` changes it, because lists and searches must be notified. */
  readonly description: string | null;
  readonly category: string | null;
  readonly closesAt: number | null;
  /** The hash of its picture. */
  readonly picture: string | null;
  readonly eventId: number | null;
  /** Only the registry's `setStatus` changes it, because lists must be notified. */
  readonly status: MarketStatus;
  opensAt: number | null;
  readonly createdAt: number;
  /** The user who proposed it; null: an operator created it. */
  readonly proposedBy: number | null;
  /** How the proposal was decided. */
  decision: { readonly note: string | null; readonly at: number } | null;
  /** How it was settled: payout of each outcome, BPS. */
  resolution: { readonly payouts: readonly number[]; readonly note: string | null; readonly at: number } | null;
  /** Its settlement is in progress: nothing may move its shares. */
  isSettling: boolean;
  readonly firstOutcomeId: number;
  readonly outcomes: readonly Outcome[];
  /** Shares by the hour that began at `hour * 3600000`, for the volume of the last 24 hours. */
  hourly: Map<number, number> | null;
  /** The sequence of `trade.created`; starts at the fill counter of the start, so that it never falls over a restart. */
  tradeSequence: number;
  /** The number of its latest trade in RecentTrades. */
  newestTrade: number;
  /** Rises with each change of one of its books; `booksAt` is when, ms, at first when it was loaded or created. */
  booksVersion: number;
  booksAt: number;
  readonly addedAt: number;
  /** Its trades have followers: only then are messages built. */
  isWatched: boolean;
  /** Number of outcomes whose tickers, and whose implied books, have followers. */
  tickers: number;
  impliedFollowers: number;
}

/** Whether a ticker has followers, and whether it changed since the last one was sent. */
export const TickerState = { unwatched: 0, sent: 1, changed: 2 } as const;
export type TickerState = (typeof TickerState)[keyof typeof TickerState];

/** Holders' positions as parallel columns, ordered by user and outcome. */
export interface Holders {
  readonly users: Int32Array;
  readonly outcomes: Int32Array;
}
