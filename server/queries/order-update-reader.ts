/**
 * Reads a user's order updates by their numbers from the log, each as order.updated sent it. The index in the tables says
 * in which batches to look; the tables give what the log doesn't say of an order. To be called in a read transaction.
 */
import type Database from "better-sqlite3";
import { restingTimeInForce } from "../../engine/constants.ts";
import { blockOf, readHeader, recordsOf } from "../../engine/log/batch-format.ts";
import { BrokenLog, LogGap } from "../../engine/log/broken-log.ts";
import type { ChainLink } from "../../engine/log/chain.ts";
import { checkedBodies } from "../../engine/log/checked-bodies.ts";
import type { LogReader } from "../../engine/log/log-reader.ts";
import { blockOfBatch, remainingUpdates } from "../../engine/projection/cut-block.ts";
import { EngineEvent } from "../../engine/ring/engine-event.ts";
import { EventKind, FLAG_QUOTE, withTimeInForce } from "../../engine/ring/records.ts";
import { assert } from "../../engine/util/assert.ts";
import type { OrderReport } from "../orders/order-json.ts";
import type { FillReader } from "./fill-reader.ts";
import { MAX_PAGE_FILLS, MAX_SCANNED_BYTES } from "./limits.ts";
import { type OrderRow, prepareOrderRow } from "./order-rows.ts";
import type { UpdatesOptions, UpdatesPage } from "./types.ts";

/** A block of the log with updates of the user. */
interface IndexRow {
  readonly sequence: number;
  readonly block: number;
  readonly batch: number;
}

/** An update as the log has it. */
interface LoggedUpdate {
  readonly sequence: number;
  readonly order: number;
  /** ms */
  readonly at: number;
  readonly remaining: number;
  /** status | reason << 4 */
  readonly state: number;
  /** The fills that it reports, oldest first. */
  readonly fills: readonly number[];
}

/** Where the user's updates begin and end. */
interface Bounds {
  /** The first number that is kept, or that is still to come. */
  readonly oldest: number;
  readonly last: number;
  /** The last batch that the tables include, and the SHA-256 of its body in hex. */
  readonly projected: number;
  readonly hash: string;
}

/** Gives the user's order updates after a number, oldest first. @param format an update's order */
export function prepareUpdates<T>(
  db: Database.Database,
  log: LogReader,
  fills: FillReader,
  format: (report: OrderReport) => T,
): (options: UpdatesOptions) => UpdatesPage<T> {
  const readBounds = prepareBounds(db);
  const indexFrom = db.prepare(
    `SELECT sequence, block, batch FROM update_index WHERE user_id = @userId AND sequence >= coalesce(
       (SELECT max(sequence) FROM update_index WHERE user_id = @userId AND sequence <= @first), @first)
     ORDER BY sequence`,
  );
  const readableFrom = prepareReadable(db, log);
  const item = prepareItem(db, fills);
  return ({ userId, after, limit }) => {
    const { oldest, last, projected, hash } = readBounds(userId);
    const first = after === null ? oldest : after + 1;
    const page = { items: [], oldest: null, hasMore: false, damage: null };
    if (first < oldest) return { ...page, oldest };
    if (first > last) return page;
    const rows = indexFrom.all({ userId, first }) as IndexRow[];
    /** Batches before it are gone. */
    let begins = 0;
    for (;;) {
      const scan = new Scan(userId, first, limit);
      try {
        for (const row of rows) {
          const readable = { ...row, batch: Math.max(row.batch, begins) };
          if (!scan.block(log, readable, { batch: projected, hash })) break;
        }
      } catch (error) {
        if (!(error instanceof BrokenLog)) throw error;
        // What comes before the fault is sent; the next page meets it.
        if (scan.updates.length === 0) {
          if (!(error instanceof LogGap)) return { ...page, damage: error.message };
          const readable = readableFrom(userId, error.next, projected) ?? last + 1;
          if (first < readable || error.next <= begins) return { ...page, oldest: readable };
          begins = error.next;
          continue;
        }
      }
      const items = scan.updates.map((update) => {
        const { sequence, at } = update;
        return { sequence, at, order: format(item(update)) };
      });
      return { ...page, items, hasMore: first + items.length <= last };
    }
  };
}

/** Gives the user's first update that can be read where the log begins with a batch; null if there is none. */
function prepareReadable(
  db: Database.Database,
  log: LogReader,
): (userId: number, batch: number, projected: number) => number | null {
  const indexed = db.prepare("SELECT min(sequence) FROM update_index WHERE user_id = ? AND batch >= ?").pluck();
  return (userId, batch, projected) => {
    if (!Number.isFinite(batch)) return null;
    const block = blockOfBatch(log, batch);
    const part = block === null ? null : { block, from: batch, before: batch, end: projected + 1 };
    const inBlock = part === null ? undefined : remainingUpdates(log, part).get(userId);
    return inBlock?.sequence ?? (indexed.get(userId, batch) as number | null);
  };
}

function prepareBounds(db: Database.Database): (userId: number) => Bounds {
  const bounds = db.prepare(
    `SELECT coalesce((SELECT min(sequence) FROM update_index WHERE user_id = @userId), last + 1) AS oldest, last,
       batch AS projected, hash
     FROM projection, (SELECT coalesce((SELECT update_sequence FROM newest_of_user WHERE user_id = @userId), 0) AS last)`,
  );
  return (userId) => bounds.get({ userId }) as Bounds;
}

/** Collects a page of a user's updates from the log, block by block. */
class Scan {
  readonly updates: LoggedUpdate[] = [];
  private readonly userId: number;
  private readonly first: number;
  private readonly limit: number;
  /** By order: its fills that no update reports up to here. */
  private readonly unreported = new Map<number, number[]>();
  private fills = 0;
  private bytes = 0;
  private isFull = false;
  private readonly event = new EngineEvent();

  constructor(userId: number, first: number, limit: number) {
    this.userId = userId;
    this.first = first;
    this.limit = limit;
  }

  /** Reads one block's batches; returns false if the page is full, or the tables don't include what follows. */
  block(log: LogReader, { block, batch }: IndexRow, projected: ChainLink): boolean {
    // This block's first batch may be in the block before: its fills are read again.
    this.unreported.clear();
    for (const body of checkedBodies(log, batch, projected)) {
      const header = readHeader(body);
      if (header.batch > projected.batch) return false;
      if (blockOf(header.recordsBefore) > block) break;
      this.bytes += body.length;
      const { words, doubles, count } = recordsOf(body, header);
      const event = this.event.at(words, doubles, 0);
      for (let i = 0; i < count; i++, event.next()) {
        if (event.user === this.userId) this.read(event);
        if (this.isFull) return false;
      }
    }
    return this.updates.length === 0 || this.bytes < MAX_SCANNED_BYTES;
  }

  private read(event: EngineEvent): void {
    if (!event.traits.changesOrder) return;
    const { orderId: order, userSequence: sequence, time: at, remaining, state } = event;
    if (event.kind === EventKind.orderFilled) this.addFill(order, event.fillId);
    if (sequence === 0) return;
    const fills = this.unreported.get(order) ?? [];
    this.unreported.delete(order);
    if (sequence < this.first + this.updates.length) return;
    assert(sequence === this.first + this.updates.length, "the index leads to each of a user's order updates");
    this.add({ sequence, order, at, remaining, state, fills });
  }

  private addFill(order: number, fill: number): void {
    const known = this.unreported.get(order);
    if (known === undefined) this.unreported.set(order, [fill]);
    else known.push(fill);
  }

  /** Updates of large orders are long: one that has no room beside others begins the next page. */
  private add(update: LoggedUpdate): void {
    this.fills += update.fills.length;
    this.isFull = this.updates.length > 0 && this.fills > MAX_PAGE_FILLS;
    if (this.isFull) return;
    this.updates.push(update);
    this.isFull = this.updates.length === this.limit;
  }
}

/** Returns the update as it was sent: the order's state at that moment, with the fills of that update alone. */
function prepareItem(db: Database.Database, fills: FillReader): (update: LoggedUpdate) => OrderReport {
  const orderRow = prepareOrderRow(db);
  const termsBefore = db.prepare(
    "SELECT price, quantity, expires_at AS expiresAt FROM term_changes WHERE order_id = ? AND sequence > ? ORDER BY sequence LIMIT 1",
  );
  // Orders that a crash interrupted before there was a log: their cancel reports fills that the log doesn't have.
  const fillsBeforeLog = new Map(
    db.prepare("SELECT order_id, fills FROM unfinished_orders WHERE batch = 0").raw().all() as [number, number][],
  );
  return (update) => {
    const { sequence, order, at, remaining } = update;
    const row = orderRow(order);
    assert(row !== undefined, "an order of the log has a row");
    const changed = termsBefore.get(order, sequence) as Pick<OrderRow, "price" | "quantity" | "expiresAt"> | undefined;
    const { price, quantity, expiresAt } = changed ?? row;
    const count = update.fills.length || (fillsBeforeLog.get(order) ?? 0);
    const lastFill = update.fills.at(-1) ?? row.lastFillId;
    const trades = count === 0 ? [] : fills.latestOfOrder(order, lastFill, count);
    // A quote's expiry can be set and removed.
    const isQuote = (row.terms & FLAG_QUOTE) !== 0;
    const terms = isQuote ? withTimeInForce(row.terms, restingTimeInForce(expiresAt ?? 0)) : row.terms;
    const state = { remaining, status: update.state & 0xf, reason: update.state >> 4, updatedAt: at };
    return { ...row, price, quantity, expiresAt, terms, ...state, trades, timestamps: null };
  };
}
