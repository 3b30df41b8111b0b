/**
 * Ends requests whose response doesn't come while what they wrote waits for other boxes: 50000, as an order gets by itself.
 * What was written stays, and happens.
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

  /** The machine's clock was set: what waits waits as long as if it had begun now. */
  clockStepped(now: number): void {
    this.waiting = this.waiting.map(({ reply }) => ({ reply, at: now + WRITE_DEADLINE_MS }));
  }

  /** Ends what is due while the log is held. Called every few hundred milliseconds. @param now ms */
  check(now: number, isHeld: boolean): void {
    if (this.waiting.length === 0) return;
    this.waiting = this.waiting.filter(({ reply }) => !reply.done);
    if (!isHeld) return;
    for (const { reply, at } of this.waiting) {
      if (at > now) break;
      reply.error(outcomeUnknown("the request waits for the copy of the log"));
    }
  }
}
