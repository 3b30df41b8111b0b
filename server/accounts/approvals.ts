/**
 * The two-person rule: an action that it covers runs once a second operator requests the same. The first approval is
 * durable, so a restart between the two changes nothing. Owned by the gateway thread.
 */

import type { ApprovalRow } from "../../engine/log/rows.ts";
import { assert } from "../../engine/util/assert.ts";
import { ApiError, ErrorKind, notFound } from "../errors.ts";
import { KeyedMutex } from "../util/keyed-mutex.ts";
import type { LogWriter } from "../writes/log-writer.ts";
import type { RequestedWrite } from "../writes/types.ts";
import type { Accounts } from "./accounts.ts";
import { audit, type RequestContext } from "./audit.ts";
import { MAX_OPEN_APPROVALS } from "./limits.ts";
import { checkNotOwn, type Operator } from "./operator.ts";

/** The kinds of action that the operator of the exchange can put under the rule. */
export const TWO_PERSON_ACTIONS = ["withdrawals", "resolutions", "deposits", "terms"] as const;
export type TwoPersonAction = (typeof TWO_PERSON_ACTIONS)[number];

/** An action that an operator requests. */
export interface ApprovalRequest {
  /** "always": the rule applies whatever is configured. */
  readonly rule: TwoPersonAction | "always";
  /** Such as `withdrawal.pay`. */
  readonly action: string;
  /** Id of what the action changes. */
  readonly subject: number;
  /** Distinguishes several requests for one subject: each has its own first approval. */
  readonly reference?: string;
  /** Everything that both operators must agree on. */
  readonly details: object;
  /** The owner of the money, who can be neither operator; null: no specific owner. */
  readonly userId: number | null;
}

/** A first approval, as clients see it. */
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

/** The audit details of an action, with who gave the first approval and when, if there was one. */
export function withFirstApproval(details: object, first: ApprovalRow | null): object {
  return first === null ? details : { ...details, approved_by: first.actor, approved_at: first.createdAt };
}

/** The action ran, or the request became the first of two approvals. */
export type ApprovalOutcome<T> =
  | { readonly approval: null; readonly result: T }
  | { readonly approval: ApprovalRow; readonly result: null };

/** Does what was wished for. @see Approvals.request */
type ApprovedAction<T> = (ending: readonly RequestedWrite[], first: ApprovalRow | null) => Promise<T>;

/** A first approval that waits. */
interface OpenApproval {
  readonly row: ApprovalRow;
  /** The payment that only one action can make; null for other actions. */
  readonly payment: string | null;
}

/** Operators decide by hand, so there is no exact time. */
const RETRY_AFTER_S = 60;

export class Approvals {
  private readonly writer: LogWriter;
  private readonly accounts: Pick<Accounts, "user">;
  private readonly rules: ReadonlySet<TwoPersonAction>;
  private readonly open = new Map<string, OpenApproval>();
  /** By subject, and by payment: while an approved action runs, every other request for it is rejected. */
  private readonly mutex = new KeyedMutex<string>("another approval is in progress: try again");

  constructor(
    writer: LogWriter,
    accounts: Pick<Accounts, "user">,
    rules: ReadonlySet<TwoPersonAction>,
    rows: readonly ApprovalRow[],
  ) {
    this.writer = writer;
    this.accounts = accounts;
    this.rules = rules;
    for (const row of rows) this.add(row);
  }

  /** First approvals that wait for a second operator. */
  pending(): ApprovalRow[] {
    return [...this.open.values()].map(({ row }) => row).filter((row) => this.counts(row));
  }

  find(action: string, subject: number, reference = ""): ApprovalRow | null {
    const row = this.open.get(keyOf({ action, subject, reference }))?.row;
    return row !== undefined && this.counts(row) ? row : null;
  }

  /** A payment's reference as a first approval of it spells it: the second operator may type it in another case. */
  spelled(action: string, subject: number, reference: string): string {
    const payment = paymentOf(action, { reference });
    for (const open of this.open.values()) {
      const { row } = open;
      if (open.payment === payment && row.action === action && row.subject === subject && this.counts(row)) {
        return (JSON.parse(row.details) as { reference: string }).reference;
      }
    }
    return reference;
  }

  /** True while the operator who gave it is still one, and not suspended. */
  private counts({ actor }: ApprovalRow): boolean {
    const id = /^operator (\d+)$/.exec(actor)?.[1];
    if (id === undefined) return true;
    const user = this.accounts.user(Number(id));
    return user?.role === "operator" && user.suspendedAt === null;
  }

  /**
   * Runs the action, or stores the request as the first of two approvals until another operator requests the same.
   * @param act runs it; `ending` ends the first approval and belongs in its transaction, `first` is that approval
   * @param done resolves to the earlier result if the action ran before, else null; checked before anything else, and
   *   again once no other request can run the action
   * @throws ApiError 40300 for the operator's own account; 40900 when another operator requested something different;
   *   42900 when too many first approvals wait; whatever `act` throws
   */
  async request<T>(
    request: ApprovalRequest,
    operator: Operator,
    context: RequestContext,
    act: ApprovedAction<T>,
    done: (() => Promise<T | null>) | null = null,
  ): Promise<ApprovalOutcome<T>> {
    const { rule, action, subject, reference, userId } = request;
    checkNotOwn(operator, userId);
    const before = done && (await done());
    if (before !== null) return { approval: null, result: before };
    if (rule !== "always" && !this.rules.has(rule))
      return { approval: null, result: await this.act(request, null, context, act) };
    return this.alone(request, async () => {
      const earlier = done && (await done());
      if (earlier !== null) return { approval: null, result: earlier };
      const details = JSON.stringify(request.details);
      const first = this.find(action, subject, reference);
      if (first !== null && first.actor !== operator.actor) {
        if (first.details === details) return { approval: null, result: await this.act(request, first, context, act) };
        throw new ApiError(ErrorKind.conflict, `${first.actor} requested something different: ${first.details}`);
      }
      const approval = first?.details === details ? first : await this.storeFirst(request, details, operator, context);
      return { approval, result: null };
    });
  }

  /** Neither another request for the subject nor one for the payment runs meanwhile. */
  private alone<T>(request: ApprovalRequest, run: () => Promise<T>): Promise<T> {
    const payment = paymentOf(request.action, request.details);
    return this.mutex.run(keyOf(request), () => (payment === null ? run() : this.mutex.run(payment, run)));
  }

  private async act<T>(
    request: ApprovalRequest,
    first: ApprovalRow | null,
    context: RequestContext,
    act: ApprovedAction<T>,
  ): Promise<T> {
    // Others of the same payment can't be fulfilled any more.
    const ended = this.withSamePayment(request);
    const result = await act(endingWritesOf(ended, context.now), first);
    for (const { row } of ended) this.open.delete(keyOf(row));
    return result;
  }

  /** Stores the first approval; it replaces one that no longer counts or that differs. */
  private async storeFirst(
    { action, subject, reference = "", userId, ...request }: ApprovalRequest,
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
    const change = { action: `${action}.approve`, userId, subject, details: request.details, write: ending.length };
    const line = audit(context, operator.actor, change);
    const results = await this.writer.write([...ending, { kind: "insert", table: "approvals", row }], [line]);
    const result = results.at(-1);
    assert(result?.created === true, "there is one first approval at a time");
    const approval = { ...row, id: result.id };
    this.add(approval);
    return approval;
  }

  /**
   * Ends a first approval, any operator's; the action does not run.
   * @throws ApiError 4040 unless it waits, 40900 when the second approval came first
   */
  async revoke(id: number, operator: Operator, context: RequestContext): Promise<ApprovalRow> {
    const row = [...this.open.values()].find((each) => each.row.id === id)?.row;
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

  /** The writes that end a first approval, also when its subject ended another way; `forget` drops it from memory. */
  endingWrites(action: string, subject: number, now: number, reference = ""): RequestedWrite[] {
    const first = this.open.get(keyOf({ action, subject, reference }));
    return first === undefined ? [] : endingWritesOf([first], now);
  }

  forget(request: Pick<ApprovalRequest, "action" | "subject" | "reference">): void {
    this.open.delete(keyOf(request));
  }

  /**
   * Ends first approvals whose payment was made otherwise; earlier versions left them open.
   * @param isMade whether a payment with the reference is on record, to a user, by a user, or of the house
   */
  async endFulfilled(
    isMade: (reference: string, isWithdrawal: boolean) => Promise<boolean>,
    now: number,
  ): Promise<void> {
    for (const open of [...this.open.values()]) {
      const { reference } = JSON.parse(open.row.details) as { reference?: string };
      if (open.payment === null || !(await isMade(reference!, open.row.action.startsWith(WITHDRAWAL)))) continue;
      await this.writer.write(endingWritesOf([open], now));
      this.open.delete(keyOf(open.row));
    }
  }

  private add(row: ApprovalRow): void {
    this.open.set(keyOf(row), { row, payment: paymentOf(row.action, JSON.parse(row.details)) });
  }

  private withSamePayment({ details, ...request }: ApprovalRequest): OpenApproval[] {
    const payment = paymentOf(request.action, details);
    const key = keyOf(request);
    return [...this.open]
      .filter(([other, open]) => other === key || (payment !== null && open.payment === payment))
      .map(([, open]) => open);
  }
}

const WITHDRAWAL = "withdrawal.";

/** References of payments are used once, in any case: by paid withdrawals, and by all other payments. */
function paymentOf(action: string, details: object): string | null {
  const { reference } = details as { reference?: string | null };
  if (typeof reference !== "string" || reference === "") return null;
  return `${action.startsWith(WITHDRAWAL) ? "withdrawal" : "payment"} of ${reference.toLowerCase()}`;
}

function endingWritesOf(ended: readonly OpenApproval[], now: number): RequestedWrite[] {
  return ended.map(({ row }) => ({ kind: "update", table: "approvals", id: row.id, set: { endedAt: now } }));
}

function keyOf({ action, subject, reference = "" }: Pick<ApprovalRequest, "action" | "subject" | "reference">): string {
  return `${action} ${subject} ${reference}`;
}
