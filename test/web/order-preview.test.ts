/**
 * The order preview: estimated fills against random books agree with the reference matcher, for all three match types; and
 * the preview blocks orders that can't work.
 */
import { describe, expect, test } from "vitest";
import { combineDepth, estimate, impliedLadder, type Ladder, type Level } from "../../server/web/trading/depth.ts";
import {
  type Draft,
  EMPTY_DRAFT,
  maxQuantity,
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

  test.for([2, 3, 5])("agrees with the reference matcher: %i outcomes", (count) => {
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
    ...{ closesAt: 2_000_000_000_000, now: 1_000_000_000_000 },
  };
  const preview = (draft: Partial<Draft>, changed: Partial<PreviewContext> = {}) =>
    previewOrder({ ...EMPTY_DRAFT, ...draft }, { ...context, ...changed });
  const bids = [{ price: 6_000, quantity: 500, implied: 0 }];

  test("shows what a limit buy fills now, what rests, and what it holds", () => {
    const { summary, body, warnings } = preview({ price: "45", quantity: "120" });
    expect(summary).toMatchObject({
      fills: { quantity: 100, notional: 42_500_000, fee: 0, worstPrice: 4_500, isImplied: true },
      ...{ resting: 20, notional: 51_500_000, fee: 0, hold: 54_000_000, payout: 120_000_000, profit: 68_500_000 },
    });
    expect(warnings).toEqual([]);
    expect(body).toEqual({
      ...{ market_id: 3, outcome_id: 5, side: 1, price: 4_500, quantity: 120 },
      ...{ type: "limit", time_in_force: "gtc", post_only: false },
    });
  });

  test("deducts the fee from a sale's proceeds, and measures profit by the shares' cost", () => {
    const { summary } = preview({ side: "sell", price: "60", quantity: "70" }, { depth: bids });
    expect(summary).toMatchObject({ notional: 42_000_000, fee: 630_000, hold: 0, profit: 13_370_000 });
  });

  test("blocks orders that can't work, and says why", () => {
    const blocked: [Partial<Draft>, Partial<PreviewContext>, "price" | "quantity" | "expires", RegExp][] = [
      [{ price: "100", quantity: "1" }, {}, "price", /between 0\.01¢ and 99\.99¢/],
      [{ price: "4.001", quantity: "1" }, {}, "price", /two decimals/],
      [{ price: "40", quantity: "1.5" }, {}, "quantity", /whole number/],
      [{ price: "40", quantity: "1,5" }, {}, "quantity", /whole number/],
      [{ price: "40", quantity: "1000000001" }, {}, "quantity", /at most 1,000,000,000/],
      [{ price: "40", quantity: "251" }, {}, "quantity", /hold of 100\.40 USDC; 100\.00/],
      [{ kind: "market", quantity: "101" }, {}, "quantity", /Set a worst price to reduce/],
      [{ side: "sell", price: "40", quantity: "71" }, {}, "quantity", /70 available shares of Yes/],
      [{ side: "sell", price: "40", quantity: "1" }, { position: undefined }, "quantity", /no shares of Yes/],
      [{ kind: "post_only", price: "40", quantity: "1" }, {}, "price", /below 40\.0¢/],
      [{ kind: "market", quantity: "10" }, { depth: [] }, "quantity", /no asks in the book/],
      [{ price: "39", quantity: "10", timeInForce: "ioc" }, {}, "quantity", /the best is 40\.0¢/],
      [{ price: "45", quantity: "101", timeInForce: "fok" }, {}, "quantity", /Only 100 shares/],
      [{ price: "40", quantity: "1", timeInForce: "gtd", expires: "2001-01-01T00:00" }, {}, "expires", /in the future/],
      [
        { price: "40", quantity: "1", timeInForce: "gtd", expires: "2040-01-01T00:00" },
        {},
        "expires",
        /before the market closes/,
      ],
    ];
    for (const [draft, changed, field, why] of blocked) {
      const { body, problems } = preview(draft, changed);
      expect([body, problems[field]], JSON.stringify(draft)).toEqual([null, expect.stringMatching(why)]);
    }
    const empty = preview({ timeInForce: "gtd" });
    expect(empty.body).toBeNull();
    expect(Object.values(empty.problems)).toEqual([null, null, null]);
    expect(Object.values(empty.missing)).not.toContain(null);
  });

  test("blocks nothing that depends on the book while the book is unknown", () => {
    const drafts: Partial<Draft>[] = [
      { kind: "market", quantity: "10" },
      { kind: "post_only", price: "60", quantity: "10" },
      { price: "39", quantity: "10", timeInForce: "fok" },
    ];
    for (const draft of drafts) {
      const { body, warnings } = preview(draft, { depth: null });
      expect([body?.quantity, warnings], JSON.stringify(draft)).toEqual([10, []]);
    }
  });

  test("computes the largest quantity that funds allow", () => {
    const max = (draft: Partial<Draft>) => maxQuantity({ ...EMPTY_DRAFT, ...draft }, context);
    expect(max({ price: "40" })).toBe(250);
    expect(max({ kind: "market" })).toBe(100);
    expect(max({ side: "sell" })).toBe(70);
    expect(max({})).toBeNull();
    expect(preview({ price: "40", quantity: "250" }).body).not.toBeNull();
    expect(preview({ kind: "market", quantity: "100" }).body).toMatchObject({ price: null, time_in_force: "ioc" });
  });

  test("warns about surprising results", () => {
    const own = { side: 2, outcome_id: 5, price: 4_500 } as PreviewContext["ownOrders"][number];
    expect(preview({ price: "45", quantity: "60" }, { ownOrders: [own] }).warnings).toEqual([
      expect.stringMatching(/match your own order/),
    ]);
    expect(preview({ price: "45", quantity: "50" }, { ownOrders: [own] }).warnings).toEqual([]);
    const activity = { used: 90_000_000, limit: 100_000_000 };
    expect(preview({ price: "45", quantity: "60" }, { activity }).warnings).toEqual([
      expect.stringMatching(/10\.00 USDC left/),
    ]);
    expect(preview({ side: "sell", price: "45", quantity: "60" }, { activity }).warnings).toEqual([]);
    const far = [...(context.depth ?? []), { price: 5_100, quantity: 50, implied: 0 }];
    const available = 1_000_000_000;
    expect(preview({ kind: "market", quantity: "150" }, { depth: far, available }).warnings).toEqual([
      expect.stringMatching(/far from the best price/),
    ]);
    expect(preview({ kind: "market", quantity: "150" }, { available }).warnings).toEqual([
      expect.stringMatching(/the other 50 will be canceled/),
    ]);
  });
});
