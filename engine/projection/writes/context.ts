/** What applying a write may read and change of the projector. */
import type { Ledger } from "../../ledger.ts";
import type { Write } from "../../log/writes.ts";

/** The projector's state that writes read and change. */
export interface WriteContext {
  readonly ledger: Ledger;
  nextEntryId(): number;
  /** Deletes the index rows of order updates that need a batch before `batch`. */
  forgetUpdates(batch: number): void;
  /** The user's newest fill, 0 if there is none. */
  newestFill(userId: number): number;
  addMarket(marketId: number, firstOutcomeId: number, outcomes: number): void;
  /** Drops a market that will never trade. */
  forgetMarket(marketId: number): void;
  /** A market's first outcome and number of outcomes. */
  outcomesOf(marketId: number): { readonly first: number; readonly count: number };
  /** Marks rows that the projector writes before it commits. @param at ms @param before micro-USDC; shares */
  markUser(userId: number, at: number, before: number): void;
  markPosition(position: number, at: number, before: number): void;
  markMarket(marketId: number): void;
}

export type ApplyWrite = (write: Write) => void;
