/**
 * Orders over REST as the contract describes them: what a placement returns and becomes, the rules between its fields,
 * cancels, and lists. For what an order does on its way, see time-in-force.test.ts; for money, holds-and-fees.test.ts;
 * for limits by KYC tier, account-limits.test.ts.
 */
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { expectBalanced, expectSoundDatabase } from "../support/checks.ts";
import type { FillJson, OrderJson, OwnFillJson, TransactionJson } from "../support/client.ts";
import { notional } from "../support/reference.ts";
import { BUY, expectRefused, post, SELL, terms } from "../support/trading.ts";
import { World } from "../support/world.ts";

const DAY_MS = 86_400_000;

let world: World;
beforeAll(async () => {
  world = await World.start({
    users: 90,
    markets: Array<number>(50).fill(2),
  });
});
afterAll(async () => {
  await expectBalanced(world.anonymous());
  await world.stop();
  expectSoundDatabase(world.server.dataDir);
});

describe("placement", () => {
  test("a placement's 202 shows the order field by field, queued and without trades, and the defaults", async () => {
    const [market, user] = [world.market(), world.user()];
    const before = Date.now();
    const order = await user.place(terms(market, 0, BUY, 4_200, 10));
    expect(order).toEqual({
      id: expect.any(Number),
      client_order_id: null,
      market_id: market.id,
      outcome_id: market.outcomes[0],
      side: BUY,
      price: 4_200,
      quantity: 10,
      remaining: 10,
      filled: 0,
      type: "limit",
      time_in_force: "gtc",
      post_only: false,
      self_trade_prevention: "cancel_taker",
      expires_at: null,
      status: "queued",
      reason: null,
      builder_code: null,
      created_at: expect.any(Number),
      updated_at: order.created_at,
      trades: [],
    });
    expect(order.created_at).toBeGreaterThanOrEqual(before);
    expect(order.created_at).toBeLessThanOrEqual(Date.now());
    expect(await user.order(order.id)).toEqual({ ...order, status: "open" });
  });

  test("a placement's 202 shows every optional field as it was given", async () => {
    const [market, user] = [world.market(), world.user()];
    const more = {
      type: "limit",
      time_in_force: "gtd",
      expires_at: Date.now() + DAY_MS,
      post_only: true,
      client_order_id: "a.B_9:-",
      self_trade_prevention: "decrement",
    };
    const order = await user.place(terms(market, 1, BUY, 1, 1, { ...more, valid_until: Date.now() + DAY_MS }));
    expect(order).toMatchObject({ ...more, status: "queued", trades: [] });
    expect(await user.order(order.id)).toEqual({ ...order, status: "open" });
  });

  test("a placement's 202 shows queued and no trades even if the order matches", async () => {
    const [market, maker, taker] = [world.market(), world.user(), world.user()];
    await world.split(maker, market, 5);
    await maker.place(terms(market, 0, SELL, 6_000, 5));
    const order = await taker.place(terms(market, 0, BUY, 6_000, 5));
    expect(order).toMatchObject({ status: "queued", remaining: 5, filled: 0, trades: [] });
    expect(await taker.order(order.id)).toMatchObject({ status: "filled", remaining: 0, filled: 5, reason: null });
  });

  test("a placement's null means that an optional field is absent", async () => {
    const [market, user] = [world.market(), world.user()];
    const nulls = { client_order_id: null, expires_at: null, valid_until: null };
    expect(await user.place(terms(market, 0, BUY, 5_000, 1, nulls))).toMatchObject({ status: "queued" });
    expect(await user.place({ ...terms(market, 0, BUY, 1, 1), type: "market", price: null })).toMatchObject({
      type: "market",
      price: null,
      time_in_force: "ioc",
    });
  });

  test("a market order's bound is 9999 to buy and 1 to sell unless it has a price", async () => {
    const [market, user] = [world.market(), world.user()];
    await world.split(user, market, 3);
    const { price: _, ...open } = { ...terms(market, 0, BUY, 1, 1), type: "market" } as Record<string, unknown>;
    expect(await user.place(open)).toMatchObject({ price: null, time_in_force: "ioc" });
    expect(await user.place({ ...open, side: SELL })).toMatchObject({ price: null, time_in_force: "ioc" });
    expect(await user.place({ ...open, price: 77 })).toMatchObject({ price: 77, time_in_force: "ioc" });
    expect(await user.place({ ...open, time_in_force: "fok" })).toMatchObject({ time_in_force: "fok" });
  });

  test("a placement that breaks a rule between fields is rejected with 40000 that names the field", async () => {
    const [market, user] = [world.market(), world.user()];
    const soon = Date.now() + DAY_MS;
    const wrong: [object, RegExp][] = [
      [{ price: undefined }, /price/],
      [{ price: null }, /price/],
      [{ type: "market", time_in_force: "gtc" }, /time_in_force/],
      [{ type: "market", time_in_force: "gtd", expires_at: soon }, /time_in_force/],
      [{ time_in_force: "gtd" }, /expires_at/],
      [{ time_in_force: "gtd", expires_at: 1 }, /expires_at/],
      [{ expires_at: soon }, /expires_at/],
      [{ time_in_force: "ioc", expires_at: soon }, /expires_at/],
      [{ type: "market", post_only: true }, /post_only/],
      [{ time_in_force: "ioc", post_only: true }, /post_only/],
      [{ time_in_force: "fok", post_only: true }, /post_only/],
      [{ outcome_id: world.markets.at(-1)!.outcomes[0] }, /outcome_id/],
    ];
    for (const [more, message] of wrong) {
      await expectRefused(post(user, terms(market, 0, BUY, 5_000, 1, more)), 400, 40000, message);
    }
    await expectRefused(post(user, terms({ ...market, id: 999_999 }, 0, BUY, 5_000, 1)), 404, 4040);
    expect(await user.all("/orders?status=all")).toEqual([]);
    expect(await user.balance()).toMatchObject({ held: 0 });
  });

  test("a placement with valid_until in the past is rejected as too_late, at 0 too, and its hold returns", async () => {
    const [market, user] = [world.market(), world.user()];
    for (const validUntil of [Date.now() - 1_000, 1, 0]) {
      const { id } = await user.place(terms(market, 0, BUY, 5_000, 1, { valid_until: validUntil }));
      expect(await user.order(id)).toMatchObject({ status: "rejected", reason: "too_late", filled: 0 });
    }
    expect(await user.balance()).toMatchObject({ held: 0 });
    const { id } = await user.place(terms(market, 0, BUY, 5_000, 1, { valid_until: Date.now() + 60_000 }));
    expect(await user.order(id)).toMatchObject({ status: "open" });
  });
});

describe("client_order_id", () => {
  test("a placement that repeats a client_order_id returns the first response and places nothing", async () => {
    const [market, user] = [world.market(), world.user()];
    const body = terms(market, 0, BUY, 5_000, 4, { client_order_id: "retry-1" });
    const first = await user.place(body);
    expect(await user.place(body)).toEqual(first);
    expect(await user.all("/orders?status=all")).toHaveLength(1);
    expect(await user.balance()).toMatchObject({ held: notional(5_000, 4) });
  });

  test("another placement under the same client_order_id is a conflict; another user may use it", async () => {
    const [market, user] = [world.market(), world.user()];
    const body = terms(market, 0, BUY, 5_000, 4, { client_order_id: "mine" });
    await user.place(body);
    for (const change of [
      { price: 5_001 },
      { quantity: 5 },
      { outcome_id: market.outcomes[1] },
      { side: SELL },
      { post_only: true },
      { self_trade_prevention: "cancel_both" },
      { time_in_force: "ioc" },
    ]) {
      await expectRefused(post(user, { ...body, ...change }), 409, 40900, /client_order_id/);
    }
    expect(await world.user().place(body)).toMatchObject({ client_order_id: "mine" });
  });

  test("the same placement on two connections at once is one order, and both receive the same response", async () => {
    const [market, user] = [world.market(), world.user()];
    const again = world.client(user.token!.split("-")[1]!);
    const body = terms(market, 0, BUY, 5_000, 4, { client_order_id: "twice" });
    const [a, b] = await Promise.all([user.place(body), again.place(body)]);
    expect(a).toEqual(b);
    expect(await user.all("/orders")).toHaveLength(1);
  });
});

describe("cancel", () => {
  test("a cancel's 202 has the order as it stood, then it is canceled by its user", async () => {
    const [market, user, other] = [world.market(), world.user(), world.user()];
    await world.split(other, market, 3);
    const { id } = await user.place(terms(market, 0, BUY, 5_000, 10));
    await other.place(terms(market, 0, SELL, 5_000, 3));
    expect(await user.cancel(id)).toMatchObject({
      id,
      status: "partially_filled",
      filled: 3,
      remaining: 7,
      reason: null,
    });
    expect(await user.order(id)).toMatchObject({ status: "canceled", reason: "user", filled: 3, remaining: 7 });
    expect(await user.balance()).toMatchObject({ held: 0 });
  });

  test("a cancel of a finished order is 40900, of an unknown one 4040, of another user's 4040, which stays untouched", async () => {
    const [market, user, other] = [world.market(), world.user(), world.user()];
    const { id } = await user.place(terms(market, 0, BUY, 5_000, 1));
    await expectRefused(other.request("DELETE", `/orders/${id}`), 404, 4040);
    await expectRefused(other.request("GET", `/orders/${id}`), 404, 4040);
    await expectRefused(user.request("DELETE", "/orders/999999999"), 404, 4040);
    expect(await user.order(id)).toMatchObject({ status: "open" });
    await user.cancel(id);
    await expectRefused(user.request("DELETE", `/orders/${id}`), 409, 40900);
    await expectRefused(other.request("DELETE", `/orders/${id}`), 404, 4040);
    await world.split(user, market, 1);
    await other.place(terms(market, 1, BUY, 5_000, 1));
    const sold = await user.place(terms(market, 1, SELL, 5_000, 1));
    await expectRefused(user.request("DELETE", `/orders/${sold.id}`), 409, 40900);
  });

  test("of two cancels at once one wins", async () => {
    const [market, user] = [world.market(), world.user()];
    const again = world.client(user.token!.split("-")[1]!);
    for (let i = 0; i < 5; i++) {
      const { id } = await user.place(terms(market, 0, BUY, 5_000, 1));
      const path = `/orders/${id}`;
      const answers = await Promise.all([user.request("DELETE", path), again.request("DELETE", path)]);
      expect(answers.map(({ status }) => status).sort()).toEqual([202, 409]);
    }
    expect(await user.balance()).toMatchObject({ held: 0 });
  });
});

describe("lists", () => {
  test("GET /orders shows active orders, newest first, by filter and cursor; status=all the finished too", async () => {
    const [market, other, user] = [world.market(), world.market(), world.user()];
    await world.split(user, market, 5);
    const placed: OrderJson[] = [];
    for (let i = 0; i < 7; i++) {
      placed.push(await user.place(terms(market, i % 2, BUY, 1_000 + i, 1, { client_order_id: `list-${i}` })));
    }
    placed.push(await user.place(terms(other, 0, BUY, 1_000, 1)));
    placed.push(await user.place(terms(market, 1, SELL, 9_000, 1)));
    await user.cancel(placed[2]!.id);
    await user.cancel(placed[5]!.id);
    const ids = (orders: OrderJson[]): number[] => orders.map(({ id }) => id);
    const expected = placed.toReversed();
    const active = expected.filter((order) => order !== placed[2] && order !== placed[5]);
    const listed = await user.all<OrderJson>("/orders");
    expect(listed).toEqual(active.map((order) => ({ ...order, status: "open" })));
    for (const limit of [1, 2, 3, 7]) expect(ids(await user.all("/orders", limit))).toEqual(ids(active));
    expect(ids(await user.all("/orders?status=active"))).toEqual(ids(active));
    for (const limit of [1, 4, 200]) expect(ids(await user.all("/orders?status=all", limit))).toEqual(ids(expected));
    const filters: [string, (order: OrderJson) => boolean][] = [
      [`market_id=${other.id}`, (order) => order.market_id === other.id],
      [`outcome_id=${market.outcomes[1]}`, (order) => order.outcome_id === market.outcomes[1]],
      ["side=2", (order) => order.side === SELL],
      [`side=1&market_id=${market.id}`, (order) => order.side === BUY && order.market_id === market.id],
      ["client_order_id=list-4", (order) => order.client_order_id === "list-4"],
      ["client_order_id=list-2", (order) => order.client_order_id === "list-2"],
      ["client_order_id=none", () => false],
      ["market_id=999999", () => false],
    ];
    for (const [query, fits] of filters) {
      expect(ids(await user.all(`/orders?${query}`, 2)), query).toEqual(ids(active.filter(fits)));
      expect(ids(await user.all(`/orders?status=all&${query}`, 2)), query).toEqual(ids(expected.filter(fits)));
    }
    expect(await world.user().all("/orders?status=all")).toEqual([]);
  });

  test("GET /orders/:id shows an order's trades, /me/fills lists them with filters and cursor", async () => {
    const [market, other, maker, taker] = [world.market(), world.market(), world.user(), world.user()];
    for (const place of [market, other]) await world.split(maker, place, 10);
    const sells = [];
    for (const price of [5_000, 5_100, 5_200]) sells.push(await maker.place(terms(market, 0, SELL, price, 2)));
    const buy = await taker.place(terms(market, 0, BUY, 5_150, 5));
    await maker.place(terms(other, 1, SELL, 100, 1));
    const otherBuy = await taker.place(terms(other, 1, BUY, 100, 1));
    const order = await taker.order(buy.id);
    expect(order.trades.map(({ price, quantity, role }) => [price, quantity, role])).toEqual([
      [5_000, 2, "taker"],
      [5_100, 2, "taker"],
    ]);
    const fills = await taker.all<OwnFillJson>("/me/fills");
    expect(fills.map((fill) => [fill.order_id, fill.price])).toEqual([
      [otherBuy.id, 100],
      [buy.id, 5_100],
      [buy.id, 5_000],
    ]);
    const own = {
      builder_code: null,
      order_id: buy.id,
      market_id: market.id,
      outcome_id: market.outcomes[0],
      side: BUY,
    };
    expect(fills.slice(1)).toEqual(order.trades.toReversed().map((fill: FillJson) => ({ ...fill, ...own })));
    for (const limit of [1, 2]) expect(await taker.all("/me/fills", limit)).toEqual(fills);
    expect(await taker.all(`/me/fills?market_id=${market.id}`, 1)).toEqual(fills.slice(1));
    expect(await taker.all(`/me/fills?order_id=${otherBuy.id}`, 1)).toEqual(fills.slice(0, 1));
    expect(await taker.all(`/me/fills?order_id=${sells[0]!.id}`)).toEqual([]);
    const [trade] = (await maker.order(sells[0]!.id)).trades;
    expect(trade).toMatchObject({ match_id: order.trades[0]!.match_id, role: "maker", quantity: 2 });
    expect(trade!.id).not.toBe(order.trades[0]!.id);
  });

  test("transactions split a fill into price, fee and rebate, and each balance follows from the one before", async () => {
    const [market, maker, taker] = [world.market(), world.user(), world.user()];
    await world.split(maker, market, 20);
    // The first fills are too small to earn a rebate, so a page of rebates has to look past them.
    await maker.place(terms(market, 0, SELL, 5_000, 3));
    await taker.place(terms(market, 0, BUY, 5_000, 3));
    for (let i = 0; i < 4; i++) {
      await maker.place(terms(market, 0, SELL, 1, 1));
      await taker.place(terms(market, 0, BUY, 1, 1));
    }
    const rows = await maker.all<TransactionJson>("/wallet/transactions", 3);
    expect(rows.map(({ type }) => type)).toEqual([
      ...Array.from({ length: 4 }, () => ["fee", "trade"]).flat(),
      ...["rebate", "fee", "trade", "split", "deposit"],
    ]);
    let after = 0;
    for (const row of rows.toReversed()) {
      after += row.amount;
      expect(row.balance_after).toBe(after);
    }
    expect(await maker.balance()).toMatchObject({ total: after });
    const [first, last] = [rows.at(-1)!.created_at, rows[0]!.created_at];
    const within = (from: number, to: number): Promise<unknown[]> =>
      maker.all(`/wallet/transactions?from=${from}&to=${to}`, 2);
    expect(await within(first, last)).toEqual(rows);
    expect(await within(last + 1, last + 2)).toEqual([]);
    const middle = rows[6]!.created_at;
    expect(await within(middle, middle)).toEqual(rows.filter((row) => row.created_at === middle));
    for (const type of ["trade", "fee", "rebate", "split", "deposit", "merge"]) {
      const wanted = rows.filter((row) => row.type === type);
      for (const limit of [1, 2, 200]) {
        expect(await maker.all(`/wallet/transactions?type=${type}`, limit), `${type} by ${limit}`).toEqual(wanted);
      }
    }
  });
});
