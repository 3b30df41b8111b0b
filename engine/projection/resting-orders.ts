/**
 * The table `resting_orders`, from which a start loads live orders. It lists the live ones among the older orders: most of
 * the newest 65,536 to 131,072 end soon, and a start scans those. How far it reaches depends on the last order alone.
 */
import type Database from "better-sqlite3";
import { OrderStatus } from "../constants.ts";

const STEP = 65_536;

/** The last order that the list covers, when `last` is the last order. */
const listedThrough = (last: number): number => Math.max(0, Math.floor(last / STEP) - 1) * STEP;

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

  /** Covers what the list must cover, once the rows of all orders are written. @param last the last order */
  advance(last: number): void {
    const end = listedThrough(last);
    if (end <= this.listed) return;
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
