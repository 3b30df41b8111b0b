/**
 * The depth mirror against plain ones: levels, best prices, JSON and changes of random batches over several books that
 * share their memory; sequences; the texts that are kept; what mint and merge offer against the reference of matching.
 */
import { describe, expect, test } from "vitest";
import { MarketStatus } from "../../engine/constants.ts";
import { UNDECIDED } from "../../engine/projection/load/markets.ts";
import { bookJson, marketBooksJson } from "../../server/markets/book-json.ts";
import { type ImpliedChange, tradablePrices } from "../../server/markets/implied-books.ts";
import { MarketRegistry } from "../../server/markets/registry.ts";
import type { Market, Outcome } from "../../server/markets/types.ts";
import { marketView } from "../../server/markets/views.ts";
import { TextCache } from "../../server/util/text-cache.ts";
import { type Placement, ReferenceBook, type SideNumber } from "../engine/book/reference-book.ts";
import { Random } from "../support/random.ts";

const BUY = 1;
const SELL = 2;
const FIRST_SEQUENCE = 7;

function registryOf(...counts: readonly number[]): MarketRegistry {
  const registry = new MarketRegistry(FIRST_SEQUENCE, 1);
  let outcomeId = 0;
  for (const [i, count] of counts.entries()) {
    const id = i + 1;
    const outcomes = Array.from({ length: count }, (_, position) => {
      return {
        id: ++outcomeId,
        marketId: id,
        position,
        name: `No. ${position}`,
        lastPrice: null,
        volume: 0,
        payout: null,
      };
    });
    const texts = { slug: `market-${id}`, question: "?", description: null, category: null };
    const times = { opensAt: 1, closesAt: null, createdAt: 1 };
    const rest = { eventId: null, status: MarketStatus.open, sets: 0, outcomes: count };
    registry.add(
      { id, ...texts, ...times, ...UNDECIDED, proposedBy: null, ...rest, firstOutcomeId: outcomes[0]!.id },
      outcomes,
    );
  }
  return registry;
}

type Levels = [price: number, quantity: number][];
interface Sides {
  bids: Levels;
  asks: Levels;
}

/** A book as plainly as it can be said: signed shares by price. */
class PlainBook {
  readonly shares = new Map<number, number>();

  set(side: number, price: number, quantity: number): void {
    if (quantity === 0) this.shares.delete(price);
    else this.shares.set(price, side === BUY ? quantity : -quantity);
  }

  sides(): Sides {
    const all = [...this.shares].sort(([a], [b]) => a - b);
    return {
      bids: all.filter(([, shares]) => shares > 0).reverse(),
      asks: all.filter(([, shares]) => shares < 0).map(([price, shares]) => [price, -shares]),
    };
  }

  /** What must be told of the way from `before` to here. */
  changesSince(before: ReadonlyMap<number, number>): Sides {
    const prices = [...new Set([...before.keys(), ...this.shares.keys()])].sort((a, b) => a - b);
    const changed = prices.filter((price) => before.get(price) !== this.shares.get(price));
    const of = (sign: 1 | -1): Levels => {
      const on = (levels: ReadonlyMap<number, number>, price: number): number =>
        Math.max(0, sign * (levels.get(price) ?? 0));
      return changed
        .filter((price) => on(before, price) > 0 || on(this.shares, price) > 0)
        .map((price) => [price, on(this.shares, price)]);
    };
    return { bids: of(1).reverse(), asks: of(-1) };
  }
}

interface Told extends Sides {
  sequence: number;
}

function drain(registry: MarketRegistry): Map<number, Told> {
  const told = new Map<number, Told>();
  registry.drainChanges(Date.now(), (outcome, sequence, bids, asks) => {
    expect(told.has(outcome.id)).toBe(false);
    told.set(outcome.id, { sequence, bids, asks });
  });
  return told;
}

function expectShows(
  registry: MarketRegistry,
  market: Market,
  outcome: Outcome,
  plain: PlainBook,
  depth: number,
): void {
  const { bids, asks } = plain.sides();
  const cut = { bids: bids.slice(0, depth), asks: asks.slice(0, depth) };
  const head = { market_id: market.id, outcome_id: outcome.id, sequence: registry.bookSequence(outcome) };
  const text = bookJson(registry, market, outcome, { depth });
  expect(text).toBe(JSON.stringify({ ...head, ts: JSON.parse(text).ts, ...cut }));
  const { book } = outcome;
  if (book === null) {
    expect(bids.length + asks.length).toBe(0);
    return;
  }
  expect([book.levels(BUY, depth), book.levels(SELL, depth)]).toEqual([cut.bids, cut.asks]);
  expect([book.bestBid, book.bestAsk]).toEqual([bids[0]?.[0] ?? null, asks[0]?.[0] ?? null]);
}

/** Prices of a batch: all over, or close together, at the ends of the range and of pages. */
function priceOf(random: Random, near: number): number {
  if (random.chance(0.1)) return random.pick([1, 2, 63, 64, 65, 127, 128, 9_983, 9_984, 9_998, 9_999]);
  if (random.chance(0.2)) return random.integer(1, 9_999);
  return Math.min(9_999, Math.max(1, near + random.integer(-40, 40)));
}

describe("a book", () => {
  test("is what a plain one is after every batch, watched or not", () => {
    const random = Random.printed("random levels");
    const registry = registryOf(2, 3);
    const outcomes = registry.all().flatMap((market) => market.outcomes.map((outcome) => ({ market, outcome })));
    const plain = outcomes.map(() => new PlainBook());
    const sequences = outcomes.map(() => FIRST_SEQUENCE);
    for (let batch = 0; batch < 250; batch++) {
      const near = random.integer(1, 9_999);
      const before = plain.map(({ shares }) => new Map(shares));
      for (const { outcome } of outcomes) outcome.isWatched = random.chance(0.5);
      // From time to time all levels go, and their pages with them.
      const isClearing = random.chance(0.03);
      for (let n = isClearing ? 0 : random.integer(1, 60); n > 0; n--) {
        const i = random.integer(0, outcomes.length - 1);
        const quantity = random.chance(0.3) ? 0 : random.integer(1, 3) * (random.chance(0.1) ? 5_000_000_000 : 1);
        const change = [random.pick([BUY, SELL]), priceOf(random, near), quantity] as const;
        plain[i]!.set(...change);
        registry.setLevel(outcomes[i]!.outcome.id, ...change);
      }
      if (isClearing) {
        const i = random.integer(0, outcomes.length - 1);
        for (const [price, shares] of [...plain[i]!.shares]) {
          plain[i]!.set(BUY, price, 0);
          registry.setLevel(outcomes[i]!.outcome.id, shares > 0 ? BUY : SELL, price, 0);
        }
      }
      const told = drain(registry);
      for (const [i, { market, outcome }] of outcomes.entries()) {
        const changes = plain[i]!.changesSince(before[i]!);
        const hasMoved = changes.bids.length + changes.asks.length > 0;
        if (hasMoved) sequences[i]!++;
        expect(registry.bookSequence(outcome)).toBe(sequences[i]);
        const expected = hasMoved && outcome.isWatched ? { sequence: sequences[i], ...changes } : undefined;
        expect(told.get(outcome.id)).toEqual(expected);
        expectShows(registry, market, outcome, plain[i]!, random.pick([1, 2, 10, 65, 9_999]));
      }
    }
  });

  test("that goes back to what it was within a batch has not changed", () => {
    const registry = registryOf(2);
    const [outcome] = registry.get(1)!.outcomes as [Outcome, Outcome];
    for (const isWatched of [false, true]) {
      outcome.isWatched = isWatched;
      const sequence = registry.bookSequence(outcome);
      for (const quantity of [5, 6, 0]) registry.setLevel(1, BUY, 4_000, quantity);
      registry.setLevel(1, SELL, 6_000, 0);
      expect([...drain(registry)]).toEqual([]);
      expect(registry.bookSequence(outcome)).toBe(sequence);
      // Two levels of which only the later one ends where it did not begin.
      for (const [price, quantity] of [[4_000, 5], [4_000, 0], [3_999, 1]]) registry.setLevel(1, BUY, price!, quantity!); // biome-ignore format: levels
      expect([...drain(registry).values()].map(({ bids }) => bids)).toEqual(isWatched ? [[[3_999, 1]]] : []);
      expect(registry.bookSequence(outcome)).toBe(sequence + 1);
      registry.setLevel(1, BUY, 3_999, 0);
      drain(registry);
    }
  });

  test("whose best price turns to the other side is told on both", () => {
    const registry = registryOf(2);
    registry.get(1)!.outcomes[0]!.isWatched = true;
    registry.setLevel(1, BUY, 5_000, 3);
    drain(registry);
    registry.setLevel(1, SELL, 5_000, 4);
    expect(drain(registry).get(1)).toMatchObject({ bids: [[5_000, 0]], asks: [[5_000, 4]] });
  });

  test("starts over with the sequences when all are rebuilt, and its texts with it", () => {
    const registry = registryOf(2);
    const market = registry.get(1)!;
    for (const quantity of [1, 2, 3]) {
      registry.setLevel(1, BUY, 4_000, quantity);
      drain(registry);
    }
    const shown = (): unknown => JSON.parse(bookJson(registry, market, market.outcomes[0]!));
    expect(shown()).toMatchObject({ sequence: FIRST_SEQUENCE + 3, bids: [[4_000, 3]] });
    registry.startSequences();
    expect(shown()).toMatchObject({ sequence: FIRST_SEQUENCE, bids: [[4_000, 3]] });
  });

  test("gives the market its best prices", () => {
    const registry = registryOf(2);
    registry.setLevel(2, BUY, 3_000, 1);
    registry.setLevel(2, BUY, 3_100, 1);
    registry.setLevel(2, SELL, 3_200, 1);
    const ledger = { outstandingSets: () => 0 } as unknown as Parameters<typeof marketView>[2];
    expect(marketView(registry.get(1)!, registry, ledger, 0)).toMatchObject({
      outcomes: [
        { best_bid: null, best_ask: null },
        { best_bid: 3_100, best_ask: 3_200 },
      ],
    });
  });
});

describe("the texts of books", () => {
  test("are made once for each state, and anew for each change that they show", () => {
    const registry = registryOf(3, 2);
    const market = registry.get(1)!;
    const [first, second] = market.outcomes as [Outcome, Outcome, Outcome];
    const change = (outcome: number, quantity: number): void => {
      registry.setLevel(outcome, BUY, 3_000, quantity);
      drain(registry);
    };
    change(1, 1);
    change(2, 1);
    change(3, 1);
    const views = [{}, { depth: 1 }, { implied: true }, { depth: 1, implied: true }];
    const texts = (): string[] => [
      ...views.map((view) => bookJson(registry, market, first, view)),
      ...views.map((view) => marketBooksJson(registry, market, view)),
    ];
    const before = texts();
    expect(texts()).toEqual(before);
    // Another market, and another outcome of this one: what shows the first outcome alone stays.
    change(4, 1);
    expect(texts()).toEqual(before);
    registry.setLevel(2, BUY, 3_500, 1);
    drain(registry);
    const after = texts();
    expect(after.map((text, i) => text === before[i])).toEqual([true, true, ...Array<boolean>(6).fill(false)]);
    expect(JSON.parse(after[2]!)).toMatchObject({ sequence: FIRST_SEQUENCE + 1, implied: { asks: [[3_500, 1]] } });
    change(1, 5);
    for (const [i, text] of texts().entries()) expect(text).not.toBe(after[i]);
    expect(JSON.parse(bookJson(registry, market, second)).bids).toEqual([[3_500, 1], [3_000, 1]]); // biome-ignore format: levels
  });

  test("say when what they show was applied", () => {
    const registry = registryOf(2);
    const market = registry.get(1)!;
    const [first, second] = market.outcomes as [Outcome, Outcome];
    const from = Date.now();
    registry.setLevel(1, BUY, 3_000, 1);
    drain(registry);
    const to = Date.now();
    const { ts } = JSON.parse(bookJson(registry, market, first));
    expect(ts).toBeGreaterThanOrEqual(from);
    expect(ts).toBeLessThanOrEqual(to);
    expect(JSON.parse(marketBooksJson(registry, market, {})).ts).toBe(ts);
    expect(JSON.parse(bookJson(registry, market, second, { implied: true })).ts).toBe(ts);
    expect(JSON.parse(bookJson(registry, market, second)).ts).toBe(market.addedAt);
  });

  test("are kept in bounds: those made longest ago go first", () => {
    const cache = new TextCache(30);
    let made = 0;
    const ask = (key: number, version = 1, length = 10): string => {
      return cache.get(key, version, () => String(++made).padStart(length, "0"));
    };
    const texts = [1, 2, 3].map((key) => ask(key));
    expect([1, 2, 3].map((key) => ask(key))).toEqual(texts);
    expect(ask(1, 2)).toBe("4".padStart(10, "0"));
    ask(4);
    expect([ask(3), ask(1, 2)].map(Number)).toEqual([3, 4]);
    expect(Number(ask(2))).toBe(6);
    // One that is too long is not kept, and leaves the cache in order.
    for (const n of [7, 8]) expect(Number(ask(5, 1, 31))).toBe(n);
    expect([ask(6), ask(6)].map(Number)).toEqual([9, 9]);
  });
});

describe("implied depth", () => {
  /** Random resting orders, as many as the market bears without a match of what rests. */
  function restingMarket(random: Random, count: number): ReferenceBook {
    const outcomes = Array.from({ length: count }, (_, i) => i + 1);
    const reference = new ReferenceBook(outcomes);
    const even = Math.floor(10_000 / count);
    const spread = random.pick([5, 60, even - 1]);
    // Bids that sum up to far more than 10000 can rest beside each other where one outcome has none.
    const isLopsided = random.chance(0.4);
    for (let id = 1; id <= 15 * count; id++) {
      const outcome = isLopsided ? random.integer(2, count) : random.integer(1, count);
      const side = random.pick([BUY, SELL]) as SideNumber;
      const high = isLopsided ? random.integer(even, 9_999) : even + random.integer(-spread, spread);
      reference.place(order(id, outcome, side, Math.min(9_999, Math.max(1, high)), random.integer(1, 9), true));
    }
    return reference;
  }

  function order(
    id: number,
    outcome: number,
    side: SideNumber,
    price: number,
    quantity: number,
    postOnly: boolean,
  ): Placement {
    const kind = { type: "limit", timeInForce: postOnly ? "gtc" : "ioc", prevention: "cancel_taker" } as const;
    const rest = { pat: false, at: 1, expiresAt: 0, validUntil: 0 };
    return { id, user: id, outcome, side, price, quantity, postOnly, ...kind, ...rest };
  }

  function mirrored(reference: ReferenceBook, count: number): MarketRegistry {
    const registry = registryOf(count);
    for (const outcome of reference.outcomes) {
      for (const side of [BUY, SELL] as const) {
        const levels = new Map<number, number>();
        for (const { price, remaining } of reference.resting(outcome, side)) {
          levels.set(price, (levels.get(price) ?? 0) + remaining);
        }
        for (const [price, quantity] of levels) registry.setLevel(outcome, side, price, quantity);
      }
    }
    drain(registry);
    return registry;
  }

  /** What an order without bound takes, level by level: all of it, and what came of mint or merge. */
  function taken(reference: ReferenceBook, outcome: number, side: SideNumber): { all: Levels; implied: Levels } {
    const from = reference.matches.length;
    reference.place(order(1_000, outcome, side, side === BUY ? 9_999 : 1, 1_000_000, false));
    const found = { all: [] as Levels, implied: [] as Levels };
    for (const { type, price, quantity } of reference.matches.slice(from)) {
      for (const levels of type === "direct" ? [found.all] : [found.all, found.implied]) {
        const last = levels.at(-1);
        if (last?.[0] === price) last[1] += quantity;
        else levels.push([price, quantity]);
      }
    }
    return found;
  }

  test.for([2, 3, 4, 8])("is what a taker gets of mint and merge: %i outcomes", (count) => {
    const random = Random.printed(`implied depth of ${count} outcomes`);
    let clamped = 0;
    let offered = 0;
    for (let round = 0; round < 100; round++) {
      const reference = restingMarket(random, count);
      const registry = mirrored(reference, count);
      const outcome = random.chance(0.5) ? 1 : random.integer(1, count);
      const market = registry.get(1)!;
      const depth = random.pick([1, 2, 5, 9_999]);
      const view = { depth, implied: true };
      const book = JSON.parse(bookJson(registry, market, market.outcomes[outcome - 1]!, view));
      const both = JSON.parse(marketBooksJson(registry, market, view));
      expect(both.outcomes[outcome - 1]).toMatchObject({ bids: book.bids, asks: book.asks, implied: book.implied });
      // A buy takes nothing that a sale could: one book serves both.
      const bought = taken(reference, outcome, BUY);
      const sold = taken(reference, outcome, SELL);
      expect(book).toMatchObject({
        asks: bought.all.slice(0, depth),
        bids: sold.all.slice(0, depth),
        implied: { asks: bought.implied.slice(0, depth), bids: sold.implied.slice(0, depth) },
      });
      offered += bought.implied.length + sold.implied.length;
      if (bought.implied[0]?.[0] === 1) clamped++;
    }
    expect(offered).toBeGreaterThan(10);
    if (count > 2) expect(clamped).toBeGreaterThan(0);
  });
});

describe("implied books", () => {
  type Ladder = Map<number, number>;
  const apply = (ladder: Ladder, levels: readonly (readonly [number, number])[]): void => {
    for (const [price, quantity] of levels) {
      if (quantity === 0) expect(ladder.delete(price)).toBe(true);
      else ladder.set(price, quantity);
    }
  };
  const shown = (ladder: Ladder, side: number): Levels => {
    return [...ladder].sort(([a], [b]) => (side === BUY ? b - a : a - b));
  };

  /** What a follower makes of the snapshot and the changes. */
  class Follower {
    sequence: number;
    private readonly ladders: Record<"bids" | "asks" | "impliedBids" | "impliedAsks", Ladder>;

    constructor(text: string) {
      const { sequence, bids, asks, implied } = JSON.parse(text);
      this.sequence = sequence;
      const of = (levels: Levels): Ladder => new Map(levels);
      this.ladders = { bids: of(bids), asks: of(asks), impliedBids: of(implied.bids), impliedAsks: of(implied.asks) };
    }

    take(sequence: number, { bids, asks, implied }: ImpliedChange): void {
      expect(sequence).toBe(++this.sequence);
      expect(bids.length + asks.length + implied.bids.length + implied.asks.length).toBeGreaterThan(0);
      apply(this.ladders.bids, bids);
      apply(this.ladders.asks, asks);
      apply(this.ladders.impliedBids, implied.bids);
      apply(this.ladders.impliedAsks, implied.asks);
    }

    get state(): object {
      const { bids, asks, impliedBids, impliedAsks } = this.ladders;
      const implied = { bids: shown(impliedBids, BUY), asks: shown(impliedAsks, SELL) };
      return { sequence: this.sequence, bids: shown(bids, BUY), asks: shown(asks, SELL), implied };
    }
  }

  /** Changes some levels of some outcomes, bids below asks. */
  function shake(random: Random, registry: MarketRegistry, market: Market): void {
    const middle = Math.floor(10_000 / market.outcomes.length);
    for (let n = random.integer(1, 6); n > 0; n--) {
      const { id } = random.pick(market.outcomes);
      const side = random.pick([BUY, SELL]);
      const away = random.integer(1, random.pick([3, 12, middle - 1]));
      const price = side === BUY ? middle - away : middle + away;
      registry.setLevel(id, side, price, random.chance(0.4) ? 0 : random.integer(1, 9));
    }
    drain(registry);
  }

  test.for([2, 3, 7])("are told without a gap, and are what REST shows at each number: %i outcomes", (count) => {
    const random = Random.printed(`implied books of ${count} outcomes`);
    const registry = registryOf(count, 2);
    const market = registry.get(1)!;
    const view = { implied: true };
    const read = (outcome: Outcome): object => {
      const { sequence, bids, asks, implied } = JSON.parse(bookJson(registry, market, outcome, view));
      return { sequence, bids, asks, implied };
    };
    const followers = new Map<number, Follower>();
    registry.implied.listen((_, { id }, sequence, change) => followers.get(id)!.take(sequence, change));
    // In some rounds there is no time: then nothing is told before somebody looks, or there is time again.
    let time = 0;
    const tell = (hasTime: boolean): void => {
      time += hasTime ? 1_000_000 : 0;
      registry.implied.publish(() => (hasTime ? time : (time += 1_000)));
    };
    const numbers = new Map<number, number>();
    let told = 0;
    for (let round = 0; round < 600; round++) {
      const outcome = random.pick(market.outcomes);
      if (random.chance(0.05)) {
        const follows = followers.has(outcome.id);
        registry.implied.setFollowed(market, outcome, !follows);
        if (follows) followers.delete(outcome.id);
        else followers.set(outcome.id, new Follower(bookJson(registry, market, outcome, view)));
      }
      const before = [...followers.values()].reduce((sum, { sequence }) => sum + sequence, 0);
      shake(random, registry, market);
      tell(random.chance(0.8));
      if (random.chance(0.3)) {
        const { sequence } = read(outcome) as { sequence: number };
        expect(sequence).toBeGreaterThanOrEqual(numbers.get(outcome.id) ?? FIRST_SEQUENCE);
        numbers.set(outcome.id, sequence);
      }
      if (random.chance(0.3)) {
        tell(true);
        for (const [id, follower] of followers) {
          expect(follower.state).toEqual(read(market.outcomes[id - market.firstOutcomeId]!));
        }
      }
      told += [...followers.values()].reduce((sum, { sequence }) => sum + sequence, 0) - before;
      // Best tradable prices are the ladders' first.
      const best = market.outcomes.map((each) => {
        const { bids, asks } = read(each) as Sides;
        return { bid: bids[0]?.[0] ?? null, ask: asks[0]?.[0] ?? null };
      });
      expect(tradablePrices(market)).toEqual(best);
    }
    expect(told).toBeGreaterThan(200);
    expect(market.impliedFollowers).toBe(followers.size);
  });

  test("take a share of the time and no more: what is late is told later, as one change", () => {
    const registry = registryOf(2);
    const market = registry.get(1)!;
    const changes: number[] = [];
    registry.implied.listen((_, __, sequence) => changes.push(sequence));
    for (const outcome of market.outcomes) {
      registry.implied.setFollowed(market, outcome, true);
      registry.implied.sequence(market, outcome);
    }
    // Each look at the clock finds that 20 ms are gone: more than may be spent at once.
    let time = 1_000_000;
    const slow = (): number => (time += 20);
    const change = (quantity: number): void => {
      registry.setLevel(1, BUY, 3_000, quantity);
      drain(registry);
    };
    change(1);
    registry.implied.publish(slow);
    expect(changes).toHaveLength(1);
    for (const quantity of [2, 3, 4]) {
      change(quantity);
      registry.implied.publish(slow);
    }
    const { length } = changes;
    expect(length).toBeLessThan(4);
    time += 1_000;
    for (let n = 0; n < 3; n++) {
      time += 1_000;
      registry.implied.publish(slow);
    }
    expect(changes.length).toBeLessThanOrEqual(length + 2);
    expect(JSON.parse(bookJson(registry, market, market.outcomes[1]!, { implied: true })).asks).toEqual([[7_000, 4]]);
    const late = changes.length;
    registry.implied.publish(slow);
    expect(changes).toHaveLength(late);
  });

  test("cost nothing where nobody follows: nothing is made, and no clock is looked at", () => {
    const registry = registryOf(3);
    const market = registry.get(1)!;
    registry.implied.listen(() => expect.unreachable());
    shake(new Random(1), registry, market);
    registry.implied.publish(() => expect.unreachable());
    const [first] = market.outcomes as [Outcome];
    registry.implied.setFollowed(market, first, true);
    registry.implied.sequence(market, first);
    registry.implied.setFollowed(market, first, false);
    shake(new Random(2), registry, market);
    registry.implied.publish(() => expect.unreachable());
  });
});
