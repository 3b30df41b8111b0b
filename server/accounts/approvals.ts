/**
 * The two-person rule: where it is configured, an action is done when a second operator asks for the same. Who was first
 * is durable, so that a restart in between changes nothing. Owned by the gateway thread.
 */

import type { ApprovalRow } from "../../engine/projection/load/wallet.ts";
import type { AccountWrite } from "../../engine/projection/writes/account-write.ts";
import { assert } from "../../engine/util/assert.ts";
import { ApiError, ErrorKind, notFound } from "../errors.ts";
import { KeyedMutex } from "../util/keyed-mutex.ts";
import type { AccountWriter } from "./account-writer.ts";
import type { Accounts } from "./accounts.ts";
import { audit, type RequestContext } from "./audit.ts";
import { MAX_OPEN_APPROVALS } from "./limits.ts";
import { checkNotOwn, type Operator } from "./operator.ts";

/** What the rule can be switched on for. */
export const TWO_PERSON_ACTIONS = ["withdrawals", "resolutions", "deposits", "terms"] as const;
export type TwoPersonAction = (typeof TWO_PERSON_ACTIONS)[number];

/** What shall be done, and on what. */
export interface ApprovalRequest {
  /** "always": whatever is switched on. */
  readonly rule: TwoPersonAction | "always";
  /** Such as `withdrawal.pay`. */
  readonly action: string;
  /** Id of what is acted on. */
  readonly subject: number;
  /** Tells several of one subject apart: each has a first approval of its own. */
  readonly reference?: string;
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

/** What an audit line says of an action that a first approval preceded: who gave it, and when. */
export function withFirstApproval(details: object, first: ApprovalRow | null): object {
  return first === null ? details : { ...details, approved_by: first.actor, approved_at: first.createdAt };
}

/** What became of a wish: it was done, or is the first of two. */
export type ApprovalOutcome<T> =
  | { readonly approval: null; readonly result: T }
  | { readonly approval: ApprovalRow; readonly result: null };

/** Does what was wished for. @see Approvals.request */
type ApprovedAction<T> = (ending: readonly AccountWrite[], first: ApprovalRow | null) => Promise<T>;

/** Operators decide by hand. */
const RETRY_AFTER_S = 60;

export class Approvals {
  private readonly writer: AccountWriter;
  private readonly accounts: Pick<Accounts, "user">;
  private readonly rules: ReadonlySet<TwoPersonAction>;
  private readonly open = new Map<string, ApprovalRow>();
  /** From the agreement to the end of what was agreed on nobody else has a say. */
  private readonly mutex = new KeyedMutex<string>("another approval is in progress: try again");

  constructor(
    writer: AccountWriter,
    accounts: Pick<Accounts, "user">,
    rules: ReadonlySet<TwoPersonAction>,
    rows: readonly ApprovalRow[],
  ) {
    this.writer = writer;
    this.accounts = accounts;
    this.rules = rules;
    for (const row of rows) this.open.set(keyOf(row), row);
  }

  /** First approvals whose second is awaited. */
  pending(): ApprovalRow[] {
    return [...this.open.values()].filter((row) => this.counts(row));
  }

  find(action: string, subject: number, reference = ""): ApprovalRow | null {
    const row = this.open.get(keyOf({ action, subject, reference }));
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
   * @param act does it; `ending` ends the first approval and belongs in its transaction, `first` is that approval
   * @param done resolves to what was done already, null where it was not; looked at before anything else, and once more
   *   when no other request can act on it
   * @throws ApiError 40300 for the operator's own account, 40900 where another operator asked for something else, 42900
   *   where too many first approvals wait; what `act` throws
   */
  async request<T>(
    wish: ApprovalRequest,
    operator: Operator,
    context: RequestContext,
    act: ApprovedAction<T>,
    done: (() => Promise<T | null>) | null = null,
  ): Promise<ApprovalOutcome<T>> {
    const { rule, action, subject, reference, userId } = wish;
    checkNotOwn(operator, userId);
    const before = done && (await done());
    if (before !== null) return { approval: null, result: before };
    if (rule !== "always" && !this.rules.has(rule))
      return { approval: null, result: await this.act(wish, null, context, act) };
    return this.mutex.run(keyOf(wish), async () => {
      const meanwhile = done && (await done());
      if (meanwhile !== null) return { approval: null, result: meanwhile };
      const details = JSON.stringify(wish.details);
      const first = this.find(action, subject, reference);
      if (first !== null && first.actor !== operator.actor) {
        if (first.details === details) return { approval: null, result: await this.act(wish, first, context, act) };
        throw new ApiError(ErrorKind.conflict, `${first.actor} requested something different: ${first.details}`);
      }
      const approval = first?.details === details ? first : await this.storeFirst(wish, details, operator, context);
      return { approval, result: null };
    });
  }

  private async act<T>(
    wish: ApprovalRequest,
    first: ApprovalRow | null,
    context: RequestContext,
    act: ApprovedAction<T>,
  ): Promise<T> {
    const { action, subject, reference } = wish;
    const result = await act(this.endingWrites(action, subject, context.now, reference), first);
    this.forget(wish);
    return result;
  }

  /** Makes the first approval durable, in the place of one that counts no more or says something else. */
  private async storeFirst(
    { action, subject, reference = "", userId, ...wish }: ApprovalRequest,
    details: string,
    operator: Operator,
    context: RequestContext,
  ): Promise<ApprovalRow> {
    const row = { action, subject, reference, details, actor: operator.actor, createdAt: context.now };
    const ending = this.endingWrites(action, subject, context.now, reference);
    if (ending.length === 0 && this.open.size >= MAX_OPEN_APPROVALS) {
      const text = `${MAX_OPEN_APPROVALS} approvals are waiting for a second operator: give or revoke some of them first`;
      throw new ApiError(ErrorKind.limitExceeded, text, RETRY_AFTER_S);
    }
    const change = { action: `${action}.approve`, userId, subject, details: wish.details, write: ending.length };
    const line = audit(context, operator.actor, change);
    const results = await this.writer.write([...ending, { kind: "insert", table: "approvals", row }], [line]);
    const { id, created } = results.at(-1)!;
    assert(created, "there is one first approval at a time");
    const approval = { ...row, id };
    this.open.set(keyOf(row), approval);
    return approval;
  }

  /**
   * Ends a first approval, whoever's it is: nothing is done.
   * @throws ApiError 4040 where none waits, 40900 where the second came first
   */
  async revoke(id: number, operator: Operator, context: RequestContext): Promise<ApprovalRow> {
    const row = [...this.open.values()].find((each) => each.id === id);
    if (row === undefined) throw notFound("approval");
    const { action, subject, reference } = row;
    await this.mutex.run(keyOf(row), async () => {
      const change = { action: `${action}.take_back`, userId: null, subject, details: JSON.parse(row.details) };
      const ending = this.endingWrites(action, subject, context.now, reference);
      await this.writer.write(ending, [audit(context, operator.actor, change)]);
      if (!this.open.delete(keyOf(row))) throw new ApiError(ErrorKind.conflict, "the approval has already ended");
    });
    return row;
  }

  /** What ends a first approval in the database, for when its subject ends otherwise; `forget` ends it in memory. */
  endingWrites(action: string, subject: number, now: number, reference = ""): AccountWrite[] {
    const first = this.open.get(keyOf({ action, subject, reference }));
    return first === undefined ? [] : [{ kind: "update", table: "approvals", id: first.id, set: { endedAt: now } }];
  }

  forget(wish: Pick<ApprovalRequest, "action" | "subject" | "reference">): void {
    this.open.delete(keyOf(wish));
  }
}

function keyOf({ action, subject, reference = "" }: Pick<ApprovalRequest, "action" | "subject" | "reference">): string {
  return `${action} ${subject} ${reference}`;
}
