/** The shapes that the demo's bots share. */

export interface Reply<T> {
  /** 0, or one of the table of errors. */
  readonly code: number;
  readonly msg: string;
  /** Null unless code is 0. */
  readonly data: T | null;
}

/** One user's requests: over HTTP, or within the exchange's own process. */
export interface Caller {
  readonly name: string;
  call<T>(method: string, path: string, body?: object): Promise<Reply<T>>;
}

/** What the outcomes of a market are worth, as the bots believe. */
export interface FairPrices {
  /** Basis points of each outcome, not rounded; they add up to 10,000. */
  prices(): readonly number[];
}

/** A market that the bots trade. */
export interface TradedMarket {
  readonly id: number;
  /** Outcome ids. */
  readonly outcomes: readonly number[];
  readonly fair: FairPrices;
  /** How often takers pick the market, relative to the others. */
  readonly weight: number;
}

/** A position as GET /me/positions lists it. */
export interface Position {
  readonly market_id: number;
  readonly outcome_id: number;
  readonly quantity: number;
  readonly held: number;
}
