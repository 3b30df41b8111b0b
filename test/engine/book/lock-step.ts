/**
 * Drives the matcher and the reference book with the same commands and compares all that can be seen: every order's
 * state, every match and rejection in order, both sides of every book with the time order in each level, and the depth
 * that a reader of the level events arrives at. Plays the gateway's part in handing out slots and ids.
 */
import { CommandKind, EventKind, kindOf, W_CORRELATION } from "../../../engine/ring/records.ts";
import {
  CommandRecord,
  Engine,
  type EngineEvent,
  type EngineOptions,
  ensure,
  Tape,
  type TapeOrder,
} from "./harness.ts";
import {
  type Match,
  type Placement,
  ReferenceBook,
  type ReferenceOrder,
  type Rejection,
  type SideNumber,
} from "./reference-book.ts";

export interface Market {
  readonly id: number;
  readonly first: number;
  readonly outcomes: readonly number[];
  readonly book: ReferenceBook;
}

/** A placement's required fields; the others have the contract's defaults. */
export type Terms = Pick<Placement, "user" | "outcome" | "side" | "price" | "quantity"> & Partial<Placement>;

interface Chained {
  readonly record: CommandRecord;
  readonly market: Market;
  readonly reference: () => void;
}

export class LockStep {
  readonly engine: Engine;
  readonly tape = new Tape();
  readonly markets: Market[] = [];
  private marketCount = 0;
  private outcomeCount = 0;
  /** False: commands pile up in one batch until `endBatch`. */
  batchOfOne = true;
  /** If false, each order gets a slot that was never used, as if the gateway had read of no order's end. */
  slotsComeBack = true;
  now = 1_000_000;
  nextId = 2 ** 40;
  private readonly matches: Match[] = [];
  private readonly rejections: Rejection[] = [];
  private compared = { matches: 0, rejections: 0 };
  private readonly freeSlots: number[];
  private readonly slots = new Map<number, number>();
  private readonly marketOf = new Map<number, Market>();
  /** Orders that were not final when last compared. */
  private readonly unfinished = new Set<number>();
  private chained: Chained[] | null = null;
  private readonly prices = new Map<number, Set<number>>();

  constructor(options: EngineOptions = {}) {
    this.engine = new Engine(options, (events, ringFull) => this.read(events, ringFull));
    this.freeSlots = Array.from({ length: options.capacity ?? 1024 }, (_, i) => (options.capacity ?? 1024) - i);
  }

  get ids(): number[] {
    return [...this.marketOf.keys()];
  }

  /** Orders that were live at the last comparison. */
  get liveIds(): number[] {
    return [...this.unfinished];
  }

  get freeSlotCount(): number {
    return this.freeSlots.length;
  }

  slotOf(id: number): number {
    return this.slots.get(id) ?? 0;
  }

  openMarket(count: number): Market {
    const id = ++this.marketCount;
    const first = this.outcomeCount + 1;
    this.outcomeCount += count;
    const outcomes = Array.from({ length: count }, (_, i) => first + i);
    const market = { id, first, outcomes, book: new ReferenceBook(outcomes) };
    this.markets.push(market);
    for (const outcome of outcomes) this.prices.set(outcome, new Set());
    this.run(CommandRecord.market(CommandKind.openMarket, id, this.now, first, count), market, () => {});
    return market;
  }

  place(market: Market, terms: Terms): number {
    const defaults = { type: "limit", timeInForce: "gtc", prevention: "cancel_taker" } as const;
    const rest = { id: this.nextId++, postOnly: false, pat: false, at: ++this.now, expiresAt: 0, validUntil: 0 };
    const order: Placement = { ...defaults, ...rest, ...terms };
    const slot = this.freeSlots.pop();
    ensure(slot !== undefined, "the test holds more orders than slots");
    this.slots.set(order.id, slot);
    this.marketOf.set(order.id, market);
    this.prices.get(order.outcome)!.add(order.price);
    const { replaces } = order;
    const record =
      replaces === undefined
        ? CommandRecord.place(CommandKind.placeOrder, slot, market.id, order)
        : CommandRecord.replace(slot, market.id, order, this.slotOf(replaces.id), replaces.expected);
    this.run(record, market, () => {
      this.unfinished.add(order.id);
      market.book.place(order);
    });
    return order.id;
  }

  cancel(id: number, reason = "user"): void {
    const market = this.marketOf.get(id)!;
    this.run(CommandRecord.cancel(this.slotOf(id), id, reason, ++this.now), market, () =>
      market.book.cancel(id, reason),
    );
  }

  /** Null: not given. */
  amend(id: number, price: number | null, total: number | null, validUntil = 0): void {
    const market = this.marketOf.get(id)!;
    const at = ++this.now;
    if (price !== null) this.prices.get(market.book.orders.get(id)!.terms.outcome)!.add(price);
    this.run(CommandRecord.amend(this.slotOf(id), id, price ?? 0, total ?? 0, at, validUntil), market, () =>
      market.book.amend(id, price, total, at, validUntil),
    );
  }

  /**
   * Sends the commands of `write` to the engine as one chain. First ends the batch if the chain's events might not fit
   * into the ring, as an engine thread does.
   */
  chain(write: () => void): void {
    ensure(this.chained === null, "one chain at a time");
    const chained: Chained[] = [];
    this.chained = chained;
    write();
    this.chained = null;
    if (!this.batchOfOne && !this.engine.matcher.hasRoom(chained.length)) this.endBatch();
    CommandRecord.chain(chained.map(({ record }) => record));
    const before = this.engine.eventWords.length;
    const ringFullBefore = this.engine.ringFullCount;
    for (const { record, market, reference } of chained) this.execute(record, market, reference);
    if (!this.batchOfOne) return;
    this.endBatch();
    if (this.engine.ringFullCount > ringFullBefore) return;
    const kinds = this.engine.eventWords.slice(before).map((words) => kindOf(words[0]!));
    const levels = kinds.slice(chained.length);
    ensure(!kinds.slice(0, chained.length).includes(EventKind.levelChanged), "an event for each command of a chain");
    ensure(levels.length <= chained.length && levels.every((k) => k === EventKind.levelChanged), "and one level each");
  }

  /**
   * A user's live orders in a market and their remaining quantities, as far as a gateway knows: it has read only the
   * events handed over so far. Their slots are still theirs.
   */
  believed(market: Market, user: number): { readonly id: number; readonly remaining: number }[] {
    return this.liveIds.flatMap((id) => {
      const known = this.tape.orders.get(id);
      const { terms } = market.book.orders.get(id) ?? {};
      if (terms?.user !== user || (known !== undefined && isFinalWord(known.status))) return [];
      return [{ id, remaining: known?.remaining ?? terms.quantity }];
    });
  }

  halt(market: Market): void {
    this.run(CommandRecord.market(CommandKind.haltMarket, market.id, ++this.now), market, () => market.book.halt());
  }

  resume(market: Market): void {
    this.run(CommandRecord.market(CommandKind.resumeMarket, market.id, ++this.now), market, () => market.book.resume());
  }

  close(market: Market): void {
    this.run(CommandRecord.market(CommandKind.closeMarket, market.id, ++this.now), market, () => market.book.close());
  }

  /** Closes all markets and forgets them: the same matcher, which is costly to make, serves another run. */
  clear(): void {
    this.batchOfOne = true;
    for (const market of this.markets) if (market.book.status !== "closed") this.close(market);
    for (const list of [this.markets, this.matches, this.rejections]) list.length = 0;
    for (const map of [this.slots, this.marketOf, this.unfinished, this.prices]) map.clear();
    this.compared = { matches: 0, rejections: 0 };
    this.tape.clear();
    this.engine.script.length = 0;
    this.engine.eventWords.length = 0;
  }

  endBatch(): void {
    this.engine.endBatch();
    this.tape.settled();
    this.compare();
  }

  /** The commands that rebuild the current books in an empty matcher, orders of a level oldest first. */
  restoreScript(): (CommandRecord | "end")[] {
    const script: (CommandRecord | "end")[] = [];
    for (const market of this.markets) {
      script.push(
        CommandRecord.market(CommandKind.openMarket, market.id, 0, market.first, market.outcomes.length),
        "end",
      );
      for (const [outcome, side] of sides(market)) {
        for (const { terms, price, quantity, remaining } of market.book.resting(outcome, side)) {
          const order = { ...terms, price, quantity: remaining };
          const record = CommandRecord.place(CommandKind.restoreOrder, this.slotOf(terms.id), market.id, order);
          record.words[W_CORRELATION] = quantity;
          script.push(record, "end");
        }
      }
      if (market.book.status === "open") continue;
      const kind = market.book.status === "halted" ? CommandKind.haltMarket : CommandKind.closeMarket;
      script.push(CommandRecord.market(kind, market.id, 0), "end");
    }
    return script;
  }

  /** Compares all books at all prices of a ladder, not only at those that orders named. */
  compareEveryPrice(): void {
    for (const market of this.markets) {
      for (const outcome of market.outcomes) {
        const named = this.prices.get(outcome)!;
        for (let price = 1; price < 10_000; price++) {
          if (!named.has(price)) ensure(this.engine.matcher.levelQuantity(outcome, price) === 0, "an unnamed level");
        }
      }
    }
  }

  private run(record: CommandRecord, market: Market, reference: () => void): void {
    if (this.chained !== null) return void this.chained.push({ record, market, reference });
    this.execute(record, market, reference);
    if (this.batchOfOne) this.endBatch();
  }

  private execute(record: CommandRecord, market: Market, reference: () => void): void {
    this.engine.execute(record);
    reference();
    this.matches.push(...market.book.matches.splice(0));
    this.rejections.push(...market.book.rejections.splice(0));
  }

  private read(events: EngineEvent[], ringFull: boolean): void {
    this.tape.read(events);
    const ended = this.tape.ended.splice(0);
    if (this.slotsComeBack) for (const order of ended) this.freeSlots.push(order.slot);
    // The events that a full ring hands over in the middle of a command show the book at that moment.
    if (ringFull) {
      for (const [outcome, prices] of this.prices) {
        for (const price of prices)
          this.compareDepth(outcome, price, this.engine.matcher.levelQuantity(outcome, price));
      }
    }
  }

  private compare(): void {
    for (const id of this.unfinished) this.compareOrder(id);
    const { tape } = this;
    ensure(tape.matches.length === this.matches.length, `${tape.matches.length} matches, not ${this.matches.length}`);
    for (let i = this.compared.matches; i < this.matches.length; i++) same(tape.matches[i], this.matches[i], "match");
    same(tape.rejections.slice(this.compared.rejections), this.rejections.slice(this.compared.rejections), "refusals");
    this.compared = { matches: this.matches.length, rejections: this.rejections.length };
    for (const market of this.markets) {
      for (const outcome of market.outcomes) this.compareBook(market, outcome);
      same(market.book.crossed(), [], "crossed books");
    }
  }

  private compareOrder(id: number): void {
    const expected = this.marketOf.get(id)!.book.orders.get(id)!;
    const actual = this.tape.orders.get(id);
    ensure(actual !== undefined, `order ${id} was never heard of`);
    if (!sameList(orderView(actual), orderView(expected))) same(orderView(actual), orderView(expected), `order ${id}`);
    if (isFinalWord(expected.status)) this.unfinished.delete(id);
  }

  private compareBook(market: Market, outcome: number): void {
    const { matcher } = this.engine;
    const levels = new Map<number, [number, number][]>();
    for (const side of [1, 2] as const) {
      const resting = market.book.resting(outcome, side);
      for (const order of resting) {
        ensure(order.remaining > 0, "what rests has a quantity");
        const level = levels.get(order.price) ?? [];
        level.push([this.slotOf(order.terms.id), order.remaining]);
        levels.set(order.price, level);
      }
      const best = side === 1 ? matcher.bestBid(outcome) : matcher.bestAsk(outcome);
      same(best, resting[0]?.price ?? (side === 1 ? 0 : 10_000), `best price on side ${side} of ${outcome}`);
      const prices = new Set(resting.map((order) => order.price));
      for (const price of this.tape.depth.get(outcome)?.[side].keys() ?? []) {
        ensure(prices.has(price), `a level ${price} on side ${side} of ${outcome}`);
      }
    }
    for (const price of this.prices.get(outcome)!) {
      const level = levels.get(price) ?? [];
      const queue = matcher.ordersAt(outcome, price);
      if (!sameList(queue.flat(), level.flat())) same(queue, level, `queue at ${price} of ${outcome}`);
      const quantity = level.reduce((sum, [, remaining]) => sum + remaining, 0);
      const total = matcher.levelQuantity(outcome, price);
      if (total !== quantity) same(total, quantity, `level ${price} of ${outcome}`);
      this.compareDepth(outcome, price, quantity);
    }
  }

  private compareDepth(outcome: number, price: number, quantity: number): void {
    const depth = this.tape.depth.get(outcome);
    const shown = (depth?.[1].get(price) ?? 0) + (depth?.[2].get(price) ?? 0);
    if (shown !== quantity) same(shown, quantity, `depth at ${price} of ${outcome}`);
  }
}

export function sides(market: Market): [number, SideNumber][] {
  return market.outcomes.flatMap((outcome): [number, SideNumber][] => [
    [outcome, 1],
    [outcome, 2],
  ]);
}

function isFinalWord(status: string): boolean {
  return !["queued", "open", "partially_filled"].includes(status);
}

function orderView(order: TapeOrder | ReferenceOrder): unknown[] {
  return [order.status, order.reason, order.price, order.quantity, order.remaining];
}

/** The usual case, without making strings of it. */
function sameList(actual: readonly unknown[], expected: readonly unknown[]): boolean {
  return actual.length === expected.length && actual.every((value, i) => value === expected[i]);
}

function same(actual: unknown, expected: unknown, what: string): void {
  const [left, right] = [JSON.stringify(actual), JSON.stringify(expected)];
  ensure(left === right, `${what}: the matcher says ${left}, the reference ${right}`);
}
