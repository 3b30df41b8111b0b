/** The messages between the gateway and the journal: account writes with their replies, and checkpoint requests. */
import type { KeptWrite } from "../projection/idempotency-keys.ts";
import type { AccountWrite } from "../projection/writes/account-write.ts";
import type { AuditEntry } from "../projection/writes/audit-log.ts";

/** Account writes that are applied together; nothing can refuse them. */
export interface WriteRequest {
  id: number;
  /** When the gateway posted the request, ms. Whatever is numbered after it has no earlier time. */
  at: number;
  writes: readonly AccountWrite[];
  /** The audit log's lines about the writes. */
  audits: readonly AuditEntry[];
  /** Set for a request with an Idempotency-Key. */
  kept: KeptWrite | null;
}

/** Everything that the gateway posts to the journal. */
export type JournalMessage = WriteRequest | "checkpointed";

/** A request is durable. */
export interface WriteReply {
  id: number;
  /** The number of its first ledger entry, 0 if it has none; the others follow consecutively. */
  firstEntry: number;
}

/** Everything that the journal posts to the gateway. */
export type JournalReply = WriteReply | "checkpoint";
