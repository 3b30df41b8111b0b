/**
 * One outcome's depth as of the last committed batch: a mirror of the engine's book for reads by price and as JSON.
 * Levels live in pages of 64 neighbouring prices: a change costs the same however many levels there are, and reading best
 * first needs no sorting. A page is allocated on first use and returns to the shared memory with its last level. It caches
 * the JSON of its levels until one of them changes.
 */
import { Side } from "../../engine/constants.ts";
import { FULL_PRICE_BPS, MAX_PRICE_BPS, MIN_PRICE_BPS } from "../../engine/limits.ts";
import { withIndex } from "../../engine/util/typed-arrays.ts";

/**
 * A page holds the quantities of 64 neighbouring prices: bids positive, asks negative. Its state is one word, by bits:
 *   number of bids 0..7 | number of asks 8..15 | JSON of its bids is fresh 16 | JSON of its asks is fresh 17
 * A book's directory has a page number for each 64 prices; 0: no levels.
 */
const PAGE_BITS = 6;
const PRICES_PER_PAGE = 1 << PAGE_BITS;
const IN_PAGE_MASK = PRICES_PER_PAGE - 1;
const PAGES = (MAX_PRICE_BPS >> PAGE_BITS) + 1;
const ONE_BID = 1;
const ONE_ASK = 1 << 8;
const ASKS_SHIFT = 8;
const COUNT_MASK = 0xff;
const COUNTS_MASK = 0xffff;
const BIDS_FRESH = 1 << 16;
const ASKS_FRESH = 1 << 17;
/** Pages and directories are allocated in chunks. */
const CHUNK_BITS = 8;
const CHUNK_SIZE = 1 << CHUNK_BITS;
const CHUNK_MASK = CHUNK_SIZE - 1;

/** What `nextBid` and `nextAsk` return when there is no further level. */
const NO_BID = 0;
const NO_ASK = FULL_PRICE_BPS;
/** Ends the linked list of a book's changes. */
const NO_CHANGE = -1;

/** Memory that the books of one registry share: pages, directories, and the changes of the current batch. */
export class DepthMemory {
  /** By page, in chunks: the quantities. All are 0 when a page is released, and therefore when it is allocated. */
  readonly quantities: Float64Array[] = [];
  /** By page. */
  states = new Int32Array(CHUNK_SIZE);
  /** By page: levels as JSON, best first, joined by commas. */
  private readonly bidsJson: string[] = [""];
  private readonly asksJson: string[] = [""];
  /** By directory, in chunks: its pages. */
  readonly directories: Int32Array[] = [];
  private readonly freePages: number[] = [];
  private readonly freeDirectories: number[] = [];
  /** Page 0 means none. */
  private pageCount = 1;
  private directoryCount = 0;
  private changeCount = 0;
  /** By change: its price, the quantity before it, and the book's next change. */
  private prices = new Int32Array(1024);
  private before = new Float64Array(1024);
  private next = new Int32Array(1024);

  allocatePage(): number {
    const free = this.freePages.pop();
    if (free !== undefined) return free;
    const page = this.pageCount++;
    this.quantities[page >> CHUNK_BITS] ??= new Float64Array(CHUNK_SIZE * PRICES_PER_PAGE);
    this.states = withIndex(this.states, page);
    this.bidsJson.push("");
    this.asksJson.push("");
    return page;
  }

  /** @param page one without levels */
  releasePage(page: number): void {
    this.states[page] = 0;
    this.bidsJson[page] = "";
    this.asksJson[page] = "";
    this.freePages.push(page);
  }

  allocateDirectory(): number {
    const free = this.freeDirectories.pop();
    if (free !== undefined) return free;
    const directory = this.directoryCount++;
    this.directories[directory >> CHUNK_BITS] ??= new Int32Array(CHUNK_SIZE * PAGES);
    return directory;
  }

  /** @param directory one without pages */
  releaseDirectory(directory: number): void {
    this.freeDirectories.push(directory);
  }

  bidsOf(page: number): number {
    return this.states[page]! & COUNT_MASK;
  }

  asksOf(page: number): number {
    return (this.states[page]! >> ASKS_SHIFT) & COUNT_MASK;
  }

  /** The JSON of all of a page's levels on one side. @param first the page's lowest price */
  pageJson(page: number, first: number, side: Side): string {
    const isBuy = side === Side.buy;
    const texts = isBuy ? this.bidsJson : this.asksJson;
    const fresh = isBuy ? BIDS_FRESH : ASKS_FRESH;
    if ((this.states[page]! & fresh) === 0) {
      texts[page] = this.makeJson(page, first, side, isBuy ? this.bidsOf(page) : this.asksOf(page));
      this.states[page]! |= fresh;
    }
    return texts[page]!;
  }

  /** The JSON of the first `count` levels on one side of a page, which has at least as many. */
  makeJson(page: number, first: number, side: Side, count: number): string {
    const quantities = this.quantities[page >> CHUNK_BITS]!;
    const start = (page & CHUNK_MASK) << PAGE_BITS;
    const step = side === Side.buy ? -1 : 1;
    // `join` yields a flat string; concatenation would yield a rope that every response had to flatten.
    const texts: string[] = [];
    for (let at = side === Side.buy ? IN_PAGE_MASK : 0; texts.length < count; at += step) {
      const shares = side === Side.buy ? quantities[start | at]! : -quantities[start | at]!;
      if (shares > 0) texts.push(`[${first | at},${shares}]`);
    }
    return texts.join(",");
  }

  /** Adds a change behind the book's last one; returns its number. */
  addChange(price: number, before: number, last: number): number {
    const change = this.changeCount++;
    if (change === this.prices.length) this.growChanges(change);
    this.prices[change] = price;
    this.before[change] = before;
    this.next[change] = NO_CHANGE;
    if (last !== NO_CHANGE) this.next[last] = change;
    return change;
  }

  priceOf(change: number): number {
    return this.prices[change]!;
  }

  quantityBefore(change: number): number {
    return this.before[change]!;
  }

  nextOf(change: number): number {
    return this.next[change]!;
  }

  /** Drops all changes; every book has ended its batch. */
  clearChanges(): void {
    this.changeCount = 0;
  }

  private growChanges(index: number): void {
    this.prices = withIndex(this.prices, index);
    this.before = withIndex(this.before, index);
    this.next = withIndex(this.next, index);
  }
}

export class Depth {
  sequence: number;
  /** When the state of this sequence was applied, ms since the epoch. */
  at: number;
  private readonly memory: DepthMemory;
  /** The chunk with the book's directory, and the offset in it; null while there is no level. */
  private pages: Int32Array | null = null;
  private directory = 0;
  private base = 0;
  private pageCount = 0;
  /** No bid is above, no ask below: where the search for the best price starts. */
  private bidBound = NO_BID;
  private askBound = NO_ASK;
  private bidCount = 0;
  private askCount = 0;
  /** A level of the side changed since the last `endBatch`, even if it changed back. */
  bidsMoved = false;
  asksMoved = false;
  /** Changes since `endBatch`, oldest first. */
  private firstChange = NO_CHANGE;
  private lastChange = NO_CHANGE;

  constructor(memory: DepthMemory, sequence: number, at: number) {
    this.memory = memory;
    this.sequence = sequence;
    this.at = at;
  }

  /**
   * Sets a level's quantity; 0 clears the price on either side. Returns true for the first change since `endBatch`.
   */
  set(side: number, price: number, quantity: number): boolean {
    const { memory } = this;
    const now = side === Side.buy ? quantity : 0 - quantity;
    let page = this.pageOf(price);
    if (page === 0) {
      if (now === 0) return false;
      page = this.addPage(price);
    }
    const quantities = memory.quantities[page >> CHUNK_BITS]!;
    const at = ((page & CHUNK_MASK) << PAGE_BITS) | (price & IN_PAGE_MASK);
    const before = quantities[at]!;
    if (now === before) return false;
    quantities[at] = now;

    if (before > 0 || now > 0) this.bidsMoved = true;
    if (before < 0 || now < 0) this.asksMoved = true;
    let state = memory.states[page]!;
    if (before > 0) {
      state = (state - ONE_BID) & ~BIDS_FRESH;
      this.bidCount--;
    } else if (before < 0) {
      state = (state - ONE_ASK) & ~ASKS_FRESH;
      this.askCount--;
    }
    if (now > 0) {
      state = (state + ONE_BID) & ~BIDS_FRESH;
      this.bidCount++;
      if (price > this.bidBound) this.bidBound = price;
    } else if (now < 0) {
      state = (state + ONE_ASK) & ~ASKS_FRESH;
      this.askCount++;
      if (price < this.askBound) this.askBound = price;
    }
    memory.states[page] = state;
    if ((state & COUNTS_MASK) === 0) this.removePage(price, page);

    const isFirst = this.firstChange === NO_CHANGE;
    this.lastChange = memory.addChange(price, before, this.lastChange);
    if (isFirst) this.firstChange = this.lastChange;
    return isFirst;
  }

  /** The page of a price; 0 if there is none. */
  private pageOf(price: number): number {
    return this.pages === null ? 0 : this.pages[this.base + (price >> PAGE_BITS)]!;
  }

  private addPage(price: number): number {
    const { memory } = this;
    if (this.pages === null) {
      this.directory = memory.allocateDirectory();
      this.pages = memory.directories[this.directory >> CHUNK_BITS]!;
      this.base = (this.directory & CHUNK_MASK) * PAGES;
    }
    this.pageCount++;
    const page = memory.allocatePage();
    this.pages[this.base + (price >> PAGE_BITS)] = page;
    return page;
  }

  private removePage(price: number, page: number): void {
    this.memory.releasePage(page);
    this.pages![this.base + (price >> PAGE_BITS)] = 0;
    if (--this.pageCount > 0) return;
    this.memory.releaseDirectory(this.directory);
    this.pages = null;
  }

  // ---------------------------------------------------------------- the current batch

  /** True if a level differs from the last `endBatch`. */
  hasMoved(): boolean {
    const { memory, firstChange } = this;
    if (firstChange === NO_CHANGE) return false;
    if (memory.quantityBefore(firstChange) !== this.shares(memory.priceOf(firstChange))) return true;
    // Several commits arrived together, and this level changed back.
    const { bids, asks } = this.changes();
    return bids.length + asks.length > 0;
  }

  /** The levels that differ from the last `endBatch`, best first; a price that changed sides is in both lists. */
  changes(): { bids: Level[]; asks: Level[] } {
    const { memory } = this;
    const bids: Level[] = [];
    const asks: Level[] = [];
    const before = new Map<number, number>();
    for (let change = this.firstChange; change !== NO_CHANGE; change = memory.nextOf(change)) {
      const price = memory.priceOf(change);
      if (!before.has(price)) before.set(price, memory.quantityBefore(change));
    }
    for (const [price, then] of before) {
      const now = this.shares(price);
      if (now === then) continue;
      if (then > 0 || now > 0) bids.push([price, Math.max(now, 0)]);
      if (then < 0 || now < 0) asks.push([price, Math.max(-now, 0)]);
    }
    return { bids: bids.sort((a, b) => b[0] - a[0]), asks: asks.sort((a, b) => a[0] - b[0]) };
  }

  /** Ends the batch: later changes belong to the next one. */
  endBatch(): void {
    this.firstChange = NO_CHANGE;
    this.lastChange = NO_CHANGE;
    this.bidsMoved = false;
    this.asksMoved = false;
  }

  // ---------------------------------------------------------------- reading

  get bestBid(): number | null {
    const best = this.bestOf(Side.buy);
    return best === NO_BID ? null : best;
  }

  get bestAsk(): number | null {
    const best = this.bestOf(Side.sell);
    return best === NO_ASK ? null : best;
  }

  /** Number of levels on the longer side. */
  get depth(): number {
    return Math.max(this.bidCount, this.askCount);
  }

  /** The best price of a side; without one 0 for bids, 10000 for asks. */
  bestOf(side: Side): number {
    if (side === Side.buy) {
      this.bidBound = this.nextBid(this.bidBound + 1);
      return this.bidBound;
    }
    this.askBound = this.nextAsk(this.askBound - 1);
    return this.askBound;
  }

  /** The next worse price after `price`; without one 0 for bids, 10000 for asks. */
  nextOf(side: Side, price: number): number {
    return side === Side.buy ? this.nextBid(price) : this.nextAsk(price);
  }

  /** Shares at a price: positive for bids, negative for asks. */
  shares(price: number): number {
    const page = this.pageOf(price);
    if (page === 0) return 0;
    return this.memory.quantities[page >> CHUNK_BITS]![((page & CHUNK_MASK) << PAGE_BITS) | (price & IN_PAGE_MASK)]!;
  }

  /** The best levels of a side, at most `depth`. */
  levels(side: Side, depth: number): Level[] {
    const levels: Level[] = [];
    const end = endOf(side);
    for (let price = this.bestOf(side); price !== end && levels.length < depth; price = this.nextOf(side, price)) {
      levels.push([price, Math.abs(this.shares(price))]);
    }
    return levels;
  }

  /** The same as JSON text. */
  levelsJson(side: Side, depth: number): string {
    const { pages, base, memory } = this;
    if (pages === null) return "[]";
    const step = side === Side.buy ? -1 : 1;
    const pieces: string[] = [];
    let left = depth;
    for (let i = this.bestOf(side) >> PAGE_BITS; i >= 0 && i < PAGES && left > 0; i += step) {
      const count = side === Side.buy ? memory.bidsOf(pages[base + i]!) : memory.asksOf(pages[base + i]!);
      if (count === 0) continue;
      const first = i << PAGE_BITS;
      const page = pages[base + i]!;
      pieces.push(count <= left ? memory.pageJson(page, first, side) : memory.makeJson(page, first, side, left));
      left -= count;
    }
    return `[${pieces.join(",")}]`;
  }

  private nextBid(price: number): number {
    const { pages, base, memory } = this;
    if (pages === null) return NO_BID;
    let from = (price - 1) & IN_PAGE_MASK;
    for (let i = (price - 1) >> PAGE_BITS; i >= 0; i--, from = IN_PAGE_MASK) {
      const page = pages[base + i]!;
      if (page === 0 || memory.bidsOf(page) === 0) continue;
      const quantities = memory.quantities[page >> CHUNK_BITS]!;
      const start = (page & CHUNK_MASK) << PAGE_BITS;
      for (let at = from; at >= 0; at--) if (quantities[start | at]! > 0) return (i << PAGE_BITS) | at;
    }
    return NO_BID;
  }

  private nextAsk(price: number): number {
    const { pages, base, memory } = this;
    if (pages === null) return NO_ASK;
    let from = (price + 1) & IN_PAGE_MASK;
    for (let i = (price + 1) >> PAGE_BITS; i < PAGES; i++, from = 0) {
      const page = pages[base + i]!;
      if (page === 0 || memory.asksOf(page) === 0) continue;
      const quantities = memory.quantities[page >> CHUNK_BITS]!;
      const start = (page & CHUNK_MASK) << PAGE_BITS;
      for (let at = from; at < PRICES_PER_PAGE; at++) if (quantities[start | at]! < 0) return (i << PAGE_BITS) | at;
    }
    return NO_ASK;
  }
}

function endOf(side: Side): number {
  return side === Side.buy ? NO_BID : NO_ASK;
}

/** A level of one other outcome's book that an implied level combines, and the shares left of it. */
interface Leg {
  readonly book: Depth;
  price: number;
  left: number;
}

/**
 * The levels that mint (asks) or merge (bids) imply for an outcome: each step combines the best level of every other
 * outcome's book, bids for mint and asks for merge, with the smallest quantity among them.
 * @param others the books of the market's other outcomes; null for one never used
 * @param depth maximum number of levels
 */
export function impliedLevels(others: readonly (Depth | null)[], side: Side, depth: number): Level[] {
  const source = side === Side.sell ? Side.buy : Side.sell;
  const end = endOf(source);
  const legs: Leg[] = [];
  let sum = 0;
  for (const book of others) {
    const price = book?.bestOf(source) ?? end;
    if (book === null || price === end) return [];
    legs.push({ book, price, left: Math.abs(book.shares(price)) });
    sum += price;
  }
  const levels: Level[] = [];
  for (;;) {
    let price = FULL_PRICE_BPS - sum;
    // Bids of three or more outcomes can sum to more than 10000: a mint then costs the minimum price, and a merge has no
    // such level.
    if (price < MIN_PRICE_BPS) {
      if (side === Side.buy) return levels;
      price = MIN_PRICE_BPS;
    }
    let quantity = Number.POSITIVE_INFINITY;
    for (const { left } of legs) if (left < quantity) quantity = left;
    const last = levels.at(-1);
    if (last?.[0] === price) last[1] += quantity;
    else if (levels.length === depth) return levels;
    else levels.push([price, quantity]);
    for (const leg of legs) {
      leg.left -= quantity;
      if (leg.left !== 0) continue;
      const next = leg.book.nextOf(source, leg.price);
      if (next === end) return levels;
      sum += next - leg.price;
      leg.price = next;
      leg.left = Math.abs(leg.book.shares(next));
    }
  }
}

/** Merges two ladders of one side, best first, into at most `depth` levels. */
export function addLevels(
  a: readonly Level[],
  b: readonly Level[],
  side: Side,
  depth: number = MAX_PRICE_BPS,
): Level[] {
  const levels: Level[] = [];
  let i = 0;
  let j = 0;
  while ((i < a.length || j < b.length) && levels.length < depth) {
    const ours = a[i];
    const theirs = b[j];
    const ourPrice = ours?.[0] ?? endOf(side);
    const theirPrice = theirs?.[0] ?? endOf(side);
    const price = side === Side.buy ? Math.max(ourPrice, theirPrice) : Math.min(ourPrice, theirPrice);
    let quantity = 0;
    if (ours?.[0] === price) {
      quantity += ours[1];
      i++;
    }
    if (theirs?.[0] === price) {
      quantity += theirs[1];
      j++;
    }
    levels.push([price, quantity]);
  }
  return levels;
}
/** A level is [price in BPS, shares]; ladders of them come best first. */

export type Level = [price: number, quantity: number];
