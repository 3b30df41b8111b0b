/**
 * DELETE /orders: it cancels all live orders of the user, or those that match its filters, up to tens of thousands while
 * others trade. With one engine thread and with three.
 */
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { expectBalanced, expectSoundDatabase } from "../support/checks.ts";
import type { OrderJson } from "../support/client.ts";
import { variants } from "../support/projects.ts";
import { notional } from "../support/reference.ts";
import {
  amend, BUY, batch, books, cancelAll, expectAccounted, expectRefused, expectStanding, idsOf, type QuoteSpec, quote, SELL, terms,
} from "../support/trading.ts"; // biome-ignore format: one list
import { type TestMarket, USDC, World } from "../support/world.ts";

const place = (...args: Parameters<typeof terms>): object => ({ op: "place", ...terms(...args) });

describe.each(variants([1], [3]))("with ENGINE_THREADS=%i", (threads) => {
  let world: World;
  beforeAll(async () => {
    world = await World.start({
      users: 8,
      named: { crowd: {} },
      markets: [2, 2, 2, 2, 3],
      env: { ENGINE_THREADS: String(threads) },
    });
  });
  afterAll(async () => {
    await expectBalanced(world.anonymous());
    await world.stop();
    expectSoundDatabase(world.server.dataDir);
  });

  test("a cancel of all cancels all orders, or those that match every filter, and returns their ids", async () => {
    const [a, b, user, other] = [world.market(), world.market(3), world.user(), world.user()];
    for (const client of [user, other]) for (const market of [a, b]) await world.split(client, market, 10);
    let ids: Record<string, number>;
    const specs: (readonly [name: string, market: TestMarket, quote: QuoteSpec])[] = [
      ...([
        ["a0b", a, [0, BUY, 4_000, 1]],
        ["a0s", a, [0, SELL, 9_000, 1]],
        ["a1b", a, [1, BUY, 4_000, 1]],
      ] as const),
      ...([
        ["b0b", b, [0, BUY, 3_000, 1]],
        ["b2s", b, [2, SELL, 9_000, 1]],
        ["b2b", b, [2, BUY, 3_000, 1]],
      ] as const),
    ];
    const theirs: OrderJson[] = [];
    for (const [name, market, quoted] of specs) {
      theirs.push(await other.place(terms(market, ...quoted, { client_order_id: name })));
    }
    const outcome = (market: TestMarket, index: number): string => `outcome_id=${market.outcomes[index]}`;
    const cases: [query: string, names: string[]][] = [
      ["", ["b2b", "b2s", "b0b", "a1b", "a0s", "a0b"]],
      [`?market_id=${a.id}`, ["a1b", "a0s", "a0b"]],
      [`?${outcome(a, 0)}`, ["a0s", "a0b"]],
      ["?side=1", ["b2b", "b0b", "a1b", "a0b"]],
      ["?side=2", ["b2s", "a0s"]],
      ["?client_order_id=round_b2s", ["b2s"]],
      [`?market_id=${b.id}&side=1`, ["b2b", "b0b"]],
      [`?market_id=${b.id}&${outcome(b, 2)}&side=2`, ["b2s"]],
      [`?market_id=${b.id}&${outcome(b, 2)}&side=2&client_order_id=round_b2s`, ["b2s"]],
      [`?market_id=${a.id}&${outcome(b, 2)}`, []],
      ["?side=1&client_order_id=round_b2s", []],
      ["?client_order_id=a0b", []],
      ["?market_id=999999", []],
      ["?outcome_id=999999", []],
    ];
    for (const [round, [query, names]] of cases.entries()) {
      ids = {};
      for (const [name, market, quoted] of specs) {
        const { id } = await user.place(terms(market, ...quoted, { client_order_id: `${round}_${name}` }));
        ids[name] = id;
      }
      const ended = await cancelAll(user, query.replace("round", String(round)));
      expect([query, ended.toSorted()]).toEqual([query, names.map((name) => ids[name]).toSorted()]);
      for (const id of ended) expect(await user.order(id)).toMatchObject({ status: "canceled", reason: "user" });
      const rest = specs.map(([name]) => name).filter((name) => !names.includes(name));
      expect(idsOf(await user.all("/orders")).toSorted()).toEqual(rest.map((name) => ids[name]).toSorted());
      expect((await cancelAll(user)).toSorted()).toEqual(rest.map((name) => ids[name]).toSorted());
      expect(await cancelAll(user)).toEqual([]);
    }
    expect(await user.balance()).toMatchObject({ held: 0 });
    for (const order of theirs) expect(await other.order(order.id)).toEqual({ ...order, status: "open" });
    for (const bad of ["side=3", "side=x", "market_id=0", "client_order_id=a%20b", "status=all", "limit=1", "id=1"]) {
      await expectRefused(user.request("DELETE", `/orders?${bad}`), 400, 40000, new RegExp(bad.split("=")[0]!));
    }
  });

  test("a cancel of all is concurrent with itself, with single cancels and with fills: each order ends once, in one response", async () => {
    const [market, fresh, taker] = [world.market(), world.user(), world.user()];
    const user = world.client(fresh.token!.split("-")[1]!, 0, 8);
    await world.split(taker, market, 400);
    for (let round = 0; round < 15; round++) {
      const placed = await batch(
        user,
        Array.from({ length: 50 }, (_, i) => place(market, 0, BUY, 100 + i, 1)),
      );
      const ids = placed.map(({ data }) => data!.id);
      const sale = taker.place(terms(market, 0, SELL, 1, 10, { time_in_force: "ioc" }));
      const single = Promise.all(ids.slice(0, 5).map((id) => user.request("DELETE", `/orders/${id}`)));
      const all = await Promise.all([0, 1, 2].map(() => cancelAll(user)));
      const alone = (await single).map(({ code }, i) => (code === 0 ? ids[i]! : 0)).filter((id) => id !== 0);
      await sale;
      const canceledIds = [...all.flat(), ...alone];
      expect(new Set(canceledIds).size).toBe(canceledIds.length);
      const canceled = [];
      for (const order of await user.all<OrderJson>(`/orders?status=all&market_id=${market.id}`)) {
        if (!ids.includes(order.id)) continue;
        expect(["filled", "canceled"]).toContain(order.status);
        if (order.status === "canceled") canceled.push(order.id);
      }
      expect(canceledIds.toSorted()).toEqual(canceled.toSorted());
      expect(await user.balance()).toMatchObject({ held: 0 });
    }
  });

  test("a cancel of all cancels 20,000 orders in one request while another user trades, and no other user's", async () => {
    const COUNT = 20_000;
    const [market, other] = [world.market(), world.market()];
    const [maker, taker] = [world.user(), world.user()];
    const user = world.client("crowd", 0, 4);
    const ids = new Set<number>();
    const operation = (i: number): object =>
      place(i % 2 === 0 ? market : other, i % 4 < 2 ? 0 : 1, BUY, 1 + (i % 40), 1);
    let at = 0;
    const fill = async (): Promise<void> => {
      while (at < COUNT) {
        const operations = Array.from({ length: 50 }, () => operation(at++));
        for (const { data } of await batch(user, operations)) ids.add(data!.id);
      }
    };
    await Promise.all([fill(), fill(), fill(), fill()]);
    expect(ids.size).toBe(COUNT);
    const held = (await user.balance()).held;
    expect(held).toBe(
      Array.from({ length: COUNT }, (_, i) => notional(1 + (i % 40), 1)).reduce((sum, n) => sum + n, 0),
    );
    for (const client of [maker, taker]) await world.split(client, market, 100);
    const resting = await maker.place(terms(market, 0, BUY, 3_000, 100));
    const [quoted] = await quote(maker, market, [[1, BUY, 39, 5]]);
    let canceling = true;
    const trading = (async (): Promise<number> => {
      let trades = 0;
      for (; canceling && trades < 90; trades++) {
        const { id } = await taker.place(terms(market, 0, SELL, 3_000, 1, { time_in_force: "ioc" }));
        expect(await taker.order(id)).toMatchObject({ status: "filled" });
      }
      return trades;
    })();
    const ended = await cancelAll(user);
    canceling = false;
    const trades = await trading;
    expect(trades).toBeGreaterThan(0);
    expect(ended).toHaveLength(COUNT);
    expect(new Set(ended)).toEqual(ids);
    expect(await user.all("/orders")).toEqual([]);
    expect(await user.balance()).toMatchObject({ held: 0 });
    expect(await maker.order(resting.id)).toMatchObject({ status: "partially_filled", remaining: 100 - trades });
    await expectStanding(maker, market, [resting.id, quoted!.id]);
    expect(await books(user, market)).toMatchObject([
      { bids: [[3_000, 100 - trades]], asks: [] },
      { bids: [[39, 5]], asks: [] },
    ]);
    for (const id of [ended[0]!, ended[COUNT / 2]!, ended.at(-1)!]) {
      expect(await user.order(id)).toMatchObject({ status: "canceled", reason: "user", remaining: 1 });
    }
    await amend(maker, resting.id, { quantity: trades });
    await cancelAll(maker);
    await expectAccounted(taker, [market], 10_000 * USDC, 100);
  });
});
