/**
 * The ring of recent trades against plain lists: a page from it equals the page of a database with all trades. It returns
 * every page that it is sure to hold, and none that may lack a trade.
 */
import { expect, test } from "vitest";
import { MatchType } from "../../engine/constants.ts";
import { MAX_TRADES_WALKED } from "../../server/markets/limits.ts";
import { NO_TRADE, OLD_TRADES, RecentTrades } from "../../server/markets/recent-trades.ts";
import { Random } from "../support/random.ts";

const WORDS = { [MatchType.direct]: "direct", [MatchType.mint]: "mint", [MatchType.merge]: "merge" };

/** A market with all its trades, oldest first, and the number of those that the ring never received. */
class PlainMarket {
  readonly id: number;
  readonly trades: { fill: number; json: string }[] = [];
  readonly older: number;
  newest: number;

  constructor(id: number, older: number) {
    this.id = id;
    this.older = older;
    this.newest = older > 0 ? OLD_TRADES : NO_TRADE;
  }

  page(below: number | null, limit: number): { items: string[]; next: number | null } {
    const all = this.trades.filter(({ fill }) => below === null || fill < below).reverse();
    const shown = all.slice(0, limit);
    return { items: shown.map(({ json }) => json), next: all.length > limit ? shown.at(-1)!.fill : null };
  }
}

/** Trades of several markets in turn, given to the ring unless they are older than it. */
class Trading {
  readonly random: Random;
  readonly ring: RecentTrades;
  /** The markets of all trades that the ring received. */
  readonly given: PlainMarket[] = [];
  private fill = 0;

  constructor(random: Random, capacity: number) {
    this.random = random;
    this.ring = new RecentTrades(capacity);
  }

  add(market: PlainMarket, isOld = false): void {
    const { random } = this;
    const matchType = random.pick([MatchType.direct, MatchType.mint, MatchType.merge]);
    const legs = matchType === MatchType.direct ? 1 : random.integer(1, 31);
    this.fill += legs + random.integer(1, 5);
    const { fill } = this;
    const trade = {
      id: fill - legs,
      market_id: market.id,
      outcome_id: random.pick([1, 2 ** 20 - 1]),
      side: random.integer(1, 2),
      price: random.pick([1, 5_000, 9_999]),
      quantity: random.pick([1, 1_000_000_000]),
      match_type: WORDS[matchType],
      created_at: 1_800_000_000_000 + fill,
    };
    market.trades.push({ fill, json: JSON.stringify(trade) });
    if (isOld) return;
    const { outcome_id: outcomeId, id: matchId, created_at: at } = trade;
    market.newest = this.ring.add(market.newest, { ...trade, outcomeId, matchType, matchId, fillId: fill, at });
    this.given.push(market);
  }

  /** How many of the market's latest trades a ring of this size holds. */
  kept(market: PlainMarket, capacity: number): number {
    return this.given.slice(-capacity).filter((each) => each === market).length;
  }
}

test("a page equals the database's, or is left to the database", () => {
  const random = Random.printed("recent trades");
  const capacity = 64;
  let served = 0;
  let left = 0;
  for (let round = 0; round < 30; round++) {
    const trading = new Trading(random, capacity);
    const markets = [0, 0, 5, 40].map((older, i) => new PlainMarket(i + 1, older));
    for (const market of markets) for (let n = 0; n < market.older; n++) trading.add(market, true);
    for (let n = 0; n < 150; n++) {
      for (let burst = random.integer(0, 4); burst > 0; burst--) trading.add(random.pick(markets));
      const market = random.pick(markets);
      const seen = market.trades.length === 0 ? null : random.pick(market.trades).fill;
      const below = random.chance(0.3) ? null : seen;
      const limit = random.pick([1, 2, 7, 30, 200]);
      const page = trading.ring.page(market.id, market.newest, below, limit);
      const kept = trading.kept(market, capacity);
      const ofThem = market.trades
        .slice(market.trades.length - kept)
        .filter(({ fill }) => below === null || fill < below);
      const isKnown = below === null || (kept > 0 && market.trades.at(-1)!.fill >= below);
      const isAll = kept === market.trades.length;
      if (isKnown && (isAll || ofThem.length > limit)) {
        expect(page).toEqual(market.page(below, limit));
        served++;
      } else {
        expect(page).toBe(null);
        left++;
      }
    }
  }
  expect([served > 300, left > 300]).toEqual([true, true]);
});

test("pages below a trade that the ring hasn't received yet are left to the database", () => {
  const trading = new Trading(Random.printed("trades ahead"), 64);
  const market = new PlainMarket(1, 0);
  for (let n = 0; n < 5; n++) trading.add(market);
  const newest = market.trades.at(-1)!.fill;
  expect(trading.ring.page(1, market.newest, newest, 10)).toEqual(market.page(newest, 10));
  expect(trading.ring.page(1, market.newest, newest + 1, 10)).toBe(null);
  expect(trading.ring.page(1, NO_TRADE, 1, 10)).toBe(null);
  expect(trading.ring.page(1, NO_TRADE, null, 10)).toEqual({ items: [], next: null });
  expect(trading.ring.page(1, OLD_TRADES, null, 10)).toBe(null);
});

test("a far page is left to the database", () => {
  const trading = new Trading(Random.printed("deep pages"), 4_096);
  const market = new PlainMarket(1, 0);
  for (let n = 0; n < MAX_TRADES_WALKED + 100; n++) trading.add(market);
  const below = (index: number): number => market.trades.at(-index)!.fill;
  const page = (index: number): unknown => trading.ring.page(1, market.newest, below(index), 50);
  expect(page(MAX_TRADES_WALKED - 51)).toEqual(market.page(below(MAX_TRADES_WALKED - 51), 50));
  expect(page(MAX_TRADES_WALKED - 49)).toBe(null);
});
