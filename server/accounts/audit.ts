/** Entries of the audit log: who changed money or access, when, and by which request. */

import type { RouteRequest } from "../http/route.ts";
import type { RequestedAudit } from "../writes/types.ts";
import type { Principal } from "./types.ts";

/** The request that causes a change. */
export interface RequestContext {
  readonly now: number;
  readonly requestId: string;
  /** The client's IP address. */
  readonly address: string;
  /** The address as rate limits count it: an IPv4 address, or the /64 of an IPv6 address. */
  readonly client: string;
  readonly userAgent: string;
}

export function contextOf({ now, reply, address, headers }: RouteRequest): RequestContext {
  return { now, requestId: reply.requestId, ...address, userAgent: headers["user-agent"] ?? "" };
}

/** The change that an entry records. Never contains a token, a password or a code. */
export interface Change {
  readonly action: string;
  readonly userId: RequestedAudit["userId"];
  /** Null: the id of the row that the write inserts. */
  readonly subject?: number | null;
  readonly details?: object | null;
  readonly write?: number;
}

/** @param actor such as "user 12"; see `actorOf` */
export function audit(context: RequestContext, actor: string, change: Change): RequestedAudit {
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

/** The actor's name in the log: the user, and the credential unless it is the user's own session. */
export function actorOf({ userId, role, credential }: Principal): string {
  const who = role === "operator" ? `operator ${userId}` : `user ${userId}`;
  return credential.kind === "session" ? who : `${who} by ${credential.kind} ${credential.id}`;
}
