/**
 * The rows of `order_updates`: what each order.updated told, so that it can be told again. Appended in the transaction of
 * what they tell of, chained to their user's update before them (row-links.ts), and taken away some days later, oldest first.
 *
 * A client asks for what came after a number of its sequence: every so many numbers of a user a mark says which row that
 * is, so that the chain is entered near the place instead of at its newest end.
 */
import type Database from "better-sqlite3";
import { assert } from "../util/assert.ts";
import { RowInserter } from "./row-inserter.ts";
import type { RowLinks } from "./row-links.ts";

const TABLE = `order_updates (id, user_id, sequence, order_id, price, quantity, remaining, status, reason, fills,
  last_fill_id, previous_of_user, created_at, expires_at)`;
/** SQLite gives the ids, one above the highest: it needn't look then whether they are there, a fifth of the time. */
const VALUES = ["NULL", ...new Array<string>(13).fill("?")];
/** A user's updates between two marks. */
const MARK_INTERVAL = 64;
/** Rows that are taken away at a time, and updates that are added for each such time under load: fewer. */
const PRUNE_SLICE = 512;
const ADDED_PER_SLICE = 256;

export class OrderUpdates {
  private readonly chains: RowLinks;
  private readonly keepMs: number;
  private readonly rows: RowInserter;
  private readonly statements: ReturnType<typeof prepareStatements>;
  /** The last number given, over all users. */
  private last: number;
  /** The last number whose row is written. */
  private flushed: number;
  /** No row has a lower number. */
  private oldest: number;
  private prunedAt: number;
  /** There is no row yet that the next id would follow. */
  private isEmpty: boolean;

  /** @param last the last number given so far @param keepMs how long updates are kept */
  constructor(db: Database.Database, chains: RowLinks, last: number, keepMs: number) {
    this.chains = chains;
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

  /** How many updates there were, over all users. */
  get count(): number {
    return this.last;
  }

  /** Adds one, inside a transaction; answers its number in its user's sequence. @param state status | reason << 4 @param expiresAt ms, 0: never */
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
    const previous = this.chains.addUpdate(user, id);
    const sequence = this.chains.updateSequence(user);
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

  /** Writes the rows that are pending. */
  flush(): void {
    this.rows.flush();
    assert(this.isEmpty || this.last === this.flushed || this.rows.lastId === this.last, "order updates have no gap");
    this.flushed = this.last;
  }

  /** The one row that is pending is the table's first. */
  private writeFirst(id: number): void {
    this.rows.flush();
    this.statements.setId.run(id, this.rows.lastId);
    this.rows.lastId = id;
    this.isEmpty = false;
  }

  /** True when enough were added since the last slice that the next one is due although it isn't quiet. */
  get isPruningDue(): boolean {
    return this.last - this.prunedAt >= ADDED_PER_SLICE;
  }

  /**
   * True when the oldest row is older than it need be. A row goes only after the tables of newest rows tell of it: they
   * alone keep the number that its user's next update goes on from; and after its order's row tells of it. The last one
   * stays. @param now ms @param told up to which update the rows of orders tell
   */
  hasOutdated(now: number, told: number): boolean {
    if (this.oldest >= this.last || this.oldest > Math.min(told, this.chains.writtenUpdate)) return false;
    const at = this.statements.createdAt.get(this.oldest);
    return at === undefined || Number(at) < now - this.keepMs;
  }

  /** Takes a slice of outdated rows away, inside a transaction. @param now ms @param told as above */
  prune(now: number, told: number): void {
    if (!this.hasOutdated(now, told)) {
      this.prunedAt = this.last;
      return;
    }
    this.prunedAt = Math.min(this.last, this.prunedAt + ADDED_PER_SLICE);
    const { statements } = this;
    const slice = [this.oldest, this.oldest + PRUNE_SLICE - 1, now - this.keepMs] as const;
    // Times rise with ids but for steps of the clock: what stands behind a younger row waits for it.
    const young = Number(statements.firstYoung.get(...slice) ?? this.oldest + PRUNE_SLICE);
    const end = Math.min(young, Math.min(told, this.chains.writtenUpdate) + 1, this.last);
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
