/**
 * The table `resting_orders`, from which a start loads live orders. It lists orders some time after they entered, so that
 * it rarely lists one that ends immediately; `orders_listed` in `meta` is the last order that it covers.
 */
import type Database from "better-sqlite3";
import { OrderStatus } from "../constants.ts";

export class RestingOrders {
  /** The last covered order. */
  private listed: number;
  private readonly insertOne: Database.Statement;
  private readonly insertRange: Database.Statement;
  private readonly deleteOne: Database.Statement;
  private readonly setListed: Database.Statement;

  constructor(db: Database.Database, listed: number) {
    this.listed = listed;
    this.insertOne = db.prepare("INSERT OR IGNORE INTO resting_orders VALUES (?)");
    this.insertRange = db.prepare(
      "INSERT OR IGNORE INTO resting_orders SELECT id FROM orders WHERE id > ? AND id <= ? AND status < ?",
    );
    this.deleteOne = db.prepare("DELETE FROM resting_orders WHERE order_id = ?");
    this.setListed = db.prepare("UPDATE meta SET value = ? WHERE key = 'orders_listed'");
  }

  /** True if orders up to `last` aren't covered yet. */
  isBehind(last: number): boolean {
    return last > this.listed;
  }

  /** Covers up to `orders` more orders, none above `last`. Inside a transaction. */
  advance(last: number, orders: number): void {
    const end = Math.min(last, this.listed + orders);
    this.insertRange.run(this.listed, end, OrderStatus.filled);
    this.listed = end;
    this.setListed.run(end);
  }

  /** Lists a live order that entered after the list passed its id: several engine threads commit ids out of order. */
  addLate(order: number): void {
    if (order <= this.listed) this.insertOne.run(order);
  }

  /** Removes an order that ended. */
  remove(order: number): void {
    if (order <= this.listed) this.deleteOne.run(order);
  }
}
