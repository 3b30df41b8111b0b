/**
 * The depth mirror against plain books: levels, best prices, JSON and changes of random batches over several books that
 * share their memory; sequences; the cached texts. Mints and merges are in implied-depth.test.ts.
 */
import { describe, expect, test } from "vitest";
import { bookJson, marketBooksJson } from "../../server/markets/book-json.ts";
import type { MarketRegistry } from "../../server/markets/registry.ts";
import type { Market, Outcome } from "../../server/markets/types.ts";
import { marketView } from "../../server/markets/views.ts";
import { TextCache } from "../../server/util/text-cache.ts";
import { Random } from "../support/random.ts";
import { drain, FIRST_SEQUENCE, type Levels, registryOf, type Sides } from "./book-registry.ts";

const BUY = 1;
const SELL = 2;

/** The plainest book: signed shares by price. */
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

  /** The levels that changed since `before`. */
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
  test("a book equals a plain book after every batch, watched or not", () => {
    const random = Random.printed("random levels");
    const registry = registryOf(2, 3);
    const outcomes = registry.all().flatMap((market) => market.outcomes.map((outcome) => ({ market, outcome })));
    const plain = outcomes.map(() => new PlainBook());
    const sequences = outcomes.map(() => FIRST_SEQUENCE);
    for (let batch = 0; batch < 250; batch++) {
      const near = random.integer(1, 9_999);
      const before = plain.map(({ shares }) => new Map(shares));
      for (const { outcome } of outcomes) outcome.isWatched = random.chance(0.5);
      // Sometimes all levels go, and their pages with them.
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

  test("a book that returns to its state within a batch has not changed", () => {
    const registry = registryOf(2);
    const [outcome] = registry.get(1)!.outcomes as [Outcome, Outcome];
    for (const isWatched of [false, true]) {
      outcome.isWatched = isWatched;
      const sequence = registry.bookSequence(outcome);
      for (const quantity of [5, 6, 0]) registry.setLevel(1, BUY, 4_000, quantity);
      registry.setLevel(1, SELL, 6_000, 0);
      expect([...drain(registry)]).toEqual([]);
      expect(registry.bookSequence(outcome)).toBe(sequence);
      // Two levels change; only the later one ends different.
      for (const [price, quantity] of [[4_000, 5], [4_000, 0], [3_999, 1]]) registry.setLevel(1, BUY, price!, quantity!); // biome-ignore format: levels
      expect([...drain(registry).values()].map(({ bids }) => bids)).toEqual(isWatched ? [[[3_999, 1]]] : []);
      expect(registry.bookSequence(outcome)).toBe(sequence + 1);
      registry.setLevel(1, BUY, 3_999, 0);
      drain(registry);
    }
  });

  test("a book whose best price turns to the other side publishes both sides", () => {
    const registry = registryOf(2);
    registry.get(1)!.outcomes[0]!.isWatched = true;
    registry.setLevel(1, BUY, 5_000, 3);
    drain(registry);
    registry.setLevel(1, SELL, 5_000, 4);
    expect(drain(registry).get(1)).toMatchObject({ bids: [[5_000, 0]], asks: [[5_000, 4]] });
  });

  test("a book resets its sequence, and its text, when all books are rebuilt", () => {
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

  test("a book gives the market its best prices", () => {
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
  test("the texts of books are built once per state, and again for each change that they show", () => {
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
    // Another market changes, then another outcome of this one: texts of the first outcome only stay.
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

  test("the texts of books show when their content was applied", () => {
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

  test("the texts of books stay within bounds: the oldest are evicted first", () => {
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
    // A text that is too long is not cached, and leaves the cache intact.
    for (const n of [7, 8]) expect(Number(ask(5, 1, 31))).toBe(n);
    expect([ask(6), ask(6)].map(Number)).toEqual([9, 9]);
  });
});
