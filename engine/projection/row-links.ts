/**
 * Row links: linked lists instead of secondary indexes. Each row of `orders` names its owner's previous order; each row of
 * `fills` names the previous fill of its owner, its order and (for takers) its market. A link costs a few bytes in the
 * row, whereas an index entry would dirty a page per user.
 *
 * Readers start at the newest row of a list, which the tables `newest_of_user` and `newest_of_market` name. Also knows
 * the number of each user's last order update, which belongs to the same row.
 */
import type Database from "better-sqlite3";
import { IdSet } from "../util/id-set.ts";
import { withIndex } from "../util/typed-arrays.ts";

export class RowLinks {
  /** The newest row by user, and by market; 0 for none. */
  private ordersOfUsers = new Float64Array(1024);
  private fillsOfUsers = new Float64Array(1024);
  /** By user: the number of its last order update. */
  private sequencesOfUsers = new Float64Array(1024);
  private tradesOfMarkets = new Float64Array(1024);
  private readonly changedUsers = new IdSet();
  private readonly changedMarkets = new IdSet();
  private readonly statements: ReturnType<typeof prepareStatements>;

  /** Loads the newest rows. */
  constructor(db: Database.Database) {
    this.statements = prepareStatements(db);
    for (const row of this.statements.readUsers.iterate()) {
      const [user, order, fill, sequence] = row as [number, number, number, number];
      this.growUsers(user);
      this.ordersOfUsers[user] = order;
      this.fillsOfUsers[user] = fill;
      this.sequencesOfUsers[user] = sequence;
    }
    for (const row of this.statements.readMarkets.iterate()) {
      const [market, trade] = row as [number, number];
      this.tradesOfMarkets = withIndex(this.tradesOfMarkets, market);
      this.tradesOfMarkets[market] = trade;
    }
  }

  newestOrder(user: number): number {
    return this.ordersOfUsers[user] ?? 0;
  }

  /** Makes `order` the user's newest; returns the previous one. */
  addOrder(user: number, order: number): number {
    this.growUsers(user);
    const before = this.ordersOfUsers[user]!;
    this.ordersOfUsers[user] = order;
    this.changedUsers.add(user);
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

  newestFill(user: number): number {
    return this.fillsOfUsers[user] ?? 0;
  }

  /** Makes `fill` the user's newest; returns the previous one. */
  addFill(user: number, fill: number): number {
    this.growUsers(user);
    const before = this.fillsOfUsers[user]!;
    this.fillsOfUsers[user] = fill;
    this.changedUsers.add(user);
    return before;
  }

  /** Makes `fill` the market's newest trade; returns the previous one. */
  addTrade(market: number, fill: number): number {
    this.tradesOfMarkets = withIndex(this.tradesOfMarkets, market);
    const before = this.tradesOfMarkets[market]!;
    this.tradesOfMarkets[market] = fill;
    this.changedMarkets.add(market);
    return before;
  }

  /** The number of the user's last order update. */
  sequenceOf(user: number): number {
    return this.sequencesOfUsers[user] ?? 0;
  }

  setSequence(user: number, sequence: number): void {
    this.growUsers(user);
    this.sequencesOfUsers[user] = sequence;
    this.changedUsers.add(user);
  }

  /** Writes what changed. Inside a transaction. */
  flush(): void {
    const { statements } = this;
    for (const user of this.changedUsers.list()) {
      statements.writeUser.run(user, this.ordersOfUsers[user]!, this.fillsOfUsers[user]!, this.sequencesOfUsers[user]!);
    }
    this.changedUsers.clear();
    for (const market of this.changedMarkets.list()) statements.writeMarket.run(market, this.tradesOfMarkets[market]!);
    this.changedMarkets.clear();
  }

  private growUsers(user: number): void {
    if (user < this.ordersOfUsers.length) return;
    this.ordersOfUsers = withIndex(this.ordersOfUsers, user);
    this.fillsOfUsers = withIndex(this.fillsOfUsers, user);
    this.sequencesOfUsers = withIndex(this.sequencesOfUsers, user);
  }
}

function prepareStatements(db: Database.Database) {
  return {
    readUsers: db.prepare("SELECT user_id, order_id, fill_id, update_sequence FROM newest_of_user").raw(),
    readMarkets: db.prepare("SELECT market_id, fill_id FROM newest_of_market").raw(),
    readPrevious: db.prepare("SELECT previous_of_user FROM orders WHERE id = ?").pluck(),
    writePrevious: db.prepare("UPDATE orders SET previous_of_user = ? WHERE id = ?"),
    writeUser: db.prepare(
      "INSERT OR REPLACE INTO newest_of_user (user_id, order_id, fill_id, update_sequence) VALUES (?, ?, ?, ?)",
    ),
    writeMarket: db.prepare("INSERT OR REPLACE INTO newest_of_market VALUES (?, ?)"),
  };
}
