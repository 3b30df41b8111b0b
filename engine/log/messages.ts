/** The messages between the gateway and the log stage: requests with writes, and the numbers of their entries. */
import type { OwnRates } from "./user-rates.ts";

/** Writes that become durable together. Nothing can reject them any more. */
export interface LogRequest {
  readonly id: number;
  /** When the gateway posted it, ms. Whatever is numbered after it has no earlier time. */
  readonly at: number;
  /** Ledger entries that its writes create. */
  readonly entries: number;
  /** Users' own fees and rebates that it sets. */
  readonly rates: readonly OwnRates[];
  /** A LoggedRequest in MessagePack (logged-request.ts). */
  readonly payload: Uint8Array;
}

/** Batches up to this one are in an archive and leave journal.db. */
interface TrimRequest {
  readonly trimThrough: number;
}

/** Everything that the gateway posts to the log stage. */
export type LogMessage = LogRequest | TrimRequest;

/** The request is durable. @property firstEntry the number of its first ledger entry; 0 if it has none */
export interface LogReply {
  readonly id: number;
  readonly firstEntry: number;
}
