/**
 * What amends cost, to the last micro-USDC and share, and races with fills, where money never goes negative and every
 * hold ends.
 */
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { expectBalanced, expectSoundDatabase } from "../support/checks.ts";
import type { Client } from "../support/client.ts";
import { Random } from "../support/random.ts";
import { notional, rebateOn } from "../support/reference.ts";
import {
  amend,
  BUY,
  books,
  cancelAll,
  expectAccounted,
  expectRefused,
  patch,
  post,
  SELL,
  terms,
} from "../support/trading.ts";
import { type TestMarket, USDC, World } from "../support/world.ts";

let world: World;
beforeAll(async () => {
  const exactly = (deposit: number, tier = 2) => ({ deposit, tier });
  world = await World.start({
    users: 40,
    named: {
      "up-exact": exactly(7.5 * USDC),
      "up-short": exactly(7.5 * USDC - 1),
      "down-exact": exactly(7 * USDC),
      "down-short": exactly(7 * USDC - 1),
      "less-exact": exactly(5 * USDC),
      "partly-exact": exactly(5 * USDC + 42),
      "active-up": exactly(1_000 * USDC, 1),
      "active-down": exactly(1_000 * USDC, 1),
      "active-sell": exactly(1_000 * USDC, 1),
      racer: exactly(90 * USDC),
      tight: exactly(12 * USDC),
    },
    markets: Array<number>(30).fill(2),
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

describe("funds", () => {
  const place = async (name: string, price = 5_000, quantity = 10): Promise<[Client, TestMarket, number]> => {
    const [user, market] = [world.client(name), world.market()];
    const { id } = await user.place(terms(market, 0, BUY, price, quantity));
    return [user, market, id];
  };

  test("an amend to a higher price needs the new hold, not old and new together; one micro-USDC less is rejected", async () => {
    const [user, , id] = await place("up-exact");
    await amend(user, id, { price: 7_500 });
    expect(await user.balance()).toEqual({ available: 0, held: 7_500_000, total: 7_500_000 });
    await expectRefused(patch(user, id, { price: 7_501 }), 422, 42201);
    await expectRefused(patch(user, id, { quantity: 11 }), 422, 42201);
    const [short, , shortId] = await place("up-short");
    await expectRefused(patch(short, shortId, { price: 7_500 }), 422, 42201);
    expect(await short.balance()).toMatchObject({ held: 5_000_000 });
    await amend(short, shortId, { price: 7_499 });
    expect(await short.order(shortId)).toMatchObject({ price: 7_499, quantity: 10 });
  });

  test("an amend to a lower price and more shares needs the old hold and the added shares at the new price", async () => {
    // 10 at 5000 may be filled before the amend to 15 at 4000, then 5 more at 4000: 5 + 2 = 7 USDC.
    const [user, , id] = await place("down-exact");
    await expectRefused(patch(user, id, { price: 4_000, quantity: 16 }), 422, 42201);
    await amend(user, id, { price: 4_000, quantity: 15 });
    expect(await user.balance()).toEqual({ available: 1_000_000, held: 6_000_000, total: 7_000_000 });
    const [short, , shortId] = await place("down-short");
    await expectRefused(patch(short, shortId, { price: 4_000, quantity: 15 }), 422, 42201);
    expect(await short.balance()).toMatchObject({ held: 5_000_000 });
    await amend(short, shortId, { price: 3_999, quantity: 15 });
    expect(await short.balance()).toMatchObject({ held: notional(3_999, 15) });
  });

  test("an amend within the current hold needs no more money", async () => {
    const [user, , id] = await place("less-exact");
    for (const change of [
      { price: 9_000, quantity: 5 },
      { price: 9_000, quantity: 5 },
      { price: 5_000 },
      { quantity: 3 },
      { price: 1 },
    ]) {
      await amend(user, id, change);
      const { price, quantity } = await user.order(id);
      const held = notional(price, quantity);
      expect(await user.balance()).toEqual({ available: 5_000_000 - held, held, total: 5_000_000 });
    }
    await amend(user, id, { price: 5_000, quantity: 10 });
    await expectRefused(patch(user, id, { price: 5_001 }), 422, 42201);
  });

  test("an amend of a partly filled order counts with its remainder only", async () => {
    // 10 at 5000, 4 filled at 5000 with a rebate: 3 USDC held for 6, and 42 + the rebate beside it.
    const [user, market, id] = await place("partly-exact");
    await sell(world, market, 4);
    const rebate = rebateOn(notional(5_000, 4), true);
    const total = 5_000_042 - notional(5_000, 4) + rebate;
    expect(await user.balance()).toEqual({ available: total - 3_000_000, held: 3_000_000, total });
    // 6 more at a higher price: the last price that the money reaches.
    const price = Math.floor(total / notional(1, 6));
    await expectRefused(patch(user, id, { price: price + 1 }), 422, 42201);
    await amend(user, id, { price });
    expect(await user.balance()).toMatchObject({ held: notional(price, 6) });
    expect(price).toBeGreaterThan(5_000);
  });

  test("an amend of a sell needs the larger of old and new shares", async () => {
    const [user, market] = [world.user(), world.market()];
    await world.split(user, market, 10);
    const { id } = await user.place(terms(market, 0, SELL, 5_000, 6));
    await expectRefused(patch(user, id, { quantity: 11 }), 422, 42202);
    await expectRefused(patch(user, id, { price: 4_000, quantity: 11 }), 422, 42202);
    for (const quantity of [10, 2, 10]) {
      await amend(user, id, { price: 6_000 - quantity, quantity });
      expect(await user.position(market.outcomes[0]!)).toMatchObject({ quantity: 10, held: quantity });
    }
    const buyer = world.user();
    await buyer.place(terms(market, 0, BUY, 9_000, 4));
    expect(await user.order(id)).toMatchObject({ filled: 4, remaining: 6 });
    await expectRefused(patch(user, id, { quantity: 11 }), 422, 42202);
    await amend(user, id, { quantity: 5 });
    expect(await user.position(market.outcomes[0]!)).toMatchObject({ quantity: 6, held: 1 });
  });

  test("an amend counts daily activity for the worst order of fills in flight, up to the limit exactly", async () => {
    // Tier 1: 100 USDC a day. 100 at 5000, then 50 more in another order.
    const [up, market, id] = await place("active-up", 5_000, 100);
    await up.place(terms(market, 0, BUY, 100, 100));
    await expectRefused(patch(up, id, { price: 9_901 }), 429, 42901);
    await amend(up, id, { price: 9_900 });
    await expectRefused(patch(up, id, { quantity: 101 }), 429, 42901);
    await amend(up, id, { price: 100 });
    // 50 of 100 live; 4000 with 100 + n shares: 50 + n * 0.4 up to 100.
    const [down, , downId] = await place("active-down", 5_000, 100);
    await expectRefused(patch(down, downId, { price: 4_000, quantity: 226 }), 429, 42901);
    await amend(down, downId, { price: 4_000, quantity: 225 });
    expect(await down.balance()).toMatchObject({ held: 90 * USDC });
    // A sale is no activity, whatever it becomes.
    const [seller, sold] = [world.client("active-sell"), world.market()];
    await world.split(seller, sold, 100);
    const sale = await seller.place(terms(sold, 0, SELL, 5_000, 50));
    await amend(seller, sale.id, { price: 9_999, quantity: 100 });
    expect(await seller.position(sold.outcomes[0]!)).toMatchObject({ held: 100 });
  });
});

describe("races with fills", () => {
  const ROUNDS = 120;

  /** One user has ample means, the other just enough. */
  for (const name of ["racer", "tight"]) {
    test(`a buy is amended while takers sell into it, by ${name}`, async () => {
      const random = Random.printed(`amends against takers, ${name}`);
      const [market, taker] = [world.market(), world.user()];
      const user = world.client(name, 0, 4);
      await world.split(taker, market, 2_500);
      const codes: number[] = [];
      for (let round = 0; round < ROUNDS; round++) {
        const { available } = await user.balance();
        const price = (): number => (name === "tight" ? random.integer(20, 90) : random.integer(200, 900));
        const size = (at: number): number =>
          name === "tight"
            ? Math.max(1, Math.floor((available * random.integer(40, 120)) / 100 / notional(at, 1)))
            : random.integer(1, 40);
        const [first, ...later] = [price(), price(), price()] as [number, number, number];
        const { data } = await post(user, terms(market, 0, BUY, first, size(first)));
        if (data === null) continue;
        const amends = later.map((at) => patch(user, data.id, { price: at, quantity: size(at) }));
        const sale = taker.place(terms(market, 0, SELL, 1, random.integer(1, 20), { time_in_force: "ioc" }));
        const [answers, balance] = await Promise.all([Promise.all(amends), user.balance(), sale]);
        expect(balance.available).toBeGreaterThanOrEqual(0);
        expect(balance.held).toBeGreaterThanOrEqual(0);
        codes.push(...answers.map(({ code }) => code));
        const order = await user.order(data.id);
        expect(order.filled + order.remaining).toBe(order.quantity);
        const live = order.status === "open" || order.status === "partially_filled";
        const held = live ? notional(order.price, order.remaining) : 0;
        expect(await user.balance()).toMatchObject({ held });
        await cancelAll(user);
        expect(await user.balance()).toMatchObject({ held: 0 });
      }
      for (const code of codes) expect([0, 40900, 42201]).toContain(code);
      expect(codes.filter((code) => code === 0).length).toBeGreaterThan(50);
      if (name === "tight") expect(codes).toContain(42201);
      await expectAccounted(user, [market], name === "tight" ? 12 * USDC : 90 * USDC, 0);
      await expectAccounted(taker, [market], 10_000 * USDC, 2_500);
    });
  }

  test("a sell is amended over all its shares while takers buy", async () => {
    const random = Random.printed("sells against takers");
    const [market, taker, fresh] = [world.market(), world.user(), world.user()];
    const user = world.client(fresh.token!.split("-")[1]!, 0, 4);
    await world.split(user, market, 300);
    for (let round = 0; round < ROUNDS; round++) {
      const position = await user.position(market.outcomes[0]!);
      const owned = position?.quantity ?? 0;
      if (owned < 2) break;
      const { id } = await user.place(terms(market, 0, SELL, 9_000, random.integer(1, owned)));
      const amends = [random.integer(1, owned), owned].map((quantity) => {
        return patch(user, id, { price: random.integer(8_000, 9_000), quantity });
      });
      const sale = taker.place(terms(market, 0, BUY, 9_000, random.integer(1, 4), { time_in_force: "ioc" }));
      const answers = await Promise.all(amends);
      await sale;
      for (const { code } of answers) expect([0, 40900, 42202]).toContain(code);
      const after = await user.position(market.outcomes[0]!);
      expect(after!.held).toBeLessThanOrEqual(after!.quantity);
      await cancelAll(user);
      expect(await user.position(market.outcomes[0]!)).toMatchObject({ held: 0 });
    }
    await expectAccounted(user, [market], 10_000 * USDC, 300);
    await expectAccounted(taker, [market], 10_000 * USDC, 0);
  });

  test("many amends of one order at once end as one of them, and hold just that", async () => {
    const [market, fresh] = [world.market(), world.user()];
    const user = world.client(fresh.token!.split("-")[1]!, 0, 16);
    const { id } = await user.place(terms(market, 0, BUY, 5_000, 10));
    for (let round = 0; round < 20; round++) {
      const asked = Array.from({ length: 16 }, (_, i) => ({ price: 1_000 + round * 16 + i, quantity: 5 + i }));
      const answers = await Promise.all(asked.map((change) => patch(user, id, change)));
      expect(answers.map(({ code }) => code)).toEqual(asked.map(() => 0));
      const { price, quantity } = await user.order(id);
      expect(asked).toContainEqual({ price, quantity });
      expect(await user.balance()).toMatchObject({ held: notional(price, quantity) });
      expect(await books(user, market)).toMatchObject([{ bids: [[price, quantity]] }, { bids: [] }]);
    }
  });

  test("amends and cancels of one order at once: one cancel is taken, and nothing is held", async () => {
    const [market, fresh] = [world.market(), world.user()];
    const user = world.client(fresh.token!.split("-")[1]!, 0, 8);
    for (let round = 0; round < 20; round++) {
      const { id } = await user.place(terms(market, 0, BUY, 5_000, 10));
      const asked = Array.from({ length: 4 }, (_, i) => patch(user, id, { price: 4_000 + i, quantity: 12 - i }));
      const cancels = Array.from({ length: 4 }, () => user.request("DELETE", `/orders/${id}`));
      const codes = (await Promise.all(cancels)).map(({ code }) => code);
      for (const { code } of await Promise.all(asked)) expect([0, 40900]).toContain(code);
      expect(codes).toContain(0);
      for (const code of codes) expect([0, 40900]).toContain(code);
      expect(await user.order(id)).toMatchObject({ status: "canceled", reason: "user" });
      expect(await user.balance()).toMatchObject({ held: 0 });
    }
  });
});
