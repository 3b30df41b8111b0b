/** Requests with writes as the log has them, in MessagePack: the gateway packs them, the projector unpacks them. */
import { pack, unpack } from "./packed.ts";
import type { Write } from "./writes.ts";

/** A line of the audit log. Never contains a token, a password or a code. */
export interface AuditEntry {
  readonly at: number;
  /** Such as `session.start`. */
  readonly action: string;
  readonly actor: string;
  /** The user whose money or access changed. */
  readonly userId: number | null;
  /** The id of the changed row; "entry" stands for the first ledger entry of the line's request. */
  readonly subject: number | "entry" | null;
  readonly details: object | null;
  readonly requestId: string | null;
  readonly address: string | null;
}

/** A request with an Idempotency-Key whose effect isn't durable yet. */
export interface KeptRequest {
  readonly userId: number;
  readonly key: string;
  /** Method, path and body, which tell a repeat from another request with the same key. */
  readonly request: string;
  /** ms since the epoch. */
  readonly at: number;
  /**
   * The correlation id of the command whose event is the effect (a split, a merge). Null if the accompanying writes are the
   * effect.
   */
  readonly reference: number | null;
}

/** A kept request as the log has it. */
interface KeptWrite extends KeptRequest {
  /** The row that its first write creates; null if the command's event brings it. */
  readonly subject: number | null;
}

/** Writes that are applied together. Whatever could reject one was checked before. */
export interface LoggedRequest {
  /** When the gateway posted the request, ms. */
  readonly at: number;
  readonly writes: readonly Write[];
  /** The audit log's lines about the writes. */
  readonly audits: readonly AuditEntry[];
  /** Set for a request with an Idempotency-Key. */
  readonly kept: KeptWrite | null;
}

export const packRequest = (request: LoggedRequest): Uint8Array<ArrayBuffer> => Uint8Array.from(pack(request));

export const unpackRequest = (payload: Buffer): LoggedRequest => unpack(payload) as LoggedRequest;
