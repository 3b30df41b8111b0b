/**
 * The order preview: estimated fills against random books agree with the reference matcher, for all three match types; and
 * the preview blocks orders that can't work.
 */
import { describe, expect, test } from "vitest";
import { combineDepth, estimate, impliedLadder, type Ladder, type Level } from "../../server/web/trading/depth.ts";
import {
  type Draft,
  EMPTY_DRAFT,
  maxAmount,
  type Obstacle,
  type PreviewContext,
  previewOrder,
} from "../../server/web/trading/order-preview.ts";
import { type Placement, ReferenceBook, type SideNumber } from "../engine/book/reference-book.ts";
import { Random } from "../support/random.ts";

const BUY = 1;
const SELL = 2;

describe("an estimate", () => {
  function order(id: number, outcome: number, side: SideNumber, price: number, quantity: number): Placement {
    const kind = { type: "limit", timeInForce: "gtc", prevention: "cancel_taker", postOnly: true } as const;
    return { id, user: id, outcome, side, price, quantity, ...kind, pat: false, at: 1, expiresAt: 0, validUntil: 0 };
  }

  function restingMarket(random: Random, count: number): ReferenceBook {
    const reference = new ReferenceBook(Array.from({ length: count }, (_, i) => i + 1));
    const even = Math.floor(10_000 / count);
    // Without orders on one outcome, bids can rest that sum to far more than 10000.
    const first = random.chance(0.4) ? 2 : 1;
    for (let id = 1; id <= 15 * count; id++) {
      const price = first === 2 ? random.integer(even, 9_999) : even + random.integer(-60, 60);
      const side = random.pick([BUY, SELL]) as SideNumber;
      reference.place(order(id, random.integer(first, count), side, price, random.integer(1, 9)));
    }
    return reference;
  }

  function laddersOf(reference: ReferenceBook): Map<number, Ladder> {
    const levels = (outcome: number, side: SideNumber): Level[] => {
      const byPrice = new Map<number, number>();
      for (const { price, remaining } of reference.resting(outcome, side)) {
        byPrice.set(price, (byPrice.get(price) ?? 0) + remaining);
      }
      return [...byPrice].sort((a, b) => (side === BUY ? b[0] - a[0] : a[0] - b[0]));
    };
    return new Map(reference.outcomes.map((each) => [each, { bids: levels(each, BUY), asks: levels(each, SELL) }]));
  }

  test.for([2, 3, 5])("an estimate agrees with the reference matcher: %i outcomes", (count) => {
    const random = Random.printed(`estimates with ${count} outcomes`);
    const kinds = new Set<string>();
    for (let round = 0; round < 600; round++) {
      const reference = restingMarket(random, count);
      const books = laddersOf(reference);
      const outcome = random.integer(1, count);
      const side = random.pick([BUY, SELL]) as SideNumber;
      const price = random.integer(1, 9_999);
      const quantity = random.integer(1, 120);
      const name = side === BUY ? "asks" : "bids";
      const depth = combineDepth(
        books.get(outcome)![name],
        impliedLadder(books, reference.outcomes, outcome)[name],
        name,
      );
      const estimated = estimate(depth, side === BUY, price, quantity, 0);
      const from = reference.matches.length;
      reference.place({ ...order(9_999, outcome, side, price, quantity), postOnly: false, timeInForce: "ioc" });
      const matches = reference.matches.slice(from);
      for (const { type } of matches) kinds.add(type);
      expect(estimated).toMatchObject({
        quantity: matches.reduce((sum, each) => sum + each.quantity, 0),
        notional: matches.reduce((sum, each) => sum + 100 * each.price * each.quantity, 0),
        worstPrice: matches.at(-1)?.price ?? null,
        isImplied: matches.some(({ type }) => type !== "direct"),
      });
    }
    expect([...kinds].sort()).toEqual(["direct", "merge", "mint"]);
  });
});

describe("an order preview", () => {
  const outcome = {
    id: 5,
    name: "Yes",
    index: 0,
    last_price: null,
    price_24h_ago: null,
    best_bid: null,
    best_ask: null,
    implied_bid: null,
    implied_ask: null,
    volume: 0,
  };
  const position = {
    ...{ market_id: 3, outcome_id: 5, quantity: 100, held: 30, cost: 40_000_000, average_price: 4_000 },
    ...{ realized_pnl: 0, market_value: null, unrealized_pnl: null },
  };
  const context: PreviewContext = {
    ...{ marketId: 3, outcome, available: 100_000_000, position, ownOrders: [], feeBps: 150, activity: null },
    depth: [
      { price: 4_000, quantity: 50, implied: 0 },
      { price: 4_500, quantity: 50, implied: 20 },
    ],
    ...{ closesAt: 2_000_000_000_000, now: 1_000_000_000_000, isStale: false, slippageBps: 200 },
  };
  const LIMIT: Partial<Draft> = { kind: "limit", unit: "shares" };
  const MARKET: Partial<Draft> = { kind: "market", unit: "shares" };
  const preview = (draft: Partial<Draft>, changed: Partial<PreviewContext> = {}) =>
    previewOrder({ ...EMPTY_DRAFT, ...draft }, { ...context, ...changed });
  const bids = [{ price: 6_000, quantity: 500, implied: 0 }];

  test("an order preview shows what a limit buy fills now, what rests, and what it holds", () => {
    const { summary, body, warnings, bound } = preview({ ...LIMIT, price: "45", amount: "120" });
    expect(summary).toMatchObject({
      fills: { quantity: 100, notional: 42_500_000, fee: 0, worstPrice: 4_500, isImplied: true },
      ...{ quantity: 120, resting: 20, notional: 51_500_000, fee: 0, hold: 54_000_000, payout: 120_000_000 },
    });
    expect([bound, warnings]).toEqual([4_500, []]);
    expect(body).toEqual({
      ...{ market_id: 3, outcome_id: 5, side: 1, price: 4_500, quantity: 120 },
      ...{ type: "limit", time_in_force: "gtc", post_only: false },
    });
  });

  test("an order preview deducts the fee from a sale's proceeds", () => {
    const { summary } = preview({ ...LIMIT, side: "sell", price: "60", amount: "70" }, { depth: bids });
    expect(summary).toMatchObject({ notional: 42_000_000, fee: 630_000, hold: 0 });
  });

  test("an order preview bounds a market order by the best price and the slippage, on both sides", () => {
    const available = 36_000_000;
    const deep = [{ price: 2_400, quantity: 10_000, implied: 0 }];
    // 150 shares that cost 36 USDC: no more than the bound is held.
    const buy = preview({ ...MARKET, amount: "138" }, { depth: deep, available });
    expect(buy.body).toMatchObject({ type: "market", price: 2_600, quantity: 138, time_in_force: "ioc" });
    expect(buy.summary).toMatchObject({ notional: 33_120_000, hold: 35_880_000 });
    const sell = preview({ ...MARKET, side: "sell", amount: "70" }, { depth: bids, slippageBps: 50 });
    expect(sell.body).toMatchObject({ side: 2, type: "market", price: 5_950, quantity: 70 });
    // The bound is always a price.
    const edges = [preview({ ...MARKET, amount: "1" }, { depth: [{ price: 9_950, quantity: 1, implied: 0 }] })];
    edges.push(preview({ ...MARKET, side: "sell", amount: "1" }, { depth: [{ price: 30, quantity: 1, implied: 0 }] }));
    expect(edges.map(({ body }) => body?.price)).toEqual([9_999, 1]);
  });

  test("an order preview turns an amount of money into as many shares as it buys, and as the balance and the daily limit can hold", () => {
    const rich = { available: 1_000_000_000 };
    const quantity = (draft: Partial<Draft>, changed: Partial<PreviewContext> = rich): number | undefined =>
      preview({ kind: "market", unit: "usdc", ...draft }, changed).body?.quantity;
    // 50 at 40.0¢, 50 at 45.0¢ within the bound of 42.0¢: the rest could come at the bound.
    expect(quantity({ amount: "20" })).toBe(50);
    expect(quantity({ amount: "20.41" })).toBe(50);
    expect(quantity({ amount: "20.42" })).toBe(51);
    expect(quantity({ kind: "limit", price: "45", amount: "45" })).toBe(100);
    expect(quantity({ kind: "limit", price: "45", amount: "44.999999" })).toBe(99);
    // All of the balance: an order may hold more than it costs.
    expect(quantity({ amount: "100" }, { available: 100_000_000 })).toBe(Math.floor(100 / 0.42));
    const activity = { used: 90_000_000, limit: 100_000_000 };
    expect(quantity({ amount: "10" }, { activity })).toBe(Math.floor(10 / 0.42));
    expect(preview({ kind: "market", unit: "usdc", amount: "0.01" }).problems.amount).toBe("Buys less than one share.");
  });

  test("an order preview blocks orders that can't be read, and says why", () => {
    const blocked: [Partial<Draft>, "price" | "amount" | "expires", RegExp][] = [
      [{ ...LIMIT, price: "100", amount: "1" }, "price", /between 0\.01¢ and 99\.99¢/],
      [{ ...LIMIT, price: "4.001", amount: "1" }, "price", /two decimals/],
      [{ ...LIMIT, price: "40", amount: "1.5" }, "amount", /whole number/],
      [{ ...LIMIT, price: "40", amount: "1,5" }, "amount", /whole number/],
      [{ ...LIMIT, price: "40", amount: "1000000001" }, "amount", /at most 1,000,000,000/],
      [{ ...LIMIT, unit: "usdc", price: "40", amount: "1.0000001" }, "amount", /six decimals/],
      [{ ...LIMIT, unit: "usdc", price: "40", amount: "0" }, "amount", /amount of USDC/],
      [{ ...LIMIT, price: "40", amount: "1", timeInForce: "gtd", expires: "2001-01-01T00:00" }, "expires", /future/],
      [{ ...LIMIT, price: "40", amount: "1", timeInForce: "gtd", expires: "2040-01-01T00:00" }, "expires", /closes/],
    ];
    for (const [draft, field, why] of blocked) {
      const { body, problems } = preview(draft);
      expect([body, problems[field]], JSON.stringify(draft)).toEqual([null, expect.stringMatching(why)]);
    }
    const empty = preview({ kind: "limit", timeInForce: "gtd" });
    expect(empty.body).toBeNull();
    expect(Object.values(empty.problems)).toEqual([null, null, null]);
    expect(Object.values(empty.missing)).not.toContain(null);
  });

  test("an order preview blocks orders that can't work, and knows what could", () => {
    const sell: Partial<Draft> = { ...LIMIT, side: "sell", price: "40" };
    const blocked: [Partial<Draft>, Partial<PreviewContext>, Obstacle][] = [
      [
        { ...LIMIT, price: "40", amount: "251" },
        {},
        { kind: "funds", available: 100_000_000, maxShares: 250, bound: 4_000 },
      ],
      [{ ...MARKET, amount: "239" }, {}, { kind: "funds", available: 100_000_000, maxShares: 238, bound: 4_200 }],
      [{ ...sell, amount: "71" }, { depth: bids }, { kind: "shares", free: 70, owned: 100 }],
      [
        { ...sell, amount: "1" },
        { depth: bids, position: undefined },
        { kind: "shares", free: 0, owned: 0 },
      ],
      [{ ...LIMIT, isPostOnly: true, price: "40", amount: "1" }, {}, { kind: "crosses", best: 4_000, next: 3_999 }],
      [
        { ...sell, isPostOnly: true, price: "60", amount: "1" },
        { depth: bids },
        { kind: "crosses", best: 6_000, next: 6_001 },
      ],
      [{ ...MARKET, amount: "10" }, { depth: [] }, { kind: "empty" }],
      [{ ...MARKET, amount: "10" }, { isStale: true }, { kind: "not-live" }],
      [{ ...LIMIT, price: "40", amount: "10" }, { isStale: true }, { kind: "not-live" }],
      [{ ...LIMIT, price: "39", amount: "10", timeInForce: "ioc" }, {}, { kind: "beyond", best: 4_000 }],
      [{ ...LIMIT, price: "45", amount: "101", timeInForce: "fok" }, {}, { kind: "too-few", found: 100 }],
    ];
    for (const [draft, changed, obstacle] of blocked) {
      const shown = preview(draft, changed);
      expect([shown.body, shown.obstacle], JSON.stringify(draft)).toEqual([null, obstacle]);
    }
  });

  test("an order preview blocks nothing that depends on the book while the book is unknown", () => {
    const drafts: Partial<Draft>[] = [
      { ...MARKET, amount: "10" },
      { ...LIMIT, isPostOnly: true, price: "60", amount: "10" },
      { ...LIMIT, price: "39", amount: "10", timeInForce: "fok" },
    ];
    for (const draft of drafts) {
      const { body, warnings, obstacle } = preview(draft, {
        depth: null,
        outcome: { ...outcome, implied_ask: 4_000 },
      });
      expect([body?.quantity, warnings, obstacle], JSON.stringify(draft)).toEqual([10, [], null]);
    }
  });

  test("an order preview's Max fills in what balance, bound and daily limit allow, and that order can be sent", () => {
    const max = (draft: Partial<Draft>, changed: Partial<PreviewContext> = {}): string | null => {
      const text = maxAmount({ ...EMPTY_DRAFT, ...draft }, { ...context, ...changed });
      if (text !== null) {
        const { body, warnings } = preview({ ...draft, amount: text }, changed);
        expect(body, JSON.stringify(draft)).not.toBeNull();
        expect(warnings.filter(({ kind }) => kind === "limit")).toEqual([]);
      }
      return text;
    };
    const activity = { used: 90_000_000, limit: 100_000_000 };
    expect(max({ ...LIMIT, price: "40" })).toBe("250");
    expect(max({ ...LIMIT, price: "40" }, { activity })).toBe("25");
    expect(max(MARKET)).toBe("238");
    expect(max(MARKET, { activity })).toBe("23");
    expect(max({ kind: "market", unit: "usdc" }, { available: 1_234_567_891 })).toBe("1234.567891");
    expect(max({ kind: "market", unit: "usdc" }, { activity })).toBe("10");
    expect(max({ ...LIMIT, side: "sell", price: "40" }, { depth: bids })).toBe("70");
    expect(max({ ...LIMIT })).toBeNull();
    expect(max({ ...LIMIT, price: "40" }, { available: 0 })).toBeNull();
    expect(max({ ...LIMIT, side: "sell", price: "40" }, { position: undefined })).toBeNull();
  });

  test("an order preview asks about a limit far beyond the best price, with what it can come to", () => {
    const far = preview({ ...LIMIT, price: "45", amount: "60" }).far;
    expect(far).toMatchObject({ price: 4_500, best: 4_000, worst: 27_000_000, fills: { notional: 24_500_000 } });
    expect(preview({ ...LIMIT, price: "44.99", amount: "60" }).far).toBeNull();
    expect(preview({ ...LIMIT, side: "sell", price: "55", amount: "60" }, { depth: bids }).far).toMatchObject({
      ...{ price: 5_500, best: 6_000, worst: 33_000_000 },
    });
    // These never fill beyond the best price.
    expect(preview({ ...LIMIT, price: "45", amount: "60" }, { depth: [] }).far).toBeNull();
    expect(preview({ ...MARKET, amount: "60" }, { slippageBps: 5_000 }).far).toBeNull();
  });

  test("an order preview warns about surprising results", () => {
    const own = { side: 2, outcome_id: 5, price: 4_500 } as PreviewContext["ownOrders"][number];
    const buy = (amount: string, changed: Partial<PreviewContext>) =>
      preview({ ...LIMIT, price: "45", amount }, changed).warnings;
    expect(buy("60", { ownOrders: [own] })).toEqual([{ kind: "own" }]);
    expect(buy("50", { ownOrders: [own] })).toEqual([]);
    const activity = { used: 90_000_000, limit: 100_000_000 };
    expect(buy("60", { activity })).toEqual([{ kind: "limit", over: 17_000_000, limit: 100_000_000, maxShares: 22 }]);
    expect(preview({ ...LIMIT, side: "sell", price: "45", amount: "60" }, { activity }).warnings).toEqual([]);
    const available = 1_000_000_000;
    expect(preview({ ...MARKET, amount: "150" }, { available }).warnings).toEqual([
      { kind: "partial", found: 50, rest: 100 },
    ]);
  });
});
