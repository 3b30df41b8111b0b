/** The numbers that continue from batch to batch, as of the last event applied. */
import type { LedgerState } from "./load/ledger.ts";

export class Counters {
  /** The last batch. */
  batch: number;
  /** Its time, ms. */
  at: number;
  /** Fills and entries share one numbering. */
  lastEntryId: number;
  lastOrderId: number;
  /** Order updates so far, of all users. */
  orderUpdates: number;

  constructor(state: LedgerState) {
    this.batch = state.batch;
    this.at = state.at;
    this.lastEntryId = state.lastEntryId;
    this.lastOrderId = state.lastOrderId;
    this.orderUpdates = state.orderUpdates;
  }
}
