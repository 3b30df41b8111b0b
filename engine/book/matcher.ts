/**
 * The books of one engine thread and the matching over them: commands in, engine events out.
 *
 * Owns price levels, resting orders and the state of each market it was told of. Never reads a clock, allocates, or
 * does I/O: time and ids come with the command, so the same commands give the same events, byte for byte. Everything
 * lies in flat typed arrays (layout.ts) captured by one closure, made once per thread; the arrays reserve address
 * space for the bounds of limits.ts, and the operating system backs only the pages that are touched.
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
import { assert } from "../util/assert.ts";
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

// V8 folds a module's own constants into its code; another module's exports it loads and checks at each use.
const { MarketStatus, MatchType, OrderStatus, OrderType, Reason, Role, SelfTradePrevention, Side, TimeInForce } = C;
const {
  CommandKind,
  EventKind,
  packEvent,
  packFill,
  packTerms,
  kindOf,
  sideOf,
  typeOf,
  timeInForceOf,
  selfTradePreventionOf,
  cancelReasonOf,
} = R;

export interface MatcherOptions {
  /** Slots that commands may name, 1..capacity. */
  readonly capacity: number;
  /** Books with orders at one time. */
  readonly activeBooks?: number;
  /** Of markets and outcomes. */
  readonly largestId?: number;
  /**
   * Called in the middle of a command when the event ring is full: everything before is published. It must commit and
   * wait until the last consumer made room. What is published then stands at a match boundary.
   */
  readonly onRingFull: () => void;
  /** Called before each publish, within a command or at a batch's end. */
  readonly beforePublish?: () => void;
}

export interface Matcher {
  /** Runs one command record that starts at word `base` of a ring (or any arrays of that layout). */
  execute(words: Int32Array, doubles: Float64Array, base: number): void;
  /** Emits the changed levels and publishes the events. Called once per batch. */
  endBatch(): void;
  /** Forgets the batch's events and changed levels instead: nobody hears of what its commands did. For the warm-up. */
  dropBatch(): void;
  /** True when a chain of so many commands can run without waiting; any single command in most cases. */
  hasRoom(commands: number): boolean;
  /** Best resting price, 0 (bid) or 10000 (ask) where there is none. For tests and tools. */
  bestBid(outcome: number): number;
  bestAsk(outcome: number): number;
  /** Total quantity at a price. For tests and tools. */
  levelQuantity(outcome: number, price: number): number;
  /** What rests at a price in time order, as [slot, remaining]. Allocates; for tests. */
  ordersAt(outcome: number, price: number): [number, number][];
}

/**
 * Makes the books of a thread. The ring's producer end belongs to the matcher from here on; between its commands, and at
 * the end of `onRingFull`, its owner may write records of its own.
 */
export function createMatcher(events: RingProducer, options: MatcherOptions): Matcher {
  const capacity = options.capacity;
  const activeBooks = options.activeBooks ?? MAX_ACTIVE_BOOKS;
  const largestId = options.largestId ?? MAX_OUTCOME_ID;
  const { onRingFull, beforePublish = () => {} } = options;

  const slotMemory = new ArrayBuffer(4 * ((capacity + 1) << SLOT_SHIFT));
  const slots = new Int32Array(slotMemory);
  const slotIds = new Float64Array(slotMemory);
  /** Each order's quantity as placed or amended; apart, because only amends and decrements read it. */
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

  /** Headers with dirty levels of this batch. A dirty level has its place in the ring reserved: no more than that. */
  const dirtyHeaders = new Int32Array(events.mask + 1);
  let dirtyHeaderCount = 0;
  let dirtyLevelCount = 0;

  /** The command's time. In an array, because a double in a variable or an argument may be boxed on the heap. */
  const clock = new Float64Array(new ArrayBuffer(8));

  const eventWords = events.words;
  const eventDoubles = events.doubles;
  const eventMask = events.mask;

  // The step at hand: the resting order of each leg, and the taker's last fill record (-1: none yet this update).
  const legSlots = new Int32Array(MAX_OUTCOMES);
  let legCount = 0;
  let lastTakerFill = -1;
  let placedRecord = -1;
  let fills = 0;
  let takerReduced = false;

  // ---------------------------------------------------------------- occupancy and levels

  function takeBook(outcome: number): number {
    let book: number;
    if (freeBookCount > 0) book = freeBooks[--freeBookCount]!;
    else {
      assert(usedBooks < activeBooks, "more active books than MAX_ACTIVE_BOOKS");
      book = ++usedBooks * BOOK_WORDS;
    }
    outcomes[(outcome << OUTCOME_SHIFT) | O_BOOK] = book;
    return book;
  }

  /** Gives the header of a price without one its levels. */
  function takePage(header: number, outcome: number, price: number): number {
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

  /** Puts a slot, whose words but the links are set, at the back of its level. */
  function enqueue(slot: number, outcome: number, side: number, price: number, remaining: number): void {
    const outcomeBase = outcome << OUTCOME_SHIFT;
    let book = outcomes[outcomeBase | O_BOOK]!;
    if (book === 0) book = takeBook(outcome);
    const header = book + ((price >> LEVEL_PAGE_BITS) << HEADER_SHIFT);
    let level = headers[header | H_LEVELS]!;
    if (level === 0) level = takePage(header, outcome, price);
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

  /** Takes a resting order out of its level; the slot's words stay readable, its id is cleared by the caller. */
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
    if ((next | prev) === 0) vacate(header, outcome, (packed >> P_SIDE_SHIFT) & 3, price);
  }

  /** The last order of a price is gone. */
  function vacate(header: number, outcome: number, side: number, price: number): void {
    const base = outcome << OUTCOME_SHIFT;
    const bits = headers[header | H_OCCUPIED]! & ~(1 << (price & IN_PAGE_MASK));
    headers[header | H_OCCUPIED] = bits;
    if (bits === 0) releasePage(header, outcome, price);
    if (side === Side.buy) {
      if (price === outcomes[base | O_BID]) outcomes[base | O_BID] = nextBelow(outcome, price);
    } else if (price === outcomes[base | O_ASK]) outcomes[base | O_ASK] = nextAbove(outcome, price);
  }

  /** Takes `quantity` from a resting order, whose slot is free again where nothing is left. */
  function take(slot: number, quantity: number): void {
    const base = slot << SLOT_SHIFT;
    const remaining = slots[base | S_REMAINING]! - quantity;
    assert(remaining >= 0, "a fill takes no more than rests");
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

  /** The first word of the next event; its writer fills all of it. */
  function nextRecord(): number {
    const head = events.head;
    events.head = (head + 1) | 0;
    return (head & eventMask) * R.RECORD_WORDS;
  }

  /** An event of the order in `slot`, whose id, user and outcome it carries; answers the record's first word. */
  function emitOrder(
    packed: number,
    slot: number,
    price: number,
    quantity: number,
    remaining: number,
    reference: number,
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
    eventWords[e + R.W_REFERENCE] = reference;
    eventDoubles[f + R.D_ORDER_ID] = slotIds[(slot << SLOT_DOUBLES_SHIFT) | S_ID]!;
    eventDoubles[f + R.D_AT] = clock[0]!;
    eventDoubles[f + R.D_DETAIL] = 0;
    eventDoubles[f + R.D_USER_SEQUENCE] = 0;
    return e;
  }

  /** An event that is not of an order in a slot: of a market, or of a command that named no such order. */
  function emitPlain(
    packed: number,
    slot: number,
    user: number,
    outcome: number,
    quantity: number,
    reference: number,
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
    eventWords[e + R.W_REFERENCE] = reference;
    eventDoubles[f + R.D_ORDER_ID] = 0;
    eventDoubles[f + R.D_AT] = clock[0]!;
    eventDoubles[f + R.D_DETAIL] = 0;
    eventDoubles[f + R.D_USER_SEQUENCE] = 0;
    return e;
  }

  /** Ends a resting order: out of the book, with its event. */
  function cancelResting(slot: number, status: number, reason: number, reference: number): void {
    const base = slot << SLOT_SHIFT;
    dequeue(slot);
    const packed = slots[base | S_PACKED]!;
    const event = packEvent(EventKind.orderCanceled, (packed >> P_SIDE_SHIFT) & 3, status, reason, 0);
    emitOrder(event, slot, packed & P_PRICE_MASK, totals[slot]!, slots[base | S_REMAINING]!, reference);
    slotIds[(slot << SLOT_DOUBLES_SHIFT) | S_ID] = 0;
  }

  function emitLevels(): void {
    for (let i = 0; i < dirtyHeaderCount; i++) emitLevelsOf(dirtyHeaders[i]!);
    dirtyHeaderCount = 0;
    dirtyLevelCount = 0;
  }

  /**
   * Emits the dirty levels of one page. Not inside the loop of its caller: what V8 compiles while a loop runs (OSR) knows
   * none of the closure's constants.
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
      eventWords[e + R.W_REFERENCE] = 0;
      eventDoubles[f + R.D_ORDER_ID] = 0;
      eventDoubles[f + R.D_AT] = 0;
      // The page is gone where its last order is.
      const level = first | (bit << LEVEL_SHIFT);
      eventDoubles[f + R.D_DETAIL] = first === 0 ? 0 : quantities[(level >> 1) | L_QUANTITY]!;
      eventDoubles[f + R.D_USER_SEQUENCE] = 0;
    }
  }

  function endUpdate(): void {
    if (lastTakerFill >= 0) eventWords[lastTakerFill]! |= R.FLAG_UPDATE_END;
    lastTakerFill = -1;
  }

  /** Makes sure that a step's events and all pending level changes fit; in a full ring, publishes and waits. */
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

  /** What a buy of an outcome costs by minting: 10000 less the other outcomes' best bids; 10000 where one has none. */
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

  /** What a sale of an outcome brings by merging: 10000 less the other outcomes' best asks; 0 or less is none. */
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

  /** Collects the first order at the best price of each leg that a mint (buys) or merge (sells) takes. */
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

  function takesOwn(user: number): boolean {
    for (let i = 0; i < legCount; i++) if (slots[(legSlots[i]! << SLOT_SHIFT) | S_USER] === user) return true;
    return false;
  }

  /** Cancels the user's own orders among the legs at hand. */
  function cancelOwnLegs(user: number): void {
    for (let i = 0; i < legCount; i++) {
      const slot = legSlots[i]!;
      if (slots[(slot << SLOT_SHIFT) | S_USER] === user) cancelResting(slot, OrderStatus.canceled, Reason.selfTrade, 0);
    }
  }

  /**
   * Self-trade `decrement`: the taker and its own resting orders of the step give up the smallest quantity among them.
   * What would fall to nothing is canceled as it stands, the rest is reduced. Answers the taker's new remaining
   * quantity, or -1 where the taker is the one to cancel.
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
      take(slot, common);
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
   * Matches the order in `slot` (its words are set, it is in no level) against all that its price reaches.
   * Answers what remains, or -1 - remaining where self-trade prevention ends it.
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
      if (takesOwn(user)) {
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
    take(slot, quantity);
  }

  // The legs of a fill-or-kill's rehearsal: the order each stands at and what the rehearsal left of it.
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

  /** The implied price of the rehearsal's legs, or `none`. Leg `own` is the direct one. */
  function probeImplied(own: number, count: number, buy: boolean): number {
    let sum = 0;
    for (let leg = 0; leg < count; leg++) {
      if (leg === own) continue;
      if (probeSlots[leg] === 0) return buy ? NO_ASK : NO_BID;
      sum += probePrice(leg);
    }
    return buy ? Math.max(MIN_PRICE_BPS, FULL_PRICE_BPS - sum) : FULL_PRICE_BPS - sum;
  }

  /** Rehearses the match of a fill-or-kill without touching a book: true when all of it would fill. */
  function fillable(
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

  /** An order's word 3 from its command's first word. */
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
   * How much of the order that this placement replaces went without the gateway's knowing: what it expected to remain,
   * less what did remain when the order left the book. The old slot still says so: this chain or a command before it
   * took the order out, and the gateway gives a slot away only once it has read of that. Never less than 0, which an
   * amend on its way would give.
   */
  function missingOf(w: Int32Array, d: Float64Array, base: number): number {
    const replaced = w[base | R.W_REFERENCE]!;
    const terms = R.FLAG_POST_ONLY | (0xf << 12);
    assert((w[base]! & terms) === R.FLAG_POST_ONLY, "a replacing order is post-only and limit");
    assert(timeInForceOf(w[base]!) <= TimeInForce.gtd, "a replacing order rests");
    assert(isFree(replaced) && replaced !== w[base | R.W_SLOT], "a replaced order is out of the book, its slot unused");
    assert(slots[(replaced << SLOT_SHIFT) | S_USER] === w[base | R.W_USER], "a replaced order is the same user's");
    // An integer to V8 as well, so that the quantities of all placements stay such.
    const expected = d[(base >> 1) | R.D_EXPECTED]! | 0;
    return Math.max(0, expected - slots[(replaced << SLOT_SHIFT) | S_REMAINING]!);
  }

  /** Why a placement of which `left` may rest cannot enter the book: the reason, or none. */
  function refusal(w: Int32Array, d: Float64Array, base: number, crosses: boolean, left: number): number {
    const outcome = w[base | R.W_OUTCOME]!;
    const status = outcomes[(outcome << OUTCOME_SHIFT) | O_STATUS]!;
    if (status !== MarketStatus.open) return status === MarketStatus.halted ? Reason.marketHalted : Reason.marketClosed;
    const packed = w[base]!;
    const tif = timeInForceOf(packed);
    const double = base >> 1;
    const validUntil = (packed & R.FLAG_REPLACES) !== 0 ? 0 : d[double | R.D_VALID_UNTIL]!;
    if (validUntil !== 0 && clock[0]! > validUntil) return Reason.tooLate;
    if (tif === TimeInForce.gtd && d[double | R.D_EXPIRES_AT]! <= clock[0]!) return Reason.expired;
    if (crosses && (packed & R.FLAG_POST_ONLY) !== 0) return Reason.postOnlyWouldCross;
    if (tif === TimeInForce.fok) {
      const stp = selfTradePreventionOf(packed);
      const price = w[base | R.W_PRICE]!;
      const quantity = w[base | R.W_QUANTITY]!;
      if (!fillable(outcome, sideOf(packed), price, quantity, w[base | R.W_USER]!, stp)) return Reason.fokUnfillable;
    }
    return left > 0 ? Reason.none : Reason.tooLate;
  }

  function statusForRefusal(reason: number): number {
    if (reason === Reason.fokUnfillable) return OrderStatus.canceled;
    return reason === Reason.expired ? OrderStatus.expired : OrderStatus.rejected;
  }

  function placeOrder(w: Int32Array, d: Float64Array, base: number): void {
    const packed = w[base]!;
    const slot = w[base | R.W_SLOT]!;
    const user = w[base | R.W_USER]!;
    const outcome = w[base | R.W_OUTCOME]!;
    const price = w[base | R.W_PRICE]!;
    const quantity = w[base | R.W_QUANTITY]!;
    const orderId = d[(base >> 1) | R.D_ORDER_ID]!;
    const side = sideOf(packed);
    const tif = timeInForceOf(packed);
    const slotBase = slot << SLOT_SHIFT;
    assert(isFree(slot), "a placement names a free slot");
    const replaces = (packed & R.FLAG_REPLACES) !== 0;
    const left = replaces ? quantity - missingOf(w, d, base) : quantity;
    const crosses = wouldCross(outcome << OUTCOME_SHIFT, side, price);
    // Only an order with a condition pays for looking at it.
    const unconditional = (tif === TimeInForce.gtc || tif === TimeInForce.ioc) && (packed & R.FLAG_POST_ONLY) === 0;
    const open = outcomes[(outcome << OUTCOME_SHIFT) | O_STATUS] === MarketStatus.open;
    const reason =
      open && unconditional && d[(base >> 1) | R.D_VALID_UNTIL] === 0
        ? Reason.none
        : refusal(w, d, base, crosses, left);
    const mayRest = typeOf(packed) === OrderType.limit && tif <= TimeInForce.gtd;
    // Most orders rest at once, and their one event says so.
    const rests = mayRest && !crosses;
    const status = reason !== Reason.none ? statusForRefusal(reason) : rests ? OrderStatus.open : OrderStatus.queued;
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
    eventWords[e + R.W_REFERENCE] = packTerms(typeOf(packed), tif, selfTradePreventionOf(packed));
    eventDoubles[f + R.D_ORDER_ID] = orderId;
    eventDoubles[f + R.D_AT] = clock[0]!;
    eventDoubles[f + R.D_DETAIL] = d[(base >> 1) | R.D_EXPIRES_AT]!;
    eventDoubles[f + R.D_USER_SEQUENCE] = 0;
    // Of a refused order too, even below 0: what replaces it before the gateway hears of the refusal lacks as much.
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
   * Ends a placement or an amend after its matching: it is filled, rests, or what remains is canceled. Where nothing
   * filled, the state goes into the orderPlaced record itself, if that is still ours to write.
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

  /** An order's state where no other event tells it: it rests after self-trade prevention or a full ring. */
  function emitState(slot: number, packed: number, remaining: number): void {
    const total = totals[slot]!;
    const status = total === remaining ? OrderStatus.open : OrderStatus.partiallyFilled;
    const event = packEvent(EventKind.orderAmended, (packed >> P_SIDE_SHIFT) & 3, status, Reason.none, 0);
    emitOrder(event, slot, packed & P_PRICE_MASK, total, remaining, 0);
  }

  function restoreOrder(w: Int32Array, d: Float64Array, base: number): void {
    const slot = w[base | R.W_SLOT]!;
    const outcome = w[base | R.W_OUTCOME]!;
    const price = w[base | R.W_PRICE]!;
    const remaining = w[base | R.W_QUANTITY]!;
    const slotBase = slot << SLOT_SHIFT;
    assert(isFree(slot), "a restored order has a free slot");
    totals[slot] = w[base | R.W_REFERENCE]!;
    slots[slotBase | S_OUTCOME] = outcome;
    slots[slotBase | S_PACKED] = packSlot(w[base]!, price);
    slots[slotBase | S_REMAINING] = remaining;
    slots[slotBase | S_USER] = w[base | R.W_USER]!;
    slotIds[(slot << SLOT_DOUBLES_SHIFT) | S_ID] = d[(base >> 1) | R.D_ORDER_ID]!;
    const side = sideOf(w[base]!);
    // It cannot rest among those that it would match: a bid above an ask would be taken for the other side's.
    if ((w[base]! & R.FLAG_LAST) !== 0 && wouldCross(outcome << OUTCOME_SHIFT, side, price)) {
      emitTakerCanceled(slot, price, remaining, Reason.operator);
      slotIds[(slot << SLOT_DOUBLES_SHIFT) | S_ID] = 0;
      return;
    }
    enqueue(slot, outcome, side, price, remaining);
  }

  function refuse(kind: number, w: Int32Array, d: Float64Array, base: number, reason: number): void {
    const record = emitPlain(
      packEvent(kind, 0, 0, reason, 0),
      w[base | R.W_SLOT]!,
      w[base | R.W_USER]!,
      w[base | R.W_OUTCOME]!,
      0,
      w[base | R.W_REFERENCE]!,
    );
    eventDoubles[(record >> 1) + R.D_ORDER_ID] = d[(base >> 1) | R.D_ORDER_ID]!;
  }

  function cancelOrder(w: Int32Array, d: Float64Array, base: number): void {
    const slot = w[base | R.W_SLOT]!;
    if (!isResting(slot, d[(base >> 1) | R.D_ORDER_ID]!)) {
      refuse(EventKind.cancelRefused, w, d, base, Reason.none);
      return;
    }
    const reason = cancelReasonOf(w[base]!);
    const status = reason === Reason.expired ? OrderStatus.expired : OrderStatus.canceled;
    cancelResting(slot, status, reason, w[base | R.W_REFERENCE]!);
  }

  /**
   * Same price and smaller total: keeps its place. Anything else leaves the book and enters it again as a taker would.
   * A new total that is filled already ends the order as filled, at the price that it had, as nothing rests at the new
   * one. A post-only order that would cross stays as it was.
   */
  function amendOrder(w: Int32Array, d: Float64Array, base: number): void {
    const double = base >> 1;
    const slot = w[base | R.W_SLOT]!;
    const validUntil = d[double | R.D_VALID_UNTIL]!;
    if (!isResting(slot, d[double | R.D_ORDER_ID]!)) {
      return refuse(EventKind.amendRefused, w, d, base, Reason.none);
    }
    if (validUntil !== 0 && clock[0]! > validUntil) {
      return refuse(EventKind.amendRefused, w, d, base, Reason.tooLate);
    }
    const slotBase = slot << SLOT_SHIFT;
    const outcome = slots[slotBase | S_OUTCOME]!;
    const status = outcomes[(outcome << OUTCOME_SHIFT) | O_STATUS]!;
    const packed = slots[slotBase | S_PACKED]!;
    const side = (packed >> P_SIDE_SHIFT) & 3;
    // What isn't given stays as it is by now, whatever the gateway knew of it.
    const price = w[base | R.W_PRICE]! || packed & P_PRICE_MASK;
    const total = w[base | R.W_QUANTITY]! || totals[slot]!;
    const oldRemaining = slots[slotBase | S_REMAINING]!;
    const filled = totals[slot]! - oldRemaining;
    const keeps = price === (packed & P_PRICE_MASK) && total <= totals[slot]!;
    if (status !== MarketStatus.open && !keeps) {
      const reason = status === MarketStatus.halted ? Reason.marketHalted : Reason.marketClosed;
      return refuse(EventKind.amendRefused, w, d, base, reason);
    }
    const remaining = Math.max(0, total - filled);
    const isPostOnly = (packed & R.FLAG_POST_ONLY) !== 0;
    // Its own bid or ask plays no part in what it would meet, so that it need not leave the book to be asked.
    if (!keeps && remaining > 0 && isPostOnly && wouldCross(outcome << OUTCOME_SHIFT, side, price)) {
      return refuse(EventKind.amendRefused, w, d, base, Reason.postOnlyWouldCross);
    }
    // From here it must succeed.
    const newTotal = filled + remaining;
    const newStatus =
      remaining === 0 ? OrderStatus.filled : filled === 0 ? OrderStatus.open : OrderStatus.partiallyFilled;
    totals[slot] = newTotal;
    // What extends gives neither price nor total, and so keeps both.
    const flags = (keeps || remaining === 0 ? 0 : R.FLAG_LOST_PRIORITY) | (w[base]! & R.FLAG_EXTENDS);
    const event = packEvent(EventKind.orderAmended, side, newStatus, Reason.none, flags);
    const newPrice = remaining === 0 ? packed & P_PRICE_MASK : price;
    const record = emitOrder(event, slot, newPrice, newTotal, remaining, w[base | R.W_REFERENCE]!);
    eventDoubles[(record >> 1) + R.D_DETAIL] = d[double | R.D_PRIORITY]!;
    if (remaining > 0 && !keeps) enterAgain(slot, outcome, side, price, remaining);
    else if (remaining < oldRemaining) take(slot, oldRemaining - remaining);
  }

  /** Moves an order that rests to a new price or the back of its own, through whatever it now crosses. */
  function enterAgain(slot: number, outcome: number, side: number, price: number, remaining: number): void {
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
    // The amend's own event told that it rests; a fill, if any, tells the rest.
    if (fills === 0) fills = 1;
    finish(slot, left, true);
  }

  /** Cancels what rests in one book of a market that closes, by rising price. */
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

  function changeMarket(w: Int32Array, base: number, to: number): void {
    const market = w[base | R.W_MARKET]!;
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
    emitPlain(event, market, 0, 0, 0, w[base | R.W_REFERENCE]!);
  }

  /** Gives the books of a market whose orders are gone back. Its pending level changes go out first. */
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

  function passSets(kind: number, w: Int32Array, base: number): void {
    const event = packEvent(kind, 0, 0, 0, 0);
    const [user, quantity] = [w[base | R.W_USER]!, w[base | R.W_QUANTITY]!];
    const record = emitPlain(event, w[base | R.W_MARKET]!, user, 0, quantity, w[base | R.W_REFERENCE]!);
    eventWords[record + R.W_PRICE] = w[base | R.W_PRICE]!;
  }

  function execute(w: Int32Array, d: Float64Array, base: number): void {
    reserve();
    clock[0] = d[(base >> 1) | R.D_AT]!;
    const kind = kindOf(w[base]!);
    switch (kind) {
      case CommandKind.placeOrder:
        return placeOrder(w, d, base);
      case CommandKind.cancelOrder:
        return cancelOrder(w, d, base);
      case CommandKind.amendOrder:
        return amendOrder(w, d, base);
      case CommandKind.restoreOrder:
        return restoreOrder(w, d, base);
      case CommandKind.openMarket:
        return openMarket(w[base | R.W_MARKET]!, w[base | R.W_OUTCOME]!, w[base | R.W_QUANTITY]!);
      case CommandKind.haltMarket:
        return changeMarket(w, base, MarketStatus.halted);
      case CommandKind.resumeMarket:
        return changeMarket(w, base, MarketStatus.open);
      case CommandKind.closeMarket:
        return changeMarket(w, base, MarketStatus.closed);
      case CommandKind.splitSets:
        return passSets(EventKind.setsSplit, w, base);
      case CommandKind.mergeSets:
        return passSets(EventKind.setsMerged, w, base);
      case CommandKind.stop:
        emitPlain(packEvent(EventKind.stopped, 0, 0, 0, 0), 0, 0, 0, 0, 0);
        return;
      default:
        assert(false, `unknown command kind ${kind}`);
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
    // Each command of a chain emits one event and changes one level at most; a match may emit more. What is asked for
    // beyond it leaves room for a record of the caller's too.
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
