/** Lines of the audit log: who changed what of money or access, when, and by which request. */

import type { AuditEntry } from "../../engine/projection/writes/audit-log.ts";
import type { RouteRequest } from "../http/route.ts";
import type { Principal } from "./types.ts";

/** Of the request that asks for a change. */
export interface RequestContext {
  readonly now: number;
  readonly requestId: string;
  /** The client's IP address. */
  readonly address: string;
  /** As limits count it. */
  readonly client: string;
  readonly userAgent: string;
}

export function contextOf({ now, reply, address, headers }: RouteRequest): RequestContext {
  return { now, requestId: reply.requestId, ...address, userAgent: headers["user-agent"] ?? "" };
}

/** What a line says beside who asked for it. Never a token, a password or a code. */
export interface Change {
  readonly action: string;
  readonly userId: AuditEntry["userId"];
  /** Null: what the write made. */
  readonly subject?: number | null;
  readonly details?: object | null;
  readonly write?: number;
}

/** @param actor such as "user 12"; see `actorOf` */
export function audit(context: RequestContext, actor: string, change: Change): AuditEntry {
  const { action, userId, subject = null, details = null, write = 0 } = change;
  const { now, requestId, address } = context;
  return {
    at: now,
    action,
    actor,
    userId,
    write,
    subject,
    details,
    requestId,
    address: address === "" ? null : address,
  };
}

/** Who asks, as the log names it: the user, and by which kind of token where it isn't the user's own session. */
export function actorOf({ userId, role, credential }: Principal): string {
  const who = role === "operator" ? `operator ${userId}` : `user ${userId}`;
  return credential.kind === "session" ? who : `${who} by ${credential.kind} ${credential.id}`;
}
