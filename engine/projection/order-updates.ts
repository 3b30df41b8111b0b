/**
 * The rows of `order_updates`: the content of each order.updated event, for replay. Each row is appended in the transaction
 * of the change that it reports, linked to its user's previous update (row-links.ts), and pruned some days later, oldest
 * first.
 *
 * A client asks for all updates after a sequence number. A mark at every 64th number of a user names its row, so that a
 * reader enters the list near the number instead of at its newest end.
 */
import type Database from "better-sqlite3";
import { assert } from "../util/assert.ts";
import { RowInserter } from "./row-inserter.ts";
import type { RowLinks } from "./row-links.ts";

const TABLE = `order_updates (id, user_id, sequence, order_id, price, quantity, remaining, status, reason, fills,
  last_fill_id, previous_of_user, created_at, expires_at)`;
/** SQLite assigns the ids, one above the highest: it then skips the uniqueness check, a fifth of the time. */
const VALUES = ["NULL", ...new Array<string>(13).fill("?")];
/** Updates of a user per mark. */
const MARK_INTERVAL = 64;
/** Rows pruned at a time, and updates added per slice under load: fewer, so that pruning keeps up. */
const PRUNE_SLICE = 512;
const ADDED_PER_SLICE = 256;

export class OrderUpdates {
  private readonly links: RowLinks;
  private readonly keepMs: number;
  private readonly rows: RowInserter;
  private readonly statements: ReturnType<typeof prepareStatements>;
  /** The last id assigned, over all users. */
  private last: number;
  /** The last id whose row is written. */
  private flushed: number;
  /** No row has a lower id. */
  private oldest: number;
  private prunedAt: number;
  /** The table is empty, so SQLite can't derive the next id. */
  private isEmpty: boolean;

  /** @param last the last id assigned so far @param keepMs how long updates are kept */
  constructor(db: Database.Database, links: RowLinks, last: number, keepMs: number) {
    this.links = links;
    this.keepMs = keepMs;
    this.rows = new RowInserter(db, TABLE, VALUES);
    this.statements = prepareStatements(db);
    this.last = last;
    this.flushed = last;
    const oldest = this.statements.oldest.get() as number | null;
    this.oldest = oldest ?? last + 1;
    this.isEmpty = oldest === null;
    this.prunedAt = last;
  }

  /** The number of updates so far, over all users. */
  get count(): number {
    return this.last;
  }

  /**
   * Adds an update inside a transaction; returns its number in its user's sequence.
   * @param state status | reason << 4 @param expiresAt ms, 0 for never
   */
  add(
    user: number,
    order: number,
    price: number,
    quantity: number,
    remaining: number,
    state: number,
    fills: number,
    lastFill: number,
    at: number,
    expiresAt: number,
  ): number {
    const id = ++this.last;
    const previous = this.links.addUpdate(user, id);
    const sequence = this.links.updateSequence(user);
    const row = this.rows.next();
    const { params } = this.rows;
    params[row] = user;
    params[row + 1] = sequence;
    params[row + 2] = order;
    params[row + 3] = price;
    params[row + 4] = quantity;
    params[row + 5] = remaining;
    params[row + 6] = state & 0xf;
    params[row + 7] = state >> 4;
    params[row + 8] = fills;
    params[row + 9] = fills === 0 ? 0 : lastFill;
    params[row + 10] = previous;
    params[row + 11] = at;
    params[row + 12] = expiresAt;
    if (this.isEmpty) this.writeFirst(id);
    if (sequence % MARK_INTERVAL === 0) this.statements.mark.run(user, sequence, id);
    return sequence;
  }

  /** Writes pending rows. */
  flush(): void {
    this.rows.flush();
    assert(this.isEmpty || this.last === this.flushed || this.rows.lastId === this.last, "order updates have no gap");
    this.flushed = this.last;
  }

  /** Writes the only pending row as the table's first. */
  private writeFirst(id: number): void {
    this.rows.flush();
    this.statements.setId.run(id, this.rows.lastId);
    this.rows.lastId = id;
    this.isEmpty = false;
  }

  /** True if enough updates were added since the last slice that the next one is due under load. */
  get isPruningDue(): boolean {
    return this.last - this.prunedAt >= ADDED_PER_SLICE;
  }

  /**
   * True if the oldest row can be pruned. A row stays until the tables of newest rows include it, because they alone keep
   * the sequence number that its user's next update continues, and until its order's row includes it. The last row stays.
   * @param now ms @param flushedUpdate the last update that the rows of orders include
   */
  hasOutdated(now: number, flushedUpdate: number): boolean {
    if (this.oldest >= this.last || this.oldest > Math.min(flushedUpdate, this.links.writtenUpdate)) return false;
    const at = this.statements.createdAt.get(this.oldest);
    return at === undefined || Number(at) < now - this.keepMs;
  }

  /** Deletes a slice of outdated rows, inside a transaction. @param now ms @param flushedUpdate as in `hasOutdated` */
  prune(now: number, flushedUpdate: number): void {
    if (!this.hasOutdated(now, flushedUpdate)) {
      this.prunedAt = this.last;
      return;
    }
    this.prunedAt = Math.min(this.last, this.prunedAt + ADDED_PER_SLICE);
    const { statements } = this;
    const slice = [this.oldest, this.oldest + PRUNE_SLICE - 1, now - this.keepMs] as const;
    // Times rise with ids except for clock steps: an old row behind a younger one waits for it.
    const young = Number(statements.firstYoung.get(...slice) ?? this.oldest + PRUNE_SLICE);
    const end = Math.min(young, Math.min(flushedUpdate, this.links.writtenUpdate) + 1, this.last);
    for (const mark of statements.marksBetween.all(this.oldest, end)) {
      statements.unmark.run(...(mark as [number, number]));
    }
    statements.remove.run(this.oldest, end);
    this.oldest = end;
  }
}

function prepareStatements(db: Database.Database) {
  return {
    oldest: db.prepare("SELECT min(id) FROM order_updates").pluck(),
    createdAt: db.prepare("SELECT created_at FROM order_updates WHERE id = ?").pluck(),
    setId: db.prepare("UPDATE order_updates SET id = ? WHERE id = ?"),
    mark: db.prepare("INSERT INTO update_marks VALUES (?, ?, ?)"),
    firstYoung: db
      .prepare("SELECT id FROM order_updates WHERE id BETWEEN ? AND ? AND created_at >= ? ORDER BY id LIMIT 1")
      .pluck(),
    marksBetween: db
      .prepare(
        `SELECT user_id, sequence FROM order_updates WHERE id >= ? AND id < ? AND sequence % ${MARK_INTERVAL} = 0`,
      )
      .raw(),
    unmark: db.prepare("DELETE FROM update_marks WHERE user_id = ? AND sequence = ?"),
    remove: db.prepare("DELETE FROM order_updates WHERE id >= ? AND id < ?"),
  };
}
