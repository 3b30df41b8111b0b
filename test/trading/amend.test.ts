/**
 * Amends: what they change and what they leave, and who is filled first afterwards (over restarts: restarts.test.ts). For
 * what they cost, see amend-funds.test.ts.
 */
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { eventually, expectBalanced, expectSoundDatabase } from "../support/checks.ts";
import type { OrderJson } from "../support/client.ts";
import { asOperator, OPERATORS, take } from "../support/markets.ts";
import { feeOn, notional, rebateOn } from "../support/reference.ts";
import {
  amend,
  BUY,
  books,
  cancelAll,
  expectRefused,
  idsOf,
  patch,
  post,
  putQuotes,
  quote,
  type ResultJson,
  SELL,
  terms,
} from "../support/trading.ts";
import { type TestMarket, USDC, World } from "../support/world.ts";
import { amendedQueue, EXPECTED_QUEUE, fillOrder } from "./amend-queue.ts";

const DAY_MS = 86_400_000;

let world: World;
beforeAll(async () => {
  world = await World.start({
    users: 90,
    named: {
      ...OPERATORS,
    },
    markets: [...Array<number>(60).fill(2), ...Array<number>(3).fill(3)],
  });
});
afterAll(async () => {
  await expectBalanced(world.anonymous());
  await world.stop();
  expectSoundDatabase(world.server.dataDir);
});

/** Sells this many shares into the bids of an outcome, at any price. */
async function sell(on: World, market: TestMarket, quantity: number, seller = on.user()): Promise<void> {
  await on.split(seller, market, quantity);
  await seller.place(terms(market, 0, SELL, 1, quantity, { time_in_force: "ioc" }));
}

describe("an amend", () => {
  test("an amend changes price, quantity or both; id and everything else stay", async () => {
    const [market, user] = [world.market(), world.user()];
    const more = { client_order_id: "a", self_trade_prevention: "decrement", post_only: true };
    const placed = await user.place(terms(market, 0, BUY, 5_000, 10, more));
    let [price, quantity] = [5_000, 10];
    for (const change of [
      { price: 4_000 },
      { quantity: 4 },
      { price: 6_000, quantity: 30 },
      { quantity: 30 },
      { price: 6_000 },
      { price: 1, quantity: null },
      { price: null, quantity: 1 },
      { price: 9_999, valid_until: null },
      { quantity: 7, valid_until: Date.now() + DAY_MS },
    ] as { price?: number | null; quantity?: number | null }[]) {
      price = change.price ?? price;
      quantity = change.quantity ?? quantity;
      const { status, data } = await patch(user, placed.id, change);
      const now = { price, quantity, remaining: quantity, filled: 0 };
      expect([status, data.id, data.price, data.quantity]).toEqual([202, placed.id, price, quantity]);
      const order = await user.order(placed.id);
      expect(order).toEqual({ ...placed, ...now, status: "open", updated_at: order.updated_at });
      expect(await user.balance()).toMatchObject({ held: notional(price, quantity) });
      expect(await books(user, market)).toMatchObject([{ bids: [[price, quantity]], asks: [] }, { bids: [] }]);
    }
    expect(await user.all("/orders?status=all")).toHaveLength(1);
    expect(await cancelAll(user, "?client_order_id=a")).toEqual([placed.id]);
  });

  test("an amend sets the new total quantity, including what is filled", async () => {
    const [market, user, seller] = [world.market(), world.user(), world.user()];
    const { id } = await user.place(terms(market, 0, BUY, 5_000, 10));
    await sell(world, market, 4, seller);
    await amend(user, id, { quantity: 9 });
    expect(await user.order(id)).toMatchObject({ quantity: 9, filled: 4, remaining: 5, status: "partially_filled" });
    expect(await user.balance()).toMatchObject({ held: notional(5_000, 5) });
    await amend(user, id, { price: 4_000, quantity: 14 });
    expect(await user.order(id)).toMatchObject({ price: 4_000, quantity: 14, filled: 4, remaining: 10 });
    expect(await user.balance()).toMatchObject({ held: notional(4_000, 10) });
    await sell(world, market, 10, seller);
    expect(await user.order(id)).toMatchObject({ status: "filled", filled: 14, remaining: 0 });
    expect(await user.balance()).toMatchObject({ held: 0 });
  });

  test("an amend to the filled quantity or less ends the order as filled, at its old price", async () => {
    for (const total of [4, 3, 1]) {
      const [market, user] = [world.market(), world.user()];
      const { id } = await user.place(terms(market, 0, BUY, 5_000, 10));
      await sell(world, market, 4);
      await amend(user, id, { price: 6_000, quantity: total });
      const ended = { status: "filled", reason: null, price: 5_000, quantity: 4, filled: 4, remaining: 0 };
      expect(await user.order(id)).toMatchObject(ended);
      expect(await user.balance()).toMatchObject({ held: 0 });
      expect(await books(user, market)).toMatchObject([{ bids: [] }, { bids: [] }]);
      await expectRefused(patch(user, id, { quantity: 10 }), 409, 40900);
    }
  });

  test("an amend that crosses trades as a taker does, at the makers' prices", async () => {
    const [market, user, seller] = [world.market(), world.user(), world.user()];
    await world.split(seller, market, 20);
    await seller.place(terms(market, 0, SELL, 6_000, 3));
    await seller.place(terms(market, 0, SELL, 6_500, 3));
    const { id } = await user.place(terms(market, 0, BUY, 5_000, 10));
    await amend(user, id, { price: 6_400 });
    const order = await user.order(id);
    expect(order).toMatchObject({ status: "partially_filled", filled: 3, remaining: 7, price: 6_400 });
    expect(order.trades).toMatchObject([{ price: 6_000, quantity: 3, role: "taker", fee: 0, rebate: 0 }]);
    const paid = notional(6_000, 3);
    expect(await user.balance()).toMatchObject({ held: notional(6_400, 7), total: 10_000 * USDC - paid });
    expect(await seller.balance()).toMatchObject({ total: 9_980 * USDC + paid - feeOn(paid) + rebateOn(paid, true) });
    // A mint with another's bid on the other outcome, and a self-trade that its own rule ends.
    await seller.place(terms(market, 1, BUY, 3_550, 2));
    await amend(user, id, { price: 6_450 });
    expect((await user.order(id)).trades.map(({ match_type }) => match_type)).toEqual(["direct", "mint"]);
    await user.place(terms(market, 1, BUY, 3_000, 1));
    await amend(user, id, { price: 7_000, quantity: 30 });
    expect(await user.order(id)).toMatchObject({ status: "canceled", reason: "self_trade", filled: 8, price: 7_000 });
  });

  test("an amend of a post-only order that would cross is rejected, however it comes, and the order is as it was", async () => {
    const [market, user, other] = [world.market(), world.user(), world.user()];
    await other.place(terms(market, 1, BUY, 4_000, 5));
    const { id } = await user.place(terms(market, 0, BUY, 5_000, 10, { post_only: true }));
    await amend(user, id, { price: 5_999 });
    const before = [await user.order(id), await user.balance()];
    expect(before[0]).toMatchObject({ status: "open", price: 5_999, quantity: 10 });
    const change = { price: 6_000, quantity: 9 };
    await expectRefused(patch(user, id, change), 409, 40900, /^post_only_would_cross/);
    const socket = await world.socket(user);
    const rejection = await socket.ask({ op: "order.amend", data: { id, ...change } });
    expect(rejection).toMatchObject({ code: 40900, msg: expect.stringMatching(/^post_only_would_cross/) });
    const operations = [
      { op: "amend", id, ...change },
      { op: "amend", id, price: 5_998 },
    ];
    const { results } = await user.data<{ results: ResultJson[] }>("POST", "/orders/batch", { operations });
    expect(results.map(({ code }) => code)).toEqual([40900, 0]);
    await amend(user, id, { price: 5_999 });
    await socket.fence();
    // Only successful amends send updates.
    expect(socket.of<OrderJson>("order.updated").map(({ data }) => [data.status, data.price])).toEqual([
      ["open", 5_998],
      ["open", 5_999],
    ]);
    expect([await user.order(id), await user.balance()]).toEqual([
      { ...(before[0] as OrderJson), updated_at: expect.any(Number) },
      before[1],
    ]);
    expect(await other.all<OrderJson>("/orders")).toMatchObject([{ status: "open", remaining: 5 }]);
  });

  test("an amend of a gtd order doesn't move its end", async () => {
    const [market, user] = [world.market(), world.user()];
    const expires_at = Date.now() + 400;
    const { id } = await user.place(terms(market, 0, BUY, 5_000, 10, { time_in_force: "gtd", expires_at }));
    await amend(user, id, { price: 4_000, quantity: 20 });
    expect(await user.order(id)).toMatchObject({ status: "open", price: 4_000, quantity: 20, expires_at });
    await eventually(async () => {
      expect(await user.order(id)).toMatchObject({ status: "expired", reason: "expired", price: 4_000, remaining: 20 });
    });
    expect((await user.order(id)).updated_at).toBeGreaterThanOrEqual(expires_at);
    await expectRefused(patch(user, id, { price: 4_100 }), 409, 40900);
    expect(await user.balance()).toMatchObject({ held: 0 });
  });

  test("an amend past its valid_until is rejected as too_late, and the order is as it was", async () => {
    const [market, user] = [world.market(), world.user()];
    const { id } = await user.place(terms(market, 0, BUY, 5_000, 10));
    const before = [await user.order(id), await user.balance()];
    for (const valid_until of [0, 1, Date.now() - 1]) {
      for (const change of [{ price: 6_000 }, { quantity: 5 }, { quantity: 100 }, { price: 1, quantity: 1 }]) {
        await expectRefused(patch(user, id, { ...change, valid_until }), 409, 40900, /^too_late/);
      }
    }
    expect([await user.order(id), await user.balance()]).toEqual(before);
  });

  test("an amend of an order that has ended is 40900, of another's or none 4040", async () => {
    const [market, user, other] = [world.market(), world.user(), world.user()];
    const live = await other.place(terms(market, 0, BUY, 5_000, 10));
    const ended = await user.place(terms(market, 0, BUY, 5_000, 10));
    await user.cancel(ended.id);
    await expectRefused(patch(user, ended.id, { price: 1 }), 409, 40900);
    await expectRefused(patch(user, live.id, { price: 1 }), 404, 4040);
    await other.cancel(live.id);
    await expectRefused(patch(user, live.id, { price: 1 }), 404, 4040);
    for (const id of [0, 999_999_999, -1, "x"]) {
      await expectRefused(user.request("PATCH", `/orders/${id}`, { body: { price: 1 } }), 404, 4040);
    }
  });

  test("an amend that is empty or invalid is 40000 with the field's name, and changes nothing", async () => {
    const [market, user] = [world.market(), world.user()];
    const { id } = await user.place(terms(market, 0, BUY, 5_000, 10));
    const before = await user.order(id);
    const wrong: [object, RegExp][] = [
      [{}, /price.*quantity/],
      [{ price: null, quantity: null }, /price.*quantity/],
      [{ valid_until: Date.now() + DAY_MS }, /price.*quantity/],
      ...[0, -1, 10_000, 1.5, "5000", true].map((price): [object, RegExp] => [{ price }, /price/]),
      ...[0, -1, 1_000_000_001, 0.5, "5"].map((quantity): [object, RegExp] => [{ quantity }, /quantity/]),
      ...[-1, 1.5, "soon"].map((valid_until): [object, RegExp] => [{ price: 1, valid_until }, /valid_until/]),
      ...["side", "outcome_id", "client_order_id", "id", "post_only", "expires_at"].map((name): [object, RegExp] => [
        { price: 1, [name]: 1 },
        new RegExp(name),
      ]),
    ];
    for (const [body, message] of wrong) await expectRefused(patch(user, id, body), 400, 40000, message);
    expect(await user.order(id)).toEqual(before);
  });
});

describe("time priority", () => {
  test("time priority stays in an amend with the same price and no larger a quantity, else it is lost", async () => {
    const [market, users] = [world.market(), [world.user(), world.user(), world.user(), world.user()]];
    const ids = idsOf(await amendedQueue(market, users));
    expect(await fillOrder(world, market, world.user(), users, ids)).toEqual(EXPECTED_QUEUE);
  });

  test("time priority in an amend is the same for sells", async () => {
    const [market, buyer, users] = [world.market(), world.user(), [world.user(), world.user(), world.user()]];
    const ids: number[] = [];
    for (const user of users) {
      await world.split(user, market, 5);
      ids.push((await user.place(terms(market, 0, SELL, 5_000, 3))).id);
    }
    await amend(users[0]!, ids[0]!, { price: 5_000, quantity: 4 });
    await amend(users[1]!, ids[1]!, { price: 5_000, quantity: 1 });
    const firstServed: number[] = [];
    for (let n = 0; n < 8; n++) {
      const { id } = await buyer.place(terms(market, 0, BUY, 5_000, 1));
      expect((await buyer.order(id)).status).toBe("filled");
      for (const [i, user] of users.entries()) {
        const { filled } = await user.order(ids[i]!);
        if (filled > firstServed.filter((who) => who === i).length) firstServed.push(i);
      }
    }
    expect(firstServed).toEqual([1, 2, 2, 2, 0, 0, 0, 0]);
  });
});

test("in a halted market only what keeps its place can be amended, canceled and taken back", async () => {
  const [market, user] = [world.market(), world.user()];
  const body = terms(market, 0, BUY, 5_000, 10, { client_order_id: "before" });
  const placed = await user.place(body);
  const { id } = placed;
  const [resting] = await quote(user, market, [[0, BUY, 4_000, 3]]);
  const operator = await asOperator(world);
  await take(operator, market, "halt");
  operator.close();
  await expectRefused(post(user, terms(market, 0, BUY, 5_000, 1)), 422, 42203);
  expect((await post(user, body)).data).toEqual(placed);
  for (const change of [{ price: 5_001 }, { price: 4_999 }, { quantity: 11 }, { price: 4_999, quantity: 5 }]) {
    await expectRefused(patch(user, id, change), 422, 42203);
  }
  await amend(user, id, { quantity: 10 });
  await amend(user, id, { price: 5_000, quantity: 6 });
  expect(await user.order(id)).toMatchObject({ status: "open", price: 5_000, quantity: 6, remaining: 6 });
  for (const quotes of [
    [[0, BUY, 4_001, 3]],
    [
      [0, BUY, 4_000, 3],
      [1, BUY, 1, 1],
    ],
  ] as const) {
    await expectRefused(putQuotes(user, market, quotes), 422, 42203);
  }
  expect(await user.order(resting!.id)).toMatchObject({ status: "open", remaining: 3 });
  expect((await quote(user, market, [[0, BUY, 4_000, 3]]))[0]!.id).toBe(resting!.id);
  await quote(user, market, []);
  expect(await user.order(resting!.id)).toMatchObject({ status: "canceled", reason: "user" });
  await user.cancel(id);
  expect(await user.balance()).toMatchObject({ held: 0 });
});
