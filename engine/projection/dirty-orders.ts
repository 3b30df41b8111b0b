/**
 * The orders that changed in the current transaction, each with its latest state: the projector writes each row once,
 * however often the order changed. Parallel arrays, reused from transaction to transaction.
 *
 * A slot can have several orders in one transaction, one after the other; `find` knows the last one.
 */
import type { EngineEvent } from "../ring/engine-event.ts";
import { withIndex } from "../util/typed-arrays.ts";

const INITIAL = 4_096;

/** The text of a new order. */
export interface PlacedText {
  readonly clientOrderId: string | null;
  readonly fingerprint: number;
}

export class DirtyOrders {
  count = 0;
  ids = new Float64Array(INITIAL);
  slots = new Int32Array(INITIAL);
  remaining = new Int32Array(INITIAL);
  /** status | reason << 4 */
  states = new Int32Array(INITIAL);
  /** ms */
  times = new Float64Array(INITIAL);
  /** The new time priority; 0 if it didn't change. */
  priorities = new Float64Array(INITIAL);
  /** The newest fill; 0 if there is none in this transaction. */
  fills = new Float64Array(INITIAL);
  /** 1 if the order's price or total changed. */
  amended = new Uint8Array(INITIAL);
  /** 1 if the order's expiry changed. */
  extended = new Uint8Array(INITIAL);
  price = new Int32Array(INITIAL);
  total = new Int32Array(INITIAL);
  /** ms; 0 if the order doesn't expire. */
  expiry = new Float64Array(INITIAL);
  /** 1 if the order has no row yet; the arrays below hold values for new orders only. */
  isNew = new Uint8Array(INITIAL);
  users = new Int32Array(INITIAL);
  outcomes = new Int32Array(INITIAL);
  terms = new Int32Array(INITIAL);
  placedTimes = new Float64Array(INITIAL);
  /** The last fill or entry when the order entered. */
  entriesBefore = new Float64Array(INITIAL);
  builders = new Int32Array(INITIAL);
  /** By index: the texts of new orders that have one. */
  readonly texts = new Map<number, PlacedText>();
  /** By slot: the index of its last order here, counted from 1; 0 for none. */
  private readonly indexes: Int32Array;

  /** @param capacity the largest slot */
  constructor(capacity: number) {
    this.indexes = new Int32Array(capacity + 1);
  }

  /** Adds a new order at the start of its life; returns its index. */
  place(event: EngineEvent): number {
    const index = this.add(event.slot, event.orderId);
    this.isNew[index] = 1;
    this.users[index] = event.user;
    this.outcomes[index] = event.outcome;
    this.terms[index] = event.terms;
    this.price[index] = event.price;
    this.total[index] = event.quantity;
    this.expiry[index] = event.expiresAt;
    this.setState(index, event);
    return index;
  }

  /** Records the state after the event; returns the order's index. */
  mark(event: EngineEvent): number {
    const slot = event.slot;
    const id = event.orderId;
    let index = this.indexes[slot]! - 1;
    if (index < 0 || this.ids[index] !== id) index = this.add(slot, id);
    this.setState(index, event);
    return index;
  }

  /** Records a fill: the state after it, and its id. */
  fill(event: EngineEvent): void {
    // First the index: the array may be replaced by a longer one.
    const index = this.mark(event);
    this.fills[index] = event.fillId;
  }

  clear(): void {
    for (let index = 0; index < this.count; index++) this.indexes[this.slots[index]!] = 0;
    this.count = 0;
    this.texts.clear();
  }

  private setState(index: number, event: EngineEvent): void {
    this.remaining[index] = event.remaining;
    this.states[index] = event.state;
    this.times[index] = event.time;
  }

  private add(slot: number, id: number): number {
    const index = this.count++;
    if (index === this.slots.length) this.grow(index);
    this.indexes[slot] = index + 1;
    this.slots[index] = slot;
    this.ids[index] = id;
    this.priorities[index] = 0;
    this.fills[index] = 0;
    this.amended[index] = 0;
    this.extended[index] = 0;
    this.isNew[index] = 0;
    return index;
  }

  private grow(index: number): void {
    this.ids = withIndex(this.ids, index);
    this.slots = withIndex(this.slots, index);
    this.remaining = withIndex(this.remaining, index);
    this.states = withIndex(this.states, index);
    this.times = withIndex(this.times, index);
    this.priorities = withIndex(this.priorities, index);
    this.fills = withIndex(this.fills, index);
    this.amended = withIndex(this.amended, index);
    this.extended = withIndex(this.extended, index);
    this.price = withIndex(this.price, index);
    this.total = withIndex(this.total, index);
    this.expiry = withIndex(this.expiry, index);
    this.isNew = withIndex(this.isNew, index);
    this.users = withIndex(this.users, index);
    this.outcomes = withIndex(this.outcomes, index);
    this.terms = withIndex(this.terms, index);
    this.placedTimes = withIndex(this.placedTimes, index);
    this.entriesBefore = withIndex(this.entriesBefore, index);
    this.builders = withIndex(this.builders, index);
  }
}
