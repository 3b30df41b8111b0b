/**
 * Implied depth: what mints and merges offer, against the reference of matching, and the changes that followers of
 * implied books receive. Plain books are in depth.test.ts.
 */
import { describe, expect, test } from "vitest";
import { bookJson, marketBooksJson } from "../../server/markets/book-json.ts";
import { type ImpliedChange, tradablePrices } from "../../server/markets/implied-books.ts";
import type { MarketRegistry } from "../../server/markets/registry.ts";
import type { Market, Outcome } from "../../server/markets/types.ts";
import { type Placement, ReferenceBook, type SideNumber } from "../engine/book/reference-book.ts";
import { Random } from "../support/random.ts";
import { drain, FIRST_SEQUENCE, type Levels, registryOf, type Sides } from "./book-registry.ts";

const BUY = 1;
const SELL = 2;

describe("implied depth", () => {
  /** Random post-only orders: those that would match are rejected. */
  function restingMarket(random: Random, count: number): ReferenceBook {
    const outcomes = Array.from({ length: count }, (_, i) => i + 1);
    const reference = new ReferenceBook(outcomes);
    const even = Math.floor(10_000 / count);
    const spread = random.pick([5, 60, even - 1]);
    // Bids that sum to far more than 10000 can rest together if one outcome has none.
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

  /** The levels that an unbounded order takes: all of them, and those from mints or merges. */
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

  test.for([2, 3, 4, 8])("implied depth is what a taker gets from mints and merges: %i outcomes", (count) => {
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

  /** A client that applies changes to its snapshot. */
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

  test.for([2, 3, 7])(
    "implied books are published without a gap, and equal what REST shows at each sequence: %i outcomes",
    (count) => {
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
      // Some rounds leave no time: nothing is published until a client reads, or until there is time again.
      let time = 0;
      const publish = (hasTime: boolean): void => {
        time += hasTime ? 1_000_000 : 0;
        registry.implied.publish(() => (hasTime ? time : (time += 1_000)));
      };
      const numbers = new Map<number, number>();
      let published = 0;
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
        publish(random.chance(0.8));
        if (random.chance(0.3)) {
          const { sequence } = read(outcome) as { sequence: number };
          expect(sequence).toBeGreaterThanOrEqual(numbers.get(outcome.id) ?? FIRST_SEQUENCE);
          numbers.set(outcome.id, sequence);
        }
        if (random.chance(0.3)) {
          publish(true);
          for (const [id, follower] of followers) {
            expect(follower.state).toEqual(read(market.outcomes[id - market.firstOutcomeId]!));
          }
        }
        published += [...followers.values()].reduce((sum, { sequence }) => sum + sequence, 0) - before;
        // The best tradable prices are the first levels.
        const best = market.outcomes.map((each) => {
          const { bids, asks } = read(each) as Sides;
          return { bid: bids[0]?.[0] ?? null, ask: asks[0]?.[0] ?? null };
        });
        expect(tradablePrices(market)).toEqual(best);
      }
      expect(published).toBeGreaterThan(200);
      expect(market.impliedFollowers).toBe(followers.size);
    },
  );

  test("implied books take a bounded share of the time: late changes are published later, as one", () => {
    const registry = registryOf(2);
    const market = registry.get(1)!;
    const changes: number[] = [];
    registry.implied.listen((_, __, sequence) => changes.push(sequence));
    for (const outcome of market.outcomes) {
      registry.implied.setFollowed(market, outcome, true);
      registry.implied.sequence(market, outcome);
    }
    // Each read of the clock advances it by 20 ms: more than one publish may spend.
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

  test("implied books cost nothing without followers: nothing is built, and the clock is not read", () => {
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
