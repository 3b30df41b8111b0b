/** The numbers that the journal assigns over the database's life, and the times that go with them, which never fall. */
import type { LedgerState } from "../projection/load/ledger.ts";

export class Counters {
  /** Commits so far. */
  sequence: number;
  /** The time of the last commit, ms. */
  committedAt: number;
  /** The time of the last event or account write, ms. */
  eventAt: number;
  /** Fills and entries share one numbering. */
  lastEntryId: number;
  lastOrderId: number;

  constructor(state: LedgerState) {
    this.sequence = state.sequence;
    this.committedAt = state.at;
    this.eventAt = state.at;
    this.lastEntryId = state.lastEntryId;
    this.lastOrderId = state.lastOrderId;
  }
}
