/**
 * Reads the trail of an account: its deposits and reversals and who made them, its terms and who set them, the decisions on its
 * identity, each with the first of two approvals where there was one. The second operator of a payment checks it.
 * Bounded: the newest of each kind.
 */
import type Database from "better-sqlite3";
import { MAX_TRAIL } from "./limits.ts";

/** The condition of the index audit_trail: SQLite uses it only where a read repeats the condition. */
const ACTIONS =
  "action IN ('wallet.deposit', 'wallet.reverse_deposit', 'user.set_terms', 'identity.approve', 'identity.refuse')";

interface AuditRow {
  readonly at: number;
  readonly action: string;
  readonly actor: string;
  readonly subject: number;
  readonly details: string;
}

/** The first of two approvals in the details of an audit line. */
interface First {
  readonly approved_by?: string;
  readonly approved_at?: number;
}

/** The API's object; newest first. */
export interface Trail {
  readonly deposits: readonly object[];
  readonly terms: readonly object[];
  readonly identity: readonly object[];
  /** Whether there are older ones of some kind. */
  readonly has_more: boolean;
}

const noOne: First = {};
const firstOf = ({ approved_by, approved_at }: First): object => ({
  approved_by: approved_by ?? null,
  approved_at: approved_at ?? null,
});

export function prepareTrail(db: Database.Database): (options: { userId: number }) => Trail {
  const deposits = db.prepare(
    `SELECT id, amount, reference, reverses, created_at FROM entries INDEXED BY rare_entries
     WHERE type IN ('deposit', 'withdrawal', 'settlement') AND user_id = @userId AND type = 'deposit'
     ORDER BY id DESC LIMIT ${MAX_TRAIL + 1}`,
  );
  const lines = (where: string): Database.Statement =>
    db.prepare(
      `SELECT at, action, actor, subject, details FROM audit_log INDEXED BY audit_trail
       WHERE ${ACTIONS} AND user_id = @userId AND ${where} ORDER BY id DESC LIMIT ${MAX_TRAIL + 1}`,
    );
  const ofDeposit = lines("action IN ('wallet.deposit', 'wallet.reverse_deposit') AND subject = @id");
  const ofTerms = lines("action = 'user.set_terms'");
  const ofIdentity = lines("action IN ('identity.approve', 'identity.refuse')");

  return ({ userId }) => {
    const credited = deposits.all({ userId }) as { id: number }[];
    const set = ofTerms.all({ userId }) as AuditRow[];
    const decided = ofIdentity.all({ userId }) as AuditRow[];
    return {
      deposits: credited.slice(0, MAX_TRAIL).map((deposit) => {
        const line = ofDeposit.get({ userId, id: deposit.id }) as AuditRow | undefined;
        const first = line === undefined ? noOne : (JSON.parse(line.details) as First);
        return { ...deposit, credited_by: line?.actor ?? null, ...firstOf(first) };
      }),
      terms: set.slice(0, MAX_TRAIL).map(({ at, actor, details }) => {
        const { approved_by, approved_at, ...changes } = JSON.parse(details) as First;
        return { set_at: at, set_by: actor, changes, ...firstOf({ approved_by, approved_at } as First) };
      }),
      identity: decided.slice(0, MAX_TRAIL).map(({ at, action, actor, subject, details }) => ({
        application_id: subject,
        status: action === "identity.approve" ? "approved" : "refused",
        decided_at: at,
        decided_by: actor,
        note: (JSON.parse(details) as { note: string | null }).note,
      })),
      has_more: [credited, set, decided].some(({ length }) => length > MAX_TRAIL),
    };
  };
}
