/**
 * The two-person rule: where it is configured, an action is done when a second operator asks for the same. Who was first
 * is durable, so that a restart in between changes nothing. Owned by the gateway thread.
 */
import type { ApprovalRow } from "../engine/journal/load.ts";
import type { AccountWrite } from "../engine/journal/writes.ts";
import type { AccountWriter } from "./account-writer.ts";
import { audit, type RequestContext } from "./audit.ts";
import { ApiError, ErrorKind, notFound } from "./errors.ts";
import type { Operator } from "./operators.ts";

/** What the rule can be switched on for. */
export const TWO_PERSON_ACTIONS = ["withdrawals", "resolutions"] as const;
export type TwoPersonAction = (typeof TWO_PERSON_ACTIONS)[number];

/** What shall be done, and on what. */
export interface Wish {
  readonly rule: TwoPersonAction;
  /** Such as `withdrawal.pay`. */
  readonly action: string;
  /** Id of what is acted on. */
  readonly subject: number;
  /** All that the two must agree on. */
  readonly details: object;
  /** Whose money it is: this user is neither of the two. Null: nobody's in particular. */
  readonly userId: number | null;
}

/** The first of two, as clients see it. */
export interface ApprovalView {
  readonly id: number;
  readonly action: string;
  readonly subject: number;
  readonly details: unknown;
  readonly approved_by: string;
  readonly created_at: number;
}

export function approvalView({ id, action, subject, details, actor, createdAt }: ApprovalRow): ApprovalView {
  return { id, action, subject, details: JSON.parse(details), approved_by: actor, created_at: createdAt };
}

/** The action may be done now; `ending` belongs into its transaction, `done` is called when that is durable. */
export interface Agreement {
  readonly ending: readonly AccountWrite[];
  done(): void;
}

export class Approvals {
  private readonly writer: AccountWriter;
  private readonly rules: ReadonlySet<TwoPersonAction>;
  private readonly open = new Map<string, ApprovalRow>();
  /** Being made durable: a second approval must not meet a first that isn't. */
  private readonly writing = new Set<string>();

  constructor(writer: AccountWriter, rules: ReadonlySet<TwoPersonAction>, rows: readonly ApprovalRow[]) {
    this.writer = writer;
    this.rules = rules;
    for (const row of rows) this.open.set(keyOf(row.action, row.subject), row);
  }

  /** First approvals whose second is awaited, newest first. */
  pending(): ApprovalRow[] {
    return [...this.open.values()].sort((a, b) => b.id - a.id);
  }

  find(action: string, subject: number): ApprovalRow | null {
    return this.open.get(keyOf(action, subject)) ?? null;
  }

  /**
   * Answers that the action may be done, or the first approval, which then waits for another operator's.
   * @throws ApiError 40300 for one's own money, 40900 where another operator asked for something else
   */
  async ask(wish: Wish, operator: Operator, context: RequestContext): Promise<Agreement | ApprovalRow> {
    const { rule, action, subject, userId } = wish;
    if (!this.rules.has(rule))
      return { ending: this.endOf(action, subject, context.now), done: () => this.forget(wish) };
    if (userId !== null && userId === operator.userId) {
      throw new ApiError(ErrorKind.forbidden, "two others must approve of what is one's own");
    }
    const key = keyOf(action, subject);
    if (this.writing.has(key)) throw underWay();
    const details = JSON.stringify(wish.details);
    const first = this.open.get(key);
    if (first !== undefined && first.actor !== operator.actor) {
      if (first.details !== details) {
        throw new ApiError(ErrorKind.conflict, `${first.actor} asked for something else: ${first.details}`);
      }
      return { ending: this.endOf(action, subject, context.now), done: () => this.forget(wish) };
    }
    if (first?.details === details) return first;
    this.writing.add(key);
    try {
      const row = { action, subject, details, actor: operator.actor, createdAt: context.now };
      const change = { action: `${action}.approve`, userId, subject, details: wish.details };
      const writes: AccountWrite[] = [
        ...this.endOf(action, subject, context.now),
        { kind: "insert", table: "approvals", row },
      ];
      const line = audit(context, operator.actor, { ...change, write: writes.length - 1 });
      const results = await this.writer.write(writes, [line]);
      const approval = { ...row, id: results.at(-1)!.id };
      this.open.set(key, approval);
      return approval;
    } finally {
      this.writing.delete(key);
    }
  }

  /**
   * Ends a first approval, whoever's it is: nothing is done.
   * @throws ApiError 4040 where none waits, 40900 where the second came first
   */
  async takeBack(id: number, operator: Operator, context: RequestContext): Promise<ApprovalRow> {
    const row = this.pending().find((each) => each.id === id);
    if (row === undefined) throw notFound("approval");
    const { action, subject } = row;
    const key = keyOf(action, subject);
    if (this.writing.has(key)) throw underWay();
    this.writing.add(key);
    try {
      const change = { action: `${action}.take_back`, userId: null, subject, details: JSON.parse(row.details) };
      await this.writer.write(this.endOf(action, subject, context.now), [audit(context, operator.actor, change)]);
    } finally {
      this.writing.delete(key);
    }
    if (!this.open.delete(key)) throw new ApiError(ErrorKind.conflict, "it ended meanwhile");
    return row;
  }

  /** What ends a first approval in the database, for when its subject ends otherwise; `forget` ends it in memory. */
  endOf(action: string, subject: number, now: number): AccountWrite[] {
    const first = this.open.get(keyOf(action, subject));
    return first === undefined ? [] : [{ kind: "update", table: "approvals", id: first.id, set: { endedAt: now } }];
  }

  forget({ action, subject }: Pick<Wish, "action" | "subject">): void {
    this.open.delete(keyOf(action, subject));
  }
}

function underWay(): ApiError {
  return new ApiError(ErrorKind.conflict, "another approval is under way: try again");
}

function keyOf(action: string, subject: number): string {
  return `${action} ${subject}`;
}
