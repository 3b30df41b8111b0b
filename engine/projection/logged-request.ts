/** Requests with account writes as the log has them, in MessagePack: the gateway packs them, the projector unpacks them. */
import { Packr } from "msgpackr/pack";
import type { KeptWrite } from "./idempotency-keys.ts";
import type { AccountWrite } from "./writes/account-write.ts";
import type { AuditEntry } from "./writes/audit-log.ts";

/** Account writes that are applied together. Whatever could refuse one was checked before. */
export interface LoggedRequest {
  /** When the gateway posted the request, ms. */
  readonly at: number;
  readonly writes: readonly AccountWrite[];
  /** The audit log's lines about the writes. */
  readonly audits: readonly AuditEntry[];
  /** Set for a request with an Idempotency-Key. */
  readonly kept: KeptWrite | null;
}

// Plain maps with names, so that any MessagePack library reads them.
const packr = new Packr({ useRecords: false });

export const packRequest = (request: LoggedRequest): Uint8Array<ArrayBuffer> => Uint8Array.from(packr.pack(request));

export const unpackRequest = (payload: Buffer): LoggedRequest => packr.unpack(payload) as LoggedRequest;
