/**
 * Where the log has each user's order updates, for `resume`: one row per user and block of the log in which the user has an
 * update. Also keeps what an update shows and the log doesn't say: terms from before an amend, and the fills of an order
 * in the middle of its matching.
 */
import type Database from "better-sqlite3";
import { blockOf } from "../log/batch-format.ts";
import type { LogReader } from "../log/log-reader.ts";
import { withIndex } from "../util/typed-arrays.ts";
import { blockOfBatch, remainingUpdates } from "./cut-block.ts";
import { RowInserter } from "./row-inserter.ts";
import { type ColumnOf, TERM_CHANGES, UPDATE_INDEX } from "./tables.ts";

/** An order in the middle of its matching. */
interface Unfinished {
  /** Its fills that no update reports. */
  fills: number;
  /** The batch of the first one. */
  readonly batch: number;
}

export class UpdateIndex {
  private readonly rows: RowInserter<ColumnOf<typeof UPDATE_INDEX>>;
  private readonly termRows: RowInserter<ColumnOf<typeof TERM_CHANGES>>;
  /** By user: the last block with a row, counted from 1; 0 for none. */
  private blocks = new Float64Array(1024);
  private readonly unfinished = new Map<number, Unfinished>();
  /** Unfinished orders that have a row, and those whose row must change. */
  private readonly stored = new Set<number>();
  private readonly changed = new Set<number>();
  private readonly lowerBatch: Database.Statement;
  private readonly forgetBefore: Database.Statement;
  private readonly cutBlocks: Database.Statement;
  private readonly cutUsers: Database.Statement;
  private readonly forgetBlocks: Database.Statement;
  private readonly insertRow: Database.Statement;
  private readonly log: LogReader;
  private readonly lastBlocks: Database.Statement;
  private readonly storeUnfinished: Database.Statement;
  private readonly removeUnfinished: Database.Statement;
  private batch = 0;
  private block = 0;

  /** @param log what `forget` reads */
  constructor(db: Database.Database, log: LogReader) {
    this.log = log;
    this.rows = new RowInserter(db, UPDATE_INDEX);
    // Changes of an order between the same two updates: the terms from before the first one count.
    this.termRows = new RowInserter(db, TERM_CHANGES, { conflict: "IGNORE" });
    this.lowerBatch = db.prepare("UPDATE update_index SET batch = min(batch, ?) WHERE user_id = ? AND block = ?");
    this.storeUnfinished = db.prepare(
      "INSERT OR REPLACE INTO unfinished_orders (order_id, fills, batch) VALUES (?, ?, ?)",
    );
    this.removeUnfinished = db.prepare("DELETE FROM unfinished_orders WHERE order_id = ?");
    this.forgetBefore = db.prepare("DELETE FROM update_index WHERE batch < ?");
    this.cutBlocks = db
      .prepare("SELECT block, min(batch) FROM update_index WHERE batch < ? AND block >= ? GROUP BY block")
      .raw();
    this.cutUsers = db.prepare("SELECT user_id FROM update_index WHERE batch < ? AND block = ?").pluck();
    this.forgetBlocks = db.prepare("DELETE FROM update_index WHERE user_id = ? AND block < ?");
    this.insertRow = db.prepare("INSERT INTO update_index (user_id, sequence, block, batch) VALUES (?, ?, ?, ?)");
    this.lastBlocks = db.prepare("SELECT user_id, max(block) FROM update_index GROUP BY user_id").raw();
    this.loadBlocks();
    // Rows without a batch, from before the log, stay: order updates are read with them.
    const unfinished = db.prepare("SELECT order_id, fills, batch FROM unfinished_orders WHERE batch > 0").raw();
    for (const row of unfinished.iterate()) {
      const [order, fills, batch] = row as [number, number, number];
      this.unfinished.set(order, { fills, batch });
      this.stored.add(order);
    }
  }

  /** The updates from here on are in this batch. @param recordsBefore those of the log before it */
  begin(batch: number, recordsBefore: number): void {
    this.batch = batch;
    this.block = blockOf(recordsBefore);
  }

  /** A taker's fill that its command's update will report. */
  addFill(order: number): void {
    const known = this.unfinished.get(order);
    if (known === undefined) this.unfinished.set(order, { fills: 1, batch: this.batch });
    else known.fills++;
    this.changed.add(order);
  }

  /** An update of the order, the user's `sequence`th, which reports all its fills so far. */
  addUpdate(user: number, sequence: number, order: number): void {
    const batch = this.unfinished.size === 0 ? this.batch : this.finish(order);
    if (user >= this.blocks.length) this.blocks = withIndex(this.blocks, user);
    if (this.blocks[user] !== this.block + 1) this.insert(user, sequence, batch);
    else if (batch < this.batch) {
      this.rows.flush();
      this.lowerBatch.run(batch, user, this.block);
    }
  }

  /**
   * Keeps an order's terms from before a change. @param sequence the number of the user's first update that shows the new ones
   * @param expiresAt ms, 0 for never
   */
  addTermChange(order: number, sequence: number, price: number, quantity: number, expiresAt: number): void {
    const row = this.termRows.next();
    const { params, at } = this.termRows;
    params[row + at.order_id] = order;
    params[row + at.sequence] = sequence;
    params[row + at.price] = price;
    params[row + at.quantity] = quantity;
    params[row + at.expires_at] = expiresAt;
  }

  /** Updates that need a batch before `batch` can't be read any more; all others can. Inside a transaction. */
  forget(batch: number): void {
    this.rows.flush();
    const cut = this.cutRows(batch);
    this.forgetBefore.run(batch);
    for (const row of cut.values()) this.insertRow.run(row);
    // The next update of a user whose row of this block is gone needs a row again.
    this.blocks.fill(0);
    this.loadBlocks();
  }

  /** By user: the new row of the block that begins before `before` and ends after it. */
  private cutRows(before: number): Map<number, number[]> {
    const rows = new Map<number, number[]>();
    const first = blockOfBatch(this.log, before);
    if (first === null) return rows;
    for (const [block, from] of this.cutBlocks.all(before, first) as [number, number][]) {
      const remaining = remainingUpdates(this.log, { block, from, before, end: this.batch });
      for (const user of this.cutUsers.all(before, block) as number[]) {
        // In a later block, an update reports fills from before `before`: it is lost, and so are the user's updates before it.
        this.forgetBlocks.run(user, block);
        const entry = remaining.get(user);
        if (entry === undefined) rows.delete(user);
        else rows.set(user, [user, entry.sequence, block, entry.batch]);
      }
    }
    return rows;
  }

  /** Writes what changed. Inside a transaction. */
  flush(): void {
    this.rows.flush();
    this.termRows.flush();
    for (const order of this.changed) {
      const found = this.unfinished.get(order);
      if (found !== undefined) {
        this.storeUnfinished.run(order, found.fills, found.batch);
        this.stored.add(order);
      } else if (this.stored.delete(order)) this.removeUnfinished.run(order);
    }
    this.changed.clear();
  }

  private loadBlocks(): void {
    for (const row of this.lastBlocks.iterate()) {
      const [user, block] = row as [number, number];
      this.blocks = withIndex(this.blocks, user);
      this.blocks[user] = block + 1;
    }
  }

  /** Forgets the order's unreported fills; returns the batch from which its update can be read. */
  private finish(order: number): number {
    const found = this.unfinished.get(order);
    if (found === undefined) return this.batch;
    this.unfinished.delete(order);
    this.changed.add(order);
    return found.batch;
  }

  private insert(user: number, sequence: number, batch: number): void {
    this.blocks[user] = this.block + 1;
    const row = this.rows.next();
    const { params, at } = this.rows;
    params[row + at.user_id] = user;
    params[row + at.sequence] = sequence;
    params[row + at.block] = this.block;
    params[row + at.batch] = batch;
  }
}
