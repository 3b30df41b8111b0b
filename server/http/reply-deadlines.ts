/**
 * Ends requests whose response doesn't come: one that changes something, while what it wrote waits for other boxes, gets
 * 50000 like an order does. What was written stays, and happens.
 */
import { outcomeUnknown } from "../errors.ts";
import { WRITE_DEADLINE_MS } from "./limits.ts";
import type { HttpReply } from "./reply.ts";

export class ReplyDeadlines {
  /** In the order of their deadlines. */
  private waiting: { readonly reply: HttpReply; readonly at: number }[] = [];

  /** @param now ms */
  add(reply: HttpReply, now: number): void {
    this.waiting.push({ reply, at: now + WRITE_DEADLINE_MS });
  }

  /** Ends what is due. Called every few hundred milliseconds. @param now ms */
  check(now: number): void {
    const due = this.waiting.findIndex(({ at }) => at > now);
    const ended = due < 0 ? this.waiting.splice(0) : this.waiting.splice(0, due);
    for (const { reply } of ended) {
      if (!reply.done) reply.error(outcomeUnknown("the request waits for the copy of the log"));
    }
  }
}
