/**
 * The books of one engine thread and their matching: commands in, engine events out.
 *
 * Owns price levels, resting orders and the state of each opened market. Never reads a clock, allocates, or does I/O: time
 * and ids come with the command, so the same commands produce the same events, byte for byte. All state is in flat typed
 * arrays (layout.ts) captured by one closure, created once per thread. The arrays reserve address space for the bounds of
 * limits.ts; the operating system backs only the pages that are touched.
 */

import * as C from "../constants.ts";
import {
  FULL_PRICE_BPS,
  LEVEL_PAGE_BITS,
  LEVELS_PER_PAGE,
  MAX_ACTIVE_BOOKS,
  MAX_EVENTS_PER_STEP,
  MAX_OUTCOME_ID,
  MAX_OUTCOMES,
  MIN_PRICE_BPS,
} from "../limits.ts";
import * as R from "../ring/records.ts";
import type { RingProducer } from "../ring/ring.ts";
import { assert, unreachable } from "../util/assert.ts";
import {
  BOOK_PAGES,
  BOOK_WORDS,
  H_DIRTY,
  H_LEVELS,
  H_OCCUPIED,
  H_PLACE,
  HEADER_SHIFT,
  IN_PAGE_MASK,
  L_HEAD,
  L_QUANTITY,
  L_TAIL,
  LEVEL_SHIFT,
  NO_ASK,
  NO_BID,
  O_ASK,
  O_BID,
  O_BOOK,
  O_MARKET,
  O_OTHER,
  O_PAGES,
  O_STATUS,
  OUTCOME_SHIFT,
  P_COMMAND_BITS,
  P_PRICE_MASK,
  P_SIDE_SHIFT,
  PAGE_GROUP_BITS,
  PAGE_GROUPS,
  PAGE_SHIFT,
  PLACE_PAGE_MASK,
  PLACE_SHIFT,
  S_ID,
  S_NEXT,
  S_OUTCOME,
  S_PACKED,
  S_PREV,
  S_REMAINING,
  S_USER,
  SLOT_DOUBLES_SHIFT,
  SLOT_SHIFT,
} from "./layout.ts";

// V8 inlines a module's own constants, but loads and checks another module's exports at each use.
const { MarketStatus, MatchType, OrderStatus, OrderType, Reason, Role, SelfTradePrevention, Side, TimeInForce } = C;
const {
  CommandKind,
  EventKind,
  packEvent,
  packFill,
  codesOf,
  commandKindOf,
  sideOf,
  typeOf,
  timeInForceOf,
  selfTradePreventionOf,
  cancelReasonOf,
} = R;

export interface MatcherOptions {
  /** Slots that commands may name, 1..capacity. */
  readonly capacity: number;
  /** The maximum number of books with orders at one time. */
  readonly activeBooks?: number;
  /** The largest id of a market or outcome. */
  readonly largestId?: number;
  /**
   * Called in the middle of a command if the event ring is full, after everything so far is published. Must commit and
   * wait until the last consumer has made room. The published events end at a match boundary.
   */
  readonly onRingFull: () => void;
  /** Called before each publish, within a command or at the end of a batch. */
  readonly beforePublish?: () => void;
}

export interface Matcher {
  /** Executes the command record that starts at word `base` of a ring (or any arrays of that layout). */
  execute(words: Int32Array, doubles: Float64Array, base: number): void;
  /** Emits the changed levels and publishes the events. Called once per batch. */
  endBatch(): void;
  /** Discards the batch's events and changed levels instead of publishing them. For the warm-up. */
  dropBatch(): void;
  /** True if a chain of `commands` can execute without waiting; in most cases true for any single command. */
  hasRoom(commands: number): boolean;
  /** The best resting price; 0 (bid) or 10000 (ask) if there is none. For tests and tools. */
  bestBid(outcome: number): number;
  bestAsk(outcome: number): number;
  /** Total quantity at a price. For tests and tools. */
  levelQuantity(outcome: number, price: number): number;
  /** The orders at a price in time order, as [slot, remaining]. Allocates; for tests. */
  ordersAt(outcome: number, price: number): [number, number][];
}

/**
 * Creates the books of a thread. The matcher owns the ring's producer end from here on; its caller may write records of its
 * own between commands and at the end of `onRingFull`.
 */
export function createMatcher(events: RingProducer, options: MatcherOptions): Matcher {
  const capacity = options.capacity;
  const activeBooks = options.activeBooks ?? MAX_ACTIVE_BOOKS;
  const largestId = options.largestId ?? MAX_OUTCOME_ID;
  const { onRingFull, beforePublish = () => {} } = options;

  const slotMemory = new ArrayBuffer(4 * ((capacity + 1) << SLOT_SHIFT));
  const slots = new Int32Array(slotMemory);
  const slotIds = new Float64Array(slotMemory);
  /** Each order's quantity as placed or amended; separate, because only amends and decrements read it. */
  const totals = new Int32Array(capacity + 1);

  const outcomes = new Int32Array((largestId + 1) << OUTCOME_SHIFT);
  const marketStatus = new Uint8Array(largestId + 1);
  const marketFirst = new Int32Array(largestId + 1);
  const marketCount = new Uint8Array(largestId + 1);

  const headers = new Int32Array((activeBooks + 1) * BOOK_WORDS);
  const freeBooks = new Int32Array(activeBooks + 1);
  let freeBookCount = 0;
  let usedBooks = 0;

  // A page exists only while an order rests in it, so there are never more pages than orders.
  const levelMemory = new ArrayBuffer(4 * ((capacity + 2) << PAGE_SHIFT));
  const levels = new Int32Array(levelMemory);
  const quantities = new Float64Array(levelMemory);
  const freePages = new Int32Array(capacity + 2);
  let freePageCount = 0;
  let usedPages = 0;

  /** Headers with dirty levels of this batch. Each dirty level has a reserved record in the ring, which bounds them. */
  const dirtyHeaders = new Int32Array(events.mask + 1);
  let dirtyHeaderCount = 0;
  let dirtyLevelCount = 0;

  /** The command's time. In an array, because V8 may box a double in a variable or argument on the heap. */
  const clock = new Float64Array(new ArrayBuffer(8));

  const eventWords = events.words;
  const eventDoubles = events.doubles;
  const eventMask = events.mask;

  // The current step: the resting order of each leg, and the taker's last fill record (-1: none yet in this update).
  const legSlots = new Int32Array(MAX_OUTCOMES);
  let legCount = 0;
  let lastTakerFill = -1;
  let placedRecord = -1;
  let fills = 0;
  let takerReduced = false;

  // ---------------------------------------------------------------- occupancy and levels

  function allocateBook(outcome: number): number {
    let book: number;
    if (freeBookCount > 0) book = freeBooks[--freeBookCount]!;
    else {
      assert(usedBooks < activeBooks, "more active books than MAX_ACTIVE_BOOKS");
      book = ++usedBooks * BOOK_WORDS;
    }
    outcomes[(outcome << OUTCOME_SHIFT) | O_BOOK] = book;
    return book;
  }

  /** Allocates a page of levels for the header of a price. */
  function allocatePage(header: number, outcome: number, price: number): number {
    const page = price >> LEVEL_PAGE_BITS;
    const first = freePageCount > 0 ? freePages[--freePageCount]! : ++usedPages << PAGE_SHIFT;
    headers[header | H_LEVELS] = first;
    headers[header | H_PLACE] = (outcome << PLACE_SHIFT) | page;
    outcomes[(outcome << OUTCOME_SHIFT) + O_PAGES + (page >> PAGE_GROUP_BITS)]! |= 1 << (page & 31);
    return first;
  }

  function releasePage(header: number, outcome: number, price: number): void {
    const page = price >> LEVEL_PAGE_BITS;
    freePages[freePageCount++] = headers[header | H_LEVELS]!;
    headers[header | H_LEVELS] = 0;
    outcomes[(outcome << OUTCOME_SHIFT) + O_PAGES + (page >> PAGE_GROUP_BITS)]! &= ~(1 << (page & 31));
  }

  /** The header of a price's page, as its first word. Its outcome has a book. */
  function headerOf(outcome: number, price: number): number {
    return outcomes[(outcome << OUTCOME_SHIFT) | O_BOOK]! + ((price >> LEVEL_PAGE_BITS) << HEADER_SHIFT);
  }

  /** The first word of a price's level. Its page exists. */
  function levelOf(header: number, price: number): number {
    return headers[header | H_LEVELS]! | ((price & IN_PAGE_MASK) << LEVEL_SHIFT);
  }

  function markDirty(header: number, price: number): void {
    const bits = headers[header | H_DIRTY]!;
    const bit = 1 << (price & IN_PAGE_MASK);
    if ((bits & bit) !== 0) return;
    if (bits === 0) dirtyHeaders[dirtyHeaderCount++] = header;
    headers[header | H_DIRTY] = bits | bit;
    dirtyLevelCount++;
  }

  const highest = (bits: number): number => 31 - Math.clz32(bits);
  const lowest = (bits: number): number => 31 - Math.clz32(bits & -bits);
  /** Bits strictly below / above a bit number 0..31. */
  const below = (bit: number): number => (1 << bit) - 1;
  const above = (bit: number): number => (bit === 31 ? 0 : -1 << (bit + 1));

  /** The next occupied price below `price`, or NO_BID. */
  function nextBelow(outcome: number, price: number): number {
    const base = outcome << OUTCOME_SHIFT;
    const book = outcomes[base | O_BOOK]!;
    if (book === 0) return NO_BID;
    let page = price >> LEVEL_PAGE_BITS;
    let bits = headers[book + (page << HEADER_SHIFT) + H_OCCUPIED]! & below(price & IN_PAGE_MASK);
    if (bits === 0) {
      let group = page >> PAGE_GROUP_BITS;
      bits = outcomes[base + O_PAGES + group]! & below(page & 31);
      while (bits === 0) {
        if (--group < 0) return NO_BID;
        bits = outcomes[base + O_PAGES + group]!;
      }
      page = (group << PAGE_GROUP_BITS) | highest(bits);
      bits = headers[book + (page << HEADER_SHIFT) + H_OCCUPIED]!;
    }
    return (page << LEVEL_PAGE_BITS) | highest(bits);
  }

  /** The next occupied price above `price`, or NO_ASK. */
  function nextAbove(outcome: number, price: number): number {
    const base = outcome << OUTCOME_SHIFT;
    const book = outcomes[base | O_BOOK]!;
    if (book === 0) return NO_ASK;
    let page = price >> LEVEL_PAGE_BITS;
    let bits = headers[book + (page << HEADER_SHIFT) + H_OCCUPIED]! & above(price & IN_PAGE_MASK);
    if (bits === 0) {
      let group = page >> PAGE_GROUP_BITS;
      bits = outcomes[base + O_PAGES + group]! & above(page & 31);
      while (bits === 0) {
        if (++group === PAGE_GROUPS) return NO_ASK;
        bits = outcomes[base + O_PAGES + group]!;
      }
      page = (group << PAGE_GROUP_BITS) | lowest(bits);
      bits = headers[book + (page << HEADER_SHIFT) + H_OCCUPIED]!;
    }
    return (page << LEVEL_PAGE_BITS) | lowest(bits);
  }

  /** Appends an order to its level. All words of its slot are set except the links. */
  function enqueue(slot: number, outcome: number, side: number, price: number, remaining: number): void {
    const outcomeBase = outcome << OUTCOME_SHIFT;
    let book = outcomes[outcomeBase | O_BOOK]!;
    if (book === 0) book = allocateBook(outcome);
    const header = book + ((price >> LEVEL_PAGE_BITS) << HEADER_SHIFT);
    let level = headers[header | H_LEVELS]!;
    if (level === 0) level = allocatePage(header, outcome, price);
    level |= (price & IN_PAGE_MASK) << LEVEL_SHIFT;
    const tail = levels[level | L_TAIL]!;
    const base = slot << SLOT_SHIFT;
    slots[base | S_NEXT] = 0;
    slots[base | S_PREV] = tail;
    levels[level | L_TAIL] = slot;
    quantities[(level >> 1) | L_QUANTITY]! += remaining;
    markDirty(header, price);
    if (tail !== 0) {
      slots[(tail << SLOT_SHIFT) | S_NEXT] = slot;
      return;
    }
    levels[level | L_HEAD] = slot;
    headers[header | H_OCCUPIED]! |= 1 << (price & IN_PAGE_MASK);
    if (side === Side.buy) {
      if (price > outcomes[outcomeBase | O_BID]!) outcomes[outcomeBase | O_BID] = price;
    } else if (price < outcomes[outcomeBase | O_ASK]!) outcomes[outcomeBase | O_ASK] = price;
  }

  /** Removes a resting order from its level. The slot's words stay readable; the caller clears its id. */
  function dequeue(slot: number): void {
    const base = slot << SLOT_SHIFT;
    const outcome = slots[base | S_OUTCOME]!;
    const packed = slots[base | S_PACKED]!;
    const price = packed & P_PRICE_MASK;
    const next = slots[base | S_NEXT]!;
    const prev = slots[base | S_PREV]!;
    const header = headerOf(outcome, price);
    const level = levelOf(header, price);
    quantities[(level >> 1) | L_QUANTITY]! -= slots[base | S_REMAINING]!;
    markDirty(header, price);
    if (next !== 0) slots[(next << SLOT_SHIFT) | S_PREV] = prev;
    else levels[level | L_TAIL] = prev;
    if (prev !== 0) slots[(prev << SLOT_SHIFT) | S_NEXT] = next;
    else levels[level | L_HEAD] = next;
    if ((next | prev) === 0) vacateLevel(header, outcome, (packed >> P_SIDE_SHIFT) & 3, price);
  }

  /** Updates the bitmaps and best prices after a level's last order left. */
  function vacateLevel(header: number, outcome: number, side: number, price: number): void {
    const base = outcome << OUTCOME_SHIFT;
    const bits = headers[header | H_OCCUPIED]! & ~(1 << (price & IN_PAGE_MASK));
    headers[header | H_OCCUPIED] = bits;
    if (bits === 0) releasePage(header, outcome, price);
    if (side === Side.buy) {
      if (price === outcomes[base | O_BID]) outcomes[base | O_BID] = nextBelow(outcome, price);
    } else if (price === outcomes[base | O_ASK]) outcomes[base | O_ASK] = nextAbove(outcome, price);
  }

  /** Reduces a resting order by `quantity`; frees its slot if nothing remains. */
  function reduceResting(slot: number, quantity: number): void {
    const base = slot << SLOT_SHIFT;
    const remaining = slots[base | S_REMAINING]! - quantity;
    assert(remaining >= 0, "a fill stays within the resting quantity");
    if (remaining === 0) {
      dequeue(slot);
      slots[base | S_REMAINING] = 0;
      slotIds[(slot << SLOT_DOUBLES_SHIFT) | S_ID] = 0;
      return;
    }
    slots[base | S_REMAINING] = remaining;
    const price = slots[base | S_PACKED]! & P_PRICE_MASK;
    const header = headerOf(slots[base | S_OUTCOME]!, price);
    quantities[(levelOf(header, price) >> 1) + L_QUANTITY]! -= quantity;
    markDirty(header, price);
  }

  function headOf(outcome: number, price: number): number {
    return levels[levelOf(headerOf(outcome, price), price) + L_HEAD]!;
  }

  // ---------------------------------------------------------------- events

  /** Claims the next event record and returns its first word; the caller writes all its fields. */
  function nextRecord(): number {
    const head = events.head;
    events.head = (head + 1) | 0;
    return (head & eventMask) * R.RECORD_WORDS;
  }

  /** Emits an event with the id, user and outcome of the order in `slot`; returns the record's first word. */
  function emitOrder(
    packed: number,
    slot: number,
    price: number,
    quantity: number,
    remaining: number,
    correlationId: number,
  ): number {
    const e = nextRecord();
    const f = e >> 1;
    eventWords[e + R.W_PACKED] = packed;
    eventWords[e + R.W_SLOT] = slot;
    eventWords[e + R.W_USER] = slots[(slot << SLOT_SHIFT) | S_USER]!;
    eventWords[e + R.W_OUTCOME] = slots[(slot << SLOT_SHIFT) | S_OUTCOME]!;
    eventWords[e + R.W_PRICE] = price;
    eventWords[e + R.W_QUANTITY] = quantity;
    eventWords[e + R.W_REMAINING] = remaining;
    eventWords[e + R.W_CORRELATION] = correlationId;
    eventDoubles[f + R.D_ORDER_ID] = slotIds[(slot << SLOT_DOUBLES_SHIFT) | S_ID]!;
    eventDoubles[f + R.D_AT] = clock[0]!;
    eventDoubles[f + R.D_DETAIL] = 0;
    eventDoubles[f + R.D_USER_SEQUENCE] = 0;
    return e;
  }

  /** Emits an event without an order in a slot: of a market, or of a command that named no live order. */
  function emitPlain(
    packed: number,
    slot: number,
    user: number,
    outcome: number,
    quantity: number,
    correlationId: number,
  ): number {
    const e = nextRecord();
    const f = e >> 1;
    eventWords[e + R.W_PACKED] = packed;
    eventWords[e + R.W_SLOT] = slot;
    eventWords[e + R.W_USER] = user;
    eventWords[e + R.W_OUTCOME] = outcome;
    eventWords[e + R.W_PRICE] = 0;
    eventWords[e + R.W_QUANTITY] = quantity;
    eventWords[e + R.W_REMAINING] = 0;
    eventWords[e + R.W_CORRELATION] = correlationId;
    eventDoubles[f + R.D_ORDER_ID] = 0;
    eventDoubles[f + R.D_AT] = clock[0]!;
    eventDoubles[f + R.D_DETAIL] = 0;
    eventDoubles[f + R.D_USER_SEQUENCE] = 0;
    return e;
  }

  /** Removes a resting order from the book and emits its end. */
  function cancelResting(slot: number, status: number, reason: number, correlationId: number): void {
    const base = slot << SLOT_SHIFT;
    dequeue(slot);
    const packed = slots[base | S_PACKED]!;
    const event = packEvent(EventKind.orderCanceled, (packed >> P_SIDE_SHIFT) & 3, status, reason, 0);
    emitOrder(event, slot, packed & P_PRICE_MASK, totals[slot]!, slots[base | S_REMAINING]!, correlationId);
    slotIds[(slot << SLOT_DOUBLES_SHIFT) | S_ID] = 0;
  }

  function emitLevels(): void {
    for (let i = 0; i < dirtyHeaderCount; i++) emitLevelsOf(dirtyHeaders[i]!);
    dirtyHeaderCount = 0;
    dirtyLevelCount = 0;
  }

  /**
   * Emits the dirty levels of one page. Not inlined in the caller's loop: code that V8 compiles while a loop runs (OSR)
   * doesn't know the closure's constants.
   */
  function emitLevelsOf(header: number): void {
    const place = headers[header | H_PLACE]!;
    const outcome = place >> PLACE_SHIFT;
    const firstPrice = (place & PLACE_PAGE_MASK) << LEVEL_PAGE_BITS;
    const bid = outcomes[(outcome << OUTCOME_SHIFT) | O_BID]!;
    const first = headers[header | H_LEVELS]!;
    let bits = headers[header | H_DIRTY]!;
    headers[header | H_DIRTY] = 0;
    while (bits !== 0) {
      const bit = lowest(bits);
      bits &= bits - 1;
      const price = firstPrice | bit;
      const e = nextRecord();
      const f = e >> 1;
      eventWords[e + R.W_PACKED] = packEvent(EventKind.levelChanged, price <= bid ? Side.buy : Side.sell, 0, 0, 0);
      eventWords[e + R.W_SLOT] = 0;
      eventWords[e + R.W_USER] = 0;
      eventWords[e + R.W_OUTCOME] = outcome;
      eventWords[e + R.W_PRICE] = price;
      eventWords[e + R.W_QUANTITY] = 0;
      eventWords[e + R.W_REMAINING] = 0;
      eventWords[e + R.W_CORRELATION] = 0;
      eventDoubles[f + R.D_ORDER_ID] = 0;
      eventDoubles[f + R.D_AT] = 0;
      // A page without orders has no levels.
      const level = first | (bit << LEVEL_SHIFT);
      eventDoubles[f + R.D_DETAIL] = first === 0 ? 0 : quantities[(level >> 1) | L_QUANTITY]!;
      eventDoubles[f + R.D_USER_SEQUENCE] = 0;
    }
  }

  function endUpdate(): void {
    if (lastTakerFill >= 0) eventWords[lastTakerFill]! |= R.FLAG_UPDATE_END;
    lastTakerFill = -1;
  }

  /** Ensures that a step's events and all pending level changes fit into the ring; publishes and waits if they don't. */
  function reserve(): void {
    if (events.hasRoom(MAX_EVENTS_PER_STEP + dirtyLevelCount + MAX_EVENTS_PER_STEP)) return;
    endUpdate();
    placedRecord = -1;
    emitLevels();
    beforePublish();
    events.publish();
    onRingFull();
    assert(events.hasRoom(2 * MAX_EVENTS_PER_STEP), "onRingFull makes room");
  }

  // ---------------------------------------------------------------- matching

  /** The price of buying an outcome by minting: 10000 less the other outcomes' best bids; 10000 if one has no bid. */
  function mintPrice(base: number): number {
    const other = outcomes[base | O_OTHER]!;
    return other === 0 ? mintPriceOfMany(base) : FULL_PRICE_BPS - outcomes[other | O_BID]!;
  }

  function mintPriceOfMany(base: number): number {
    const market = outcomes[base | O_MARKET]!;
    const first = marketFirst[market]!;
    const end = first + marketCount[market]!;
    let sum = 0;
    for (let outcome = first; outcome < end; outcome++) {
      if (outcome << OUTCOME_SHIFT === base) continue;
      const bid = outcomes[(outcome << OUTCOME_SHIFT) | O_BID]!;
      if (bid === NO_BID) return NO_ASK;
      sum += bid;
    }
    return sum >= FULL_PRICE_BPS ? MIN_PRICE_BPS : FULL_PRICE_BPS - sum;
  }

  /** The price of selling an outcome by merging: 10000 less the other outcomes' best asks; 0 or less if one has no ask. */
  function mergePrice(base: number): number {
    const other = outcomes[base | O_OTHER]!;
    return other === 0 ? mergePriceOfMany(base) : FULL_PRICE_BPS - outcomes[other | O_ASK]!;
  }

  function mergePriceOfMany(base: number): number {
    const market = outcomes[base | O_MARKET]!;
    const first = marketFirst[market]!;
    const end = first + marketCount[market]!;
    let price = FULL_PRICE_BPS;
    for (let outcome = first; outcome < end; outcome++) {
      if (outcome << OUTCOME_SHIFT !== base) price -= outcomes[(outcome << OUTCOME_SHIFT) | O_ASK]!;
    }
    return price;
  }

  function wouldCross(base: number, side: number, price: number): boolean {
    if (side === Side.buy) return outcomes[base | O_ASK]! <= price || mintPrice(base) <= price;
    return outcomes[base | O_BID]! >= price || mergePrice(base) >= price;
  }

  /** Collects the legs of a mint (for buys) or merge (for sells): the first order at each other outcome's best price. */
  function collectSet(outcome: number, side: number): void {
    const market = outcomes[(outcome << OUTCOME_SHIFT) | O_MARKET]!;
    const first = marketFirst[market]!;
    const end = first + marketCount[market]!;
    const best = side === Side.buy ? O_BID : O_ASK;
    legCount = 0;
    for (let other = first; other < end; other++) {
      if (other !== outcome) legSlots[legCount++] = headOf(other, outcomes[(other << OUTCOME_SHIFT) | best]!);
    }
  }

  function hasOwnLeg(user: number): boolean {
    for (let i = 0; i < legCount; i++) if (slots[(legSlots[i]! << SLOT_SHIFT) | S_USER] === user) return true;
    return false;
  }

  /** Cancels the user's own orders among the current legs. */
  function cancelOwnLegs(user: number): void {
    for (let i = 0; i < legCount; i++) {
      const slot = legSlots[i]!;
      if (slots[(slot << SLOT_SHIFT) | S_USER] === user) cancelResting(slot, OrderStatus.canceled, Reason.selfTrade, 0);
    }
  }

  /**
   * Self-trade prevention `decrement`: reduces the taker and its own resting orders of the step by the smallest quantity
   * among them. An order that would reach zero is canceled unreduced. Returns the taker's new remaining quantity, or -1 if
   * the taker itself must be canceled.
   */
  function decrementOwnLegs(taker: number, user: number, remaining: number): number {
    let common = remaining;
    for (let i = 0; i < legCount; i++) {
      const base = legSlots[i]! << SLOT_SHIFT;
      if (slots[base | S_USER] === user) common = Math.min(common, slots[base | S_REMAINING]!);
    }
    for (let i = 0; i < legCount; i++) {
      const slot = legSlots[i]!;
      const base = slot << SLOT_SHIFT;
      if (slots[base | S_USER] !== user) continue;
      if (slots[base | S_REMAINING] === common) {
        cancelResting(slot, OrderStatus.canceled, Reason.selfTrade, 0);
        continue;
      }
      reduceResting(slot, common);
      totals[slot]! -= common;
      emitReduced(slot, slots[base | S_REMAINING]!, Role.maker);
    }
    if (remaining === common) return -1;
    totals[taker]! -= common;
    emitReduced(taker, remaining - common, Role.taker);
    takerReduced = true;
    return remaining - common;
  }

  function emitReduced(slot: number, remaining: number, role: number): void {
    const packed = slots[(slot << SLOT_SHIFT) | S_PACKED]!;
    const total = totals[slot]!;
    const status = total === remaining ? OrderStatus.open : OrderStatus.partiallyFilled;
    const side = (packed >> P_SIDE_SHIFT) & 3;
    const event = packEvent(EventKind.orderReduced, side, status, Reason.none, role << 22);
    emitOrder(event, slot, packed & P_PRICE_MASK, total, remaining, 0);
  }

  /**
   * Matches the order in `slot` (its words are set, it is in no level) against everything within its price. Returns its
   * remaining quantity, or -1 - remaining if self-trade prevention ends it.
   */
  function match(slot: number, bound: number, start: number): number {
    const base = slot << SLOT_SHIFT;
    const outcome = slots[base | S_OUTCOME]!;
    const outcomeBase = outcome << OUTCOME_SHIFT;
    const user = slots[base | S_USER]!;
    const packed = slots[base | S_PACKED]!;
    const side = (packed >> P_SIDE_SHIFT) & 3;
    const flags = (packed & R.FLAG_PAT) | R.FLAG_MATCH_END;
    const buy = side === Side.buy;
    let remaining = start;
    while (remaining > 0) {
      const direct = buy ? outcomes[outcomeBase | O_ASK]! : outcomes[outcomeBase | O_BID]!;
      const implied = buy ? mintPrice(outcomeBase) : mergePrice(outcomeBase);
      const useDirect = buy ? direct <= implied : direct >= implied;
      const price = useDirect ? direct : implied;
      if (buy ? price > bound : price < bound) break;
      if (useDirect) {
        legSlots[0] = headOf(outcome, direct);
        legCount = 1;
      } else collectSet(outcome, side);
      reserve();
      if (hasOwnLeg(user)) {
        const prevention = selfTradePreventionOf(packed);
        if (prevention === SelfTradePrevention.cancelMaker) {
          cancelOwnLegs(user);
          continue;
        }
        if (prevention === SelfTradePrevention.decrement) {
          const left = decrementOwnLegs(slot, user, remaining);
          if (left < 0) return -1 - remaining;
          remaining = left;
          continue;
        }
        if (prevention === SelfTradePrevention.cancelBoth) cancelOwnLegs(user);
        return -1 - remaining;
      }
      let quantity = remaining;
      for (let i = 0; i < legCount; i++) {
        const resting = slots[(legSlots[i]! << SLOT_SHIFT) | S_REMAINING]!;
        if (resting < quantity) quantity = resting;
      }
      remaining -= quantity;
      const type = useDirect ? MatchType.direct : buy ? MatchType.mint : MatchType.merge;
      for (let i = 0; i < legCount; i++) fillResting(legSlots[i]!, quantity, type, i);
      const status = remaining === 0 ? OrderStatus.filled : OrderStatus.partiallyFilled;
      const event = packFill(side, status, type, Role.taker, flags);
      lastTakerFill = emitOrder(event, slot, price, quantity, remaining, legCount);
      fills++;
    }
    return remaining;
  }

  function fillResting(slot: number, quantity: number, matchType: number, leg: number): void {
    const base = slot << SLOT_SHIFT;
    const packed = slots[base | S_PACKED]!;
    const remaining = slots[base | S_REMAINING]! - quantity;
    const status = remaining === 0 ? OrderStatus.filled : OrderStatus.partiallyFilled;
    const flags = packed & R.FLAG_PAT;
    const event = packFill((packed >> P_SIDE_SHIFT) & 3, status, matchType, Role.maker, flags);
    emitOrder(event, slot, packed & P_PRICE_MASK, quantity, remaining, leg);
    reduceResting(slot, quantity);
  }

  // The legs of a fill-or-kill's rehearsal: each leg's current order and the quantity that the rehearsal left of it.
  const probeSlots = new Int32Array(MAX_OUTCOMES);
  const probeLeft = new Int32Array(MAX_OUTCOMES);

  function probeAt(leg: number, slot: number): void {
    probeSlots[leg] = slot;
    probeLeft[leg] = slot === 0 ? 0 : slots[(slot << SLOT_SHIFT) | S_REMAINING]!;
  }

  function probeNext(leg: number): void {
    const base = probeSlots[leg]! << SLOT_SHIFT;
    const next = slots[base | S_NEXT]!;
    if (next !== 0) {
      probeAt(leg, next);
      return;
    }
    const outcome = slots[base | S_OUTCOME]!;
    const packed = slots[base | S_PACKED]!;
    const price = packed & P_PRICE_MASK;
    const buy = ((packed >> P_SIDE_SHIFT) & 3) === Side.buy;
    const further = buy ? nextBelow(outcome, price) : nextAbove(outcome, price);
    probeAt(leg, further === (buy ? NO_BID : NO_ASK) ? 0 : headOf(outcome, further));
  }

  function probePrice(leg: number): number {
    return slots[(probeSlots[leg]! << SLOT_SHIFT) | S_PACKED]! & P_PRICE_MASK;
  }

  /** The implied price of the rehearsal's legs; NO_ASK or NO_BID if a leg is empty. Leg `own` is the direct one. */
  function probeImplied(own: number, count: number, buy: boolean): number {
    let sum = 0;
    for (let leg = 0; leg < count; leg++) {
      if (leg === own) continue;
      if (probeSlots[leg] === 0) return buy ? NO_ASK : NO_BID;
      sum += probePrice(leg);
    }
    return buy ? Math.max(MIN_PRICE_BPS, FULL_PRICE_BPS - sum) : FULL_PRICE_BPS - sum;
  }

  /** Rehearses the match of a fill-or-kill without changing a book; returns true if all of it would fill. */
  function isFillable(
    outcome: number,
    side: number,
    bound: number,
    quantity: number,
    user: number,
    stp: number,
  ): boolean {
    const buy = side === Side.buy;
    const market = outcomes[(outcome << OUTCOME_SHIFT) | O_MARKET]!;
    const first = marketFirst[market]!;
    const count = marketCount[market]!;
    const own = outcome - first;
    for (let leg = 0; leg < count; leg++) {
      const bids = (leg === own) !== buy;
      const best = bids
        ? outcomes[((first + leg) << OUTCOME_SHIFT) | O_BID]!
        : outcomes[((first + leg) << OUTCOME_SHIFT) | O_ASK]!;
      probeAt(leg, best === (bids ? NO_BID : NO_ASK) ? 0 : headOf(first + leg, best));
    }
    let need = quantity;
    while (need > 0) {
      const direct = probeSlots[own] === 0 ? (buy ? NO_ASK : NO_BID) : probePrice(own);
      const implied = probeImplied(own, count, buy);
      const useDirect = buy ? direct <= implied : direct >= implied;
      const price = useDirect ? direct : implied;
      if (buy ? price > bound : price < bound) return false;
      let step = need;
      let skipped = false;
      for (let leg = 0; leg < count; leg++) {
        if ((leg === own) !== useDirect) continue;
        if (slots[(probeSlots[leg]! << SLOT_SHIFT) | S_USER] === user) {
          if (stp !== SelfTradePrevention.cancelMaker) return false;
          probeNext(leg);
          skipped = true;
        } else step = Math.min(step, probeLeft[leg]!);
      }
      if (skipped) continue;
      need -= step;
      for (let leg = 0; leg < count; leg++) {
        if ((leg === own) !== useDirect) continue;
        probeLeft[leg]! -= step;
        if (probeLeft[leg] === 0) probeNext(leg);
      }
    }
    return true;
  }

  // ---------------------------------------------------------------- commands

  /** The order's slot word 3, from its command's first word. */
  function packSlot(packed: number, price: number): number {
    return price | (sideOf(packed) << P_SIDE_SHIFT) | (packed & P_COMMAND_BITS);
  }

  function isFree(slot: number): boolean {
    return slot > 0 && slot <= capacity && slotIds[(slot << SLOT_DOUBLES_SHIFT) | S_ID] === 0;
  }

  function isResting(slot: number, orderId: number): boolean {
    return slot > 0 && slot <= capacity && slotIds[(slot << SLOT_DOUBLES_SHIFT) | S_ID] === orderId;
  }

  /**
   * The quantity that the replaced order lost unknown to the gateway: its expected remaining quantity less its actual one
   * when it left the book. The old slot still has the latter: this chain or an earlier command removed the order, and the
   * gateway reuses a slot only after it reads of the removal. At least 0: an amend in flight would make it negative.
   */
  function missingOf(words: Int32Array, doubles: Float64Array, base: number): number {
    const replaced = words[base | R.W_CORRELATION]!;
    const terms = R.FLAG_POST_ONLY | (0xf << 12);
    assert((words[base]! & terms) === R.FLAG_POST_ONLY, "a replacing order is post-only and limit");
    assert(timeInForceOf(words[base]!) <= TimeInForce.gtd, "a replacing order rests");
    assert(
      isFree(replaced) && replaced !== words[base | R.W_SLOT],
      "a replaced order is out of the book, its slot unused",
    );
    assert(slots[(replaced << SLOT_SHIFT) | S_USER] === words[base | R.W_USER], "a replaced order is the same user's");
    // `| 0` keeps the quantities of all placements small integers for V8.
    const expected = doubles[(base >> 1) | R.D_EXPECTED]! | 0;
    return Math.max(0, expected - slots[(replaced << SLOT_SHIFT) | S_REMAINING]!);
  }

  /** The reason why a placement with `left` to rest can't enter the book, or none. */
  function rejectionOf(words: Int32Array, doubles: Float64Array, base: number, crosses: boolean, left: number): number {
    const outcome = words[base | R.W_OUTCOME]!;
    const status = outcomes[(outcome << OUTCOME_SHIFT) | O_STATUS]!;
    if (status !== MarketStatus.open) return status === MarketStatus.halted ? Reason.marketHalted : Reason.marketClosed;
    const packed = words[base]!;
    const tif = timeInForceOf(packed);
    const double = base >> 1;
    const replaces = (packed & R.FLAG_REPLACES) !== 0;
    const validUntil = replaces ? 0 : doubles[double | R.D_VALID_UNTIL]!;
    if (validUntil !== 0 && clock[0]! > validUntil) return Reason.tooLate;
    // The gateway compares the end with the machine's clock, which may be behind this command's stamp: then, as for a
    // replacement, the end isn't compared with the stamp.
    const isChecked = replaces || validUntil !== 0;
    if (tif === TimeInForce.gtd && !isChecked && doubles[double | R.D_EXPIRES_AT]! <= clock[0]!) return Reason.expired;
    if (crosses && (packed & R.FLAG_POST_ONLY) !== 0) return Reason.postOnlyWouldCross;
    if (tif === TimeInForce.fok) {
      const stp = selfTradePreventionOf(packed);
      const price = words[base | R.W_PRICE]!;
      const quantity = words[base | R.W_QUANTITY]!;
      if (!isFillable(outcome, sideOf(packed), price, quantity, words[base | R.W_USER]!, stp))
        return Reason.fokUnfillable;
    }
    return left > 0 ? Reason.none : Reason.tooLate;
  }

  function statusForRejection(reason: number): number {
    if (reason === Reason.fokUnfillable) return OrderStatus.canceled;
    return reason === Reason.expired ? OrderStatus.expired : OrderStatus.rejected;
  }

  function placeOrder(words: Int32Array, doubles: Float64Array, base: number): void {
    const packed = words[base]!;
    const slot = words[base | R.W_SLOT]!;
    const user = words[base | R.W_USER]!;
    const outcome = words[base | R.W_OUTCOME]!;
    const price = words[base | R.W_PRICE]!;
    const quantity = words[base | R.W_QUANTITY]!;
    const orderId = doubles[(base >> 1) | R.D_ORDER_ID]!;
    const side = sideOf(packed);
    const tif = timeInForceOf(packed);
    const slotBase = slot << SLOT_SHIFT;
    assert(isFree(slot), "a placement names a free slot");
    const replaces = (packed & R.FLAG_REPLACES) !== 0;
    const left = replaces ? quantity - missingOf(words, doubles, base) : quantity;
    const crosses = wouldCross(outcome << OUTCOME_SHIFT, side, price);
    // Unconditional orders skip the checks of conditions.
    const unconditional = (tif === TimeInForce.gtc || tif === TimeInForce.ioc) && (packed & R.FLAG_POST_ONLY) === 0;
    const open = outcomes[(outcome << OUTCOME_SHIFT) | O_STATUS] === MarketStatus.open;
    const reason =
      open && unconditional && doubles[(base >> 1) | R.D_VALID_UNTIL] === 0
        ? Reason.none
        : rejectionOf(words, doubles, base, crosses, left);
    const mayRest = typeOf(packed) === OrderType.limit && tif <= TimeInForce.gtd;
    // Most orders rest immediately and need only this event.
    const rests = mayRest && !crosses;
    const status = reason !== Reason.none ? statusForRejection(reason) : rests ? OrderStatus.open : OrderStatus.queued;
    const shown = reason === Reason.none ? left : quantity;
    const e = nextRecord();
    const f = e >> 1;
    eventWords[e + R.W_PACKED] = packEvent(EventKind.orderPlaced, side, status, reason, packed & R.ORDER_FLAGS);
    eventWords[e + R.W_SLOT] = slot;
    eventWords[e + R.W_USER] = user;
    eventWords[e + R.W_OUTCOME] = outcome;
    eventWords[e + R.W_PRICE] = price;
    eventWords[e + R.W_QUANTITY] = shown;
    eventWords[e + R.W_REMAINING] = shown;
    eventWords[e + R.W_CORRELATION] = codesOf(packed);
    eventDoubles[f + R.D_ORDER_ID] = orderId;
    eventDoubles[f + R.D_AT] = clock[0]!;
    eventDoubles[f + R.D_DETAIL] = doubles[(base >> 1) | R.D_EXPIRES_AT]!;
    eventDoubles[f + R.D_USER_SEQUENCE] = 0;
    // For a rejected order too, even below 0: a replacement sent before the gateway reads of the rejection lacks as much.
    totals[slot] = left;
    slots[slotBase | S_OUTCOME] = outcome;
    slots[slotBase | S_PACKED] = packSlot(packed, price);
    slots[slotBase | S_REMAINING] = left;
    slots[slotBase | S_USER] = user;
    if (reason !== Reason.none) return;
    slotIds[(slot << SLOT_DOUBLES_SHIFT) | S_ID] = orderId;
    if (rests) {
      enqueue(slot, outcome, side, price, left);
      return;
    }
    placedRecord = e;
    lastTakerFill = -1;
    fills = 0;
    takerReduced = false;
    finish(slot, match(slot, price, left), mayRest);
  }

  function endPlaced(record: number, status: number, reason: number): void {
    eventWords[record]! |= (status << 12) | (reason << 16);
  }

  /**
   * Ends a placement or an amend after its matching: the order is filled, rests, or its remainder is canceled. If nothing
   * filled, the state goes into the orderPlaced record itself, unless that is already published.
   */
  function finish(slot: number, outcomeOfMatch: number, mayRest: boolean): void {
    endUpdate();
    const selfTrade = outcomeOfMatch < 0;
    const remaining = selfTrade ? -1 - outcomeOfMatch : outcomeOfMatch;
    const untouched = placedRecord >= 0 && fills === 0 && !takerReduced;
    const record = placedRecord;
    placedRecord = -1;
    const base = slot << SLOT_SHIFT;
    const packed = slots[base | S_PACKED]!;
    const price = packed & P_PRICE_MASK;
    const side = (packed >> P_SIDE_SHIFT) & 3;
    slots[base | S_REMAINING] = remaining;
    if (remaining > 0 && !selfTrade && mayRest) {
      enqueue(slot, slots[base | S_OUTCOME]!, side, price, remaining);
      if (untouched) endPlaced(record, OrderStatus.open, Reason.none);
      else if (fills === 0 || takerReduced) emitState(slot, packed, remaining);
      return;
    }
    if (remaining > 0) {
      const reason = selfTrade ? Reason.selfTrade : Reason.iocRemainder;
      if (untouched) endPlaced(record, OrderStatus.canceled, reason);
      else emitTakerCanceled(slot, price, remaining, reason);
    }
    slotIds[(slot << SLOT_DOUBLES_SHIFT) | S_ID] = 0;
  }

  function emitTakerCanceled(slot: number, price: number, remaining: number, reason: number): void {
    const side = (slots[(slot << SLOT_SHIFT) | S_PACKED]! >> P_SIDE_SHIFT) & 3;
    const event = packEvent(EventKind.orderCanceled, side, OrderStatus.canceled, reason, 0);
    emitOrder(event, slot, price, totals[slot]!, remaining, 0);
  }

  /** Emits an order's state if no other event carries it: the order rests after self-trade prevention or a full ring. */
  function emitState(slot: number, packed: number, remaining: number): void {
    const total = totals[slot]!;
    const status = total === remaining ? OrderStatus.open : OrderStatus.partiallyFilled;
    const event = packEvent(EventKind.orderAmended, (packed >> P_SIDE_SHIFT) & 3, status, Reason.none, 0);
    emitOrder(event, slot, packed & P_PRICE_MASK, total, remaining, 0);
  }

  function restoreOrder(words: Int32Array, doubles: Float64Array, base: number): void {
    const slot = words[base | R.W_SLOT]!;
    const outcome = words[base | R.W_OUTCOME]!;
    const price = words[base | R.W_PRICE]!;
    const remaining = words[base | R.W_QUANTITY]!;
    const slotBase = slot << SLOT_SHIFT;
    assert(isFree(slot), "a restored order has a free slot");
    totals[slot] = words[base | R.W_CORRELATION]!;
    slots[slotBase | S_OUTCOME] = outcome;
    slots[slotBase | S_PACKED] = packSlot(words[base]!, price);
    slots[slotBase | S_REMAINING] = remaining;
    slots[slotBase | S_USER] = words[base | R.W_USER]!;
    slotIds[(slot << SLOT_DOUBLES_SHIFT) | S_ID] = doubles[(base >> 1) | R.D_ORDER_ID]!;
    const side = sideOf(words[base]!);
    // It can't rest in a crossed book: the bitmaps would take a bid above an ask for the other side's.
    if ((words[base]! & R.FLAG_LAST) !== 0 && wouldCross(outcome << OUTCOME_SHIFT, side, price)) {
      emitTakerCanceled(slot, price, remaining, Reason.operator);
      slotIds[(slot << SLOT_DOUBLES_SHIFT) | S_ID] = 0;
      return;
    }
    enqueue(slot, outcome, side, price, remaining);
  }

  function reject(kind: R.EventKind, words: Int32Array, doubles: Float64Array, base: number, reason: number): void {
    const record = emitPlain(
      packEvent(kind, 0, 0, reason, 0),
      words[base | R.W_SLOT]!,
      words[base | R.W_USER]!,
      words[base | R.W_OUTCOME]!,
      0,
      words[base | R.W_CORRELATION]!,
    );
    eventDoubles[(record >> 1) + R.D_ORDER_ID] = doubles[(base >> 1) | R.D_ORDER_ID]!;
  }

  function cancelOrder(words: Int32Array, doubles: Float64Array, base: number): void {
    const slot = words[base | R.W_SLOT]!;
    if (!isResting(slot, doubles[(base >> 1) | R.D_ORDER_ID]!)) {
      reject(EventKind.cancelRejected, words, doubles, base, Reason.none);
      return;
    }
    const reason = cancelReasonOf(words[base]!);
    const status = reason === Reason.expired ? OrderStatus.expired : OrderStatus.canceled;
    cancelResting(slot, status, reason, words[base | R.W_CORRELATION]!);
  }

  /**
   * The same price with a smaller total keeps the order's place. Any other amend removes the order and enters it again as a
   * taker. A new total that is already filled ends the order as filled at its old price, because nothing rests at the new
   * one. A post-only order that would cross stays unchanged.
   */
  function amendOrder(words: Int32Array, doubles: Float64Array, base: number): void {
    const double = base >> 1;
    const slot = words[base | R.W_SLOT]!;
    const validUntil = doubles[double | R.D_VALID_UNTIL]!;
    if (!isResting(slot, doubles[double | R.D_ORDER_ID]!)) {
      return reject(EventKind.amendRejected, words, doubles, base, Reason.none);
    }
    if (validUntil !== 0 && clock[0]! > validUntil) {
      return reject(EventKind.amendRejected, words, doubles, base, Reason.tooLate);
    }
    const slotBase = slot << SLOT_SHIFT;
    const outcome = slots[slotBase | S_OUTCOME]!;
    const status = outcomes[(outcome << OUTCOME_SHIFT) | O_STATUS]!;
    const packed = slots[slotBase | S_PACKED]!;
    const side = (packed >> P_SIDE_SHIFT) & 3;
    // A field that isn't given keeps its current value, which the gateway may not know yet.
    const price = words[base | R.W_PRICE]! || packed & P_PRICE_MASK;
    const total = words[base | R.W_QUANTITY]! || totals[slot]!;
    const oldRemaining = slots[slotBase | S_REMAINING]!;
    const filled = totals[slot]! - oldRemaining;
    const keeps = price === (packed & P_PRICE_MASK) && total <= totals[slot]!;
    if (status !== MarketStatus.open && !keeps) {
      const reason = status === MarketStatus.halted ? Reason.marketHalted : Reason.marketClosed;
      return reject(EventKind.amendRejected, words, doubles, base, reason);
    }
    const remaining = Math.max(0, total - filled);
    const isPostOnly = (packed & R.FLAG_POST_ONLY) !== 0;
    // The order's own bid or ask doesn't affect the opposite side, so the check needs no removal.
    if (!keeps && remaining > 0 && isPostOnly && wouldCross(outcome << OUTCOME_SHIFT, side, price)) {
      return reject(EventKind.amendRejected, words, doubles, base, Reason.postOnlyWouldCross);
    }
    // From here it must succeed.
    const newTotal = filled + remaining;
    const newStatus =
      remaining === 0 ? OrderStatus.filled : filled === 0 ? OrderStatus.open : OrderStatus.partiallyFilled;
    totals[slot] = newTotal;
    // An extending amend has neither price nor total, and so keeps both.
    const flags = (keeps || remaining === 0 ? 0 : R.FLAG_LOST_PRIORITY) | (words[base]! & R.FLAG_EXTENDS);
    const event = packEvent(EventKind.orderAmended, side, newStatus, Reason.none, flags);
    const newPrice = remaining === 0 ? packed & P_PRICE_MASK : price;
    const record = emitOrder(event, slot, newPrice, newTotal, remaining, words[base | R.W_CORRELATION]!);
    eventDoubles[(record >> 1) + R.D_DETAIL] = doubles[double | R.D_PRIORITY]!;
    if (remaining > 0 && !keeps) reenter(slot, outcome, side, price, remaining);
    else if (remaining < oldRemaining) reduceResting(slot, oldRemaining - remaining);
  }

  /** Moves a resting order to a new price or to the back of its own, matching whatever it now crosses. */
  function reenter(slot: number, outcome: number, side: number, price: number, remaining: number): void {
    const base = slot << SLOT_SHIFT;
    dequeue(slot);
    const packed = (slots[base | S_PACKED]! & ~P_PRICE_MASK) | price;
    slots[base | S_PACKED] = packed;
    slots[base | S_REMAINING] = remaining;
    if (!wouldCross(outcome << OUTCOME_SHIFT, side, price)) {
      enqueue(slot, outcome, side, price, remaining);
      return;
    }
    lastTakerFill = -1;
    placedRecord = -1;
    fills = 0;
    takerReduced = false;
    const left = match(slot, price, remaining);
    // The amend's own event already reports that the order rests; later fills report the rest.
    if (fills === 0) fills = 1;
    finish(slot, left, true);
  }

  /** Cancels all orders in one book of a closing market, by rising price. */
  function cancelBook(outcome: number): void {
    for (let price = nextAbove(outcome, 0); price !== NO_ASK; price = nextAbove(outcome, price)) {
      let slot = headOf(outcome, price);
      while (slot !== 0) {
        const next = slots[(slot << SLOT_SHIFT) | S_NEXT]!;
        reserve();
        cancelResting(slot, OrderStatus.canceled, Reason.marketClosed, 0);
        slot = next;
      }
    }
  }

  function openMarket(market: number, first: number, count: number): void {
    assert(market > 0 && market <= largestId && first > 0 && first + count - 1 <= largestId, "ids in bounds");
    assert(
      marketStatus[market] === MarketStatus.proposed && count >= 2 && count <= MAX_OUTCOMES,
      "a market opens once",
    );
    marketStatus[market] = MarketStatus.open;
    marketFirst[market] = first;
    marketCount[market] = count;
    for (let outcome = first; outcome < first + count; outcome++) {
      const base = outcome << OUTCOME_SHIFT;
      outcomes[base | O_BID] = NO_BID;
      outcomes[base | O_ASK] = NO_ASK;
      outcomes[base | O_MARKET] = market;
      outcomes[base | O_OTHER] = count === 2 ? (first + first + 1 - outcome) << OUTCOME_SHIFT : 0;
      outcomes[base | O_STATUS] = MarketStatus.open;
    }
  }

  function setStatus(market: number, status: number): void {
    marketStatus[market] = status;
    const first = marketFirst[market]!;
    const end = first + marketCount[market]!;
    for (let outcome = first; outcome < end; outcome++) outcomes[(outcome << OUTCOME_SHIFT) | O_STATUS] = status;
  }

  function changeMarket(words: Int32Array, base: number, to: number): void {
    const market = words[base | R.W_MARKET]!;
    const from = marketStatus[market]!;
    const legal = from === MarketStatus.open || from === MarketStatus.halted;
    if (to === MarketStatus.closed && legal) {
      const first = marketFirst[market]!;
      const count = marketCount[market]!;
      for (let o = first; o < first + count; o++) cancelBook(o);
      reserve();
      releaseBooks(first, count);
    }
    if (legal) setStatus(market, to);
    const event = packEvent(EventKind.marketChanged, 0, marketStatus[market]!, 0, 0);
    emitPlain(event, market, 0, 0, 0, words[base | R.W_CORRELATION]!);
  }

  /** Frees the books of a market without orders, after emitting its pending level changes. */
  function releaseBooks(first: number, count: number): void {
    emitLevels();
    for (let outcome = first; outcome < first + count; outcome++) {
      const book = outcomes[(outcome << OUTCOME_SHIFT) | O_BOOK]!;
      if (book === 0) continue;
      assert(nextAbove(outcome, 0) === NO_ASK, "a closed market's books are empty");
      outcomes[(outcome << OUTCOME_SHIFT) | O_BOOK] = 0;
      freeBooks[freeBookCount++] = book;
    }
  }

  function emitSets(kind: R.EventKind, words: Int32Array, base: number): void {
    const event = packEvent(kind, 0, 0, 0, 0);
    const [user, quantity] = [words[base | R.W_USER]!, words[base | R.W_QUANTITY]!];
    const record = emitPlain(event, words[base | R.W_MARKET]!, user, 0, quantity, words[base | R.W_CORRELATION]!);
    eventWords[record + R.W_PRICE] = words[base | R.W_PRICE]!;
    eventWords[record + R.W_SET_BY_SET] = 1;
  }

  function execute(words: Int32Array, doubles: Float64Array, base: number): void {
    reserve();
    clock[0] = doubles[(base >> 1) | R.D_AT]!;
    const kind = commandKindOf(words[base]!);
    switch (kind) {
      case CommandKind.placeOrder:
        return placeOrder(words, doubles, base);
      case CommandKind.cancelOrder:
        return cancelOrder(words, doubles, base);
      case CommandKind.amendOrder:
        return amendOrder(words, doubles, base);
      case CommandKind.restoreOrder:
        return restoreOrder(words, doubles, base);
      case CommandKind.openMarket:
        return openMarket(words[base | R.W_MARKET]!, words[base | R.W_OUTCOME]!, words[base | R.W_QUANTITY]!);
      case CommandKind.haltMarket:
        return changeMarket(words, base, MarketStatus.halted);
      case CommandKind.resumeMarket:
        return changeMarket(words, base, MarketStatus.open);
      case CommandKind.closeMarket:
        return changeMarket(words, base, MarketStatus.closed);
      case CommandKind.splitSets:
        return emitSets(EventKind.setsSplit, words, base);
      case CommandKind.mergeSets:
        return emitSets(EventKind.setsMerged, words, base);
      case CommandKind.stop:
        emitPlain(packEvent(EventKind.stopped, 0, 0, 0, 0), 0, 0, 0, 0, 0);
        return;
      default:
        unreachable(kind, "kind of command");
    }
  }

  assert(BOOK_PAGES << HEADER_SHIFT <= BOOK_WORDS && BOOK_PAGES <= PAGE_GROUPS * 32, "a book's headers fit");
  assert(LEVELS_PER_PAGE === 32, "a page's occupied and dirty bits are a word each");

  return {
    execute,
    endBatch() {
      emitLevels();
      beforePublish();
      events.publish();
    },
    dropBatch() {
      for (let i = 0; i < dirtyHeaderCount; i++) headers[dirtyHeaders[i]! | H_DIRTY] = 0;
      dirtyHeaderCount = 0;
      dirtyLevelCount = 0;
      events.discard();
    },
    // Each command of a chain emits one event and changes at most one level; a match may emit more. The excess also leaves
    // room for a record of the caller.
    hasRoom: (commands) => events.hasRoom(4 * MAX_EVENTS_PER_STEP + 2 * commands + dirtyLevelCount),
    bestBid: (outcome) => outcomes[(outcome << OUTCOME_SHIFT) | O_BID]!,
    bestAsk: (outcome) => outcomes[(outcome << OUTCOME_SHIFT) | O_ASK]!,
    levelQuantity(outcome, price) {
      const header = headerOf(outcome, price);
      if (headers[header | H_LEVELS] === 0) return 0;
      return quantities[(levelOf(header, price) >> 1) + L_QUANTITY]!;
    },
    ordersAt(outcome, price) {
      const found: [number, number][] = [];
      if (headers[headerOf(outcome, price) + H_LEVELS] === 0) return found;
      for (let s = headOf(outcome, price); s !== 0; s = slots[(s << SLOT_SHIFT) | S_NEXT]!) {
        found.push([s, slots[(s << SLOT_SHIFT) | S_REMAINING]!]);
      }
      return found;
    },
  };
}
