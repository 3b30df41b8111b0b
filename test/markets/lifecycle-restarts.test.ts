/** Markets over kill -9: each state, and what time and approvals do meanwhile. */
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { clockAt, eventually, expectBalanced, expectEndsWell } from "../support/checks.ts";
import type { Client, MarketJson, OrderJson } from "../support/client.ts";
import { ask, asOperator, auditOf, OPERATORS, take } from "../support/markets.ts";
import { feeOn, notional, rebateOn } from "../support/reference.ts";
import { BUY, expectRefused, post, SELL, terms } from "../support/trading.ts";
import { PUBLIC_URL, type TestMarket, USDC, World } from "../support/world.ts";

describe("over kill -9, with the two-person rule for resolutions", () => {
  const WISH = { payouts: [7_000, 3_000], note: "as agreed" };
  const env = { PUBLIC_URL, TWO_PERSON_RULE: "resolutions" };
  let world: World;
  let operator: Client;
  let second: Client;
  /** Closed, with one approval; halted with a resting order; closing while the server is down, open and halted; open. */
  let [closed, halted, dueOpen, dueHalted, open] = [] as unknown as TestMarket[] as [
    ...[TestMarket, TestMarket, TestMarket, TestMarket, TestMarket],
  ];
  let resting: OrderJson;
  let orders: { readonly dueOpen: OrderJson; readonly dueHalted: OrderJson; readonly open: OrderJson };
  let first: { readonly market: MarketJson; readonly approval: { readonly approved_by: string } };

  beforeAll(async () => {
    world = await World.start({
      users: 0,
      named: { ...OPERATORS, user: {}, buyer: {}, bidder: {} },
      markets: Array(5).fill(2),
      env,
    });
    [closed, halted, dueOpen, dueHalted, open] = [
      ...[world.market(), world.market(), world.market(), world.market(), world.market()],
    ] as [TestMarket, TestMarket, TestMarket, TestMarket, TestMarket];
    const [user, bidder] = [world.client("user"), world.client("bidder")];
    [operator, second] = [await asOperator(world), await asOperator(world, "second")];
    await world.split(user, closed, 10);
    await world.split(user, halted, 10);
    resting = await user.place(terms(halted, 0, SELL, 6_000, 10));
    await take(operator, halted, "halt", { note: "wait" });
    await take(operator, closed, "close");
    first = (await ask<typeof first>(operator, closed, "resolve", WISH)).data;
    expect(first).toMatchObject({ market: { status: "closed" }, approval: { action: "market.resolve", details: { status: "resolved", ...WISH } } }); // biome-ignore format: one object
    // A repeat by the same operator changes nothing; merges continue meanwhile.
    expect((await ask<typeof first>(operator, closed, "resolve", WISH)).data.approval).toEqual(first.approval);
    await user.data("POST", "/wallet/merge", { market_id: closed.id, quantity: 1 });
    const bid = (market: TestMarket) => bidder.place(terms(market, 0, BUY, 4_000, 1));
    orders = { dueOpen: await bid(dueOpen), dueHalted: await bid(dueHalted), open: await bid(open) };
    await take(operator, dueHalted, "halt");
    const at = Date.now() + 1_000;
    for (const { id } of [dueOpen, dueHalted]) await operator.data("PATCH", `/admin/markets/${id}`, { closes_at: at });
    for (const client of [operator, second]) client.close();
    await world.server.kill();
    await clockAt(at);
    world.server = await world.server.restart();
    [operator, second] = [await asOperator(world), await asOperator(world, "second")];
  });
  afterAll(async () => {
    await expectBalanced(world.anonymous());
    for (const client of [operator, second]) client.close();
    await expectEndsWell(world);
  });

  test("markets whose closes_at passes while the server is down close before it is ready, and cancel their orders", async () => {
    const bidder = world.client("bidder");
    for (const [market, order] of [
      [dueOpen, orders.dueOpen],
      [dueHalted, orders.dueHalted],
    ] as const) {
      expect((await bidder.get<MarketJson>(`/markets/${market.id}`)).status).toBe("closed");
      expect(await bidder.order(order.id)).toMatchObject({ status: "canceled", reason: "market_closed" });
      expect(auditOf(world, market).at(-1)).toMatchObject({ action: "market.close", actor: "exchange" });
      for (const by of [operator, second])
        expect((await ask(by, market, "resolve", { payouts: [10_000, 0] })).code).toBe(0);
      expect((await bidder.get<MarketJson>(`/markets/${market.id}`)).status).toBe("resolved");
    }
    expect((await bidder.order(orders.open.id)).status).toBe("open");
    await bidder.place(terms(open, 0, BUY, 4_000, 1));
  });

  test("a halted market stays halted with its orders, and trades after it resumes", async () => {
    const [user, buyer] = [world.client("user"), world.client("buyer")];
    expect((await user.get<MarketJson>(`/markets/${halted.id}`)).status).toBe("halted");
    expect((await user.order(resting.id)).status).toBe("open");
    await expectRefused(post(user, terms(halted, 0, BUY, 6_000, 1)), 422, 42203, /halted/);
    // Ten sets of each market, one merged.
    const total = 10_000 * USDC - 20 * USDC + USDC;
    const before = await user.balance();
    await take(operator, halted, "resume");
    const bought = await buyer.place(terms(halted, 0, BUY, 6_000, 4));
    await eventually(async () => expect((await buyer.order(bought.id)).status).toBe("filled"));
    const sold = notional(6_000, 4);
    expect(before).toMatchObject({ total });
    expect(await user.balance()).toMatchObject({ total: total + sold - feeOn(sold) + rebateOn(sold, true) });
  });

  test("a closed market keeps its approval: a second operator completes that resolution and no other", async () => {
    const user = world.client("user");
    const path = `/admin/markets/${closed.id}`;
    expect(await operator.get(path)).toMatchObject({ status: "closed", approval: first.approval });
    const other = ask(second, closed, "resolve", { ...WISH, payouts: [0, 10_000] });
    await expectRefused(other, 409, 40900, /something different/);
    await expectRefused(ask(second, closed, "void"), 409, 40900, /something different/);
    const before = await user.balance();
    const done = await ask<{ market: MarketJson; approval: null }>(second, closed, "resolve", WISH);
    expect(done.data).toMatchObject({ market: { status: "resolved", open_interest: 0 }, approval: null });
    // Ten sets, one merged and nine paid.
    expect((await user.balance()).total - before.total).toBe(9 * USDC);
    expect(auditOf(world, closed).map(({ action }) => action)).toEqual(["market.close", "market.resolve.approve", "market.resolve"]); // biome-ignore format: list
    expect(await operator.get(path)).toMatchObject({ status: "resolved", approval: null });
  });
});
