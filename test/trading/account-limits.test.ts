/**
 * What an account may do: how many live orders by tier and by terms, over every entry point and under concurrency; how
 * much activity a day by KYC tier; and which endpoints by token scope. Counts over restarts are in restarts.test.ts;
 * exchange-wide limits are in test/simulation/capacity.test.ts.
 */
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { expectEndsWell } from "../support/checks.ts";
import type { Client, OrderJson } from "../support/client.ts";
import { notional } from "../support/reference.ts";
import {
  amend,
  BUY,
  batch,
  cancelAll,
  expectRefused,
  patch,
  post,
  putQuotes,
  quote,
  SELL,
  terms,
} from "../support/trading.ts";
import { type TestMarket, USDC, World } from "../support/world.ts";

const DAY_MS = 86_400_000;

interface LiveOrders {
  readonly used: number;
  readonly limit: number;
}

const liveOrders = async (user: Client): Promise<LiveOrders> =>
  (await user.get<{ live_orders: LiveOrders }>("/me/limits")).live_orders;

const bid = (market: TestMarket, price = 1): object => terms(market, 0, BUY, price, 1);
const place = (market: TestMarket, price = 1): object => ({ op: "place", ...bid(market, price) });

/** Expects a rejection for the number of live orders, which stays the same. */
async function expectFull(user: Client, ask: () => ReturnType<Client["request"]>): Promise<void> {
  const before = await liveOrders(user);
  await expectRefused(ask(), 422, 42204, new RegExp(`has ${before.used} of at most ${before.limit} live orders`));
  expect(await liveOrders(user)).toEqual(before);
}

let world: World;
beforeAll(async () => {
  const few = (max_live_orders: number) => ({ terms: { max_live_orders } });
  const tier1 = { tier: 1, deposit: 1_000 * USDC };
  world = await World.start({
    users: 6,
    named: {
      ...{ tier0: { tier: 0 }, tier1, "tier1-b": tier1, "tier1-c": tier1, rich: { deposit: 100_000 * USDC } },
      ...{ small: { tier: 1 }, five: few(5), ten: few(10), twenty: few(20), lone: few(1) },
      writer: { scopes: [["orders:write"], ["portfolio:read"], ["markets:read"], []] },
    },
    markets: Array<number>(16).fill(2),
  });
});
afterAll(() => expectEndsWell(world));

describe("live orders", () => {
  test("live orders are limited to 500 at tier 1, 20,000 at tier 2, or as the terms set; one more is 42204", async () => {
    const [small, market] = [world.client("small"), world.market()];
    expect(await liveOrders(world.client("tier0"))).toEqual({ used: 0, limit: 0 });
    expect(await liveOrders(world.user())).toEqual({ used: 0, limit: 20_000 });
    expect(await liveOrders(world.client("five"))).toEqual({ used: 0, limit: 5 });
    for (let i = 0; i < 10; i++) await batch(small, Array(50).fill(place(market)));
    expect(await liveOrders(small)).toEqual({ used: 500, limit: 500 });
    await expectFull(small, () => post(small, bid(market)));
    const socket = await world.socket(small);
    expect((await socket.ask({ op: "order.place", data: bid(market) })).code).toBe(42204);
    await socket.close();
    expect((await batch(small, [place(market), place(market)])).map(({ code }) => code)).toEqual([42204, 42204]);
    // Orders that end immediately are rejected too: each would be live for a moment.
    await expectFull(small, () => post(small, { ...bid(market), time_in_force: "ioc" }));
    await expectFull(small, () => putQuotes(small, market, [[0, BUY, 1, 1]]));
    await cancelAll(small);
    expect(await liveOrders(small)).toEqual({ used: 0, limit: 500 });
  });

  test("an ended order frees its slot of live orders: a cancel, a fill, an expiry, a rejection", async () => {
    const [user, other, market] = [world.client("lone"), world.user(), world.market()];
    await world.split(other, market, 5);
    const free = async (): Promise<void> => {
      await expect.poll(() => liveOrders(user)).toEqual({ used: 0, limit: 1 });
    };
    const first = await user.place(bid(market));
    await expectFull(user, () => post(user, bid(market)));
    await user.cancel(first.id);
    await free();
    await user.place(bid(market, 40));
    await other.place(terms(market, 0, SELL, 40, 1));
    await free();
    await user.place({ ...bid(market), time_in_force: "gtd", expires_at: Date.now() + 500 });
    await expectFull(user, () => post(user, bid(market)));
    await free();
    await user.place({ ...bid(market), time_in_force: "ioc" });
    await free();
    await other.place(terms(market, 0, SELL, 50, 1));
    await user.place({ ...bid(market, 50), post_only: true });
    await free();
    // A repeated placement of a live order adds none.
    const named = { ...bid(market), client_order_id: "only" };
    const order = await user.place(named);
    expect(await user.place(named)).toEqual(order);
    await cancelAll(user);
  });

  test("an amend needs no slot of live orders, and passes at the limit", async () => {
    const [user, market] = [world.client("five"), world.market()];
    const orders: OrderJson[] = [];
    for (let i = 0; i < 5; i++) orders.push(await user.place(bid(market)));
    await amend(user, orders[0]!.id, { price: 2, quantity: 3 });
    expect((await patch(user, orders[1]!.id, { quantity: 2 })).code).toBe(0);
    expect(await liveOrders(user)).toEqual({ used: 5, limit: 5 });
    await expectFull(user, () => post(user, bid(market)));
    // In a batch a placement waits for the cancel before it.
    const [canceled, placed] = await batch(user, [{ op: "cancel", id: orders[2]!.id }, place(market)]);
    expect([canceled!.code, placed!.code]).toEqual([0, 0]);
    expect(await liveOrders(user)).toEqual({ used: 5, limit: 5 });
    await cancelAll(user);
  });

  test("quotes count as live orders like others; replaced quotes free their slots", async () => {
    const [user, market] = [world.client("ten"), world.market()];
    const ladder = (count: number, from: number): [number, number, number, number][] =>
      Array.from({ length: count }, (_, i) => [0, BUY, from + i, 1]);
    for (let i = 0; i < 4; i++) await user.place(bid(market));
    await expectFull(user, () => putQuotes(user, market, ladder(7, 10)));
    await quote(user, market, ladder(6, 10));
    await expectFull(user, () => putQuotes(user, market, ladder(7, 10)));
    // Replace all of them, in turn and concurrently: never more than ten.
    await quote(user, market, ladder(6, 20));
    const prices = Array.from({ length: 12 }, (_, i) => 30 + 10 * i);
    const answers = await Promise.all(prices.map((from) => putQuotes(user, market, ladder(6, from))));
    expect(answers.map(({ code }) => code)).toEqual(prices.map(() => 0));
    expect(await liveOrders(user)).toEqual({ used: 10, limit: 10 });
    expect(await user.all<OrderJson>("/orders")).toHaveLength(10);
    await quote(user, market, ladder(2, 20));
    expect(await liveOrders(user)).toEqual({ used: 6, limit: 10 });
    await cancelAll(user);
  });

  test("concurrent sockets, requests and batches never exceed the limit of live orders", async () => {
    const [user, market] = [world.client("twenty", 0, 20), world.market()];
    const socket = await world.socket(user);
    const singles = Array.from({ length: 15 }, () => post(user, bid(market)));
    const batches = Array.from({ length: 3 }, () => batch(user, Array(5).fill(place(market))));
    const operations = Array.from({ length: 10 }, () => socket.ask({ op: "order.place", data: bid(market) }));
    const codes = [...(await Promise.all(singles)), ...(await Promise.all(batches)).flat()].map(({ code }) => code);
    for (const { code } of await Promise.all(operations)) codes.push(code);
    expect(codes.filter((code) => code === 0)).toHaveLength(20);
    expect(codes.filter((code) => code === 42204)).toHaveLength(20);
    expect(await liveOrders(user)).toEqual({ used: 20, limit: 20 });
    // Cancels race with placements: each accepted placement has found a free slot.
    const live = await user.all<OrderJson>("/orders");
    await Promise.all([...live.map(({ id }) => user.cancel(id)), ...live.map(() => post(user, bid(market)))]);
    const { used } = await liveOrders(user);
    expect(used).toBe((await user.all("/orders")).length);
    await socket.close();
    await cancelAll(user);
    expect(await liveOrders(user)).toEqual({ used: 0, limit: 20 });
  });
});

describe("KYC tiers and scopes", () => {
  test("tier 0 is 40300 at every trading endpoint and may read", async () => {
    const [market, user] = [world.market(), world.client("tier0")];
    await expectRefused(post(user, terms(market, 0, BUY, 5_000, 1)), 403, 40300, /tier/);
    await expectRefused(user.request("DELETE", "/orders/1"), 403, 40300);
    for (const name of ["split", "merge"]) {
      const body = { market_id: market.id, quantity: 1 };
      await expectRefused(user.request("POST", `/wallet/${name}`, { body }), 403, 40300);
    }
    expect(await user.balance()).toMatchObject({ available: 10_000 * USDC });
    expect(await user.all("/orders")).toEqual([]);
  });

  test("tier 1 has 100 USDC of activity a day: live buys count until they are canceled", async () => {
    const [market, user] = [world.market(), world.client("tier1")];
    const { id } = await user.place(terms(market, 0, BUY, 5_000, 120));
    await user.place(terms(market, 0, BUY, 4_000, 100));
    const refused = await expectRefused(post(user, terms(market, 0, BUY, 1, 1)), 429, 42901, /activity/);
    const midnight = (Math.floor(Date.now() / DAY_MS) + 1) * DAY_MS;
    const seconds = Number(refused.headers["retry-after"]);
    expect(Math.abs(Date.now() + seconds * 1_000 - midnight)).toBeLessThan(5_000);
    await user.cancel(id);
    await user.place(terms(market, 0, BUY, 6_000, 100));
    await expectRefused(post(user, terms(market, 0, BUY, 1, 1)), 429, 42901);
  });

  test("filled buys count at the price paid; sales don't count", async () => {
    const [market, user, other] = [world.market(), world.client("tier1-b"), world.user()];
    await world.split(other, market, 100);
    await other.place(terms(market, 0, SELL, 5_000, 100));
    // Counts 90 while it is live; filled at 5000 it has used 50.
    await user.place(terms(market, 0, BUY, 9_000, 100));
    await expectRefused(post(user, terms(market, 1, BUY, 5_001, 100)), 429, 42901);
    await other.place(terms(market, 0, BUY, 4_900, 100));
    await user.place(terms(market, 0, SELL, 4_900, 100));
    await user.place(terms(market, 1, BUY, 5_000, 100));
    await expectRefused(post(user, terms(market, 1, BUY, 1, 1)), 429, 42901);
  });

  test("a market buy without bound counts at 9999", async () => {
    const [market, user] = [world.market(), world.client("tier1-c")];
    const body = { ...terms(market, 0, BUY, 1, 101), price: undefined, type: "market" };
    await expectRefused(post(user, body), 429, 42901);
    await user.place({ ...body, quantity: 100 });
    await world.split(user, market, 100);
    await user.place({ ...body, quantity: 100, side: SELL });
  });

  test("tier 2 has 10,000 USDC of activity a day", async () => {
    const [market, user] = [world.market(), world.client("rich")];
    const shares = (10_000 * USDC) / notional(5_000, 1);
    await expectRefused(post(user, terms(market, 0, BUY, 5_000, shares + 1)), 429, 42901);
    await user.place(terms(market, 0, BUY, 5_000, shares));
  });

  test("each scope opens its own trading endpoints", async () => {
    const market = world.market();
    const [writer, reader, marketReader, none] = [0, 1, 2, 3].map((i) => world.client("writer", i)) as [
      Client, Client, Client, Client,
    ]; // biome-ignore format: four clients
    const { id } = await writer.place(terms(market, 0, BUY, 5_000, 1));
    for (const path of [
      "/orders",
      `/orders/${id}`,
      "/me/fills",
      "/wallet/balance",
      "/me/balance",
      "/users/me/balance",
    ]) {
      await expectRefused(writer.request("GET", path), 403, 40300, /portfolio:read/);
      expect((await reader.request("GET", path)).status).toBe(200);
      for (const client of [marketReader, none]) await expectRefused(client.request("GET", path), 403, 40300);
    }
    for (const client of [reader, marketReader, none]) {
      await expectRefused(post(client, terms(market, 0, BUY, 5_000, 1)), 403, 40300, /orders:write/);
      await expectRefused(client.request("DELETE", `/orders/${id}`), 403, 40300);
      expect((await client.request("GET", "/markets")).status).toBe(200);
    }
    await writer.cancel(id);
  });
});
