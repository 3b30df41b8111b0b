/** The audit log's lines: who changed what, when, and by which request. Append-only. */
import type Database from "better-sqlite3";

/** A line of the audit log. Never contains a token, a password or a code. */
export interface AuditEntry {
  readonly at: number;
  /** Such as `session.start`. */
  readonly action: string;
  readonly actor: string;
  /** The user whose money or access changed; "subject" if that is the user that the write creates. */
  readonly userId: number | "subject" | null;
  /** The index of the request's write that the line describes. A write that changed nothing leaves no line. */
  readonly write: number;
  /** The id of the changed row; null stands for the write's own row. */
  readonly subject: number | null;
  readonly details: object | null;
  readonly requestId: string | null;
  readonly address: string | null;
}

export type AppendAudit = (entry: AuditEntry, subject: number | null) => void;

/** Returns a function that appends a line inside the caller's transaction. */
export function prepareAudit(db: Database.Database): AppendAudit {
  const insert = db.prepare(
    `INSERT INTO audit_log (at, action, actor, user_id, subject, details, request_id, address)
     VALUES (?, ?, ?, ?, ?, ?, ?, ?)`,
  );
  return ({ at, action, actor, userId, details, requestId, address }, subject) => {
    const user = userId === "subject" ? subject : userId;
    insert.run(at, action, actor, user, subject, details && JSON.stringify(details), requestId, address);
  };
}
