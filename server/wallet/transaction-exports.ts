/** Exports transactions as CSV (RFC 4180), in slices, so that an export of any length needs little memory. */

import { systemClock } from "../../engine/util/clock.ts";
import { ApiError, ErrorKind, overloaded } from "../errors.ts";
import type { History } from "../queries/history.ts";
import { CSV_HEADER, type TransactionsOptions } from "../queries/transaction-reader.ts";
import { EXPORT_SLICE_ROWS, MAX_EXPORT_MS, MAX_EXPORTS, MAX_EXPORTS_PER_USER } from "./limits.ts";

/** The media type in requests, and in responses. */
export const CSV = "text/csv";
export const CSV_TYPE = `${CSV}; charset=utf-8`;

export class TransactionExports {
  private readonly history: History;
  /** By user: exports in progress. */
  private readonly running = new Map<number, number>();
  private count = 0;

  constructor(history: History) {
    this.history = history;
  }

  /**
   * Yields the text in pieces, newest transaction first: all transactions from before the export began.
   * @throws ApiError 42900, 50300 instead of the first piece when too many exports are in progress
   */
  async *read(options: Omit<TransactionsOptions, "before" | "limit">): AsyncGenerator<string, void> {
    this.begin(options.userId);
    try {
      const deadline = systemClock.elapsed() + MAX_EXPORT_MS;
      let head = CSV_HEADER;
      for (let before: number | null = Number.MAX_SAFE_INTEGER; before !== null; ) {
        if (systemClock.elapsed() > deadline) throw overloaded("the export took too long: request a shorter period");
        const slice = await this.history.transactionLines({ ...options, before, limit: EXPORT_SLICE_ROWS });
        // The filters may have excluded every row of a slice.
        if (head !== "" || slice.text !== "") yield head + slice.text;
        head = "";
        before = slice.next;
      }
    } finally {
      this.end(options.userId);
    }
  }

  private begin(userId: number): void {
    const own = this.running.get(userId) ?? 0;
    if (own >= MAX_EXPORTS_PER_USER) {
      throw new ApiError(ErrorKind.limitExceeded, `at most ${MAX_EXPORTS_PER_USER} exports at a time`, 1);
    }
    if (this.count >= MAX_EXPORTS) throw overloaded("too many exports in progress: try again");
    this.running.set(userId, own + 1);
    this.count++;
  }

  private end(userId: number): void {
    const left = (this.running.get(userId) ?? 0) - 1;
    if (left <= 0) this.running.delete(userId);
    else this.running.set(userId, left);
    this.count--;
  }
}
