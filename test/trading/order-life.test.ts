/**
 * The life of an order as clients see it: gtd orders end on time and never trade after it, lists show live and finished
 * orders once each while both change, /me/limits counts activity, and builder codes credit integrations. The same over
 * restarts is in restarts.test.ts.
 */
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { eventually, expectBalanced, expectSoundDatabase } from "../support/checks.ts";
import type { Client, OrderJson, OwnFillJson } from "../support/client.ts";
import { Random } from "../support/random.ts";
import { feeOn, notional } from "../support/reference.ts";
import {amend, BUY, batch, cancelAll, expectRefused, idsOf, post, quote, quotesBody, type ResultJson, SELL, terms,
} from "../support/trading.ts"; // biome-ignore format: one list
import { type TestMarket, USDC, World } from "../support/world.ts";
import { builderHeader, creditEveryWay, statsOf } from "./builder-credits.ts";

let world: World;
beforeAll(async () => {
  world = await World.start({
    users: 40,
    named: {
      tier0: { tier: 0 },
      tier1: { tier: 1 },
      scopes: { scopes: [["markets:read"], ["orders:write"]] },
      crowd: {},
    },
    markets: [...Array<number>(30).fill(2), 3, 3],
  });
});
afterAll(async () => {
  await expectBalanced(world.anonymous());
  await world.stop();
  expectSoundDatabase(world.server.dataDir);
});

const isLive = ({ status }: OrderJson): boolean => status === "open" || status === "partially_filled";

describe("gtd", () => {
  /** How late an order may end on a busy machine. On an idle one it is a quarter of a second. */
  const LATE_MS = 2_000;

  test("no gtd order fills at or after expires_at under constant takers; each ends then, and releases its hold", async () => {
    const random = Random.printed("gtd orders against takers");
    const [market, user, taker] = [world.market(), world.user(), world.user()];
    await world.split(taker, market, 4_000);
    await world.split(user, market, 500);
    let trading = true;
    const hammer = async (): Promise<void> => {
      while (trading) {
        const side = random.pick([BUY, SELL]);
        const body = terms(market, 0, side, side === BUY ? 6_000 : 4_000, 2, { time_in_force: "ioc" });
        const { code } = await post(taker, body);
        // The taker's daily activity may be used up.
        expect([0, 42901]).toContain(code);
      }
    };
    const hammering = hammer();
    const ids: number[] = [];
    for (let round = 0; round < 12; round++) {
      const now = Date.now();
      const operations = Array.from({ length: 20 }, (_, i) => {
        const side = i % 2 === 0 ? BUY : SELL;
        const expires_at = now + random.integer(100, 900);
        return {
          op: "place",
          ...terms(market, 0, side, side === BUY ? 4_000 : 6_000, 3, { time_in_force: "gtd", expires_at }),
        };
      });
      for (const { data } of await batch(user, operations)) ids.push(data!.id);
    }
    await eventually(async () => expect(await user.all("/orders")).toEqual([]));
    trading = false;
    await hammering;
    const ended = new Map((await user.all<OrderJson>("/orders?status=all")).map((order) => [order.id, order]));
    expect([...ended.keys()].toSorted()).toEqual(ids.toSorted());
    let [expired, filled] = [0, 0];
    for (const { status, reason, expires_at, updated_at } of ended.values()) {
      if (status === "filled") filled++;
      else {
        expect([status, reason]).toEqual(["expired", "expired"]);
        expect(updated_at).toBeGreaterThanOrEqual(expires_at!);
        expect(updated_at).toBeLessThan(expires_at! + LATE_MS);
        expired++;
      }
    }
    expect(Math.min(expired, filled)).toBeGreaterThan(5);
    for (const { order_id, created_at } of await user.all<OwnFillJson>("/me/fills")) {
      expect(created_at).toBeLessThan(ended.get(order_id)!.expires_at!);
    }
    expect(await user.balance()).toMatchObject({ held: 0 });
    for (const outcome of market.outcomes) expect((await user.position(outcome))!.held).toBe(0);
  });

  test("many gtd orders due at once all end, and no others do", async () => {
    const [market, user] = [world.market(), world.user()];
    const stays = await user.place(terms(market, 0, BUY, 50, 1));
    const expires_at = Date.now() + 700;
    const placed: number[] = [];
    for (let i = 0; i < 20; i++) {
      const operations = Array.from({ length: 50 }, (_, n) => {
        return { op: "place", ...terms(market, n % 2, BUY, 1 + i, 1, { time_in_force: "gtd", expires_at }) };
      });
      const results: ResultJson[] = await batch(user, operations);
      // On a slow machine the last may arrive too late.
      for (const { code, data } of results) if (code === 0) placed.push(data!.id);
    }
    expect(placed.length).toBeGreaterThan(50);
    await eventually(async () => expect(idsOf(await user.all("/orders"))).toEqual([stays.id]));
    const ended = (await user.all<OrderJson>("/orders?status=all")).filter(({ id }) => id !== stays.id);
    expect(idsOf(ended).toSorted()).toEqual(placed.toSorted());
    for (const { status, updated_at } of ended) {
      expect(status).toBe("expired");
      expect(updated_at).toBeGreaterThanOrEqual(expires_at);
      expect(updated_at).toBeLessThan(expires_at + LATE_MS);
    }
  });
});

test("market orders with and without bound, in a batch: within the bound or not at all, and never resting", async () => {
  const [market, user, maker] = [world.market(), world.user(), world.user()];
  await world.split(maker, market, 30);
  await world.split(user, market, 30);
  await batch(
    maker,
    [3_000, 4_000, 9_000].map((price) => ({ op: "place", ...terms(market, 0, SELL, price, 2) })),
  );
  const order = (side: number, quantity: number, more: object): object => {
    const { price: _, ...rest } = terms(market, 0, side, 1, quantity, { type: "market" });
    return { op: "place", ...rest, ...more };
  };
  const results = await batch(user, [
    order(BUY, 3, { price: 3_500 }),
    order(BUY, 3, { price: 8_999, time_in_force: "fok" }),
    order(BUY, 3, {}),
    order(BUY, 1, { time_in_force: "fok" }),
    order(SELL, 1, {}),
    order(BUY, 1, { time_in_force: "gtc" }),
    order(BUY, 1, { post_only: true }),
  ]);
  expect(results.map(({ code }) => code)).toEqual([0, 0, 0, 0, 0, 40000, 40000]);
  const ended = await Promise.all(results.slice(0, 5).map(({ data }) => user.order(data!.id)));
  const seen = ended.map(({ status, reason, price, trades }) => [
    status,
    reason,
    price,
    trades.map((fill) => [fill.price, fill.quantity]),
  ]);
  expect(seen).toEqual([
    ["canceled", "ioc_remainder", 3_500, [[3_000, 2]]],
    ["canceled", "fok_unfillable", 8_999, []],
    [
      "filled",
      null,
      null,
      [
        [4_000, 2],
        [9_000, 1],
      ],
    ],
    ["filled", null, null, [[9_000, 1]]],
    ["canceled", "ioc_remainder", null, []],
  ]);
  expect(await user.balance()).toMatchObject({ held: 0 });
  expect(await user.all("/orders")).toEqual([]);
});

describe("lists", () => {
  test("GET /orders filters, with and without the finished ones, by any page size", async () => {
    const [a, b, user] = [world.market(), world.market(3), world.user()];
    for (const market of [a, b]) await world.split(user, market, 50);
    const orders: OrderJson[] = [];
    for (let i = 0; i < 24; i++) {
      const market = i % 3 === 0 ? b : a;
      const side = i % 4 === 0 ? SELL : BUY;
      const more = i % 5 === 0 ? { client_order_id: `n${i}` } : {};
      const order = await user.place(terms(market, i % 2, side, side === BUY ? 10 + i : 9_000 + i, 1, more));
      if (i % 7 > 3) await user.cancel(order.id);
      orders.unshift({ ...order, status: i % 7 > 3 ? "canceled" : "open" });
    }
    const filters: [query: string, fits: (order: OrderJson) => boolean][] = [
      ["", () => true],
      [`&market_id=${a.id}`, ({ market_id }) => market_id === a.id],
      [`&outcome_id=${b.outcomes[1]}`, ({ outcome_id }) => outcome_id === b.outcomes[1]],
      ["&side=2", ({ side }) => side === SELL],
      [
        `&market_id=${a.id}&side=1&outcome_id=${a.outcomes[1]}`,
        (order) => order.outcome_id === a.outcomes[1] && order.side === BUY,
      ],
      ["&client_order_id=n5", ({ client_order_id }) => client_order_id === "n5"],
      ["&client_order_id=n20&side=2", ({ client_order_id }) => client_order_id === "n20"],
      ["&client_order_id=none", () => false],
      ["&market_id=999999", () => false],
    ];
    for (const [query, fits] of filters) {
      for (const limit of [1, 3, 200]) {
        const all = await user.all<OrderJson>(`/orders?status=all${query}`, limit);
        expect([query, limit, idsOf(all)]).toEqual([query, limit, idsOf(orders.filter(fits))]);
        expect(all.map(({ status }) => status)).toEqual(orders.filter(fits).map(({ status }) => status));
        const active = await user.all<OrderJson>(`/orders?status=active${query}`, limit);
        expect(idsOf(active)).toEqual(idsOf(orders.filter(fits).filter(isLive)));
      }
    }
  });

  test("a list of all orders while they are placed, amended, filled and canceled: none twice, none missing, in order", async () => {
    const random = Random.printed("lists while orders come and go");
    const [market, fresh, other] = [world.market(), world.user(), world.user()];
    const user = world.client(fresh.token!.split("-")[1]!, 0, 4);
    await world.split(other, market, 5_000);
    const known: number[] = [];
    const placeSome = async (count: number): Promise<void> => {
      const operations = Array.from({ length: count }, () => {
        return { op: "place", ...terms(market, 0, BUY, random.integer(100, 200), random.integer(1, 3)) };
      });
      for (const { data } of await batch(user, operations)) known.push(data!.id);
    };
    for (let i = 0; i < 6; i++) await placeSome(50);
    let changing = true;
    const churn = async (): Promise<void> => {
      while (changing) {
        await placeSome(random.integer(1, 5));
        const id = random.pick(known);
        await user.request("DELETE", `/orders/${id}`);
        await user.request("PATCH", `/orders/${random.pick(known)}`, { body: { price: random.integer(100, 200) } });
        await other.place(terms(market, 0, SELL, 1, random.integer(1, 3), { time_in_force: "ioc" }));
      }
    };
    const churning = churn();
    const reader = world.client(fresh.token!.split("-")[1]!);
    let changed = 0;
    for (let round = 0; round < 12; round++) {
      const before = [...known];
      const seen = await reader.all<OrderJson>("/orders?status=all", random.integer(5, 60));
      const ids = idsOf(seen);
      expect(ids).toEqual(ids.toSorted((a, b) => b - a));
      expect(new Set(ids).size).toBe(ids.length);
      const found = new Set(ids);
      expect(before.filter((id) => !found.has(id))).toEqual([]);
      for (const { filled, remaining, quantity } of seen) expect(filled + remaining).toBe(quantity);
      // GET /orders lists every order that was live throughout.
      const liveBefore = idsOf(seen.filter(isLive));
      const active = new Set(idsOf(await reader.all<OrderJson>("/orders", random.integer(5, 60))));
      const after = new Map((await reader.all<OrderJson>("/orders?status=all")).map((order) => [order.id, order]));
      for (const id of liveBefore) if (isLive(after.get(id)!)) expect(active.has(id)).toBe(true);
      changed += liveBefore.filter((id) => !isLive(after.get(id)!)).length;
    }
    changing = false;
    await churning;
    expect(changed).toBeGreaterThan(0);
    const last = await reader.all<OrderJson>("/orders?status=all", 7);
    expect(idsOf(last).toReversed()).toEqual(known.toSorted((a, b) => a - b));
    const statuses = new Set<string>(last.map(({ status }) => status));
    for (const status of ["open", "canceled", "filled"]) expect(statuses.has(status)).toBe(true);
  });
});

describe("/me/limits", () => {
  interface Limits {
    kyc_tier: number;
    daily_activity: { used: number; limit: number };
    rate_limits: unknown[];
  }
  const limits = (client: Client): Promise<Limits> => client.get<Limits>("/me/limits");

  test("/me/limits shows the tier, daily activity as orders come and go, and no rate limits if they are off", async () => {
    const [market, user, other] = [world.market(), world.user(), world.user()];
    await world.split(other, market, 10);
    const expectUsed = async (used: number): Promise<void> => {
      const live = await user.all("/orders");
      expect(await limits(user)).toEqual({
        kyc_tier: 2,
        live_orders: { used: live.length, limit: 20_000 },
        daily_activity: { used, limit: 10_000 * USDC },
        fees: { trading_fee: 150, maker_rebate: 10, merge_fee: 0 },
        rate_limits: [],
      });
    };
    await expectUsed(0);
    const { id } = await user.place(terms(market, 0, BUY, 5_000, 10));
    await expectUsed(notional(5_000, 10));
    await amend(user, id, { price: 4_000, quantity: 20 });
    await expectUsed(notional(4_000, 20));
    await other.place(terms(market, 0, SELL, 4_000, 3));
    await expectUsed(notional(4_000, 20));
    await user.cancel(id);
    await expectUsed(notional(4_000, 3));
    // A buy that fills below its price counts at the price paid.
    await other.place(terms(market, 0, SELL, 3_000, 2));
    await user.place(terms(market, 0, BUY, 9_000, 2));
    const filled = notional(4_000, 3) + notional(3_000, 2);
    await expectUsed(filled);
    await quote(user, market, [[1, BUY, 1_000, 7]]);
    await expectUsed(filled + notional(1_000, 7));
    await cancelAll(user);
    await expectUsed(filled);
  });

  test("/me/limits is open to every tier and token, and to nobody without one", async () => {
    expect(await limits(world.client("tier0"))).toMatchObject({ kyc_tier: 0, daily_activity: { used: 0, limit: 0 } });
    expect(await limits(world.client("tier1"))).toMatchObject({ kyc_tier: 1, daily_activity: { limit: 100 * USDC } });
    for (const index of [0, 1]) expect(await limits(world.client("scopes", index))).toMatchObject({ kyc_tier: 2 });
    await expectRefused(world.anonymous().request("GET", "/me/limits"), 401, 40100);
  });
});

describe("builder codes", () => {
  test("builder codes credit orders and fills, as maker and as taker, by every way of placing", async () => {
    const [market, three] = [world.market(), world.market(3)];
    const users = [world.user(), world.user(), world.user()];
    const { sale, maker } = await creditEveryWay(world, users, [market, three], "");
    await users[1]!.place(terms(market, 0, BUY, 4_500, 2));
    const fees = maker.fees + feeOn(notional(4_500, 2));
    expect(await statsOf(world, maker.code)).toMatchObject({ fills: maker.fills + 1, volume: 10, fees });
    expect(await users[0]!.order(sale.id)).toMatchObject({ status: "filled", builder_code: maker.code });
  });

  test("builder codes are 1 to 32 of A-Z a-z 0-9 . _ -; others place nothing, unknown ones are 4040", async () => {
    const [market, user] = [world.market(), world.user()];
    const body = terms(market, 0, BUY, 1_000, 1);
    const send = (code: string) => [
      user.request("POST", "/orders", { body, headers: builderHeader(code) }),
      user.request("POST", "/orders/batch", {
        body: { operations: [{ op: "place", ...body }] },
        headers: builderHeader(code),
      }),
      user.request("PUT", `/quotes/${market.id}`, {
        body: quotesBody(market, [[0, BUY, 1_000, 1]]),
        headers: builderHeader(code),
      }),
    ];
    for (const bad of ["a b", "a/b", "a:b", "a\u00fcb", "a".repeat(33), "{}", "a,b", "%41", ".", ".."]) {
      for (const answer of await Promise.all(send(bad))) {
        expect([bad, answer.status, answer.code, answer.msg]).toEqual([
          bad,
          400,
          40000,
          expect.stringMatching(/X-Builder-Code/),
        ]);
      }
    }
    expect(await user.all("/orders?status=all")).toEqual([]);
    for (const good of ["a", "-", "...", "a".repeat(32), "A", "__proto__"]) {
      const codes = (await Promise.all(send(good))).map(({ code }) => code);
      expect([good, ...codes]).toEqual([good, 0, 0, 0]);
      expect(await statsOf(world, good)).toMatchObject({ code: good });
    }
    for (const unknown of ["b", "constructor", "a".repeat(31), "a".repeat(33), "a%20b", "%00", "x".repeat(500)]) {
      await expectRefused(world.anonymous().request("GET", `/builders/${unknown}/stats`), 404, 4040);
    }
    await cancelAll(user);
  });

  test("builder codes add up over many concurrent users", async () => {
    const [market, maker] = [world.market(), world.user()] as [TestMarket, Client];
    await world.split(maker, market, 200);
    const takers = Array.from({ length: 6 }, () => world.user());
    const shares = (
      await Promise.all(
        takers.map(async (taker) => {
          let bought = 0;
          for (let i = 0; i < 10; i++) {
            const size = 1 + (i % 3);
            await post(maker, terms(market, 0, SELL, 5_000, size), builderHeader("sum.sell"));
            const { data } = await post(
              taker,
              terms(market, 0, BUY, 5_000, size, { time_in_force: "ioc" }),
              builderHeader("sum.buy"),
            );
            bought += (await taker.order(data.id)).filled;
          }
          return bought;
        }),
      )
    ).reduce((sum, bought) => sum + bought, 0);
    const [bought, sold] = [await statsOf(world, "sum.buy"), await statsOf(world, "sum.sell")];
    expect([bought.orders, sold.orders]).toEqual([60, 60]);
    expect([bought.volume, sold.volume]).toEqual([shares, shares]);
    expect([bought.notional, sold.notional]).toEqual([notional(5_000, shares), notional(5_000, shares)]);
    expect(bought.fees).toBe(0);
    const fills = await maker.all<OwnFillJson>("/me/fills");
    expect(sold.fees).toBe(fills.reduce((sum, { fee }) => sum + fee, 0));
    expect(sold.fills).toBe(fills.length);
  });
});
