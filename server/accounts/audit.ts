/** Entries of the audit log: who changed money or access, when, and by which request. */

import { entriesOf, isPaymentEntry } from "../../engine/projection/writes/account-write.ts";
import type { AuditEntry } from "../../engine/projection/writes/audit-log.ts";
import { assert } from "../../engine/util/assert.ts";
import type { RouteRequest } from "../http/route.ts";
import type { AdmittedWrite, Principal, RequestedAudit } from "./types.ts";

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

/** The lines of a request as the log gets them. A write that changes nothing leaves no line. @param at ms */
export function resolveAudits(
  lines: readonly RequestedAudit[],
  admitted: readonly AdmittedWrite[],
  at: number,
): AuditEntry[] {
  const resolved: AuditEntry[] = [];
  for (const { write: index, userId, subject, ...line } of lines) {
    const target = admitted[index];
    if (target !== undefined && !target.result.created) continue;
    const own = target === undefined ? null : ownSubject(target, admitted);
    const user = userId === "subject" ? (target?.result.id ?? null) : userId;
    resolved.push({ ...line, at, userId: user, subject: subject ?? own });
  }
  return resolved;
}

/** The row that a write creates or changes: a payment's is its ledger entry, which has no number yet. */
function ownSubject(target: AdmittedWrite, admitted: readonly AdmittedWrite[]): AuditEntry["subject"] {
  const { write, result } = target;
  if (write === null || !isPaymentEntry(write)) return result.id;
  const first = admitted.find((each) => each.write !== null && entriesOf(each.write) > 0);
  assert(first === target, "an audited payment is the first entry of its request");
  return "entry";
}

/** The actor's name in the log: the user, and the credential unless it is the user's own session. */
export function actorOf({ userId, role, credential }: Principal): string {
  const who = role === "operator" ? `operator ${userId}` : `user ${userId}`;
  return credential.kind === "session" ? who : `${who} by ${credential.kind} ${credential.id}`;
}
