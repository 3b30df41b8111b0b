/** Exports lists as CSV (RFC 4180), in slices, so that an export of any length needs little memory. */

import { setImmediate as nextTurn } from "node:timers/promises";
import { systemClock } from "../../engine/util/clock.ts";
import { ApiError, ErrorKind, overloaded } from "../errors.ts";
import type { RequestReply } from "../http/route.ts";
import type { OrderedReads } from "../trading/types.ts";
import {
  type ExportedRow,
  type ExportKind,
  exportHead,
  exportLines,
  type Layout,
  type Names,
} from "./export-columns.ts";
import type { StoredList, TextSlice, Unpaged } from "./export-reader.ts";
import type { History } from "./history.ts";
import { EXPORT_SLICE_ROWS, MAX_EXPORT_MS, MAX_EXPORTS, MAX_EXPORTS_PER_USER } from "./limits.ts";

/** The media type in requests, and in responses. */
export const CSV = "text/csv";
export const CSV_TYPE = `${CSV}; charset=utf-8`;

/** A file's owner, list and columns. */
interface FileOptions {
  readonly userId: number;
  readonly kind: ExportKind;
  readonly layout: Layout;
}

export class Exports {
  private readonly history: History;
  private readonly reads: OrderedReads;
  /** By user: exports in progress. */
  private readonly running = new Map<number, number>();
  private count = 0;

  constructor(history: History, reads: OrderedReads) {
    this.history = history;
    this.reads = reads;
  }

  /** Responds with all rows of a list in the tables, newest first: those from before the export began. */
  async stored(reply: RequestReply, layout: Layout, list: Unpaged<StoredList>): Promise<undefined> {
    const { history } = this;
    async function* slices(): AsyncGenerator<string> {
      for (let before: number | null = Number.MAX_SAFE_INTEGER; before !== null; ) {
        const slice: TextSlice = await history.lines({
          list: { ...list, before, limit: EXPORT_SLICE_ROWS } as StoredList,
          layout,
        });
        yield slice.text;
        before = slice.next;
      }
    }
    // Like every read of the caller's own state: after the updates about what it shows.
    await this.reads.committed(list.userId);
    this.send(reply, { userId: list.userId, kind: list.kind, layout }, slices());
  }

  /** Responds with rows in memory. @param slices of the rows, each of a millisecond of work or so */
  inMemory(reply: RequestReply, options: FileOptions, slices: Iterable<readonly ExportedRow[]>, names: Names): void {
    const { reads } = this;
    const updatesSent = (): Promise<void> =>
      new Promise((resolve) => reads.afterMessagesSent(options.userId, systemClock.now(), resolve));
    async function* lines(): AsyncGenerator<string> {
      for (const rows of slices) {
        const text = exportLines(options.kind, options.layout, rows, names);
        await updatesSent();
        yield text;
        await nextTurn();
      }
    }
    this.send(reply, options, lines());
  }

  private send(reply: RequestReply, options: FileOptions, slices: AsyncIterable<string>): void {
    reply.stream(CSV_TYPE, `${options.kind}.csv`, this.read(options, slices));
  }

  /**
   * Yields the text in pieces.
   * @throws ApiError 42900, 50300 instead of the first piece when too many exports are in progress
   */
  private async *read(options: FileOptions, slices: AsyncIterable<string>): AsyncGenerator<string, void> {
    this.begin(options.userId);
    try {
      const deadline = systemClock.elapsed() + MAX_EXPORT_MS;
      let head = exportHead(options.kind, options.layout);
      for await (const text of slices) {
        // The filters may have excluded every row of a slice.
        if (head !== "" || text !== "") yield head + text;
        head = "";
        if (systemClock.elapsed() > deadline) throw overloaded("the export took too long: request a shorter period");
      }
      if (head !== "") yield head;
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
