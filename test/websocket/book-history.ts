/** One outcome's book as the frames of a connection build it, comparable with a REST book of any sequence. */
import { expect } from "vitest";
import type { BookJson } from "../support/client.ts";
import type { Socket } from "../support/socket.ts";

/** A book that the frames of one outcome build, with its state at each sequence. */
export class BookHistory {
  readonly history = new Map<number, string>();
  sequence = 0;
  private readonly bids = new Map<number, number>();
  private readonly asks = new Map<number, number>();

  constructor(socket: Socket, outcomeId: number) {
    const frames = socket.frames.filter(({ event, data }) => {
      return event.startsWith("book.") && (data as BookJson).outcome_id === outcomeId;
    });
    for (const { event, sequence, data } of frames) {
      if (event === "book.snapshot") this.sequence = sequence;
      else expect(sequence).toBe(++this.sequence);
      const { bids, asks } = data as BookJson;
      apply(this.bids, bids);
      apply(this.asks, asks);
      this.history.set(sequence, this.text());
    }
  }

  text(): string {
    return bookText(
      [...this.bids].sort(([a], [b]) => b - a),
      [...this.asks].sort(([a], [b]) => a - b),
    );
  }
}

function apply(levels: Map<number, number>, changes: readonly number[][]): void {
  for (const [price, quantity] of changes) {
    if (quantity === 0) levels.delete(price!);
    else levels.set(price!, quantity!);
  }
}

export const bookText = (bids: unknown, asks: unknown): string => JSON.stringify({ bids, asks });
