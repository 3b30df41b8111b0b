/**
 * Who owns which orders, fills and order updates, as chains instead of indexes: each row of `orders` and `order_updates`
 * names its owner's row before it, each row of `fills` the fill before it of its owner, its order and (for takers) its
 * market. Written with the row, a link costs some bytes; an index entry would dirty a page per user and commit.
 *
 * A chain is read from its newest end. This class knows the newest of each; the database hears of them in arrears, some
 * hundred rows at a time, and `meta` says up to which order, fill and update its tables of newest rows are complete:
 * whoever reads takes what is newer from the few thousand rows beyond.
 */
import type Database from "better-sqlite3";
import { IdSet } from "../util/id-set.ts";
import { withIndex } from "../util/typed-arrays.ts";

/** Rows beyond what `meta` says, before the tables of newest rows are brought forward; and rows written at a time. */
const MAX_UNWRITTEN = 4_096;
const SLICE = 256;

/** The last numbers that were given. */
export interface LastNumbers {
  readonly order: number;
  readonly fill: number;
  readonly update: number;
}

export class RowLinks {
  /** By user, and by market: the newest of each, 0 where there is none. */
  private ordersOfUsers = new Float64Array(1024);
  private fillsOfUsers = new Float64Array(1024);
  private updatesOfUsers = new Float64Array(1024);
  /** By user: the last number of its order updates. */
  private sequencesOfUsers = new Float64Array(1024);
  private tradesOfMarkets = new Float64Array(1024);
  private readonly changedUsers = new IdSet();
  private readonly changedMarkets = new IdSet();
  /** Being written: users and markets that had changed when the counters stood at `target`. */
  private users: number[] = [];
  private markets: number[] = [];
  private target: LastNumbers;
  private written: LastNumbers;
  private readonly statements: ReturnType<typeof prepareStatements>;

  /** Reads where all chains end. */
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

  /** Makes `order` the user's newest; answers the one before it. */
  addOrder(user: number, order: number): number {
    this.ordersOfUsers = withIndex(this.ordersOfUsers, user);
    const before = this.ordersOfUsers[user]!;
    this.ordersOfUsers[user] = order;
    this.changedUsers.add(user);
    // With several engine threads an order can come after those that were given higher ids.
    if (order <= this.target.order) this.writeUser(user);
    return before;
  }

  /** Puts an order that came late between two that are in the table; answers the one before it. */
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

  /** Makes `update` the user's newest, with the next number of the user's sequence; answers the one before it. */
  addUpdate(user: number, update: number): number {
    const before = this.updatesOfUsers[user] ?? 0;
    this.setUpdate(user, update, this.updateSequence(user) + 1);
    this.changedUsers.add(user);
    return before;
  }

  /** The last number of the user's order updates. */
  updateSequence(user: number): number {
    return this.sequencesOfUsers[user] ?? 0;
  }

  private setUpdate(user: number, update: number, sequence: number): void {
    this.updatesOfUsers = withIndex(this.updatesOfUsers, user);
    this.sequencesOfUsers = withIndex(this.sequencesOfUsers, user);
    this.updatesOfUsers[user] = update;
    this.sequencesOfUsers[user] = sequence;
  }

  /** Up to which update the tables of newest rows are complete, this transaction included. */
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

  /** True when the tables of newest rows are behind. */
  hasUnwritten(): boolean {
    return this.changedUsers.size > 0 || this.changedMarkets.size > 0 || this.isWriting();
  }

  /**
   * Inside a transaction: writes some of the newest rows where readers would have to scan too much, or `always`.
   * @param last the last numbers given, counting this transaction
   */
  write(last: LastNumbers, always: boolean): void {
    const { written, statements } = this;
    if (!this.isWriting()) {
      const behind = last.order - written.order + last.fill - written.fill + last.update - written.update;
      if (!always && behind <= MAX_UNWRITTEN) return;
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
