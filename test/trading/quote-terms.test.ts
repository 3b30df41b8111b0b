/**
 * `valid_until` and `expires_at` of quotes: they apply to all of a request's quotes. A resting quote with a new end keeps
 * its time priority; a request that arrives too late changes nothing. Ends over restarts are in restarts.test.ts.
 */
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { clockAt, eventually, expectBalanced, expectSoundDatabase } from "../support/checks.ts";
import type { Client, OrderJson } from "../support/client.ts";
import {BUY, expectRefused, expectStanding, idsOf, liveOrders, type QuoteSpec, quote, quotesBody, type ResultJson,
  SELL, terms,
} from "../support/trading.ts"; // biome-ignore format: one list
import { type TestMarket, USDC, World } from "../support/world.ts";

let world: World;
beforeAll(async () => {
  world = await World.start({
    users: 30,
    named: { ten: { deposit: 10 * USDC }, "ten-b": { deposit: 10 * USDC }, "ten-c": { deposit: 10 * USDC } },
    markets: Array<number>(15).fill(2),
  });
});
afterAll(async () => {
  await expectBalanced(world.anonymous());
  await world.stop();
  expectSoundDatabase(world.server.dataDir);
});

interface Terms {
  readonly expires_at?: number | null;
  readonly valid_until?: number | null;
}

/** Replaces the quotes; each must be accepted. */
async function replace(
  client: Client,
  market: TestMarket,
  quotes: readonly QuoteSpec[],
  more: Terms,
): Promise<OrderJson[]> {
  const body = { ...quotesBody(market, quotes), ...more };
  const { results } = await client.data<{ results: ResultJson[] }>("PUT", `/quotes/${market.id}`, body);
  expect(results.map(({ code }) => code)).toEqual(quotes.map(() => 0));
  return results.map(({ data }) => data!);
}

const QUOTES: readonly QuoteSpec[] = [
  [0, BUY, 4_000, 5],
  [1, BUY, 3_000, 5],
];
const endsOf = (orders: readonly OrderJson[]): unknown[] =>
  orders.map(({ time_in_force, expires_at }) => [time_in_force, expires_at]);

describe("expires_at", () => {
  test("expires_at ends all quotes at that time, and no other orders of the user", async () => {
    const [market, user] = [world.market(), world.user()];
    const other = await user.place(terms(market, 0, BUY, 10, 1));
    const expires_at = Date.now() + 700;
    const placed = await replace(user, market, QUOTES, { expires_at });
    expect(endsOf(placed)).toEqual(QUOTES.map(() => ["gtd", expires_at]));
    expect(endsOf(await liveOrders(user, market))).toEqual([...QUOTES.map(() => ["gtd", expires_at]), ["gtc", null]]);
    await eventually(async () => expectStanding(user, market, [other.id]));
    for (const { id } of placed) {
      const order = await user.order(id);
      expect(order).toMatchObject({ status: "expired", reason: "expired", expires_at });
      expect(order.updated_at).toBeGreaterThanOrEqual(expires_at);
    }
    expect(await user.balance()).toMatchObject({ held: 100 * 10 });
  });

  test("expires_at moved later: unchanged quotes keep their ids and priority, and end at the new time", async () => {
    const [market, user, rival, taker] = [world.market(), world.user(), world.user(), world.user()];
    const first = Date.now() + 900;
    const placed = await replace(user, market, QUOTES, { expires_at: first });
    await rival.place(terms(market, 0, BUY, 4_000, 5));
    const socket = await world.socket(user);
    const later = Date.now() + 60_000;
    const kept = await replace(user, market, QUOTES, { expires_at: later });
    expect(idsOf(kept)).toEqual(idsOf(placed));
    expect(endsOf(kept)).toEqual(QUOTES.map(() => ["gtd", later]));
    expect(kept.map(({ status }) => status)).toEqual(["open", "open"]);
    await socket.fence();
    const updates = socket.of<OrderJson>("order.updated").map(({ data }) => [data.id, data.status, data.expires_at]);
    expect(updates).toEqual(kept.map(({ id }) => [id, "open", later]));
    await clockAt(first + 500);
    await expectStanding(user, market, idsOf(placed));
    await world.split(taker, market, 1);
    await taker.place(terms(market, 0, SELL, 4_000, 1));
    expect(await user.order(placed[0]!.id)).toMatchObject({
      status: "partially_filled",
      remaining: 4,
      expires_at: later,
    });
    expect(await rival.all<OrderJson>("/orders")).toMatchObject([{ remaining: 5 }]);
    // The end is removed; the same request once more changes nothing and sends no update.
    const rest: QuoteSpec[] = [[0, BUY, 4_000, 4], [1, BUY, 3_000, 5]]; // biome-ignore format: one list
    const open = await quote(user, market, rest);
    expect([idsOf(open), endsOf(open)]).toEqual([idsOf(placed), rest.map(() => ["gtc", null])]);
    await socket.fence();
    const { length } = socket.of("order.updated");
    await quote(user, market, rest);
    await socket.fence();
    expect(socket.of("order.updated")).toHaveLength(length);
    // And sooner again.
    const soon = Date.now() + 500;
    await replace(user, market, rest, { expires_at: soon });
    await eventually(async () => expectStanding(user, market, []));
    expect(await user.balance()).toMatchObject({ held: 0 });
    await socket.close();
  });

  test("expires_at changes beside new and omitted quotes, in one commit, with means for the worst case only", async () => {
    const [market, user] = [world.market(), world.client("ten")];
    await replace(user, market, [[0, BUY, 5_000, 10], [1, BUY, 1_000, 50]], { expires_at: Date.now() + 60_000 }); // biome-ignore format: one list
    const before = await liveOrders(user, market);
    const expires_at = Date.now() + 90_000;
    const results = await replace(user, market, [[0, BUY, 5_000, 10], [1, BUY, 1_100, 45]], { expires_at }); // biome-ignore format: one list
    expect(results[0]!.id).toBe(before.at(-1)!.id);
    expect(results[1]!.id).toBeGreaterThan(before[0]!.id);
    const now = await liveOrders(user, market);
    expect(endsOf(now)).toEqual([
      ["gtd", expires_at],
      ["gtd", expires_at],
    ]);
    expect(now.map(({ price, quantity }) => [price, quantity])).toEqual([
      [1_100, 45],
      [5_000, 10],
    ]);
  });

  test("expires_at must lie in the future; a rejected request changes nothing", async () => {
    const [market, user] = [world.market(), world.user()];
    const placed = await quote(user, market, QUOTES);
    for (const expires_at of [0, 1, Date.now() - 1]) {
      const body = { ...quotesBody(market, []), expires_at };
      await expectRefused(user.request("PUT", `/quotes/${market.id}`, { body }), 400, 40000, /^expires_at: must lie/);
    }
    for (const field of ["expires_at", "valid_until"]) {
      const body = { ...quotesBody(market, []), [field]: "soon" };
      await expectRefused(user.request("PUT", `/quotes/${market.id}`, { body }), 400, 40000, new RegExp(`^${field}`));
    }
    await expectStanding(user, market, idsOf(placed));
  });
});

describe("valid_until", () => {
  test("valid_until in time has no effect; too late, new quotes are rejected and resting ones stay", async () => {
    const [market, user] = [world.market(), world.user()];
    const socket = await world.socket(user);
    const placed = await replace(user, market, QUOTES, { valid_until: Date.now() + 60_000 });
    await expectStanding(user, market, idsOf(placed));
    const next: QuoteSpec[] = [QUOTES[0]!, [1, BUY, 3_100, 7]];
    for (const valid_until of [0, 1, Date.now() - 1]) {
      const results = await replace(user, market, next, { valid_until, expires_at: Date.now() + 60_000 });
      expect(results[0]).toMatchObject({ id: placed[0]!.id, status: "open", expires_at: null });
      expect(results[1]).toMatchObject({ status: "queued", price: 3_100 });
      const { data } = await socket.frame<OrderJson>("order.updated", ({ id }) => id === results[1]!.id);
      expect(data).toMatchObject({ status: "rejected", reason: "too_late" });
      await expectStanding(user, market, idsOf(placed));
    }
    expect(await user.balance()).toMatchObject({ held: 100 * (4_000 * 5 + 3_000 * 5) });
    await socket.close();
  });

  test("valid_until too late, with means for one set only: the whole request is rejected, and resting quotes stay", async () => {
    const [market, user] = [world.market(), world.client("ten-c")];
    const placed = await replace(user, market, [[0, BUY, 5_000, 19]], {});
    const next: QuoteSpec[] = [[0, BUY, 5_001, 19]];
    const body = { ...quotesBody(market, next), valid_until: Date.now() - 1 };
    await expectRefused(user.request("PUT", `/quotes/${market.id}`, { body }), 409, 40900, /^too_late: /);
    await expectStanding(user, market, idsOf(placed));
    await replace(user, market, next, {});
  });

  test("sets of quotes past valid_until don't affect the next one, sent before their responses: it rests as a whole", async () => {
    const [market, user] = [world.market(), world.user()];
    const socket = await world.socket(user);
    const set = (price: number): object => {
      const quotes = Array.from({ length: 100 }, (_, i): QuoteSpec => [i % 2, BUY, price + i, 1]);
      return { market_id: market.id, ...quotesBody(market, quotes) };
    };
    await socket.data("quotes.replace", set(1_000));
    const late = [2_000, 3_000].map((price) => socket.data("quotes.replace", { ...set(price), valid_until: 1 }));
    const { results } = await socket.data<{ results: ResultJson[] }>("quotes.replace", set(3_000));
    await Promise.all(late);
    await expectStanding(user, market, idsOf(results.map(({ data }) => data!)));
    await socket.close();
  });

  test("expires_at and valid_until of quotes apply over the socket too", async () => {
    const [market, user] = [world.market(), world.user()];
    const socket = await world.socket(user);
    const expires_at = Date.now() + 60_000;
    const data = { market_id: market.id, ...quotesBody(market, QUOTES), expires_at, valid_until: Date.now() + 60_000 };
    const { results } = await socket.data<{ results: ResultJson[] }>("quotes.replace", data);
    expect(endsOf(results.map(({ data: order }) => order!))).toEqual(QUOTES.map(() => ["gtd", expires_at]));
    await socket.close();
  });
});
