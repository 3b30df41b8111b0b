/**
 * An answer that several events make together: of a batch, of quotes, of a cancel-all. From the first event to the last
 * the user's own messages wait, so that no order is updated before the answer that holds it has left.
 */
import type { ApiError } from "../errors.ts";
import type { Exchange } from "./exchange.ts";
import type { Answer } from "./types.ts";

export class CompositeReply {
  private readonly exchange: Exchange;
  private readonly userId: number;
  private readonly place: number;
  private release: (() => void) | null = null;
  private isOver = false;

  /** @param deadline ms since the epoch */
  constructor(exchange: Exchange, userId: number, answer: Answer, deadline: number) {
    this.exchange = exchange;
    this.userId = userId;
    this.place = exchange.waiting.add(answer, deadline);
  }

  /** An event of it was applied, and isn't told yet. */
  arrived(): void {
    // Who was told that it failed waits for nothing more: what was held back now would stay so.
    if (!this.isOver) this.release ??= this.exchange.holdBack(this.userId);
  }

  /** All is known. */
  finish(json: string): void {
    this.end()?.data(json);
    this.release?.();
    this.release = null;
  }

  /** It cannot be completed; later events change nothing. */
  fail(error: ApiError): void {
    this.end()?.error(error);
    this.release?.();
    this.release = null;
  }

  /** The one who waits, unless it has its answer. */
  private end(): Answer | null {
    if (this.isOver) return null;
    this.isOver = true;
    return this.exchange.waiting.take(this.place);
  }
}
