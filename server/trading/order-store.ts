/**
 * The live orders of the exchange: one slot each in flat arrays, indexed by id, by user, and quotes by user and market
 * (newest first). An order has its slot from its placement until its last event is applied; the same number names it in the
 * engine thread and in the texts. Owned by the gateway thread.
 */

import { MAX_LIVE_ORDERS, OUTCOME_ID_BITS } from "../../engine/limits.ts";
import { type ClientOrderId, OrderTexts } from "../../engine/ring/order-texts.ts";
import { FLAG_CANCEL_ON_DISCONNECT, FLAG_QUOTE, FLAG_TEXT } from "../../engine/ring/records.ts";
import { assert } from "../../engine/util/assert.ts";
import { NumberMap } from "../../engine/util/number-map.ts";
import { withIndex } from "../../engine/util/typed-arrays.ts";
import { RESERVED_PART, SMALL_LIVE_ORDERS } from "./limits.ts";
import type { Origin } from "./types.ts";

/** The id map starts with room for this many orders, in memory that is committed on use: growing it later takes 50 ms. */
const EXPECTED_ORDERS = 600_000;
const MARKET_SPAN = 2 ** OUTCOME_ID_BITS;

/** The status of an order whose placement is not committed: no client sees it. */
export const IN_FLIGHT = 255;

/** Marks of a slot. The order will end: a cancel is in flight, or it came too late. */
export const MARK_ENDING = 1;
/** The order's hold is a reservation of `Holds` instead of price times remaining quantity. */
export const MARK_RESERVED = 2;
/** Its owner requested timestamps. */
export const MARK_TIMESTAMPS = 4;
/** A set of quotes in flight replaces it: the new ones count as live orders instead. */
const MARK_REPLACED = 8;

/** The fields that an order has from its start, as the arrays of `OrderStore` hold them. */
export interface OrderFields {
  readonly id: number;
  readonly user: number;
  readonly market: number;
  readonly outcome: number;
  readonly price: number;
  readonly quantity: number;
  readonly remaining: number;
  /** ring/order-terms.ts. */
  readonly terms: number;
  readonly status: number;
  readonly connection: number;
  readonly expiresAt: number;
  readonly createdAt: number;
  readonly updatedAt: number;
}

/** An order that a client places. */
export interface NewOrder {
  readonly user: number;
  readonly market: number;
  readonly outcome: number;
  readonly price: number;
  readonly quantity: number;
  /** ring/order-terms.ts. */
  readonly terms: number;
  /** ms; 0 for never */
  readonly expiresAt: number;
  /** ms */
  readonly at: number;
}

/** The flag of an order that is canceled when its connection ends. */
export function disconnectFlag({ connection }: Origin): number {
  return connection?.cancelOnDisconnect === true ? FLAG_CANCEL_ON_DISCONNECT : 0;
}

export class OrderStore {
  readonly capacity: number;
  readonly texts: OrderTexts;
  // By slot, from 1. Integers below 2^31 in Int32Array, times and ids in Float64Array.
  readonly ids: Float64Array;
  readonly users: Int32Array;
  readonly markets: Int32Array;
  readonly outcomes: Int32Array;
  readonly prices: Int32Array;
  readonly quantities: Int32Array;
  readonly remaining: Int32Array;
  /** Side, type, time in force, self-trade prevention and flags (ring/order-terms.ts). */
  readonly terms: Int32Array;
  readonly statuses: Uint8Array;
  readonly marks: Uint8Array;
  /** The number of the connection that placed it; 0 over HTTP or before startup. */
  readonly connections: Int32Array;
  readonly expiresAt: Float64Array;
  readonly createdAt: Float64Array;
  readonly updatedAt: Float64Array;

  private readonly older: Int32Array;
  private readonly newer: Int32Array;
  private newest = new Int32Array(1024);
  /** By user: its live orders, less those that quotes in flight replace. */
  private liveOfUser = new Int32Array(1024);
  /** The client order id read last: an order's reply and its first update follow each other. */
  private lastNamed = 0;
  private lastName: ClientOrderId | null = null;
  private readonly slotOfId: NumberMap;
  private readonly olderQuotes: Int32Array;
  private readonly newerQuotes: Int32Array;
  private readonly newestQuotes = new NumberMap();
  private readonly freeSlots: Int32Array;
  private freeCount = 0;
  private usedSlots = 0;
  /** The last number given to an order, or to an amended order's priority. */
  private lastId = 0;

  /** @param capacity the largest slot */
  constructor(capacity = MAX_LIVE_ORDERS) {
    this.capacity = capacity;
    this.texts = new OrderTexts(capacity);
    this.ids = new Float64Array(capacity + 1);
    this.users = new Int32Array(capacity + 1);
    this.markets = new Int32Array(capacity + 1);
    this.outcomes = new Int32Array(capacity + 1);
    this.prices = new Int32Array(capacity + 1);
    this.quantities = new Int32Array(capacity + 1);
    this.remaining = new Int32Array(capacity + 1);
    this.terms = new Int32Array(capacity + 1);
    this.statuses = new Uint8Array(capacity + 1);
    this.marks = new Uint8Array(capacity + 1);
    this.connections = new Int32Array(capacity + 1);
    this.expiresAt = new Float64Array(capacity + 1);
    this.createdAt = new Float64Array(capacity + 1);
    this.updatedAt = new Float64Array(capacity + 1);
    this.older = new Int32Array(capacity + 1);
    this.newer = new Int32Array(capacity + 1);
    this.olderQuotes = new Int32Array(capacity + 1);
    this.newerQuotes = new Int32Array(capacity + 1);
    this.freeSlots = new Int32Array(capacity + 1);
    this.slotOfId = new NumberMap(Math.min(EXPECTED_ORDERS, capacity));
  }

  /** The last id given, of an order or a priority. */
  get newestId(): number {
    return this.lastId;
  }

  /** Returns a number above all orders and priorities before it. */
  allocateId(): number {
    return ++this.lastId;
  }

  /** At startup: an order or a priority has this number. */
  raiseLastId(id: number): void {
    this.lastId = Math.max(this.lastId, id);
  }

  /** True when an order may have this id. */
  hasAllocated(id: number): boolean {
    return id <= this.lastId;
  }

  get liveCount(): number {
    return this.usedSlots - this.freeCount;
  }

  /** True when `count` slots are free. */
  hasSlots(count: number): boolean {
    return this.capacity - this.liveCount >= count;
  }

  /**
   * True when the user may allocate `count` slots and free `replaced`: the last tenth is reserved for users with fewer than
   * 100 orders, so that nobody can fill the exchange for everyone.
   */
  hasSlotsFor(user: number, count: number, replaced: number): boolean {
    if (!this.hasSlots(count)) return false;
    const added = count - replaced;
    if (added <= 0 || this.capacity - this.liveCount - added >= Math.floor(this.capacity * RESERVED_PART)) return true;
    return this.liveOf(user) + added <= SMALL_LIVE_ORDERS;
  }

  /** The user's orders, from acceptance to final state; at most as many as the account may have. */
  liveOf(user: number): number {
    return this.liveOfUser[user] ?? 0;
  }

  /** The order ends in the commit that places its replacement, which counts already. */
  replace(slot: number): void {
    if ((this.marks[slot]! & MARK_REPLACED) !== 0) return;
    this.marks[slot]! |= MARK_REPLACED;
    this.liveOfUser[this.users[slot]!]!--;
  }

  /** Gives the order a slot. One must be free; the database holds no more live orders than there are slots either. */
  allocate(order: OrderFields): number {
    assert(this.hasSlots(1), "there is a slot for each live order");
    const slot = this.freeCount > 0 ? this.freeSlots[--this.freeCount]! : ++this.usedSlots;
    this.ids[slot] = order.id;
    this.users[slot] = order.user;
    this.liveOfUser = withIndex(this.liveOfUser, order.user);
    this.liveOfUser[order.user]!++;
    this.markets[slot] = order.market;
    this.outcomes[slot] = order.outcome;
    this.prices[slot] = order.price;
    this.quantities[slot] = order.quantity;
    this.remaining[slot] = order.remaining;
    this.terms[slot] = order.terms;
    this.statuses[slot] = order.status;
    this.marks[slot] = 0;
    this.connections[slot] = order.connection;
    this.expiresAt[slot] = order.expiresAt;
    this.createdAt[slot] = order.createdAt;
    this.updatedAt[slot] = order.updatedAt;
    return slot;
  }

  /** Gives a new order a slot and the next id. It is in flight, and not linked. */
  allocateNew({ user, market, outcome, price, quantity, terms, expiresAt, at }: NewOrder, origin: Origin): number {
    return this.allocate({
      id: this.allocateId(),
      user,
      market,
      outcome,
      price,
      quantity,
      remaining: quantity,
      terms,
      status: IN_FLIGHT,
      connection: origin.connection?.number ?? 0,
      expiresAt,
      createdAt: at,
      updatedAt: at,
    });
  }

  /** Indexes an order. Orders of one user are linked in the order of their ids. */
  link(slot: number): void {
    const user = this.users[slot]!;
    if (slot === this.lastNamed) this.lastNamed = 0;
    this.slotOfId.set(this.ids[slot]!, slot);
    this.newest = withIndex(this.newest, user);
    const head = this.newest[user]!;
    assert(head === 0 || this.ids[head]! < this.ids[slot]!, "a user's orders are linked in the order of their ids");
    this.older[slot] = head;
    this.newer[slot] = 0;
    if (head !== 0) this.newer[head] = slot;
    this.newest[user] = slot;
    if ((this.terms[slot]! & FLAG_QUOTE) !== 0) this.linkQuote(slot);
  }

  /** Removes an order from the indexes and frees its slot. */
  remove(slot: number): void {
    const older = this.older[slot]!;
    const newer = this.newer[slot]!;
    const user = this.users[slot]!;
    if ((this.marks[slot]! & MARK_REPLACED) === 0) this.liveOfUser[user]!--;
    if (older !== 0) this.newer[older] = newer;
    if (newer !== 0) this.older[newer] = older;
    else this.newest[user] = older;
    if ((this.terms[slot]! & FLAG_QUOTE) !== 0) this.unlinkQuote(slot);
    this.slotOfId.delete(this.ids[slot]!);
    this.ids[slot] = 0;
    this.freeSlots[this.freeCount++] = slot;
  }

  clientOrderId(slot: number): ClientOrderId | null {
    if ((this.terms[slot]! & FLAG_TEXT) === 0) return null;
    if (slot !== this.lastNamed) {
      this.lastName = this.texts.clientOrderId(slot);
      this.lastNamed = slot;
    }
    return this.lastName;
  }

  builderCode(slot: number): string | null {
    return (this.terms[slot]! & FLAG_TEXT) === 0 ? null : this.texts.builderCode(slot);
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

/** True where the order in `slot` is the user's and has that client order id. */
export function isNamed(store: OrderStore, slot: number, userId: number, clientOrderId: ClientOrderId): boolean {
  if (store.users[slot] !== userId) return false;
  const own = store.clientOrderId(slot);
  // A number and the text of its digits are one id.
  return own === clientOrderId || String(own) === String(clientOrderId);
}
