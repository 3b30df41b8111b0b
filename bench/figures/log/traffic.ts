/**
 * The orders of the log bench, generated batch by batch: of ten operations five place an order that rests within 50
 * BPS of the mid, one takes the best of the other side and four cancel a resting order; at most 10,000 rest at a time.
 * Learns from the engine's events which orders ended, as the gateway does. Measures no time.
 */

import { OrderType, Reason, Side, TimeInForce } from "../../../engine/constants.ts";
import { EngineEvent } from "../../../engine/ring/engine-event.ts";
import * as R from "../../../engine/ring/records.ts";
import type { RingConsumer } from "../../../engine/ring/ring.ts";
import { assert } from "../../../engine/util/assert.ts";

export const USERS = 100;
export const MARKETS = 20;
const OUTCOMES = 2;
const SHARES = 1_000_000;
const RESTING = 10_000;
const MID = 5_000;
const SPREAD = 50;
const MAX_QUANTITY = 100;
export const SLOTS = 65_536;
const { rest, take, cancel } = { rest: 0, take: 1, cancel: 2 } as const;
export const START_MS = Date.UTC(2024, 10, 5);

export class Traffic {
  /** The command records of the current batch. */
  readonly words: Int32Array;
  readonly doubles: Float64Array;
  readonly capacity: number;
  placements = 0;
  matches = 0;
  private count = 0;
  operations = 0;
  private readonly random: () => number;
  private readonly event = new EngineEvent();
  private readonly freeSlots: number[] = [];
  /** The slots of resting orders, unordered; and by slot its index there (or -1), its order's id and market. */
  private readonly resting: number[] = [];
  private readonly placeOf = new Int32Array(SLOTS).fill(-1);
  private readonly orderIds = new Float64Array(SLOTS);
  private readonly marketOf = new Int32Array(SLOTS);
  private readonly pattern = [rest, rest, rest, rest, rest, take, cancel, cancel, cancel, cancel];

  /** @param capacity the maximum number of commands in a batch @param random returns a number in 0..1 */
  constructor(capacity: number, random: () => number) {
    const memory = new ArrayBuffer(capacity * R.RECORD_BYTES);
    this.words = new Int32Array(memory);
    this.doubles = new Float64Array(memory);
    this.capacity = capacity;
    this.random = random;
    for (let slot = SLOTS - 1; slot > 0; slot--) this.freeSlots.push(slot);
  }

  /** Opens the markets and splits shares for every user; returns the number of commands. */
  makeSetup(): number {
    this.count = 0;
    for (let market = 1; market <= MARKETS; market++) {
      const open = this.next(R.CommandKind.openMarket, market);
      this.words[open + R.W_OUTCOME] = (market - 1) * OUTCOMES + 1;
      this.words[open + R.W_QUANTITY] = OUTCOMES;
      for (let user = 1; user <= USERS; user++) {
        const split = this.next(R.CommandKind.splitSets, market);
        this.words[split + R.W_USER] = user;
        this.words[split + R.W_QUANTITY] = SHARES;
      }
    }
    return this.count;
  }

  /** A batch of orders that fill the books; returns their number, 0 once the books are full. */
  makeResting(): number {
    this.count = 0;
    while (this.count < this.capacity && this.resting.length < RESTING) this.placeOrder(true);
    return this.count;
  }

  makeBatch(commands: number): void {
    const { pattern } = this;
    for (this.count = 0; this.count < commands; ) {
      // Draw one of the operations that this round of ten hasn't used.
      const at = this.operations++ % pattern.length;
      const chosen = at + this.upTo(pattern.length - at);
      const operation = pattern[chosen]!;
      pattern[chosen] = pattern[at]!;
      pattern[at] = operation;
      // Fewer than one order in ten is taken whole: without this the books would grow.
      const isFull = operation === rest && this.resting.length >= RESTING;
      if (operation === cancel || isFull) this.cancelOrder();
      else this.placeOrder(operation === rest);
    }
  }

  /** Reads a batch's events and frees the slots of ended orders. */
  read(events: RingConsumer): void {
    const { words, doubles, mask } = events;
    const end = events.tail + events.available();
    for (; events.tail < end; events.tail++) {
      const event = this.event.at(words, doubles, (events.tail & mask) * R.RECORD_WORDS);
      if (event.kind === R.EventKind.orderFilled && event.endsMatch) this.matches++;
      // A taker that filled in several matches ends with the last of them.
      if (event.isUpdate && event.endsOrder) this.end(event.slot);
    }
    events.release();
  }

  private upTo(count: number): number {
    return Math.floor(this.random() * count);
  }

  private next(packed: number, market: number): number {
    assert(this.count < this.capacity, "the batch has room");
    const base = this.count++ * R.RECORD_WORDS;
    this.words.fill(0, base, base + R.RECORD_WORDS);
    this.words[base] = packed;
    this.words[base + R.W_MARKET] = market;
    this.doubles[(base >> 1) + R.D_AT] = START_MS + this.operations;
    return base;
  }

  private placeOrder(rests: boolean): void {
    const side = this.random() < 0.5 ? Side.buy : Side.sell;
    const distance = rests ? 1 + this.upTo(SPREAD) : -SPREAD;
    const tif = rests ? TimeInForce.gtc : TimeInForce.ioc;
    const market = 1 + this.upTo(MARKETS);
    const slot = this.freeSlots.pop()!;
    const packed = R.packCommand(R.CommandKind.placeOrder, R.packTerms(side, OrderType.limit, tif, 0, R.FLAG_PAT));
    const base = this.next(packed, market);
    const { words } = this;
    words[base + R.W_SLOT] = slot;
    words[base + R.W_USER] = 1 + this.upTo(USERS);
    words[base + R.W_OUTCOME] = (market - 1) * OUTCOMES + 1 + this.upTo(OUTCOMES);
    words[base + R.W_PRICE] = MID + (side === Side.buy ? -distance : distance);
    words[base + R.W_QUANTITY] = 1 + this.upTo(MAX_QUANTITY);
    this.doubles[(base >> 1) + R.D_ORDER_ID] = ++this.placements;
    this.orderIds[slot] = this.placements;
    this.marketOf[slot] = market;
    if (rests) this.placeOf[slot] = this.resting.push(slot) - 1;
  }

  private cancelOrder(): void {
    const slot = this.resting[this.upTo(this.resting.length)]!;
    const base = this.next(R.packCancel(Reason.user), this.marketOf[slot]!);
    this.words[base + R.W_SLOT] = slot;
    this.doubles[(base >> 1) + R.D_ORDER_ID] = this.orderIds[slot]!;
    this.forget(slot);
  }

  private end(slot: number): void {
    this.forget(slot);
    this.freeSlots.push(slot);
  }

  private forget(slot: number): void {
    const place = this.placeOf[slot]!;
    if (place < 0) return;
    const last = this.resting.pop()!;
    this.resting[place] = last;
    this.placeOf[last] = place;
    this.placeOf[slot] = -1;
  }
}
