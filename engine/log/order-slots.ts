/**
 * What the journal remembers of each live order, by its slot: price, total, expiry, newest fill and builder. An order
 * from before this start is read from the database when it first changes. Never writes.
 */
import type Database from "better-sqlite3";
import { loadBuildersOfLiveOrders } from "../projection/load/orders.ts";

export class OrderSlots {
  /** 0 until the price of an order from before this start is loaded. */
  private readonly prices: Int32Array;
  private readonly totals: Int32Array;
  /** ms; 0 if the order doesn't expire. */
  private readonly expiries: Float64Array;
  /** The newest fill since this start; 0 for none. */
  private readonly lastFills: Float64Array;
  /** 0 without one. */
  private readonly builders: Int32Array;
  /** The last order from before this start. */
  private readonly lastRestoredOrder: number;
  private readonly buildersOfRestored: ReadonlyMap<number, number>;
  private readonly selectLastFill: Database.Statement;
  private readonly selectTerms: Database.Statement;

  /** @param capacity the largest slot */
  constructor(db: Database.Database, capacity: number, lastRestoredOrder: number) {
    this.prices = new Int32Array(capacity + 1);
    this.totals = new Int32Array(capacity + 1);
    this.expiries = new Float64Array(capacity + 1);
    this.lastFills = new Float64Array(capacity + 1);
    this.builders = new Int32Array(capacity + 1);
    this.lastRestoredOrder = lastRestoredOrder;
    this.buildersOfRestored = loadBuildersOfLiveOrders(db);
    this.selectTerms = db.prepare("SELECT price, quantity, expires_at FROM orders WHERE id = ?").raw();
    this.selectLastFill = db
      .prepare(
        "SELECT fills.id FROM orders JOIN fills ON fills.id = last_fill_id WHERE orders.id = ? AND order_id = orders.id",
      )
      .pluck();
  }

  /** Starts a slot's next order. @param builder 0 without one @param expiresAt ms, 0 for never */
  place(slot: number, price: number, total: number, expiresAt: number, builder: number): void {
    this.prices[slot] = price;
    this.totals[slot] = total;
    this.expiries[slot] = expiresAt;
    this.lastFills[slot] = 0;
    this.builders[slot] = builder;
  }

  /** Loads the terms of an order from before this start, unless they are known. */
  load(slot: number, order: number): void {
    if (this.prices[slot] !== 0) return;
    const terms = this.selectTerms.get(order) as [price: number, quantity: number, expiresAt: number | null];
    this.prices[slot] = terms[0];
    this.totals[slot] = terms[1];
    this.expiries[slot] = terms[2] ?? 0;
  }

  /** Sets the price and total that the order's updates report from now on. */
  setTerms(slot: number, price: number, total: number): void {
    this.prices[slot] = price;
    this.totals[slot] = total;
  }

  /** @param expiresAt ms, 0 for never */
  setExpiry(slot: number, expiresAt: number): void {
    this.expiries[slot] = expiresAt;
  }

  setLastFill(slot: number, fill: number): void {
    this.lastFills[slot] = fill;
  }

  /** The order's price. Its terms are loaded. */
  price(slot: number): number {
    return this.prices[slot]!;
  }

  /** The order's total quantity. Its terms are loaded. */
  total(slot: number): number {
    return this.totals[slot]!;
  }

  /** When the order expires, ms; 0 for never. Its terms are loaded. */
  expiry(slot: number): number {
    return this.expiries[slot]!;
  }

  /** The order's newest fill; 0 for none. */
  lastFill(slot: number, order: number): number {
    const known = this.lastFills[slot]!;
    return known > 0 || order > this.lastRestoredOrder ? known : Number(this.selectLastFill.get(order) ?? 0);
  }

  /** The order's builder; 0 without one. */
  builder(slot: number, order: number): number {
    return order > this.lastRestoredOrder ? this.builders[slot]! : (this.buildersOfRestored.get(order) ?? 0);
  }
}
