/**
 * The books of one engine thread and the matching over them: commands in, engine events out.
 *
 * Owns price levels, resting orders and the state of each market it was told of. Never reads a clock, allocates, or
 * does I/O: time and ids come with the command, so the same commands give the same events, byte for byte. Everything
 * lies in flat typed arrays captured by one closure, made once per thread; the arrays reserve address space for the
 * bounds of limits.ts, and the operating system backs only the pages that are touched.
 *
 * A resting order (slot, 8 words; the gateway chooses the slot, 0 is none):
 *   word   0      1      2         3         4           5      6..7
 *          next   prev   outcome   packed    remaining   user   order id (double 3)
 *   packed: price 0..13 | side 14..15 | pat 16 | post-only 17 | self-trade prevention 18..19
 *
 * A price level (4 words), in pages of 32 that come with the first order and go with the last:
 *   word   0      1      2..3
 *          head   tail   quantity (double 1)
 *
 * An outcome (16 words): best bid, best ask, first outcome of its market, number of outcomes, book, status.
 * A book's page (4 words, 313 pages for prices 0..9999): occupancy bits, index of the page's levels, dirty bits.
 * A book's occupancy is a bitmap of three levels over prices 0..9999: word p >> 5 of the first (which is also the
 * page number), then one bit per word, then one word. It serves both sides: all at or below the best bid is bid.
 */
import { check } from "./check.ts";
import {
  MarketStatus,
  MatchType,
  OrderStatus,
  OrderType,
  Reason,
  Role,
  SelfTradePrevention,
  Side,
  TimeInForce,
} from "./constants.ts";
import {
  FULL_PRICE_BPS,
  LEVEL_PAGE_BITS,
  LEVELS_PER_PAGE,
  MAX_ACTIVE_BOOKS,
  MAX_EVENTS_PER_STEP,
  MAX_OUTCOME_ID,
  MAX_OUTCOMES,
  MIN_PRICE_BPS,
} from "./limits.ts";
import * as R from "./records.ts";
import type { RingProducer } from "./ring.ts";

const SLOT_WORDS = 8;
const S_NEXT = 0;
const S_PREV = 1;
const S_OUTCOME = 2;
const S_PACKED = 3;
const S_REMAINING = 4;
const S_USER = 5;
const SLOT_DOUBLES = 4;
const S_ID = 3;

const OUTCOME_WORDS = 16;
const O_BID = 0;
const O_ASK = 1;
const O_FIRST = 2;
const O_COUNT = 3;
const O_BOOK = 4;
const O_STATUS = 5;

const PAGE_WORDS = 4;
const B_OCCUPIED = 0;
const B_PAGE = 1;
const B_DIRTY = 2;

const P_PRICE_MASK = 0x3fff;
const P_SIDE_SHIFT = 14;
const P_PAT = 1 << 16;
const P_POST_ONLY = 1 << 17;
const P_STP_SHIFT = 18;

const LEVEL_WORDS = 4;
const L_HEAD = 0;
const L_TAIL = 1;
const LEVEL_DOUBLES = 2;
const L_QUANTITY = 1;

/** Words of a book's first bitmap level, one per page, rounded up to cache lines. */
const BOOK_PAGES = Math.ceil(FULL_PRICE_BPS / LEVELS_PER_PAGE);
const BOOK_STRIDE = 320;
/** The second level's ten words, then the third level's one. */
const SUMMARY_STRIDE = 16;
const SUMMARY_TOP = 10;
const NO_BID = 0;
const NO_ASK = FULL_PRICE_BPS;

export interface MatcherOptions {
  /** Slots that commands may name, 1..capacity. */
  readonly capacity: number;
  /** Books with orders at one time. */
  readonly activeBooks?: number;
  /**
   * Called in the middle of a command when the event ring is full: everything before is published. It must commit and
   * wait until the last consumer made room. What is published then stands at a match boundary.
   */
  readonly onRingFull: () => void;
}

export interface Matcher {
  /** Runs one command record that starts at word `base` of a ring (or any arrays of that layout). */
  execute(words: Int32Array, doubles: Float64Array, base: number): void;
  /** Emits the changed levels and publishes the events. Called once per batch. */
  endBatch(): void;
  /** True when another command can start without waiting in most cases. */
  hasRoom(): boolean;
  /** Best resting price, 0 (bid) or 10000 (ask) where there is none. For tests and tools. */
  bestBid(outcome: number): number;
  bestAsk(outcome: number): number;
  /** Total quantity at a price. For tests and tools. */
  levelQuantity(outcome: number, price: number): number;
  /** What rests at a price in time order, as [slot, remaining]. Allocates; for tests. */
  ordersAt(outcome: number, price: number): [number, number][];
}

/** Makes the books of a thread. The ring's producer end belongs to the matcher from here on. */
export function createMatcher(events: RingProducer, options: MatcherOptions): Matcher {
  const capacity = options.capacity;
  const activeBooks = options.activeBooks ?? MAX_ACTIVE_BOOKS;
  const onRingFull = options.onRingFull;

  const slotMemory = new ArrayBuffer((capacity + 1) * SLOT_WORDS * 4);
  const slots = new Int32Array(slotMemory);
  const slotIds = new Float64Array(slotMemory);
  /** Each order's quantity as placed or amended; apart, because only amends and decrements read it. */
  const totals = new Int32Array(capacity + 1);

  const outcomes = new Int32Array((MAX_OUTCOME_ID + 1) * OUTCOME_WORDS);
  const marketStatus = new Uint8Array(MAX_OUTCOME_ID + 1);
  const marketFirst = new Int32Array(MAX_OUTCOME_ID + 1);

  const books = new Int32Array((activeBooks + 1) * BOOK_STRIDE * PAGE_WORDS);
  const summaries = new Int32Array((activeBooks + 1) * SUMMARY_STRIDE);
  const bookOutcome = new Int32Array(activeBooks + 1);
  const freeBooks = new Int32Array(activeBooks + 1);
  let freeBookCount = 0;
  let usedBooks = 0;

  // A page exists only while an order rests in it, so there are never more pages than orders.
  const levelMemory = new ArrayBuffer((capacity + 2) * LEVELS_PER_PAGE * LEVEL_WORDS * 4);
  const levels = new Int32Array(levelMemory);
  const quantities = new Float64Array(levelMemory);
  const freePages = new Int32Array(capacity + 2);
  let freePageCount = 0;
  let usedPages = 0;

  /** Dirty bitmap words of this batch, as book * BOOK_STRIDE + page, and how many levels they hold. */
  let dirtyWords = new Int32Array(4096);
  let dirtyWordCount = 0;
  let dirtyLevelCount = 0;

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
      check(usedBooks < activeBooks, "more active books than MAX_ACTIVE_BOOKS");
      book = ++usedBooks;
    }
    outcomes[outcome * OUTCOME_WORDS + O_BOOK] = book;
    bookOutcome[book] = outcome;
    return book;
  }

  /** The level's index; makes its book and page where they don't exist. */
  function claimLevel(outcome: number, price: number): number {
    let book = outcomes[outcome * OUTCOME_WORDS + O_BOOK]!;
    if (book === 0) book = takeBook(outcome);
    const word = book * BOOK_STRIDE + (price >> LEVEL_PAGE_BITS);
    let page = books[word * PAGE_WORDS + B_PAGE]!;
    if (page === 0) {
      page = freePageCount > 0 ? freePages[--freePageCount]! : ++usedPages;
      books[word * PAGE_WORDS + B_PAGE] = page;
    }
    return (page << LEVEL_PAGE_BITS) | (price & (LEVELS_PER_PAGE - 1));
  }

  /** The index of a level that is known to exist. */
  function levelAt(outcome: number, price: number): number {
    const page =
      books[
        (outcomes[outcome * OUTCOME_WORDS + O_BOOK]! * BOOK_STRIDE + (price >> LEVEL_PAGE_BITS)) * PAGE_WORDS + B_PAGE
      ]!;
    return (page << LEVEL_PAGE_BITS) | (price & (LEVELS_PER_PAGE - 1));
  }

  function markDirty(outcome: number, price: number): void {
    const word = outcomes[outcome * OUTCOME_WORDS + O_BOOK]! * BOOK_STRIDE + (price >> LEVEL_PAGE_BITS);
    const bits = books[word * PAGE_WORDS + B_DIRTY]!;
    const bit = 1 << (price & 31);
    if ((bits & bit) !== 0) return;
    if (bits === 0) {
      if (dirtyWordCount === dirtyWords.length) growDirty();
      dirtyWords[dirtyWordCount++] = word;
    }
    books[word * PAGE_WORDS + B_DIRTY] = bits | bit;
    dirtyLevelCount++;
  }

  function growDirty(): void {
    const larger = new Int32Array(dirtyWords.length * 2);
    larger.set(dirtyWords);
    dirtyWords = larger;
  }

  function setOccupied(outcome: number, price: number): void {
    const book = outcomes[outcome * OUTCOME_WORDS + O_BOOK]!;
    const page = price >> 5;
    books[(book * BOOK_STRIDE + page) * PAGE_WORDS + B_OCCUPIED]! |= 1 << (price & 31);
    const summary = book * SUMMARY_STRIDE;
    summaries[summary + (page >> 5)]! |= 1 << (page & 31);
    summaries[summary + SUMMARY_TOP]! |= 1 << (page >> 5);
  }

  /** Clears the price's bit; with the last of a page, gives the page back. */
  function clearOccupied(outcome: number, price: number): void {
    const book = outcomes[outcome * OUTCOME_WORDS + O_BOOK]!;
    const page = price >> 5;
    const word = book * BOOK_STRIDE + page;
    const bits = books[word * PAGE_WORDS + B_OCCUPIED]! & ~(1 << (price & 31));
    books[word * PAGE_WORDS + B_OCCUPIED] = bits;
    if (bits !== 0) return;
    freePages[freePageCount++] = books[word * PAGE_WORDS + B_PAGE]!;
    books[word * PAGE_WORDS + B_PAGE] = 0;
    const summary = book * SUMMARY_STRIDE;
    const group = page >> 5;
    const pageBits = summaries[summary + group]! & ~(1 << (page & 31));
    summaries[summary + group] = pageBits;
    if (pageBits === 0) summaries[summary + SUMMARY_TOP]! &= ~(1 << group);
  }

  const highest = (bits: number): number => 31 - Math.clz32(bits);
  const lowest = (bits: number): number => 31 - Math.clz32(bits & -bits);
  /** Bits strictly below / above a bit number 0..31. */
  const below = (bit: number): number => (1 << bit) - 1;
  const above = (bit: number): number => (bit === 31 ? 0 : -1 << (bit + 1));

  /** The next occupied price below `price`, or NO_BID. */
  function nextBelow(outcome: number, price: number): number {
    const book = outcomes[outcome * OUTCOME_WORDS + O_BOOK]!;
    if (book === 0) return NO_BID;
    const base = book * BOOK_STRIDE;
    let page = price >> 5;
    let bits = books[(base + page) * PAGE_WORDS + B_OCCUPIED]! & below(price & 31);
    if (bits !== 0) return (page << 5) | highest(bits);
    const summary = book * SUMMARY_STRIDE;
    let group = page >> 5;
    bits = summaries[summary + group]! & below(page & 31);
    if (bits === 0) {
      bits = summaries[summary + SUMMARY_TOP]! & below(group);
      if (bits === 0) return NO_BID;
      group = highest(bits);
      bits = summaries[summary + group]!;
    }
    page = (group << 5) | highest(bits);
    return (page << 5) | highest(books[(base + page) * PAGE_WORDS + B_OCCUPIED]!);
  }

  /** The next occupied price above `price`, or NO_ASK. */
  function nextAbove(outcome: number, price: number): number {
    const book = outcomes[outcome * OUTCOME_WORDS + O_BOOK]!;
    if (book === 0) return NO_ASK;
    const base = book * BOOK_STRIDE;
    let page = price >> 5;
    let bits = books[(base + page) * PAGE_WORDS + B_OCCUPIED]! & above(price & 31);
    if (bits !== 0) return (page << 5) | lowest(bits);
    const summary = book * SUMMARY_STRIDE;
    let group = page >> 5;
    bits = summaries[summary + group]! & above(page & 31);
    if (bits === 0) {
      bits = summaries[summary + SUMMARY_TOP]! & above(group);
      if (bits === 0) return NO_ASK;
      group = lowest(bits);
      bits = summaries[summary + group]!;
    }
    page = (group << 5) | lowest(bits);
    return (page << 5) | lowest(books[(base + page) * PAGE_WORDS + B_OCCUPIED]!);
  }

  /** Puts a slot, whose words but the links are set, at the back of its level. */
  function enqueue(slot: number, outcome: number, side: number, price: number, remaining: number): void {
    const level = claimLevel(outcome, price);
    const levelBase = level * LEVEL_WORDS;
    const tail = levels[levelBase + L_TAIL]!;
    const base = slot * SLOT_WORDS;
    slots[base + S_NEXT] = 0;
    slots[base + S_PREV] = tail;
    if (tail === 0) {
      levels[levelBase + L_HEAD] = slot;
      setOccupied(outcome, price);
      if (side === Side.buy) {
        if (price > outcomes[outcome * OUTCOME_WORDS + O_BID]!) outcomes[outcome * OUTCOME_WORDS + O_BID] = price;
      } else if (price < outcomes[outcome * OUTCOME_WORDS + O_ASK]!) outcomes[outcome * OUTCOME_WORDS + O_ASK] = price;
    } else slots[tail * SLOT_WORDS + S_NEXT] = slot;
    levels[levelBase + L_TAIL] = slot;
    quantities[level * LEVEL_DOUBLES + L_QUANTITY]! += remaining;
    markDirty(outcome, price);
  }

  /** Takes a resting order out of its level; the slot's words stay readable, its id is cleared by the caller. */
  function dequeue(slot: number): void {
    const base = slot * SLOT_WORDS;
    const outcome = slots[base + S_OUTCOME]!;
    const packed = slots[base + S_PACKED]!;
    const price = packed & P_PRICE_MASK;
    const next = slots[base + S_NEXT]!;
    const prev = slots[base + S_PREV]!;
    const level = levelAt(outcome, price);
    const levelBase = level * LEVEL_WORDS;
    quantities[level * LEVEL_DOUBLES + L_QUANTITY]! -= slots[base + S_REMAINING]!;
    markDirty(outcome, price);
    if (next !== 0) slots[next * SLOT_WORDS + S_PREV] = prev;
    else levels[levelBase + L_TAIL] = prev;
    if (prev !== 0) slots[prev * SLOT_WORDS + S_NEXT] = next;
    else levels[levelBase + L_HEAD] = next;
    if (next !== 0 || prev !== 0) return;
    clearOccupied(outcome, price);
    if (((packed >> P_SIDE_SHIFT) & 3) === Side.buy) {
      if (price === outcomes[outcome * OUTCOME_WORDS + O_BID])
        outcomes[outcome * OUTCOME_WORDS + O_BID] = nextBelow(outcome, price);
    } else if (price === outcomes[outcome * OUTCOME_WORDS + O_ASK])
      outcomes[outcome * OUTCOME_WORDS + O_ASK] = nextAbove(outcome, price);
  }

  /** Takes `quantity` from the first order of its level; true when nothing of the order is left. */
  function take(slot: number, quantity: number): boolean {
    const base = slot * SLOT_WORDS;
    const remaining = slots[base + S_REMAINING]! - quantity;
    check(remaining >= 0, "a fill takes no more than rests");
    if (remaining === 0) {
      dequeue(slot);
      slots[base + S_REMAINING] = 0;
      slotIds[slot * SLOT_DOUBLES + S_ID] = 0;
      return true;
    }
    slots[base + S_REMAINING] = remaining;
    const price = slots[base + S_PACKED]! & P_PRICE_MASK;
    const outcome = slots[base + S_OUTCOME]!;
    quantities[levelAt(outcome, price) * LEVEL_DOUBLES + L_QUANTITY]! -= quantity;
    markDirty(outcome, price);
    return false;
  }

  function headOf(outcome: number, price: number): number {
    return levels[levelAt(outcome, price) * LEVEL_WORDS + L_HEAD]!;
  }

  // ---------------------------------------------------------------- events

  /** Writes the words that every event has and moves the head; answers the record's first word. */
  function emit(
    packed: number,
    slot: number,
    user: number,
    outcome: number,
    price: number,
    quantity: number,
    remaining: number,
    reference: number,
    orderId: number,
    at: number,
    detail: number,
  ): number {
    const index = events.head & eventMask;
    const w = index * R.RECORD_WORDS;
    const d = index * R.RECORD_DOUBLES;
    eventWords[w + R.W_PACKED] = packed;
    eventWords[w + R.W_SLOT] = slot;
    eventWords[w + R.W_USER] = user;
    eventWords[w + R.W_OUTCOME] = outcome;
    eventWords[w + R.W_PRICE] = price;
    eventWords[w + R.W_QUANTITY] = quantity;
    eventWords[w + R.W_REMAINING] = remaining;
    eventWords[w + R.W_REFERENCE] = reference;
    eventDoubles[d + R.D_ORDER_ID] = orderId;
    eventDoubles[d + R.D_AT] = at;
    eventDoubles[d + R.D_DETAIL] = detail;
    eventDoubles[d + R.D_USER_SEQUENCE] = 0;
    events.head = (events.head + 1) | 0;
    return w;
  }

  function emitFill(
    slot: number,
    user: number,
    outcome: number,
    side: number,
    price: number,
    quantity: number,
    remaining: number,
    matchType: number,
    role: number,
    flags: number,
    leg: number,
    orderId: number,
    at: number,
  ): number {
    const status = remaining === 0 ? OrderStatus.filled : OrderStatus.partiallyFilled;
    const packed = R.packFill(side, status, matchType, role, flags);
    return emit(packed, slot, user, outcome, price, quantity, remaining, leg, orderId, at, 0);
  }

  /** Ends a resting order: out of the book, with its event. */
  function cancelResting(slot: number, status: number, reason: number, reference: number, at: number): void {
    const base = slot * SLOT_WORDS;
    const idAt = slot * SLOT_DOUBLES + S_ID;
    dequeue(slot);
    const packed = slots[base + S_PACKED]!;
    emit(
      R.packEvent(R.EventKind.orderCanceled, (packed >> P_SIDE_SHIFT) & 3, status, reason, 0),
      slot,
      slots[base + S_USER]!,
      slots[base + S_OUTCOME]!,
      packed & P_PRICE_MASK,
      totals[slot]!,
      slots[base + S_REMAINING]!,
      reference,
      slotIds[idAt]!,
      at,
      0,
    );
    slotIds[idAt] = 0;
  }

  function emitLevels(): void {
    for (let i = 0; i < dirtyWordCount; i++) {
      const word = dirtyWords[i]!;
      let bits = books[word * PAGE_WORDS + B_DIRTY]!;
      books[word * PAGE_WORDS + B_DIRTY] = 0;
      const book = (word / BOOK_STRIDE) | 0;
      const outcome = bookOutcome[book]!;
      const page = word - book * BOOK_STRIDE;
      const levelPage = books[word * PAGE_WORDS + B_PAGE]!;
      while (bits !== 0) {
        const bit = lowest(bits);
        bits &= bits - 1;
        const price = (page << 5) | bit;
        const level = (levelPage << LEVEL_PAGE_BITS) | bit;
        const quantity = levelPage === 0 ? 0 : quantities[level * LEVEL_DOUBLES + L_QUANTITY]!;
        const side = price <= outcomes[outcome * OUTCOME_WORDS + O_BID]! ? Side.buy : Side.sell;
        emit(R.packEvent(R.EventKind.levelChanged, side, 0, 0, 0), 0, 0, outcome, price, 0, 0, 0, 0, 0, quantity);
      }
    }
    dirtyWordCount = 0;
    dirtyLevelCount = 0;
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
    events.publish();
    onRingFull();
    check(events.hasRoom(2 * MAX_EVENTS_PER_STEP), "onRingFull makes room");
  }

  // ---------------------------------------------------------------- matching

  /** What a buy of `outcome` costs by minting: 10000 less the other outcomes' best bids; NO_ASK where one has none. */
  function mintPrice(outcome: number): number {
    const first = outcomes[outcome * OUTCOME_WORDS + O_FIRST]!;
    const count = outcomes[outcome * OUTCOME_WORDS + O_COUNT]!;
    // Without a bid this is 10000: no buy reaches it.
    if (count === 2) return FULL_PRICE_BPS - outcomes[(first + first + 1 - outcome) * OUTCOME_WORDS + O_BID]!;
    let sum = 0;
    for (let other = first; other < first + count; other++) {
      if (other === outcome) continue;
      const bid = outcomes[other * OUTCOME_WORDS + O_BID]!;
      if (bid === NO_BID) return NO_ASK;
      sum += bid;
    }
    return sum >= FULL_PRICE_BPS ? MIN_PRICE_BPS : FULL_PRICE_BPS - sum;
  }

  /** What a sale of `outcome` brings by merging: 10000 less the other outcomes' best asks; 0 or less is none. */
  function mergePrice(outcome: number): number {
    const first = outcomes[outcome * OUTCOME_WORDS + O_FIRST]!;
    const count = outcomes[outcome * OUTCOME_WORDS + O_COUNT]!;
    if (count === 2) return FULL_PRICE_BPS - outcomes[(first + first + 1 - outcome) * OUTCOME_WORDS + O_ASK]!;
    let price = FULL_PRICE_BPS;
    for (let other = first; other < first + count; other++)
      if (other !== outcome) price -= outcomes[other * OUTCOME_WORDS + O_ASK]!;
    return price;
  }

  function wouldCross(outcome: number, side: number, price: number): boolean {
    if (side === Side.buy) return outcomes[outcome * OUTCOME_WORDS + O_ASK]! <= price || mintPrice(outcome) <= price;
    return outcomes[outcome * OUTCOME_WORDS + O_BID]! >= price || mergePrice(outcome) >= price;
  }

  /** Collects the first order at the best price of each leg that a mint (buys) or merge (sells) takes. */
  function collectSet(outcome: number, side: number): void {
    const first = outcomes[outcome * OUTCOME_WORDS + O_FIRST]!;
    const end = first + outcomes[outcome * OUTCOME_WORDS + O_COUNT]!;
    const best = side === Side.buy ? O_BID : O_ASK;
    legCount = 0;
    for (let other = first; other < end; other++) {
      if (other !== outcome) legSlots[legCount++] = headOf(other, outcomes[other * OUTCOME_WORDS + best]!);
    }
  }

  function takesOwn(user: number): boolean {
    for (let i = 0; i < legCount; i++) if (slots[legSlots[i]! * SLOT_WORDS + S_USER] === user) return true;
    return false;
  }

  /** Cancels the user's own orders among the legs at hand. */
  function cancelOwnLegs(user: number, at: number): void {
    for (let i = 0; i < legCount; i++) {
      const slot = legSlots[i]!;
      if (slots[slot * SLOT_WORDS + S_USER] === user) {
        cancelResting(slot, OrderStatus.canceled, Reason.selfTrade, 0, at);
      }
    }
  }

  /**
   * Self-trade `decrement`: the taker and its own resting orders of the step give up the smallest quantity among them.
   * What would fall to nothing is canceled as it stands, the rest is reduced. Answers the taker's new remaining
   * quantity, or -1 where the taker is the one to cancel.
   */
  function decrementOwnLegs(taker: number, orderId: number, user: number, remaining: number, at: number): number {
    let common = remaining;
    for (let i = 0; i < legCount; i++) {
      const base = legSlots[i]! * SLOT_WORDS;
      if (slots[base + S_USER] === user) common = Math.min(common, slots[base + S_REMAINING]!);
    }
    for (let i = 0; i < legCount; i++) {
      const slot = legSlots[i]!;
      const base = slot * SLOT_WORDS;
      if (slots[base + S_USER] !== user) continue;
      if (slots[base + S_REMAINING] === common) {
        cancelResting(slot, OrderStatus.canceled, Reason.selfTrade, 0, at);
        continue;
      }
      take(slot, common);
      totals[slot]! -= common;
      emitReduced(slot, slotIds[slot * SLOT_DOUBLES + S_ID]!, user, slots[base + S_REMAINING]!, Role.maker, at);
    }
    if (remaining === common) return -1;
    totals[taker]! -= common;
    emitReduced(taker, orderId, user, remaining - common, Role.taker, at);
    takerReduced = true;
    return remaining - common;
  }

  function emitReduced(slot: number, orderId: number, user: number, remaining: number, role: number, at: number): void {
    const base = slot * SLOT_WORDS;
    const packed = slots[base + S_PACKED]!;
    const filled = totals[slot]! - remaining;
    const status = filled === 0 ? OrderStatus.open : OrderStatus.partiallyFilled;
    emit(
      R.packEvent(R.EventKind.orderReduced, (packed >> P_SIDE_SHIFT) & 3, status, Reason.none, role << 22),
      slot,
      user,
      slots[base + S_OUTCOME]!,
      packed & P_PRICE_MASK,
      totals[slot]!,
      remaining,
      0,
      orderId,
      at,
      0,
    );
  }

  /**
   * Matches the order in `slot` (its words are set, it is in no level) against all that its price reaches.
   * Answers what remains, or -1 - remaining where self-trade prevention ends it.
   */
  function match(slot: number, orderId: number, bound: number, start: number, at: number): number {
    const base = slot * SLOT_WORDS;
    const outcome = slots[base + S_OUTCOME]!;
    const user = slots[base + S_USER]!;
    const packed = slots[base + S_PACKED]!;
    const side = (packed >> P_SIDE_SHIFT) & 3;
    const flags = (packed & P_PAT) !== 0 ? R.FLAG_PAT : 0;
    const buy = side === Side.buy;
    let remaining = start;
    while (remaining > 0) {
      const direct = buy ? outcomes[outcome * OUTCOME_WORDS + O_ASK]! : outcomes[outcome * OUTCOME_WORDS + O_BID]!;
      const implied = buy ? mintPrice(outcome) : mergePrice(outcome);
      const useDirect = buy ? direct <= implied : direct >= implied;
      const price = useDirect ? direct : implied;
      if (buy ? price > bound : price < bound) break;
      if (useDirect) {
        legSlots[0] = headOf(outcome, direct);
        legCount = 1;
      } else collectSet(outcome, side);
      reserve();
      if (takesOwn(user)) {
        const prevention = (packed >> P_STP_SHIFT) & 3;
        if (prevention === SelfTradePrevention.cancelMaker) {
          cancelOwnLegs(user, at);
          continue;
        }
        if (prevention === SelfTradePrevention.decrement) {
          const left = decrementOwnLegs(slot, orderId, user, remaining, at);
          if (left < 0) return -1 - remaining;
          remaining = left;
          continue;
        }
        if (prevention === SelfTradePrevention.cancelBoth) cancelOwnLegs(user, at);
        return -1 - remaining;
      }
      let quantity = remaining;
      for (let i = 0; i < legCount; i++) {
        const resting = slots[legSlots[i]! * SLOT_WORDS + S_REMAINING]!;
        if (resting < quantity) quantity = resting;
      }
      remaining -= quantity;
      const type = useDirect ? MatchType.direct : buy ? MatchType.mint : MatchType.merge;
      for (let i = 0; i < legCount; i++) fillResting(legSlots[i]!, quantity, type, i, at);
      const last = flags | R.FLAG_MATCH_END;
      lastTakerFill = emitFill(
        slot, user, outcome, side, price, quantity, remaining, type, Role.taker, last, legCount, orderId, at,
      ); // biome-ignore format: one record, one line
      fills++;
    }
    return remaining;
  }

  function fillResting(slot: number, quantity: number, matchType: number, leg: number, at: number): void {
    const base = slot * SLOT_WORDS;
    const packed = slots[base + S_PACKED]!;
    const orderId = slotIds[slot * SLOT_DOUBLES + S_ID]!;
    take(slot, quantity);
    emitFill(
      slot,
      slots[base + S_USER]!,
      slots[base + S_OUTCOME]!,
      (packed >> P_SIDE_SHIFT) & 3,
      packed & P_PRICE_MASK,
      quantity,
      slots[base + S_REMAINING]!,
      matchType,
      Role.maker,
      (packed & P_PAT) !== 0 ? R.FLAG_PAT : 0,
      leg,
      orderId,
      at,
    );
  }

  // The legs of a fill-or-kill's rehearsal: the order each stands at and what the rehearsal left of it.
  const probeSlots = new Int32Array(MAX_OUTCOMES);
  const probeLeft = new Int32Array(MAX_OUTCOMES);

  function probeAt(leg: number, slot: number): void {
    probeSlots[leg] = slot;
    probeLeft[leg] = slot === 0 ? 0 : slots[slot * SLOT_WORDS + S_REMAINING]!;
  }

  function probeNext(leg: number): void {
    const base = probeSlots[leg]! * SLOT_WORDS;
    const next = slots[base + S_NEXT]!;
    if (next !== 0) {
      probeAt(leg, next);
      return;
    }
    const outcome = slots[base + S_OUTCOME]!;
    const packed = slots[base + S_PACKED]!;
    const price = packed & P_PRICE_MASK;
    const buy = ((packed >> P_SIDE_SHIFT) & 3) === Side.buy;
    const further = buy ? nextBelow(outcome, price) : nextAbove(outcome, price);
    probeAt(leg, further === (buy ? NO_BID : NO_ASK) ? 0 : headOf(outcome, further));
  }

  function probePrice(leg: number): number {
    return slots[probeSlots[leg]! * SLOT_WORDS + S_PACKED]! & P_PRICE_MASK;
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
    const first = outcomes[outcome * OUTCOME_WORDS + O_FIRST]!;
    const count = outcomes[outcome * OUTCOME_WORDS + O_COUNT]!;
    const own = outcome - first;
    for (let leg = 0; leg < count; leg++) {
      const bids = (leg === own) !== buy;
      const best = bids
        ? outcomes[(first + leg) * OUTCOME_WORDS + O_BID]!
        : outcomes[(first + leg) * OUTCOME_WORDS + O_ASK]!;
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
        if (slots[probeSlots[leg]! * SLOT_WORDS + S_USER] === user) {
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

  function writeSlot(slot: number, outcome: number, packed: number, remaining: number, user: number): void {
    const base = slot * SLOT_WORDS;
    slots[base + S_OUTCOME] = outcome;
    slots[base + S_PACKED] = packed;
    slots[base + S_REMAINING] = remaining;
    slots[base + S_USER] = user;
  }

  /** Lets an order whose matching is over rest. Its slot words are set. */
  function rest(slot: number, orderId: number, remaining: number): void {
    const base = slot * SLOT_WORDS;
    const packed = slots[base + S_PACKED]!;
    slots[base + S_REMAINING] = remaining;
    slotIds[slot * SLOT_DOUBLES + S_ID] = orderId;
    enqueue(slot, slots[base + S_OUTCOME]!, (packed >> P_SIDE_SHIFT) & 3, packed & P_PRICE_MASK, remaining);
  }

  /** Why a placement cannot even look at the book: the reason, or none. */
  function refusal(w: Int32Array, d: Float64Array, base: number, double: number): number {
    const status = outcomes[w[base + R.W_OUTCOME]! * OUTCOME_WORDS + O_STATUS]!;
    if (status === MarketStatus.halted) return Reason.marketHalted;
    if (status !== MarketStatus.open) return Reason.marketClosed;
    const at = d[double + R.D_AT]!;
    const validUntil = d[double + R.D_VALID_UNTIL]!;
    if (validUntil !== 0 && at > validUntil) return Reason.tooLate;
    const packed = w[base]!;
    const tif = R.timeInForceOf(packed);
    if (tif === TimeInForce.gtd && d[double + R.D_EXPIRES_AT]! <= at) return Reason.expired;
    const outcome = w[base + R.W_OUTCOME]!;
    const side = R.sideOf(packed);
    const price = w[base + R.W_PRICE]!;
    if ((packed & R.FLAG_POST_ONLY) !== 0 && wouldCross(outcome, side, price)) return Reason.postOnlyWouldCross;
    if (tif === TimeInForce.fok) {
      const user = w[base + R.W_USER]!;
      const stp = R.selfTradePreventionOf(packed);
      if (!fillable(outcome, side, price, w[base + R.W_QUANTITY]!, user, stp)) return Reason.fokUnfillable;
    }
    return Reason.none;
  }

  function statusForRefusal(reason: number): number {
    if (reason === Reason.fokUnfillable) return OrderStatus.canceled;
    return reason === Reason.expired ? OrderStatus.expired : OrderStatus.rejected;
  }

  function placeOrder(w: Int32Array, d: Float64Array, base: number): void {
    const double = base >> 1;
    const packed = w[base]!;
    const slot = w[base + R.W_SLOT]!;
    const user = w[base + R.W_USER]!;
    const outcome = w[base + R.W_OUTCOME]!;
    const price = w[base + R.W_PRICE]!;
    const quantity = w[base + R.W_QUANTITY]!;
    const side = R.sideOf(packed);
    const type = R.typeOf(packed);
    const tif = R.timeInForceOf(packed);
    const stp = R.selfTradePreventionOf(packed);
    const orderId = d[double + R.D_ORDER_ID]!;
    const at = d[double + R.D_AT]!;
    check(slot > 0 && slot <= capacity && slotIds[slot * SLOT_DOUBLES + S_ID] === 0, "a placement names a free slot");
    const reason = refusal(w, d, base, double);
    const placed = emit(
      R.packEvent(R.EventKind.orderPlaced, side, OrderStatus.queued, Reason.none, packed & R.ORDER_FLAGS),
      slot,
      user,
      outcome,
      price,
      quantity,
      quantity,
      R.packTerms(type, tif, stp),
      orderId,
      at,
      d[double + R.D_EXPIRES_AT]!,
    );
    if (reason !== Reason.none) {
      endPlaced(placed, statusForRefusal(reason), reason);
      return;
    }
    // Only an order that can cross pays for the matching set-up: most rest at once.
    totals[slot] = quantity;
    const slotPacked =
      price |
      (side << P_SIDE_SHIFT) |
      ((packed & R.FLAG_PAT) !== 0 ? P_PAT : 0) |
      ((packed & R.FLAG_POST_ONLY) !== 0 ? P_POST_ONLY : 0) |
      (stp << P_STP_SHIFT);
    writeSlot(slot, outcome, slotPacked, quantity, user);
    let remaining = quantity;
    lastTakerFill = -1;
    placedRecord = placed;
    fills = 0;
    takerReduced = false;
    if (wouldCross(outcome, side, price)) remaining = match(slot, orderId, price, quantity, at);
    finish(slot, orderId, remaining, type === OrderType.limit && tif <= TimeInForce.gtd, at);
  }

  function endPlaced(record: number, status: number, reason: number): void {
    eventWords[record]! |= (status << 12) | (reason << 16);
  }

  /**
   * Ends a placement or an amend after its matching: it is filled, rests, or what remains is canceled. Where nothing
   * filled, the state goes into the orderPlaced record itself, if that is still ours to write.
   */
  function finish(slot: number, orderId: number, outcomeOfMatch: number, mayRest: boolean, at: number): void {
    endUpdate();
    const selfTrade = outcomeOfMatch < 0;
    const remaining = selfTrade ? -1 - outcomeOfMatch : outcomeOfMatch;
    const untouched = placedRecord >= 0 && fills === 0 && !takerReduced;
    const record = placedRecord;
    placedRecord = -1;
    if (remaining === 0) return;
    const base = slot * SLOT_WORDS;
    const packed = slots[base + S_PACKED]!;
    const side = (packed >> P_SIDE_SHIFT) & 3;
    if (!selfTrade && mayRest) {
      rest(slot, orderId, remaining);
      if (untouched) endPlaced(record, OrderStatus.open, Reason.none);
      else if (fills === 0 || takerReduced) emitState(slot, orderId, packed, remaining, at);
      return;
    }
    const reason = selfTrade ? Reason.selfTrade : Reason.iocRemainder;
    if (untouched) {
      endPlaced(record, OrderStatus.canceled, reason);
      return;
    }
    const user = slots[base + S_USER]!;
    emit(
      R.packEvent(R.EventKind.orderCanceled, side, OrderStatus.canceled, reason, 0),
      slot, user, slots[base + S_OUTCOME]!, packed & P_PRICE_MASK, totals[slot]!, remaining, 0, orderId, at, 0,
    ); // biome-ignore format: one record, one line
  }

  /** An order's state where no other event tells it: it rests after self-trade prevention or a full ring. */
  function emitState(slot: number, orderId: number, packed: number, remaining: number, at: number): void {
    const base = slot * SLOT_WORDS;
    const status = totals[slot] === remaining ? OrderStatus.open : OrderStatus.partiallyFilled;
    emit(
      R.packEvent(R.EventKind.orderAmended, (packed >> P_SIDE_SHIFT) & 3, status, Reason.none, 0),
      slot,
      slots[base + S_USER]!,
      slots[base + S_OUTCOME]!,
      packed & P_PRICE_MASK,
      totals[slot]!,
      remaining,
      0,
      orderId,
      at,
      0,
    );
  }

  function restoreOrder(w: Int32Array, d: Float64Array, base: number): void {
    const packed = w[base]!;
    const slot = w[base + R.W_SLOT]!;
    check(
      slot > 0 && slot <= capacity && slotIds[slot * SLOT_DOUBLES + S_ID] === 0,
      "a restored order has a free slot",
    );
    const slotPacked =
      w[base + R.W_PRICE]! |
      (R.sideOf(packed) << P_SIDE_SHIFT) |
      ((packed & R.FLAG_PAT) !== 0 ? P_PAT : 0) |
      ((packed & R.FLAG_POST_ONLY) !== 0 ? P_POST_ONLY : 0) |
      (R.selfTradePreventionOf(packed) << P_STP_SHIFT);
    writeSlot(slot, w[base + R.W_OUTCOME]!, slotPacked, 0, w[base + R.W_USER]!);
    totals[slot] = w[base + R.W_REFERENCE]!;
    rest(slot, d[(base >> 1) + R.D_ORDER_ID]!, w[base + R.W_QUANTITY]!);
  }

  function isResting(slot: number, orderId: number): boolean {
    return slot > 0 && slot <= capacity && slotIds[slot * SLOT_DOUBLES + S_ID] === orderId;
  }

  function refuse(kind: number, w: Int32Array, d: Float64Array, base: number, reason: number): void {
    const double = base >> 1;
    emit(
      R.packEvent(kind, 0, 0, reason, 0),
      w[base + R.W_SLOT]!,
      w[base + R.W_USER]!,
      w[base + R.W_OUTCOME]!,
      0,
      0,
      0,
      w[base + R.W_REFERENCE]!,
      d[double + R.D_ORDER_ID]!,
      d[double + R.D_AT]!,
      0,
    );
  }

  function cancelOrder(w: Int32Array, d: Float64Array, base: number): void {
    const slot = w[base + R.W_SLOT]!;
    const double = base >> 1;
    if (!isResting(slot, d[double + R.D_ORDER_ID]!)) {
      refuse(R.EventKind.cancelRefused, w, d, base, Reason.none);
      return;
    }
    const reason = R.cancelReasonOf(w[base]!);
    const status = reason === Reason.expired ? OrderStatus.expired : OrderStatus.canceled;
    cancelResting(slot, status, reason, w[base + R.W_REFERENCE]!, d[double + R.D_AT]!);
  }

  /**
   * Same price and smaller total: keeps its place. Anything else leaves the book and enters it again as a taker would.
   * A new total that is filled already ends the order as filled. A post-only order that would cross is canceled.
   */
  function amendOrder(w: Int32Array, d: Float64Array, base: number): void {
    const double = base >> 1;
    const slot = w[base + R.W_SLOT]!;
    const orderId = d[double + R.D_ORDER_ID]!;
    const at = d[double + R.D_AT]!;
    const validUntil = d[double + R.D_VALID_UNTIL]!;
    if (!isResting(slot, orderId)) return refuse(R.EventKind.amendRefused, w, d, base, Reason.none);
    if (validUntil !== 0 && at > validUntil) return refuse(R.EventKind.amendRefused, w, d, base, Reason.tooLate);
    const slotBase = slot * SLOT_WORDS;
    const outcome = slots[slotBase + S_OUTCOME]!;
    const status = outcomes[outcome * OUTCOME_WORDS + O_STATUS]!;
    const packed = slots[slotBase + S_PACKED]!;
    const side = (packed >> P_SIDE_SHIFT) & 3;
    const oldPrice = packed & P_PRICE_MASK;
    const price = w[base + R.W_PRICE]!;
    const total = w[base + R.W_QUANTITY]!;
    const oldRemaining = slots[slotBase + S_REMAINING]!;
    const filled = totals[slot]! - oldRemaining;
    const keeps = price === oldPrice && total <= totals[slot]!;
    if (status !== MarketStatus.open && !keeps) {
      const reason = status === MarketStatus.halted ? Reason.marketHalted : Reason.marketClosed;
      return refuse(R.EventKind.amendRefused, w, d, base, reason);
    }
    // From here it must succeed.
    const remaining = Math.max(0, total - filled);
    const user = slots[slotBase + S_USER]!;
    const newTotal = filled + remaining;
    const newStatus =
      remaining === 0 ? OrderStatus.filled : filled === 0 ? OrderStatus.open : OrderStatus.partiallyFilled;
    totals[slot] = newTotal;
    const flags = keeps || remaining === 0 ? 0 : R.FLAG_LOST_PRIORITY;
    emit(
      R.packEvent(R.EventKind.orderAmended, side, newStatus, Reason.none, flags),
      slot,
      user,
      outcome,
      price,
      newTotal,
      remaining,
      w[base + R.W_REFERENCE]!,
      orderId,
      at,
      d[double + R.D_EXPIRES_AT]!,
    );
    if (remaining === 0) {
      dequeue(slot);
      slotIds[slot * SLOT_DOUBLES + S_ID] = 0;
      return;
    }
    if (keeps) {
      if (remaining < oldRemaining) take(slot, oldRemaining - remaining);
      return;
    }
    dequeue(slot);
    slotIds[slot * SLOT_DOUBLES + S_ID] = 0;
    slots[slotBase + S_PACKED] = (packed & ~P_PRICE_MASK) | price;
    slots[slotBase + S_REMAINING] = remaining;
    lastTakerFill = -1;
    placedRecord = -1;
    fills = 0;
    takerReduced = false;
    if (!wouldCross(outcome, side, price)) {
      rest(slot, orderId, remaining);
      return;
    }
    if ((packed & P_POST_ONLY) !== 0) {
      emit(
        R.packEvent(R.EventKind.orderCanceled, side, OrderStatus.canceled, Reason.postOnlyWouldCross, 0),
        slot, user, outcome, price, newTotal, remaining, 0, orderId, at, 0,
      ); // biome-ignore format: one record, one line
      return;
    }
    const left = match(slot, orderId, price, remaining, at);
    // The amend's own event told that it rests; a fill, if any, tells the rest.
    if (fills === 0) fills = 1;
    finish(slot, orderId, left, true, at);
  }

  /** Cancels what rests in one book, best first on each side, of one user (or of all) and one side (or both). */
  function cancelBook(
    outcome: number,
    user: number,
    side: number,
    reason: number,
    reference: number,
    at: number,
  ): void {
    for (let price = nextAbove(outcome, 0); price !== NO_ASK; price = nextAbove(outcome, price)) {
      if (side !== 0 && (price <= outcomes[outcome * OUTCOME_WORDS + O_BID]! ? Side.buy : Side.sell) !== side) continue;
      let slot = headOf(outcome, price);
      while (slot !== 0) {
        const base = slot * SLOT_WORDS;
        const next = slots[base + S_NEXT]!;
        if (user === 0 || slots[base + S_USER] === user) {
          reserve();
          cancelResting(slot, OrderStatus.canceled, reason, reference, at);
        }
        slot = next;
      }
    }
  }

  function cancelAll(w: Int32Array, d: Float64Array, base: number): void {
    const packed = w[base]!;
    const market = w[base + R.W_MARKET]!;
    const only = w[base + R.W_OUTCOME]!;
    const first = marketFirst[market]!;
    const reason = R.cancelReasonOf(packed);
    const at = d[(base >> 1) + R.D_AT]!;
    const reference = w[base + R.W_REFERENCE]!;
    for (let outcome = first; outcome < first + outcomes[first * OUTCOME_WORDS + O_COUNT]!; outcome++) {
      if (only !== 0 && only !== outcome) continue;
      cancelBook(outcome, w[base + R.W_USER]!, R.sideOf(packed), reason, reference, at);
    }
  }

  function openMarket(market: number, first: number, count: number): void {
    check(market > 0 && market <= MAX_OUTCOME_ID && first > 0 && first + count - 1 <= MAX_OUTCOME_ID, "ids in bounds");
    check(marketStatus[market] === MarketStatus.proposed && count >= 2 && count <= MAX_OUTCOMES, "a market opens once");
    marketStatus[market] = MarketStatus.open;
    marketFirst[market] = first;
    for (let outcome = first; outcome < first + count; outcome++) {
      outcomes[outcome * OUTCOME_WORDS + O_STATUS] = MarketStatus.open;
      outcomes[outcome * OUTCOME_WORDS + O_FIRST] = first;
      outcomes[outcome * OUTCOME_WORDS + O_COUNT] = count;
      outcomes[outcome * OUTCOME_WORDS + O_BID] = NO_BID;
      outcomes[outcome * OUTCOME_WORDS + O_ASK] = NO_ASK;
    }
  }

  function setStatus(market: number, status: number): void {
    marketStatus[market] = status;
    const first = marketFirst[market]!;
    const end = first + outcomes[first * OUTCOME_WORDS + O_COUNT]!;
    for (let outcome = first; outcome < end; outcome++) outcomes[outcome * OUTCOME_WORDS + O_STATUS] = status;
  }

  function changeMarket(w: Int32Array, d: Float64Array, base: number, to: number): void {
    const market = w[base + R.W_MARKET]!;
    const from = marketStatus[market]!;
    const at = d[(base >> 1) + R.D_AT]!;
    if (to === MarketStatus.closed && (from === MarketStatus.open || from === MarketStatus.halted)) {
      const first = marketFirst[market]!;
      const count = outcomes[first * OUTCOME_WORDS + O_COUNT]!;
      for (let o = first; o < first + count; o++) cancelBook(o, 0, 0, Reason.marketClosed, 0, at);
      reserve();
      releaseBooks(first, count);
    }
    const legal = from === MarketStatus.open || from === MarketStatus.halted;
    if (legal) setStatus(market, to);
    emit(
      R.packEvent(R.EventKind.marketChanged, 0, marketStatus[market]!, 0, 0),
      market,
      0,
      0,
      0,
      0,
      0,
      w[base + R.W_REFERENCE]!,
      0,
      at,
      0,
    );
  }

  /** Gives the books of a market whose orders are gone back. Its pending level changes go out first. */
  function releaseBooks(first: number, count: number): void {
    emitLevels();
    for (let outcome = first; outcome < first + count; outcome++) {
      const book = outcomes[outcome * OUTCOME_WORDS + O_BOOK]!;
      if (book === 0) continue;
      check(summaries[book * SUMMARY_STRIDE + SUMMARY_TOP] === 0, "a closed market's books are empty");
      outcomes[outcome * OUTCOME_WORDS + O_BOOK] = 0;
      freeBooks[freeBookCount++] = book;
    }
  }

  function passSets(kind: number, w: Int32Array, d: Float64Array, base: number): void {
    emit(
      R.packEvent(kind, 0, 0, 0, 0),
      w[base + R.W_MARKET]!,
      w[base + R.W_USER]!,
      0,
      0,
      w[base + R.W_QUANTITY]!,
      0,
      w[base + R.W_REFERENCE]!,
      0,
      d[(base >> 1) + R.D_AT]!,
      0,
    );
  }

  function execute(w: Int32Array, d: Float64Array, base: number): void {
    reserve();
    const kind = R.kindOf(w[base]!);
    switch (kind) {
      case R.CommandKind.placeOrder:
        return placeOrder(w, d, base);
      case R.CommandKind.cancelOrder:
        return cancelOrder(w, d, base);
      case R.CommandKind.amendOrder:
        return amendOrder(w, d, base);
      case R.CommandKind.restoreOrder:
        return restoreOrder(w, d, base);
      case R.CommandKind.cancelAll:
        return cancelAll(w, d, base);
      case R.CommandKind.openMarket:
        return openMarket(w[base + R.W_MARKET]!, w[base + R.W_OUTCOME]!, w[base + R.W_QUANTITY]!);
      case R.CommandKind.haltMarket:
        return changeMarket(w, d, base, MarketStatus.halted);
      case R.CommandKind.resumeMarket:
        return changeMarket(w, d, base, MarketStatus.open);
      case R.CommandKind.closeMarket:
        return changeMarket(w, d, base, MarketStatus.closed);
      case R.CommandKind.splitSets:
        return passSets(R.EventKind.setsSplit, w, d, base);
      case R.CommandKind.mergeSets:
        return passSets(R.EventKind.setsMerged, w, d, base);
      case R.CommandKind.stop:
        emit(R.packEvent(R.EventKind.stopped, 0, 0, 0, 0), 0, 0, 0, 0, 0, 0, 0, 0, 0, 0);
        return;
      default:
        check(false, `unknown command kind ${kind}`);
    }
  }

  check(BOOK_PAGES <= BOOK_STRIDE && LEVELS_PER_PAGE === 32, "a page is a bitmap word");

  return {
    execute,
    endBatch() {
      emitLevels();
      events.publish();
    },
    hasRoom: () => events.hasRoom(4 * MAX_EVENTS_PER_STEP + dirtyLevelCount),
    bestBid: (outcome) => outcomes[outcome * OUTCOME_WORDS + O_BID]!,
    bestAsk: (outcome) => outcomes[outcome * OUTCOME_WORDS + O_ASK]!,
    levelQuantity(outcome, price) {
      const book = outcomes[outcome * OUTCOME_WORDS + O_BOOK]!;
      if (book === 0 || books[(book * BOOK_STRIDE + (price >> LEVEL_PAGE_BITS)) * PAGE_WORDS + B_PAGE] === 0) return 0;
      return quantities[levelAt(outcome, price) * LEVEL_DOUBLES + L_QUANTITY]!;
    },
    ordersAt(outcome, price) {
      const found: [number, number][] = [];
      const book = outcomes[outcome * OUTCOME_WORDS + O_BOOK]!;
      if (book === 0 || books[(book * BOOK_STRIDE + (price >> LEVEL_PAGE_BITS)) * PAGE_WORDS + B_PAGE] === 0)
        return found;
      for (let s = headOf(outcome, price); s !== 0; s = slots[s * SLOT_WORDS + S_NEXT]!) {
        found.push([s, slots[s * SLOT_WORDS + S_REMAINING]!]);
      }
      return found;
    },
  };
}
