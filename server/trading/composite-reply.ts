/**
 * One reply that several events complete: of a batch, of quotes, of a cancel-all. From the first event to the last it defers
 * the user's messages, so that no order is updated before the reply that contains it was sent.
 */
import type { ApiError } from "../errors.ts";
import type { PendingReplies } from "./pending-replies.ts";
import type { Deferral, Reply, UserListener } from "./types.ts";

/** What a composite reply needs of the exchange. */
export interface CompositeReplyContext {
  readonly pending: PendingReplies;
  readonly users: Pick<UserListener, "defer">;
}

export class CompositeReply {
  private readonly context: CompositeReplyContext;
  private readonly userId: number;
  private readonly correlationId: number;
  private deferral: Deferral | null = null;
  private isOver = false;

  /** @param deadline ms since the epoch */
  constructor(context: CompositeReplyContext, userId: number, reply: Reply, deadline: number) {
    this.context = context;
    this.userId = userId;
    this.correlationId = context.pending.expect(reply, deadline);
  }

  /** One of its events was applied, and nothing published about it yet. */
  arrived(): void {
    // After a failure nothing would release the messages.
    if (!this.isOver) this.deferral ??= this.context.users.defer(this.userId);
  }

  /** Everything is known. @param give gives the client its reply */
  finish(give: (reply: Reply) => void): void {
    const reply = this.end();
    if (reply !== null) give(reply);
    this.release();
  }

  /** It cannot be completed; later events change nothing. */
  fail(error: ApiError): void {
    this.end()?.error(error);
    this.release();
  }

  private release(): void {
    this.deferral?.release();
    this.deferral = null;
  }

  /** Returns the client's reply, unless it was sent. */
  private end(): Reply | null {
    if (this.isOver) return null;
    this.isOver = true;
    return this.context.pending.resolve(this.correlationId);
  }
}
