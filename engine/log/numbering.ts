/**
 * Assigns the numbers that are assigned once: of fills and ledger entries, and of each user's order updates. Writes them,
 * users' own fees and raised times into the event records, where the gateway and the projector read them. Knows no
 * ledger, no order and no row.
 */
import { OrderStatus, Role } from "../constants.ts";
import { mergeFeeMicro } from "../money.ts";
import * as R from "../ring/records.ts";
import { assert } from "../util/assert.ts";
import { withIndex } from "../util/typed-arrays.ts";
import type { UserRates } from "./user-rates.ts";

/** What the numbers continue from. */
export interface LastNumbers {
  /** Of the last fill or ledger entry. */
  readonly entry: number;
  /** The time of the last event or request, ms. */
  readonly at: number;
  /** Of each user's last order update. */
  readonly updates: Iterable<readonly [user: number, sequence: number]>;
}

export class Numbering {
  lastEntry: number;
  /** The time of the last event or request, ms. Fills, entries and updates never go back in time. */
  at: number;
  /** Rings whose engine has stopped. */
  stoppedRings = 0;
  /** When the orders entered whose times were raised, ms, until `takePlacedAt` takes them. */
  private placedTimes: number[] = [];
  private sequences = new Float64Array(1024);
  private readonly rates: UserRates;

  constructor(last: LastNumbers, rates: UserRates) {
    this.lastEntry = last.entry;
    this.at = last.at;
    this.rates = rates;
    for (const [user, sequence] of last.updates) {
      this.sequences = withIndex(this.sequences, user);
      this.sequences[user] = sequence;
    }
  }

  /** Numbers a request's ledger entries; returns the first one's number, 0 for none. @param at ms */
  request(entries: number, at: number): number {
    this.at = Math.max(this.at, at);
    const first = entries === 0 ? 0 : this.lastEntry + 1;
    this.lastEntry += entries;
    return first;
  }

  /**
   * Numbers the event at word `w`; returns true if it must be durable. A refused change, a level and a stop change no
   * state. An orderPlaced whose time was raised gets the flag RAISED.
   */
  event(words: Int32Array, doubles: Float64Array, w: number): boolean {
    const packed = words[w]!;
    switch (R.kindOf(packed)) {
      case R.EventKind.levelChanged:
      case R.EventKind.batchMatched:
      case R.EventKind.cancelRefused:
      case R.EventKind.amendRefused:
        return false;
      case R.EventKind.stopped:
        this.stoppedRings++;
        return false;
      case R.EventKind.orderPlaced:
        this.raisePlacedTime(words, doubles, w);
        if (R.statusOf(packed) !== OrderStatus.queued) this.update(words, doubles, w);
        return true;
      case R.EventKind.orderFilled:
        return this.fill(words, doubles, w);
      case R.EventKind.orderReduced:
        this.raiseTime(doubles, w);
        if (R.roleOf(packed) === Role.maker) this.update(words, doubles, w);
        return true;
      case R.EventKind.orderAmended:
      case R.EventKind.orderCanceled:
        this.raiseTime(doubles, w);
        this.update(words, doubles, w);
        return true;
      case R.EventKind.setsSplit:
      case R.EventKind.setsMerged:
        return this.sets(words, doubles, w);
      case R.EventKind.marketChanged:
        return true;
      default:
        assert(false, "the log knows every kind of event");
    }
  }

  private fill(words: Int32Array, doubles: Float64Array, w: number): boolean {
    const packed = words[w]!;
    this.raiseTime(doubles, w);
    if (R.legOf(words[w + R.W_REFERENCE]!) === 0) this.rates.writeInto(words, w);
    doubles[(w >> 1) + R.D_FILL_ID] = ++this.lastEntry;
    if (R.roleOf(packed) === Role.maker || (packed & R.FLAG_UPDATE_END) !== 0) this.update(words, doubles, w);
    return true;
  }

  /** A split is one entry, a merge one and another for its fee. */
  private sets(words: Int32Array, doubles: Float64Array, w: number): boolean {
    this.raiseTime(doubles, w);
    doubles[(w >> 1) + R.D_FILL_ID] = ++this.lastEntry;
    const isMerge = R.kindOf(words[w]!) === R.EventKind.setsMerged;
    if (isMerge && mergeFeeMicro(words[w + R.W_QUANTITY]!, words[w + R.W_PRICE]!) > 0) this.lastEntry++;
    return true;
  }

  private update(words: Int32Array, doubles: Float64Array, w: number): void {
    const user = words[w + R.W_USER]!;
    if (user >= this.sequences.length) this.sequences = withIndex(this.sequences, user);
    doubles[(w >> 1) + R.D_USER_SEQUENCE] = ++this.sequences[user]!;
  }

  /** The next order's time before it was raised, ms, in the order of their events. */
  takePlacedAt(): number {
    const at = this.placedTimes.shift();
    assert(at !== undefined, "an order with the flag RAISED has an earlier time");
    return at;
  }

  private raisePlacedTime(words: Int32Array, doubles: Float64Array, w: number): void {
    const placedAt = doubles[(w >> 1) + R.D_AT]!;
    this.raiseTime(doubles, w);
    if (doubles[(w >> 1) + R.D_AT] === placedAt) return;
    words[w + R.W_REFERENCE]! |= R.RAISED;
    this.placedTimes.push(placedAt);
  }

  /** Raises an event's time to that of the event before it. */
  private raiseTime(doubles: Float64Array, w: number): void {
    const at = (w >> 1) + R.D_AT;
    if (doubles[at]! < this.at) doubles[at] = this.at;
    else this.at = doubles[at]!;
  }
}
