/**
 * The books as of a place in the log: the markets that can trade and all live orders. A tracker follows the log's batches
 * and gives the opening of the next one, so that an archive of any day can be replayed without the days before. Checks
 * nothing that the log says, and never reads a table.
 */
import { MarketStatus, restingTimeInForce } from "../constants.ts";
import { MAX_OUTCOME_ID } from "../limits.ts";
import { CommandRecord } from "../ring/command-record.ts";
import { EngineEvent } from "../ring/engine-event.ts";
import * as R from "../ring/records.ts";
import { assert } from "../util/assert.ts";
import { NumberMap } from "../util/number-map.ts";
import { withIndex } from "../util/typed-arrays.ts";
import { type BatchHeader, FLAG_STARTED, type Records, readHeader, recordsOf, requestsOf } from "./batch-format.ts";
import { pack, unpack } from "./packed.ts";
import { unpackRequest } from "./request.ts";
import { isMarketWrite, type MarketWrite } from "./writes.ts";

/** A market with its first outcome's id, its number of outcomes and its MarketStatus. */
export type OpeningMarket = readonly [id: number, firstOutcome: number, outcomes: number, status: number];

/**
 * markets: by id; proposals, open and halted markets, and those that closed since the last start and aren't settled.
 * orders: a restoreOrder command record (ring/records.ts) for each live order, in order of priority. Its slot is 0, its
 * time is that of its placement, and double 7, which the command doesn't use, is its priority: its id, or what an amend
 * gave it. The flag cancelOnDisconnect is as placed.
 */
export interface Opening {
  readonly markets: readonly OpeningMarket[];
  readonly orders: Buffer;
}

export const EMPTY_OPENING: Opening = { markets: [], orders: Buffer.alloc(0) };

/** In place of an opening: the archive was made without the one before it. */
export const UNKNOWN_OPENING = { markets: null, orders: null } as const;

export const packOpening = (opening: Opening | typeof UNKNOWN_OPENING): Buffer => pack(opening);

export const unpackOpening = (bytes: Buffer): Opening => unpack(bytes) as Opening;

/** The records of an opening's orders, aligned in memory. */
export function openingRecords({ orders }: Opening): Records {
  const { buffer } = new Uint8Array(orders);
  return {
    words: new Int32Array(buffer),
    doubles: new Float64Array(buffer),
    count: orders.length / R.RECORD_BYTES,
  };
}

/** The writes of a batch that decide which markets can trade, in order. */
export function* marketWritesOf(body: Buffer, header: BatchHeader): Generator<MarketWrite> {
  for (const payload of requestsOf(body, header)) yield* unpackRequest(payload).writes.filter(isMarketWrite);
}

interface TrackedMarket {
  readonly first: number;
  readonly outcomes: number;
  status: number;
}

const INITIAL_ORDERS = 1024;

/** The markets and live orders after the batches that it followed. */
export class OpeningTracker {
  private readonly marketsById = new Map<number, TrackedMarket>();
  private readonly marketOfOutcome = new Int32Array(MAX_OUTCOME_ID + 1);
  /** A record per order, at an index from 1 on; an id of 0 means that the index is free. */
  private words = new Int32Array(INITIAL_ORDERS * R.RECORD_WORDS);
  private doubles = new Float64Array(this.words.buffer);
  private capacity = INITIAL_ORDERS;
  private used = 0;
  private readonly free: number[] = [];
  /** The index of a slot's last order. */
  private bySlot = new Int32Array(1024);
  /** The index of each live order that no event has named since the last start, by id: its slot is unknown. */
  private unnamed = new NumberMap();
  private live = 0;
  private readonly event = new EngineEvent();
  private readonly order = new CommandRecord();

  constructor(opening: Opening = EMPTY_OPENING) {
    for (const [id, first, outcomes, status] of opening.markets) this.addMarket(id, first, outcomes, status);
    const { words, count } = openingRecords(opening);
    for (let i = 0; i < count; i++) {
      const index = this.allocate();
      this.words.set(words.subarray(i * R.RECORD_WORDS, (i + 1) * R.RECORD_WORDS), index * R.RECORD_WORDS);
      this.unnamed.set(this.idAt(index), index);
    }
  }

  /** The number of live orders. */
  get orders(): number {
    return this.live;
  }

  /** Applies a batch: the one after the last. */
  follow(body: Buffer, header: BatchHeader = readHeader(body)): void {
    if ((header.flags & FLAG_STARTED) !== 0) this.start();
    for (const write of marketWritesOf(body, header)) this.writeMarket(write);
    const { words, doubles, count } = recordsOf(body, header);
    const { event } = this;
    event.at(words, doubles, 0);
    for (let i = 0; i < count; i++, event.next()) this.apply(event);
  }

  /** The opening of the batch after the last. */
  opening(): Opening {
    const markets: OpeningMarket[] = [];
    for (const [id, { first, outcomes, status }] of this.marketsById) markets.push([id, first, outcomes, status]);
    markets.sort(([a], [b]) => a - b);
    const records = new Int32Array(this.live * R.RECORD_WORDS);
    const doubles = new Float64Array(records.buffer);
    this.inPriority().forEach((index, i) => {
      const record = this.words.subarray(index * R.RECORD_WORDS, (index + 1) * R.RECORD_WORDS);
      records.set(record, i * R.RECORD_WORDS);
      const order = this.order.at(records, doubles, i * R.RECORD_WORDS);
      order.market = this.marketOfOutcome[order.outcome]!;
    });
    return { markets, orders: Buffer.from(records.buffer) };
  }

  // ---------------------------------------------------------------- markets

  private addMarket(id: number, first: number, outcomes: number, status: number): void {
    this.marketsById.set(id, { first, outcomes, status });
    this.marketOfOutcome.fill(id, first, first + outcomes);
  }

  private writeMarket(write: MarketWrite): void {
    if (write.kind === "createMarket") {
      const status = write.proposedBy === null ? MarketStatus.open : MarketStatus.proposed;
      this.addMarket(write.id, write.firstOutcomeId, write.outcomes.length, status);
    } else if (write.kind === "openMarket") this.setStatus(write.marketId, MarketStatus.open);
    else this.marketsById.delete(write.marketId);
  }

  private setStatus(id: number, status: number): void {
    const market = this.marketsById.get(id);
    if (market !== undefined) market.status = status;
  }

  // ---------------------------------------------------------------- orders

  /** Slots begin again, and the engines don't open closed markets. */
  private start(): void {
    for (const [id, { status }] of this.marketsById) if (status === MarketStatus.closed) this.marketsById.delete(id);
    this.bySlot.fill(0);
    this.unnamed = new NumberMap(this.live);
    for (let index = 1; index <= this.used; index++) {
      const id = this.idAt(index);
      if (id !== 0) this.unnamed.set(id, index);
    }
  }

  private apply(event: EngineEvent): void {
    if (event.kind === R.EventKind.marketChanged) return this.setStatus(event.market, event.status);
    if (!event.traits.changesOrder) return;
    const isPlacement = event.kind === R.EventKind.orderPlaced;
    if (isPlacement && !event.endsOrder) this.place(event);
    else if (!isPlacement && event.endsOrder) this.end(event);
    else if (!isPlacement) this.change(event);
  }

  private place(event: EngineEvent): void {
    const { slot, orderId } = event;
    assert(orderId > 0 && event.remaining > 0, "an order that rests has an id and shares left");
    const index = this.allocate();
    if (slot >= this.bySlot.length) this.bySlot = withIndex(this.bySlot, slot);
    this.bySlot[slot] = index;
    const order = this.orderAt(index);
    order.packed = R.packCommand(R.CommandKind.restoreOrder, event.terms);
    order.slot = 0;
    order.user = event.user;
    order.outcome = event.outcome;
    order.price = event.price;
    order.quantity = event.remaining;
    order.total = event.quantity;
    order.orderId = orderId;
    order.time = event.time;
    order.expiresAt = event.expiresAt;
    order.openingPriority = orderId;
  }

  /** A fill, a reduction or an amend leaves the order live. */
  private change(event: EngineEvent): void {
    const order = this.orderAt(this.find(event));
    assert(event.remaining > 0, "a live order has shares left");
    order.quantity = event.remaining;
    if (event.kind === R.EventKind.orderFilled) return;
    order.price = event.price;
    order.total = event.quantity;
    if (event.kind !== R.EventKind.orderAmended) return;
    if (event.lostPriority) order.openingPriority = event.priority;
    if (!event.isExtension) return;
    order.expiresAt = event.expiresAt;
    order.packed = R.withTimeInForce(order.packed, restingTimeInForce(event.expiresAt));
  }

  private end(event: EngineEvent): void {
    const index = this.find(event);
    this.orderAt(index).orderId = 0;
    this.free.push(index);
    this.live--;
    assert(this.live >= 0 && this.live === this.used - this.free.length, "every index is live or free");
  }

  /** The index of the live order that the event names. */
  private find({ orderId, slot }: EngineEvent): number {
    const index = slot < this.bySlot.length ? this.bySlot[slot]! : 0;
    return this.idAt(index) === orderId ? index : this.name(orderId, slot);
  }

  /** An event names a restored order's slot for the first time. */
  private name(id: number, slot: number): number {
    const index = this.unnamed.get(id);
    assert(index !== 0, "an event names a live order");
    this.unnamed.delete(id);
    this.bySlot = withIndex(this.bySlot, slot);
    this.bySlot[slot] = index;
    return index;
  }

  private orderAt(index: number): CommandRecord {
    return this.order.at(this.words, this.doubles, index * R.RECORD_WORDS);
  }

  private idAt(index: number): number {
    return this.orderAt(index).orderId;
  }

  private allocate(): number {
    this.live++;
    const index = this.free.pop() ?? ++this.used;
    if (index >= this.capacity) {
      this.capacity *= 2;
      this.words = withIndex(this.words, this.capacity * R.RECORD_WORDS - 1);
      this.doubles = new Float64Array(this.words.buffer);
    }
    return index;
  }

  /** The indices of all live orders by priority. No two orders have the same. */
  private inPriority(): number[] {
    const priorities = new Float64Array(this.live);
    const byPriority = new NumberMap(this.live);
    let count = 0;
    for (let index = 1; index <= this.used; index++) {
      if (this.idAt(index) === 0) continue;
      const priority = this.orderAt(index).openingPriority;
      priorities[count++] = priority;
      byPriority.set(priority, index);
    }
    assert(count === byPriority.size && count === this.live, "every live order has a priority of its own");
    return Array.from(priorities.sort(), (priority) => byPriority.get(priority));
  }
}
