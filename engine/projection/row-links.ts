/**
 * Row links: linked lists instead of secondary indexes. Each row of `orders` and `order_updates` names its owner's previous
 * row; each row of `fills` names the previous fill of its owner, its order and (for takers) its market. A link costs a few
 * bytes in the row, whereas an index entry would dirty a page per user and commit.
 *
 * Readers start at the newest row of a list. This class knows the newest rows and writes them behind, a few hundred at a
 * time. `meta` says up to which order, fill and update the tables of newest rows are complete; readers scan the few
 * thousand rows beyond.
 */
import type Database from "better-sqlite3";
import { IdSet } from "../util/id-set.ts";
import { withIndex } from "../util/typed-arrays.ts";

/** Rows that the tables of newest rows may lag behind, and rows written at a time. */
const MAX_PENDING = 4_096;
const SLICE = 256;

/** The last numbers assigned. */
export interface LastNumbers {
  readonly order: number;
  readonly fill: number;
  readonly update: number;
}

export class RowLinks {
  /** The newest row by user, and by market; 0 for none. */
  private ordersOfUsers = new Float64Array(1024);
  private fillsOfUsers = new Float64Array(1024);
  private updatesOfUsers = new Float64Array(1024);
  /** By user: the sequence number of its last order update. */
  private sequencesOfUsers = new Float64Array(1024);
  private tradesOfMarkets = new Float64Array(1024);
  private readonly changedUsers = new IdSet();
  private readonly changedMarkets = new IdSet();
  /** Being written: the users and markets that changed up to the numbers in `target`. */
  private users: number[] = [];
  private markets: number[] = [];
  private target: LastNumbers;
  private written: LastNumbers;
  private readonly statements: ReturnType<typeof prepareStatements>;

  /** Loads the newest rows. */
  constructor(db: Database.Database) {
    this.statements = prepareStatements(db);
    const value = (key: string): number => Number(this.statements.readMeta.get(key));
    this.written = { order: value("newest_order"), fill: value("newest_fill"), update: value("newest_update") };
    this.target = this.written;
    for (const row of this.statements.readUsers.iterate()) {
      const [user, order, fill, update, sequence] = row as [number, number, number, number, number];
      this.ordersOfUsers = withIndex(this.ordersOfUsers, user);
      this.fillsOfUsers = withIndex(this.fillsOfUsers, user);
      this.ordersOfUsers[user] = order;
      this.fillsOfUsers[user] = fill;
      this.setUpdate(user, update, sequence);
    }
    for (const row of this.statements.readMarkets.iterate()) {
      const [market, trade] = row as [number, number];
      this.tradesOfMarkets = withIndex(this.tradesOfMarkets, market);
      this.tradesOfMarkets[market] = trade;
    }
    for (const [user, order] of this.statements.ordersBeyond.all(this.written.order) as [number, number][]) {
      this.addOrder(user, order);
    }
    for (const [user, fill] of this.statements.fillsBeyond.all(this.written.fill) as [number, number][]) {
      this.addFill(user, fill);
    }
    for (const row of this.statements.updatesBeyond.all(this.written.update)) {
      const [user, update, sequence] = row as [number, number, number];
      this.setUpdate(user, update, sequence);
      this.changedUsers.add(user);
    }
    for (const [market, trade] of this.statements.tradesBeyond.all(this.written.fill) as [number, number][]) {
      this.addTrade(market, trade);
    }
  }

  newestOrder(user: number): number {
    return this.ordersOfUsers[user] ?? 0;
  }

  /** Makes `order` the user's newest; returns the previous one. */
  addOrder(user: number, order: number): number {
    this.ordersOfUsers = withIndex(this.ordersOfUsers, user);
    const before = this.ordersOfUsers[user]!;
    this.ordersOfUsers[user] = order;
    this.changedUsers.add(user);
    // With several engine threads an order can arrive after orders with higher ids.
    if (order <= this.target.order) this.writeUser(user);
    return before;
  }

  /** Links an order that arrived late in between two rows of the table; returns the previous one. */
  insertOrder(user: number, order: number): number {
    for (let after = this.newestOrder(user); ; ) {
      const before = Number(this.statements.readPrevious.get(after));
      if (before < order) {
        this.statements.writePrevious.run(order, after);
        return before;
      }
      after = before;
    }
  }

  addFill(user: number, fill: number): number {
    this.fillsOfUsers = withIndex(this.fillsOfUsers, user);
    const before = this.fillsOfUsers[user]!;
    this.fillsOfUsers[user] = fill;
    this.changedUsers.add(user);
    return before;
  }

  /** Makes `update` the user's newest, with the user's next sequence number; returns the previous one. */
  addUpdate(user: number, update: number): number {
    const before = this.updatesOfUsers[user] ?? 0;
    this.setUpdate(user, update, this.updateSequence(user) + 1);
    this.changedUsers.add(user);
    return before;
  }

  /** The sequence number of the user's last order update. */
  updateSequence(user: number): number {
    return this.sequencesOfUsers[user] ?? 0;
  }

  private setUpdate(user: number, update: number, sequence: number): void {
    this.updatesOfUsers = withIndex(this.updatesOfUsers, user);
    this.sequencesOfUsers = withIndex(this.sequencesOfUsers, user);
    this.updatesOfUsers[user] = update;
    this.sequencesOfUsers[user] = sequence;
  }

  /** The tables of newest rows are complete up to this update, counting this transaction. */
  get writtenUpdate(): number {
    return this.written.update;
  }

  newestFill(user: number): number {
    return this.fillsOfUsers[user] ?? 0;
  }

  addTrade(market: number, fill: number): number {
    this.tradesOfMarkets = withIndex(this.tradesOfMarkets, market);
    const before = this.tradesOfMarkets[market]!;
    this.tradesOfMarkets[market] = fill;
    this.changedMarkets.add(market);
    return before;
  }

  /** True if the tables of newest rows are behind. */
  hasPending(): boolean {
    return this.changedUsers.size > 0 || this.changedMarkets.size > 0 || this.isWriting();
  }

  /**
   * Writes some of the newest rows if readers would have to scan too many, or `always`. Inside a transaction.
   * @param last the last numbers assigned, counting this transaction
   */
  write(last: LastNumbers, always: boolean): void {
    const { written, statements } = this;
    if (!this.isWriting()) {
      const behind = last.order - written.order + last.fill - written.fill + last.update - written.update;
      if (!always && behind <= MAX_PENDING) return;
      this.users = [...this.changedUsers.list().sort()];
      this.markets = [...this.changedMarkets.list().sort()];
      this.changedUsers.clear();
      this.changedMarkets.clear();
      this.target = last;
    }
    for (const user of this.users.splice(-SLICE)) this.writeUser(user);
    for (const market of this.markets.splice(-SLICE)) statements.writeMarket.run(market, this.tradesOfMarkets[market]);
    if (this.isWriting()) return;
    this.written = this.target;
    statements.writeMeta.run(this.written.order, "newest_order");
    statements.writeMeta.run(this.written.fill, "newest_fill");
    statements.writeMeta.run(this.written.update, "newest_update");
  }

  private writeUser(user: number): void {
    const update = this.updatesOfUsers[user] ?? 0;
    const { statements } = this;
    statements.writeUser.run(user, this.newestOrder(user), this.newestFill(user), update, this.updateSequence(user));
  }

  private isWriting(): boolean {
    return this.users.length > 0 || this.markets.length > 0;
  }
}

function prepareStatements(db: Database.Database) {
  return {
    readMeta: db.prepare("SELECT value FROM meta WHERE key = ?").pluck(),
    writeMeta: db.prepare("UPDATE meta SET value = ? WHERE key = ?"),
    readUsers: db.prepare("SELECT user_id, order_id, fill_id, update_id, update_sequence FROM newest_of_user").raw(),
    readMarkets: db.prepare("SELECT market_id, fill_id FROM newest_of_market").raw(),
    ordersBeyond: db.prepare("SELECT user_id, max(id) FROM orders WHERE id > ? GROUP BY user_id").raw(),
    fillsBeyond: db.prepare("SELECT user_id, max(id) FROM fills WHERE id > ? GROUP BY user_id").raw(),
    tradesBeyond: db
      .prepare(
        `SELECT market_id, max(fills.id) FROM fills JOIN outcomes ON outcomes.id = outcome_id
         WHERE fills.id > ? AND role = 1 GROUP BY market_id`,
      )
      .raw(),
    updatesBeyond: db
      .prepare("SELECT user_id, max(id), max(sequence) FROM order_updates WHERE id > ? GROUP BY user_id")
      .raw(),
    readPrevious: db.prepare("SELECT previous_of_user FROM orders WHERE id = ?").pluck(),
    writePrevious: db.prepare("UPDATE orders SET previous_of_user = ? WHERE id = ?"),
    writeUser: db.prepare("INSERT OR REPLACE INTO newest_of_user VALUES (?, ?, ?, ?, ?)"),
    writeMarket: db.prepare("INSERT OR REPLACE INTO newest_of_market VALUES (?, ?)"),
  };
}
