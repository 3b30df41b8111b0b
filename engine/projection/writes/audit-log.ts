/** The audit log's lines: who changed what, when, and by which request. Append-only. */
import type Database from "better-sqlite3";
import type { AuditEntry } from "../../log/request.ts";

/** @param firstEntry the number of the request's first ledger entry, 0 if it has none */
export type AppendAudit = (entry: AuditEntry, firstEntry: number) => void;

/** Returns a function that appends a line inside the caller's transaction. */
export function prepareAudit(db: Database.Database): AppendAudit {
  const insert = db.prepare(
    `INSERT INTO audit_log (at, action, actor, user_id, subject, details, request_id, address)
     VALUES (?, ?, ?, ?, ?, ?, ?, ?)`,
  );
  return ({ at, action, actor, userId, subject, details, requestId, address }, firstEntry) => {
    const row = subject === "entry" ? firstEntry : subject;
    insert.run(at, action, actor, userId, row, details && JSON.stringify(details), requestId, address);
  };
}
