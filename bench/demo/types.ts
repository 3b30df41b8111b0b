/** The shapes that the demo's bots share. */
import type { FairValues } from "./fair-values.ts";

/** A market that the bots trade. */
export interface TradedMarket {
  readonly id: number;
  /** Outcome ids. */
  readonly outcomes: readonly number[];
  readonly fair: FairValues;
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
