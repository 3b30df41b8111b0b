/**
 * The rows of `order_updates`: what each order.updated told, so that it can be told again. Appended in the transaction of
 * what they tell of, chained to their user's update before them (chains.ts), and taken away some days later, oldest first.
 *
 * A client asks for what came after a number of its sequence: every so many numbers of a user a mark says which row that
 * is, so that the chain is entered near the place instead of at its newest end.
 */
import type Database from "better-sqlite3";
import type { Chains } from "./chains.ts";
import { RowInserter } from "./row-inserter.ts";

const TABLE = `order_updates (id, user_id, sequence, order_id, price, quantity, remaining, status, reason, fills,
  last_fill_id, previous_of_user, created_at)`;
const COLUMNS = 13;
/** A user's updates between two marks. */
const MARK_INTERVAL = 64;
/** Rows that are taken away at a time, and updates that are added for each such time under load: fewer. */
const PRUNE_SLICE = 512;
const ADDED_PER_SLICE = 256;

export class Updates {
  private readonly chains: Chains;
  private readonly keepMs: number;
  private readonly rows: RowInserter;
  private readonly statements: ReturnType<typeof prepareStatements>;
  /** The last number given, over all users. */
  private last: number;
  /** No row has a lower number. */
  private oldest: number;
  private prunedAt: number;

  /** @param last the last number given so far @param keepMs how long updates are kept */
  constructor(db: Database.Database, chains: Chains, last: number, keepMs: number) {
    this.chains = chains;
    this.keepMs = keepMs;
    this.rows = new RowInserter(db, TABLE, new Array<string>(COLUMNS).fill("?"));
    this.statements = prepareStatements(db);
    this.last = last;
    this.oldest = Number(this.statements.oldest.get() ?? last + 1);
    this.prunedAt = last;
  }

  /** How many updates there were, over all users. */
  get count(): number {
    return this.last;
  }

  /** Adds one, inside a transaction; answers its number in its user's sequence. @param state status | reason << 4 */
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
  ): number {
    const id = ++this.last;
    const previous = this.chains.addUpdate(user, id);
    const sequence = this.chains.updateSequence(user);
    const row = this.rows.next();
    const { params } = this.rows;
    params[row] = id;
    params[row + 1] = user;
    params[row + 2] = sequence;
    params[row + 3] = order;
    params[row + 4] = price;
    params[row + 5] = quantity;
    params[row + 6] = remaining;
    params[row + 7] = state & 0xf;
    params[row + 8] = state >> 4;
    params[row + 9] = fills;
    params[row + 10] = fills === 0 ? 0 : lastFill;
    params[row + 11] = previous;
    params[row + 12] = at;
    if (sequence % MARK_INTERVAL === 0) this.statements.mark.run(user, sequence, id);
    return sequence;
  }

  /** Writes the rows that are pending. */
  flush(): void {
    this.rows.flush();
  }

  /** True when enough were added since the last slice that the next one is due although it isn't quiet. */
  get isPruningDue(): boolean {
    return this.last - this.prunedAt >= ADDED_PER_SLICE;
  }

  /**
   * True when the oldest row is older than it need be. A row goes only after the tables of newest rows tell of it: they
   * alone keep the number that its user's next update goes on from. @param now ms
   */
  hasOutdated(now: number): boolean {
    if (this.oldest > this.chains.writtenUpdate) return false;
    const at = this.statements.createdAt.get(this.oldest);
    return at === undefined || Number(at) < now - this.keepMs;
  }

  /** Takes a slice of outdated rows away, inside a transaction. @param now ms */
  prune(now: number): void {
    if (!this.hasOutdated(now)) {
      this.prunedAt = this.last;
      return;
    }
    this.prunedAt = Math.min(this.last, this.prunedAt + ADDED_PER_SLICE);
    const { statements } = this;
    const slice = [this.oldest, this.oldest + PRUNE_SLICE - 1, now - this.keepMs] as const;
    // Times rise with ids but for steps of the clock: what stands behind a younger row waits for it.
    const young = Number(statements.firstYoung.get(...slice) ?? this.oldest + PRUNE_SLICE);
    const end = Math.min(young, this.chains.writtenUpdate + 1);
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
