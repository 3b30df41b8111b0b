/**
 * What the engines must do: the reference books execute each command that an engine reads from its ring, and their
 * results are compared with the engine's published events. Runs ahead of the last commit and is dropped in a crash; a
 * new one begins with what recovery restores.
 */

import type { Matcher } from "../../engine/book/matcher.ts";
import * as C from "../../engine/constants.ts";
import * as R from "../../engine/ring/records.ts";
import type { RingGate } from "../../engine/ring/ring.ts";
import { type EngineEvent, ensure, Tape, type TapeOrder } from "../engine/book/harness.ts";
import {
  type Match,
  type Placement,
  ReferenceBook,
  type ReferenceOrder,
  type Rejection,
  type SideNumber,
} from "../engine/book/reference-book.ts";

interface Known {
  readonly market: number;
  readonly book: ReferenceBook;
}

export class Executed {
  readonly books = new Map<number, ReferenceBook>();
  private readonly tape = new Tape();
  private readonly marketOf = new Map<number, Known>();
  /** By slot: the order that was placed in it last. */
  private readonly slots: number[] = [];
  private readonly matches: Match[] = [];
  private readonly rejections: Rejection[] = [];
  /** The orders and markets that the current batch named. */
  private readonly changed = new Set<number>();
  private readonly markets = new Set<number>();

  /** Reads what the engine published. */
  read(events: readonly EngineEvent[]): void {
    this.tape.read(events);
    this.tape.ended.length = 0;
    for (const { kind, orderId } of events) {
      // A rejection may name an order of long ago, and a stamp has its time there.
      if (orderId !== 0 && kind !== "batchMatched" && !kind.endsWith("Rejected")) this.changed.add(orderId);
    }
  }

  /**
   * The engine executed `count` commands and published all of their events. @param view of its ring, at the first of
   * them
   */
  ran(view: RingGate, count: number, matcher: Matcher): void {
    for (let i = 0; i < count; i++) {
      const index = view.tail & view.mask;
      this.command(view.words, view.doubles, index * R.RECORD_WORDS);
      view.tail = (view.tail + 1) | 0;
    }
    this.compare(matcher);
  }

  private command(words: Int32Array, doubles: Float64Array, w: number): void {
    const packed = words[w]!;
    const kind = R.kindOf(packed);
    const id = doubles[(w >> 1) + R.D_ORDER_ID]!;
    const at = doubles[(w >> 1) + R.D_AT]!;
    const market = words[w + R.W_MARKET]!;
    // Sets of a market that closed in another life pass through an engine that doesn't know it.
    if (this.books.has(market)) this.markets.add(market);
    switch (kind) {
      case R.CommandKind.placeOrder: {
        const book = this.books.get(market)!;
        this.marketOf.set(id, { market, book });
        const placement = this.placement(words, doubles, w);
        this.slots[words[w + R.W_SLOT]!] = id;
        this.changed.add(id);
        book.place(placement);
        return this.gather(book);
      }
      case R.CommandKind.restoreOrder:
        return this.restore(words, doubles, w);
      case R.CommandKind.cancelOrder: {
        const book = this.marketOf.get(id)?.book;
        if (book === undefined) this.rejections.push({ id, command: "cancel", reason: null });
        else {
          book.cancel(id, C.REASONS[R.cancelReasonOf(packed)]!);
          this.gather(book);
        }
        return;
      }
      case R.CommandKind.amendOrder: {
        const { book } = this.marketOf.get(id)!;
        const [price, total] = [words[w + R.W_PRICE]! || null, words[w + R.W_QUANTITY]! || null];
        book.amend(id, price, total, at, doubles[(w >> 1) + R.D_VALID_UNTIL]!);
        return this.gather(book);
      }
      case R.CommandKind.openMarket: {
        const [first, count] = [words[w + R.W_OUTCOME]!, words[w + R.W_QUANTITY]!];
        this.books.set(market, new ReferenceBook(Array.from({ length: count }, (_, i) => first + i)));
        return;
      }
      case R.CommandKind.haltMarket:
        return this.books.get(market)!.halt();
      case R.CommandKind.resumeMarket:
        return this.books.get(market)!.resume();
      case R.CommandKind.closeMarket:
        return this.books.get(market)!.close();
      default:
        return;
    }
  }

  private gather(book: ReferenceBook): void {
    if (book.matches.length > 0) this.matches.push(...book.matches.splice(0));
    if (book.rejections.length > 0) this.rejections.push(...book.rejections.splice(0));
  }

  private placement(words: Int32Array, doubles: Float64Array, w: number): Placement {
    const packed = words[w]!;
    const d = w >> 1;
    const replaces = (packed & R.FLAG_REPLACES) !== 0;
    return {
      id: doubles[d + R.D_ORDER_ID]!,
      user: words[w + R.W_USER]!,
      outcome: words[w + R.W_OUTCOME]!,
      side: R.sideOf(packed) as SideNumber,
      price: words[w + R.W_PRICE]!,
      quantity: words[w + R.W_QUANTITY]!,
      type: C.ORDER_TYPES[R.typeOf(packed)]!,
      timeInForce: C.TIMES_IN_FORCE[R.timeInForceOf(packed)]!,
      prevention: C.SELF_TRADE_PREVENTIONS[R.selfTradePreventionOf(packed)]!,
      postOnly: (packed & R.FLAG_POST_ONLY) !== 0,
      pat: (packed & R.FLAG_PAT) !== 0,
      at: doubles[d + R.D_AT]!,
      expiresAt: doubles[d + R.D_EXPIRES_AT]!,
      validUntil: replaces ? 0 : doubles[d + R.D_VALID_UNTIL]!,
      ...(replaces
        ? { replaces: { id: this.slots[words[w + R.W_CORRELATION]!]!, expected: doubles[d + R.D_EXPECTED]! } }
        : {}),
    };
  }

  /** A restored order rests behind all earlier ones at its price. */
  private restore(words: Int32Array, doubles: Float64Array, w: number): void {
    const market = words[w + R.W_MARKET]!;
    const book = this.books.get(market)!;
    const terms = this.placement(words, doubles, w);
    const { id, outcome, side, price } = terms;
    const [remaining, quantity] = [terms.quantity, words[w + R.W_CORRELATION]!];
    const status = remaining < quantity ? "partially_filled" : "open";
    const order: ReferenceOrder = { terms, missing: 0, price, quantity, remaining, status, reason: null };
    book.orders.set(id, order);
    const queue = book.resting(outcome, side);
    const place = queue.findIndex((other) => (side === C.Side.buy ? other.price < price : other.price > price));
    queue.splice(place < 0 ? queue.length : place, 0, order);
    // A crash interrupted its matching: its remainder ends.
    if ((words[w]! & R.FLAG_LAST) !== 0 && book.crossed().length > 0) book.cancel(id, "operator");
    this.marketOf.set(id, { market, book });
    this.changed.add(id);
    this.slots[words[w + R.W_SLOT]!] = id;
  }

  /** The engine publishes nothing for restored orders: reads them from `view` before an event names one. */
  foresee(view: RingGate): void {
    const { words, doubles, mask } = view;
    const count = view.available();
    for (let i = 0; i < count; i++) {
      const w = ((view.tail + i) & mask) * R.RECORD_WORDS;
      if (R.kindOf(words[w]!) === R.CommandKind.restoreOrder) this.restoreToTape(words, doubles, w);
    }
  }

  private restoreToTape(words: Int32Array, doubles: Float64Array, w: number): void {
    const { id, user, outcome, side, price, pat, quantity: remaining } = this.placement(words, doubles, w);
    const [quantity, slot] = [words[w + R.W_CORRELATION]!, words[w + R.W_SLOT]!];
    const status = remaining < quantity ? "partially_filled" : "open";
    this.tape.orders.set(id, {
      id, slot, user, outcome, side, pat, price, quantity, remaining, status, reason: null,
    }); // biome-ignore format: one row
  }

  private compare(matcher: Matcher): void {
    const { tape } = this;
    ensure(tape.matches.length === this.matches.length, `${tape.matches.length} matches, not ${this.matches.length}`);
    for (let i = 0; i < this.matches.length; i++) sameMatch(tape.matches[i]!, this.matches[i]!);
    same(tape.rejections, this.rejections, "refusals");
    for (const list of [tape.matches, this.matches, tape.rejections, this.rejections]) list.length = 0;
    for (const id of this.changed) {
      const expected = this.marketOf.get(id)!.book.orders.get(id)!;
      const actual = tape.orders.get(id);
      ensure(actual !== undefined, `the engine said nothing of order ${id}`);
      const isSame =
        actual.status === expected.status &&
        actual.reason === expected.reason &&
        actual.price === expected.price &&
        actual.quantity === expected.quantity &&
        actual.remaining === expected.remaining;
      if (!isSame) same(view(actual), view(expected), `order ${id}`);
    }
    for (const market of this.markets) this.compareBest(matcher, this.books.get(market)!);
    this.changed.clear();
    this.markets.clear();
  }

  /** The best prices, which must not cross either. */
  private compareBest(matcher: Matcher, book: ReferenceBook): void {
    for (const outcome of book.outcomes) {
      const [bid, ask] = [book.resting(outcome, 1)[0]?.price ?? 0, book.resting(outcome, 2)[0]?.price ?? 10_000];
      const isSame = matcher.bestBid(outcome) === bid && matcher.bestAsk(outcome) === ask;
      if (!isSame) same([matcher.bestBid(outcome), matcher.bestAsk(outcome)], [bid, ask], `best prices of ${outcome}`);
    }
  }

  /** No two resting orders would match. */
  expectUncrossed(): void {
    for (const [market, book] of this.books) same(book.crossed(), [], `crossed books of market ${market}`);
  }

  /** All books of a matcher, with the time order in each level. */
  compareBooks(matcher: Matcher, markets: (market: number) => boolean): void {
    for (const [market, book] of this.books) {
      if (!markets(market)) continue;
      for (const outcome of book.outcomes) this.compareBook(matcher, book, outcome);
    }
  }

  private compareBook(matcher: Matcher, book: ReferenceBook, outcome: number): void {
    const slotOf = (id: number): number => this.tape.orders.get(id)!.slot;
    for (const side of [1, 2] as const) {
      const levels = new Map<number, [number, number][]>();
      for (const { terms, price, remaining } of book.resting(outcome, side)) {
        const level = levels.get(price) ?? [];
        level.push([slotOf(terms.id), remaining]);
        levels.set(price, level);
      }
      for (const [price, level] of levels) {
        same(matcher.ordersAt(outcome, price), level, `the queue at ${price} of ${outcome}`);
        const total = level.reduce((sum, [, remaining]) => sum + remaining, 0);
        same(matcher.levelQuantity(outcome, price), total, `the level ${price} of ${outcome}`);
      }
    }
  }
}

const view = ({
  status,
  reason,
  price,
  quantity,
  remaining,
}: Pick<TapeOrder, "status" | "reason" | "price" | "quantity" | "remaining">): unknown[] => [
  status,
  reason,
  price,
  quantity,
  remaining,
];

function sameMatch(actual: Match, expected: Match): void {
  const isSame =
    actual.type === expected.type &&
    actual.quantity === expected.quantity &&
    actual.taker === expected.taker &&
    actual.price === expected.price &&
    actual.makers.length === expected.makers.length &&
    actual.makers.every(({ id, price }, i) => id === expected.makers[i]!.id && price === expected.makers[i]!.price);
  if (!isSame) same(actual, expected, "match");
}

export function same(actual: unknown, expected: unknown, what: string): void {
  const [left, right] = [JSON.stringify(actual), JSON.stringify(expected)];
  if (left !== right) throw new Error(`${what}: the exchange says ${left}, the reference ${right}`);
}
