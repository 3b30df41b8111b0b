/**
 * What the projector remembers of each live order, by its slot: price, total, expiry, newest fill and builder. A slot says
 * which order it has; an order from before the projector's start is read from its row on first use.
 */
import type Database from "better-sqlite3";
import type { EngineEvent } from "../ring/engine-event.ts";

interface Row {
  readonly price: number;
  readonly quantity: number;
  readonly expires_at: number | null;
  readonly last_fill: number | null;
  readonly builder_id: number | null;
}

export class OrderSlots {
  private readonly ids: Float64Array;
  private readonly prices: Int32Array;
  private readonly totals: Int32Array;
  private readonly expiries: Float64Array;
  private readonly lastFills: Float64Array;
  private readonly builders: Int32Array;
  /** No slot above it was used. */
  private highest = 0;
  private readonly select: Database.Statement;

  /** @param capacity the largest slot */
  constructor(db: Database.Database, capacity: number) {
    this.ids = new Float64Array(capacity + 1);
    this.prices = new Int32Array(capacity + 1);
    this.totals = new Int32Array(capacity + 1);
    this.expiries = new Float64Array(capacity + 1);
    this.lastFills = new Float64Array(capacity + 1);
    this.builders = new Int32Array(capacity + 1);
    // Before its first fill an order's last_fill_id names no fill of its own.
    this.select = db.prepare(
      `SELECT price, quantity, expires_at, builder_id,
         (SELECT id FROM fills WHERE id = last_fill_id AND order_id = orders.id) AS last_fill FROM orders WHERE id = ?`,
    );
  }

  /** A start of the exchange: its orders have other slots, and one may come back to a slot that it had before. */
  clear(): void {
    this.ids.fill(0, 0, this.highest + 1);
  }

  /** Starts a slot's next order. @param placed its orderPlaced @param builder 0 without one */
  place(placed: EngineEvent, builder: number): void {
    const { slot } = placed;
    this.take(slot, placed.orderId);
    this.setTerms(slot, placed.price, placed.quantity);
    this.expiries[slot] = placed.expiresAt;
    this.lastFills[slot] = 0;
    this.builders[slot] = builder;
  }

  private take(slot: number, order: number): void {
    this.ids[slot] = order;
    if (slot > this.highest) this.highest = slot;
  }

  /** Makes the order's values known, which must be in its row or in this slot. */
  load(slot: number, order: number): void {
    if (this.ids[slot] === order) return;
    const row = this.select.get(order) as Row;
    this.take(slot, order);
    this.setTerms(slot, row.price, row.quantity);
    this.expiries[slot] = row.expires_at ?? 0;
    this.lastFills[slot] = row.last_fill ?? 0;
    this.builders[slot] = row.builder_id ?? 0;
  }

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

  // The slot's order was placed or loaded.

  price(slot: number): number {
    return this.prices[slot]!;
  }

  total(slot: number): number {
    return this.totals[slot]!;
  }

  /** ms; 0 for never. */
  expiry(slot: number): number {
    return this.expiries[slot]!;
  }

  /** 0 for none. */
  lastFill(slot: number): number {
    return this.lastFills[slot]!;
  }

  /** 0 without one. */
  builder(slot: number): number {
    return this.builders[slot]!;
  }
}
