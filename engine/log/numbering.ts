/**
 * Assigns the numbers that are assigned once: of fills and ledger entries, and of each user's order updates. Writes them,
 * users' own fees and raised times into the event records, where the gateway and the projector read them. Knows no
 * ledger, no order and no row.
 */
import { mergeFeeMicro } from "../money.ts";
import type { EngineEvent } from "../ring/engine-event.ts";
import { EventKind } from "../ring/records.ts";
import { assert } from "../util/assert.ts";
import { withIndex } from "../util/typed-arrays.ts";
import type { UserRates } from "./user-rates.ts";

/** What the numbers continue from. */
export interface LastNumbers {
  /** The last fill's or ledger entry's number. */
  readonly entry: number;
  /** The time of the last event or request, ms. */
  readonly at: number;
  /** Each user's last order update. */
  readonly updates: Iterable<readonly [user: number, sequence: number]>;
}

export class Numbering {
  lastEntry: number;
  /** The time of the last event or request, ms. Fills, entries and updates never go back in time. */
  at: number;
  /** Rings whose engine has stopped. */
  stoppedRings = 0;
  /** When the orders entered whose times were raised, ms, until `shiftPlacedAt` takes them. */
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
    assert(Number.isInteger(entries) && entries >= 0, "a request creates whole entries");
    this.at = Math.max(this.at, at);
    const first = entries === 0 ? 0 : this.lastEntry + 1;
    this.lastEntry += entries;
    return first;
  }

  /**
   * Numbers an event; returns true if it must be durable. An orderPlaced whose time was raised gets the flag RAISED.
   */
  event(event: EngineEvent): boolean {
    const { traits } = event;
    if (event.kind === EventKind.stopped) this.stoppedRings++;
    if (event.kind === EventKind.orderFilled && event.leg === 0) this.rates.writeInto(event);
    if (traits.isTimed) this.raiseTime(event);
    if (traits.entries > 0) event.fillId = this.lastEntry += 1;
    if (event.kind === EventKind.setsMerged && mergeFeeMicro(event.quantity, event.mergeFeeBps) > 0) this.lastEntry++;
    if (event.isUpdate) this.update(event);
    assert(Number.isSafeInteger(this.lastEntry), "numbers are exact");
    return traits.isDurable;
  }

  private update(event: EngineEvent): void {
    const { user } = event;
    assert(user > 0, "an order has a user");
    if (user >= this.sequences.length) this.sequences = withIndex(this.sequences, user);
    event.userSequence = ++this.sequences[user]!;
  }

  /** The next order's time before it was raised, ms, in the order of their events. */
  shiftPlacedAt(): number {
    const at = this.placedTimes.shift();
    assert(at !== undefined, "an order with the flag RAISED has an earlier time");
    return at;
  }

  /** Raises an event's time to that of the event before it. */
  private raiseTime(event: EngineEvent): void {
    const { time } = event;
    assert(time > 0, "an event has a time");
    if (time >= this.at) {
      this.at = time;
      return;
    }
    event.time = this.at;
    if (event.kind !== EventKind.orderPlaced) return;
    event.setRaised();
    this.placedTimes.push(time);
  }
}
