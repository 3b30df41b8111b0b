/**
 * Reads for operators what the gateway's memory does not hold: identity applications with their documents, and the audit
 * log. Rows are the API's objects, newest first.
 */
import type Database from "better-sqlite3";
import type { HistoryPage, PageOptions } from "../http/paging.ts";
import { MAX_AUDIT_WALKED } from "./limits.ts";

export interface ApplicationsOptions extends PageOptions {
  status: string;
  email?: string | undefined;
}

export interface AuditOptions extends PageOptions {
  userId?: number | undefined;
  actor?: string | undefined;
  /** An action that ends in a dot stands for all actions with this prefix. */
  action?: string | undefined;
  from?: number | undefined;
  to?: number | undefined;
}

interface Row {
  readonly id: number;
}

export interface ApplicationObject extends Row {
  readonly user_id: number;
}

export interface OperatorReads {
  applications(options: ApplicationsOptions): HistoryPage;
  application(options: { id: number }): ApplicationObject | null;
  audits(options: AuditOptions): HistoryPage;
}

const APPLICATIONS = `SELECT a.id, user_id, email, document_type, document_number, country, status, note, a.created_at,
  decided_at FROM identity_applications a JOIN users ON users.id = user_id`;

export function prepareOperatorReads(db: Database.Database): OperatorReads {
  const oneApplication = db.prepare(`${APPLICATIONS} WHERE a.id = ?`);
  const byStatus = db.prepare(
    `${APPLICATIONS} WHERE status = @status AND a.id < @before AND (@email IS NULL OR email = @email)
     ORDER BY a.id DESC LIMIT @limit`,
  );
  return {
    application: ({ id }) => (oneApplication.get(id) as ApplicationObject | undefined) ?? null,
    applications({ status, email = null, before, limit }) {
      const rows = byStatus.all({ status, email, before, limit: limit + 1 }) as Row[];
      return pageOf(rows, limit, 0);
    },
    audits: prepareAudits(db),
  };
}

/** A read scans MAX_AUDIT_WALKED lines at most; where there are more, the page has a cursor to continue. */
function prepareAudits(db: Database.Database): (options: AuditOptions) => HistoryPage {
  const newest = db.prepare("SELECT coalesce(max(id), 0) FROM audit_log").pluck();
  const lastOfUser = db
    .prepare("SELECT id FROM audit_log WHERE user_id = ? AND id < ? ORDER BY id DESC LIMIT 1 OFFSET ?")
    .pluck();
  const lines = (owner: string): Database.Statement =>
    db.prepare(
      `SELECT id, at, action, actor, user_id, subject, details, request_id, address FROM audit_log
       WHERE ${owner} AND id < @before AND id > @floor
         AND (@actor IS NULL OR actor = @actor)
         AND (@action IS NULL OR action = @action OR (@prefix > 0 AND substr(action, 1, @prefix) = @action))
         AND (@from IS NULL OR at >= @from) AND (@to IS NULL OR at <= @to)
       ORDER BY id DESC LIMIT @limit`,
    );
  const all = lines("@userId IS NULL");
  const ofUser = lines("user_id = @userId");
  return ({ userId = null, actor = null, action = null, from = null, to = null, before, limit }) => {
    const floor =
      userId === null
        ? Math.min(before, Number(newest.get()) + 1) - 1 - MAX_AUDIT_WALKED
        : Number(lastOfUser.get(userId, before, MAX_AUDIT_WALKED) ?? 0);
    const prefix = action?.endsWith(".") ? action.length : 0;
    const params = { userId, actor, action, prefix, from, to, before, floor, limit: limit + 1 };
    const rows = (userId === null ? all : ofUser).all(params) as (Row & { details: string | null })[];
    const items = rows.map((row) => ({ ...row, details: row.details === null ? null : JSON.parse(row.details) }));
    return pageOf(items, limit, floor);
  };
}

/** @param rows one more than the limit, where there is one @param floor rows at or below it were not scanned */
function pageOf(rows: readonly Row[], limit: number, floor: number): HistoryPage {
  const items = rows.slice(0, limit);
  const last = items.at(-1);
  if (rows.length > limit && last !== undefined) return { items, next: last.id };
  return { items, next: floor > 0 ? floor + 1 : null };
}
