/** The lines of the audit log that a request writes. */

import type { AuditEntry } from "../../engine/log/request.ts";
import { entriesOf, isPaymentEntry } from "../../engine/log/writes.ts";
import { assert } from "../../engine/util/assert.ts";
import type { AdmittedWrite, RequestedAudit } from "./types.ts";

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

/** The row that a write creates or changes; "entry" for its ledger entry, which has no number yet. */
function ownSubject(target: AdmittedWrite, admitted: readonly AdmittedWrite[]): AuditEntry["subject"] {
  const { write, result } = target;
  if (write === null || !isPaymentEntry(write)) return result.id;
  const first = admitted.find((each) => each.write !== null && entriesOf(each.write) > 0);
  assert(first === target, "an audited payment is the first entry of its request");
  return "entry";
}
