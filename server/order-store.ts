/**
 * The live orders of the exchange: one slot each in flat arrays, found by id, by user, and, quotes, by user and market
 * (newest first). A slot is taken at placement and given back when the order's last event was applied; the
 * same number names the order in the engine thread and in the texts. Owned by the gateway thread.
 */
import { check } from "../engine/check.ts";
import { MAX_LIVE_ORDERS, OUTCOME_ID_BITS } from "../engine/limits.ts";
import { NumberMap } from "../engine/number-map.ts";
import { OrderTexts } from "../engine/order-texts.ts";
import { FLAG_QUOTE, FLAG_TEXT } from "../engine/records.ts";
import { withIndex } from "../engine/typed-arrays.ts";

/** Room from the start for so many, in memory that is used as they come: to grow a map of that size takes 50 ms. */
const EXPECTED_ORDERS = 600_000;
const MARKET_SPAN = 2 ** OUTCOME_ID_BITS;

/** A slot's status between its placement and the commit of it: not yet to be seen by anyone. */
export const IN_FLIGHT = 255;

/** Marks of a slot. A cancel of the order is on its way: it will end, whatever else happens. */
export const MARK_ENDING = 1;
/** The order's hold is not price times what remains but a reservation of `Holds`. */
export const MARK_RESERVED = 2;
/** Its owner asked for the times of its events. */
export const MARK_TIMESTAMPS = 4;

/** What every order has from its start; numbers as the arrays of `OrderStore` hold them. */
export interface OrderFields {
  readonly id: number;
  readonly user: number;
  readonly market: number;
  readonly outcome: number;
  readonly price: number;
  readonly activityPrice: number;
  readonly quantity: number;
  readonly remaining: number;
  readonly packed: number;
  readonly status: number;
  readonly connection: number;
  readonly expiresAt: number;
  readonly createdAt: number;
  readonly updatedAt: number;
}

export class OrderStore {
  readonly texts = new OrderTexts(MAX_LIVE_ORDERS);
  // By slot, from 1. Integers below 2^31 in Int32Array, times and ids in Float64Array.
  readonly ids = new Float64Array(MAX_LIVE_ORDERS + 1);
  readonly users = new Int32Array(MAX_LIVE_ORDERS + 1);
  readonly markets = new Int32Array(MAX_LIVE_ORDERS + 1);
  readonly outcomes = new Int32Array(MAX_LIVE_ORDERS + 1);
  readonly prices = new Int32Array(MAX_LIVE_ORDERS + 1);
  /** What daily activity counts a share at: the price, or 9999 for a market order without bound. */
  readonly activityPrices = new Int32Array(MAX_LIVE_ORDERS + 1);
  readonly quantities = new Int32Array(MAX_LIVE_ORDERS + 1);
  readonly remaining = new Int32Array(MAX_LIVE_ORDERS + 1);
  /** The packed word of the placement: side, type, time in force, self-trade prevention, flags (records.ts). */
  readonly packed = new Int32Array(MAX_LIVE_ORDERS + 1);
  readonly statuses = new Uint8Array(MAX_LIVE_ORDERS + 1);
  readonly marks = new Uint8Array(MAX_LIVE_ORDERS + 1);
  /** The number of the connection that placed it, 0 where it came over HTTP or before the start. */
  readonly connections = new Int32Array(MAX_LIVE_ORDERS + 1);
  readonly expiresAt = new Float64Array(MAX_LIVE_ORDERS + 1);
  readonly createdAt = new Float64Array(MAX_LIVE_ORDERS + 1);
  readonly updatedAt = new Float64Array(MAX_LIVE_ORDERS + 1);

  private readonly older = new Int32Array(MAX_LIVE_ORDERS + 1);
  private readonly newer = new Int32Array(MAX_LIVE_ORDERS + 1);
  private newest = new Int32Array(1024);
  /** The client order id read last: an order's answer and its first update follow each other. */
  private lastNamed = 0;
  private lastName: string | null = null;
  private readonly slotOfId = new NumberMap(EXPECTED_ORDERS);
  private readonly olderQuotes = new Int32Array(MAX_LIVE_ORDERS + 1);
  private readonly newerQuotes = new Int32Array(MAX_LIVE_ORDERS + 1);
  private readonly newestQuotes = new NumberMap();
  private readonly freeSlots = new Int32Array(MAX_LIVE_ORDERS + 1);
  private freeCount = 0;
  private usedSlots = 0;

  get liveCount(): number {
    return this.usedSlots - this.freeCount;
  }

  /** True when `count` slots can be taken. */
  hasSlots(count: number): boolean {
    return MAX_LIVE_ORDERS - this.liveCount >= count;
  }

  /** Gives the order a slot, which there must be (the database holds no more live orders than that either). */
  take(order: OrderFields): number {
    check(this.hasSlots(1), "there is a slot for each live order");
    const slot = this.freeCount > 0 ? this.freeSlots[--this.freeCount]! : ++this.usedSlots;
    this.ids[slot] = order.id;
    this.users[slot] = order.user;
    this.markets[slot] = order.market;
    this.outcomes[slot] = order.outcome;
    this.prices[slot] = order.price;
    this.activityPrices[slot] = order.activityPrice;
    this.quantities[slot] = order.quantity;
    this.remaining[slot] = order.remaining;
    this.packed[slot] = order.packed;
    this.statuses[slot] = order.status;
    this.marks[slot] = 0;
    this.connections[slot] = order.connection;
    this.expiresAt[slot] = order.expiresAt;
    this.createdAt[slot] = order.createdAt;
    this.updatedAt[slot] = order.updatedAt;
    return slot;
  }

  /** Makes an order findable. Orders of one user are linked in the order of their ids. */
  link(slot: number): void {
    const user = this.users[slot]!;
    if (slot === this.lastNamed) this.lastNamed = 0;
    this.slotOfId.set(this.ids[slot]!, slot);
    this.newest = withIndex(this.newest, user);
    const head = this.newest[user]!;
    check(head === 0 || this.ids[head]! < this.ids[slot]!, "a user's orders are linked in the order of their ids");
    this.older[slot] = head;
    this.newer[slot] = 0;
    if (head !== 0) this.newer[head] = slot;
    this.newest[user] = slot;
    if ((this.packed[slot]! & FLAG_QUOTE) !== 0) this.linkQuote(slot);
  }

  /** Ends an order: it is found no more and its slot is free. */
  remove(slot: number): void {
    const older = this.older[slot]!;
    const newer = this.newer[slot]!;
    const user = this.users[slot]!;
    if (older !== 0) this.newer[older] = newer;
    if (newer !== 0) this.older[newer] = older;
    else this.newest[user] = older;
    if ((this.packed[slot]! & FLAG_QUOTE) !== 0) this.unlinkQuote(slot);
    this.slotOfId.delete(this.ids[slot]!);
    this.ids[slot] = 0;
    this.freeSlots[this.freeCount++] = slot;
  }

  clientOrderId(slot: number): string | null {
    if ((this.packed[slot]! & FLAG_TEXT) === 0) return null;
    if (slot !== this.lastNamed) {
      this.lastName = this.texts.clientOrderId(slot);
      this.lastNamed = slot;
    }
    return this.lastName;
  }

  builderCode(slot: number): string | null {
    return (this.packed[slot]! & FLAG_TEXT) === 0 ? null : this.texts.builderCode(slot);
  }

  /** The slot of a live order, or 0. */
  find(orderId: number): number {
    return this.slotOfId.get(orderId);
  }

  /** The user's newest live order, then `olderOf`; 0 ends. */
  newestOf(user: number): number {
    return this.newest[user] ?? 0;
  }

  olderOf(slot: number): number {
    return this.older[slot]!;
  }

  /** The newest of the user's live quotes in a market, then `olderQuoteOf`; 0 ends. */
  newestQuoteOf(user: number, market: number): number {
    return this.newestQuotes.get(user * MARKET_SPAN + market);
  }

  olderQuoteOf(slot: number): number {
    return this.olderQuotes[slot]!;
  }

  private linkQuote(slot: number): void {
    const key = this.users[slot]! * MARKET_SPAN + this.markets[slot]!;
    const head = this.newestQuotes.get(key);
    this.olderQuotes[slot] = head;
    this.newerQuotes[slot] = 0;
    if (head !== 0) this.newerQuotes[head] = slot;
    this.newestQuotes.set(key, slot);
  }

  private unlinkQuote(slot: number): void {
    const older = this.olderQuotes[slot]!;
    const newer = this.newerQuotes[slot]!;
    if (older !== 0) this.newerQuotes[older] = newer;
    if (newer !== 0) {
      this.olderQuotes[newer] = older;
      return;
    }
    const key = this.users[slot]! * MARKET_SPAN + this.markets[slot]!;
    if (older === 0) this.newestQuotes.delete(key);
    else this.newestQuotes.set(key, older);
  }
}
