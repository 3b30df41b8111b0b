/**
 * The orders that changed in the current pass, each with its latest state: the journal writes each row once per pass,
 * however often the order changed. Parallel arrays, reused from pass to pass.
 */
import * as R from "../ring/records.ts";
import { withIndex } from "../util/typed-arrays.ts";

const INITIAL = 4_096;

/** The status of an order event and its reason: status | reason << 4. A fill's reason bits hold its match type. */
export function stateOf(packed: number): number {
  const reason = R.kindOf(packed) === R.EventKind.orderFilled ? 0 : R.reasonOf(packed);
  return R.statusOf(packed) | (reason << 4);
}

export class DirtyOrders {
  count = 0;
  slots = new Int32Array(INITIAL);
  /** The index of the ring that carries the order's events. */
  gates = new Int32Array(INITIAL);
  /** The first word of the orderPlaced record; -1 if the order has a row. */
  placedRecords = new Int32Array(INITIAL);
  /** The new total; 0 if it didn't change. */
  totals = new Int32Array(INITIAL);
  remaining = new Int32Array(INITIAL);
  /** status | reason << 4 */
  states = new Int32Array(INITIAL);
  ids = new Float64Array(INITIAL);
  /** ms */
  times = new Float64Array(INITIAL);
  /** When an order without a row entered, ms. */
  placedTimes = new Float64Array(INITIAL);
  /** The new time priority; 0 if it didn't change. */
  priorities = new Float64Array(INITIAL);
  /** The newest fill; 0 if there is none in this pass. */
  fills = new Float64Array(INITIAL);
  /** 1 if the order's expiry changed. */
  extended = new Uint8Array(INITIAL);
  /** 1 if an order update reports the current state. */
  reported = new Uint8Array(INITIAL);
  /** By slot: the order's index here, counted from 1; 0 if it isn't dirty. */
  private readonly indexes: Int32Array;

  /** @param capacity the largest slot */
  constructor(capacity: number) {
    this.indexes = new Int32Array(capacity + 1);
  }

  /** Records the state after the event at word `w`; returns the order's index. The state counts as unreported. */
  mark(gateIndex: number, words: Int32Array, doubles: Float64Array, w: number): number {
    const d = w >> 1;
    const slot = words[w + R.W_SLOT]!;
    let index = this.indexes[slot]! - 1;
    if (index < 0) index = this.add(slot, gateIndex, doubles[d + R.D_ORDER_ID]!);
    this.remaining[index] = words[w + R.W_REMAINING]!;
    this.states[index] = stateOf(words[w]!);
    this.times[index] = doubles[d + R.D_AT]!;
    this.reported[index] = 0;
    return index;
  }

  /** Notes that an order update reports the state of the dirty order in `slot`. */
  markReported(slot: number): void {
    this.reported[this.indexes[slot]! - 1] = 1;
  }

  hasUnreported(): boolean {
    return this.reported.subarray(0, this.count).indexOf(0) >= 0;
  }

  clear(): void {
    for (let index = 0; index < this.count; index++) this.indexes[this.slots[index]!] = 0;
    this.count = 0;
  }

  private add(slot: number, gateIndex: number, id: number): number {
    const index = this.count++;
    if (index === this.slots.length) this.grow();
    this.indexes[slot] = index + 1;
    this.slots[index] = slot;
    this.gates[index] = gateIndex;
    this.placedRecords[index] = -1;
    this.totals[index] = 0;
    this.priorities[index] = 0;
    this.fills[index] = 0;
    this.extended[index] = 0;
    this.ids[index] = id;
    return index;
  }

  private grow(): void {
    const last = this.count - 1;
    this.slots = withIndex(this.slots, last);
    this.gates = withIndex(this.gates, last);
    this.placedRecords = withIndex(this.placedRecords, last);
    this.totals = withIndex(this.totals, last);
    this.remaining = withIndex(this.remaining, last);
    this.states = withIndex(this.states, last);
    this.ids = withIndex(this.ids, last);
    this.times = withIndex(this.times, last);
    this.placedTimes = withIndex(this.placedTimes, last);
    this.priorities = withIndex(this.priorities, last);
    this.fills = withIndex(this.fills, last);
    this.extended = withIndex(this.extended, last);
    this.reported = withIndex(this.reported, last);
  }
}
