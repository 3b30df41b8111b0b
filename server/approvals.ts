/**
 * The two-person rule: where it is configured, an action is done when a second operator asks for the same. Who was first
 * is durable, so that a restart in between changes nothing. Owned by the gateway thread.
 */
import { check } from "../engine/check.ts";
import type { ApprovalRow } from "../engine/journal/load.ts";
import type { AccountWrite } from "../engine/journal/writes.ts";
import type { AccountWriter } from "./account-writer.ts";
import type { Accounts } from "./accounts.ts";
import { Alone } from "./alone.ts";
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

/** What became of a wish: it was done, or is the first of two. */
export type Answer<T> =
  | { readonly approval: null; readonly result: T }
  | { readonly approval: ApprovalRow; readonly result: null };

export class Approvals {
  private readonly writer: AccountWriter;
  private readonly accounts: Pick<Accounts, "user">;
  private readonly rules: ReadonlySet<TwoPersonAction>;
  private readonly open = new Map<string, ApprovalRow>();
  /** From the agreement to the end of what was agreed on nobody else has a say. */
  private readonly alone = new Alone<string>("another approval is under way: try again");

  constructor(
    writer: AccountWriter,
    accounts: Pick<Accounts, "user">,
    rules: ReadonlySet<TwoPersonAction>,
    rows: readonly ApprovalRow[],
  ) {
    this.writer = writer;
    this.accounts = accounts;
    this.rules = rules;
    for (const row of rows) this.open.set(keyOf(row.action, row.subject), row);
  }

  /** First approvals whose second is awaited. */
  pending(): ApprovalRow[] {
    return [...this.open.values()].filter((row) => this.counts(row));
  }

  find(action: string, subject: number): ApprovalRow | null {
    const row = this.open.get(keyOf(action, subject));
    return row !== undefined && this.counts(row) ? row : null;
  }

  /** Whoever gave it is an operator still, and not suspended. */
  private counts({ actor }: ApprovalRow): boolean {
    const id = /^operator (\d+)$/.exec(actor)?.[1];
    if (id === undefined) return true;
    const user = this.accounts.user(Number(id));
    return user?.role === "operator" && user.suspendedAt === null;
  }

  /**
   * Does what is wished for, or keeps it as the first of two approvals until another operator wishes for the same.
   * @param act does it; what it is given ends the first approval, and belongs into its transaction
   * @throws ApiError 40300 for one's own money, 40900 where another operator asked for something else; what `act` throws
   */
  async ask<T>(
    wish: Wish,
    operator: Operator,
    context: RequestContext,
    act: (ending: readonly AccountWrite[]) => Promise<T>,
  ): Promise<Answer<T>> {
    const { rule, action, subject, userId } = wish;
    if (!this.rules.has(rule)) return { approval: null, result: await this.act(wish, context, act) };
    if (userId !== null && userId === operator.userId) {
      throw new ApiError(ErrorKind.forbidden, "two others must approve of what is one's own");
    }
    return this.alone.run(keyOf(action, subject), async () => {
      const details = JSON.stringify(wish.details);
      const first = this.find(action, subject);
      if (first !== null && first.actor !== operator.actor) {
        if (first.details === details) return { approval: null, result: await this.act(wish, context, act) };
        throw new ApiError(ErrorKind.conflict, `${first.actor} asked for something else: ${first.details}`);
      }
      const approval = first?.details === details ? first : await this.keep(wish, details, operator, context);
      return { approval, result: null };
    });
  }

  private async act<T>(
    { action, subject }: Wish,
    context: RequestContext,
    act: (ending: readonly AccountWrite[]) => Promise<T>,
  ): Promise<T> {
    const result = await act(this.endOf(action, subject, context.now));
    this.forget({ action, subject });
    return result;
  }

  /** Makes the first approval durable, in the place of one that counts no more or says something else. */
  private async keep(
    { action, subject, userId, ...wish }: Wish,
    details: string,
    operator: Operator,
    context: RequestContext,
  ): Promise<ApprovalRow> {
    const row = { action, subject, details, actor: operator.actor, createdAt: context.now };
    const ending = this.endOf(action, subject, context.now);
    const change = { action: `${action}.approve`, userId, subject, details: wish.details, write: ending.length };
    const line = audit(context, operator.actor, change);
    const results = await this.writer.write([...ending, { kind: "insert", table: "approvals", row }], [line]);
    const { id, created } = results.at(-1)!;
    check(created, "there is one first approval at a time");
    const approval = { ...row, id };
    this.open.set(keyOf(action, subject), approval);
    return approval;
  }

  /**
   * Ends a first approval, whoever's it is: nothing is done.
   * @throws ApiError 4040 where none waits, 40900 where the second came first
   */
  async takeBack(id: number, operator: Operator, context: RequestContext): Promise<ApprovalRow> {
    const row = [...this.open.values()].find((each) => each.id === id);
    if (row === undefined) throw notFound("approval");
    const { action, subject } = row;
    await this.alone.run(keyOf(action, subject), async () => {
      const change = { action: `${action}.take_back`, userId: null, subject, details: JSON.parse(row.details) };
      await this.writer.write(this.endOf(action, subject, context.now), [audit(context, operator.actor, change)]);
      if (!this.open.delete(keyOf(action, subject))) throw new ApiError(ErrorKind.conflict, "it ended meanwhile");
    });
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

function keyOf(action: string, subject: number): string {
  return `${action} ${subject}`;
}
