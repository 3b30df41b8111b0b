/**
 * PUT /quotes replaces all of a user's quotes in a market at once: which quotes stay and which end, invalid requests, and
 * time priority afterwards. Means are in quote-buying-power.test.ts, expires_at and valid_until in quote-terms.test.ts.
 */
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { expectBalanced, expectSoundDatabase } from "../support/checks.ts";
import type { Client, OrderJson } from "../support/client.ts";
import { Random } from "../support/random.ts";
import { notional } from "../support/reference.ts";
import {
  amend, BUY, books, cancelAll, expectRefused, expectStanding, idsOf, liveOrders, putQuotes, type QuoteSpec, quote, quotesBody, type ResultJson, SELL, terms,
} from "../support/trading.ts"; // biome-ignore format: one list
import { type TestMarket, World } from "../support/world.ts";

let world: World;
beforeAll(async () => {
  world = await World.start({
    users: 60,
    markets: [...Array<number>(30).fill(2), ...Array<number>(5).fill(3), 5, 5, 32, 32],
  });
});
afterAll(async () => {
  await expectBalanced(world.anonymous());
  await world.stop();
  expectSoundDatabase(world.server.dataDir);
});

describe("replacing", () => {
  test("a replacement returns each quote's order, queued, in the order of the quotes, as post-only limit orders", async () => {
    const [market, user] = [world.market(3), world.user()];
    await world.split(user, market, 50);
    const quotes: QuoteSpec[] = [
      [2, SELL, 6_000, 7],
      [0, BUY, 2_000, 5],
      [1, BUY, 3_000, 9],
      [2, BUY, 1_000, 1],
    ];
    const before = Date.now();
    const { status, data } = await putQuotes(user, market, quotes);
    expect(status).toBe(202);
    const { results } = data as { results: ResultJson[] };
    for (const [i, [outcome, side, price, quantity]] of quotes.entries()) {
      expect(results[i]).toEqual({ code: 0, msg: expect.stringMatching(/./), data: expect.any(Object) });
      const order = results[i]!.data!;
      expect(order).toEqual({
        ...{
          id: expect.any(Number),
          client_order_id: null,
          market_id: market.id,
          outcome_id: market.outcomes[outcome],
        },
        ...{ side, price, quantity, remaining: quantity, filled: 0, type: "limit", time_in_force: "gtc" },
        ...{ post_only: true, self_trade_prevention: "cancel_taker", expires_at: null, status: "queued", reason: null },
        ...{ builder_code: null, created_at: expect.any(Number), updated_at: order.created_at, trades: [] },
      });
      expect(order.created_at).toBeGreaterThanOrEqual(before);
      expect(await user.order(order.id)).toEqual({ ...order, status: "open" });
    }
    expect(new Set(results.map((result) => result.data!.id)).size).toBe(4);
    const held = notional(2_000, 5) + notional(3_000, 9) + notional(1_000, 1);
    expect(await user.balance()).toMatchObject({ held });
    expect(await user.position(market.outcomes[2]!)).toMatchObject({ quantity: 50, held: 7 });
  });

  test("a replacement cancels omitted quotes, keeps unchanged ones, and places the rest under new ids", async () => {
    const [market, user] = [world.market(), world.user()];
    const [a, b, c] = idsOf(
      await quote(user, market, [
        [0, BUY, 4_000, 5],
        [0, BUY, 3_900, 5],
        [1, BUY, 4_000, 5],
      ]),
    );
    const next = await quote(user, market, [
      [1, BUY, 4_100, 5],
      [0, BUY, 3_900, 6],
      [0, BUY, 4_000, 5],
    ]);
    expect(next[2]).toMatchObject({ id: a, status: "open", remaining: 5 });
    expect(next.slice(0, 2).every(({ id, status }) => id > c! && status === "queued")).toBe(true);
    for (const id of [b!, c!]) expect(await user.order(id)).toMatchObject({ status: "canceled", reason: "user" });
    await expectStanding(user, market, idsOf(next));
    expect(await user.balance()).toMatchObject({ held: notional(4_100, 5) + notional(3_900, 6) + notional(4_000, 5) });
    expect(
      idsOf(
        await quote(user, market, [
          [0, BUY, 4_000, 5],
          [0, BUY, 3_900, 6],
          [1, BUY, 4_100, 5],
        ]),
      ),
    ).toEqual([...[next[2]!.id, next[1]!.id, next[0]!.id]]);
    await quote(user, market, []);
    await expectStanding(user, market, []);
    expect(await user.balance()).toMatchObject({ held: 0 });
    expect(await quote(user, market, [])).toEqual([]);
  });

  test("a replacement leaves orders of POST /orders, of other markets and of other users unchanged", async () => {
    const [market, other, user, neighbour] = [world.market(), world.market(), world.user(), world.user()];
    const own = await user.place(terms(market, 0, BUY, 4_000, 5, { post_only: true }));
    const theirs = idsOf(
      await quote(neighbour, market, [
        [0, BUY, 4_000, 5],
        [1, BUY, 1_000, 1],
      ]),
    );
    const elsewhere = idsOf(await quote(user, other, [[0, BUY, 4_000, 5]]));
    const quotes = idsOf(await quote(user, market, [[0, BUY, 4_000, 5]]));
    expect(quotes).not.toContain(own.id);
    await expectStanding(user, market, [own.id, ...quotes]);
    await quote(user, market, []);
    await expectStanding(user, market, [own.id]);
    await expectStanding(neighbour, market, theirs);
    await expectStanding(user, other, elsewhere);
  });

  test("the same quote twice is two orders, and each keeps one of them later", async () => {
    const [market, user] = [world.market(), world.user()];
    const same: QuoteSpec = [0, BUY, 4_000, 5];
    const two = idsOf(await quote(user, market, [same, same]));
    expect(new Set(two).size).toBe(2);
    expect(idsOf(await quote(user, market, [same, same])).toSorted()).toEqual(two.toSorted());
    const three = idsOf(await quote(user, market, [same, same, same]));
    expect(three).toEqual(expect.arrayContaining(two));
    const [one] = idsOf(await quote(user, market, [same]));
    expect(three).toContain(one);
    await expectStanding(user, market, [one!]);
  });

  test("a partly filled quote is kept if the request names its remainder, and replaced otherwise", async () => {
    const [market, user, seller] = [world.market(), world.user(), world.user()];
    await world.split(seller, market, 10);
    const [id] = idsOf(await quote(user, market, [[0, BUY, 4_000, 10]]));
    await seller.place(terms(market, 0, SELL, 4_000, 3));
    const [standing] = await quote(user, market, [[0, BUY, 4_000, 7]]);
    expect(standing).toMatchObject({ id, status: "partially_filled", quantity: 10, remaining: 7, filled: 3 });
    const [full] = await quote(user, market, [[0, BUY, 4_000, 10]]);
    expect(full).toMatchObject({ status: "queued", quantity: 10, remaining: 10 });
    expect(full!.id).not.toBe(id);
    expect(await user.order(id!)).toMatchObject({ status: "canceled", reason: "user", filled: 3, remaining: 7 });
  });

  test("a quote amended by PATCH is still a quote; a canceled or filled one is not", async () => {
    const [market, user, seller] = [world.market(), world.user(), world.user()];
    await world.split(seller, market, 10);
    const [a, b] = idsOf(
      await quote(user, market, [
        [0, BUY, 4_000, 5],
        [1, BUY, 4_000, 5],
      ]),
    );
    await amend(user, a!, { price: 4_500, quantity: 2 });
    expect(
      idsOf(
        await quote(user, market, [
          [0, BUY, 4_500, 2],
          [1, BUY, 4_000, 5],
        ]),
      ),
    ).toEqual([a, b]);
    await user.cancel(b!);
    await seller.place(terms(market, 0, SELL, 4_500, 2));
    const next = idsOf(
      await quote(user, market, [
        [0, BUY, 4_500, 2],
        [1, BUY, 4_000, 5],
      ]),
    );
    expect(Math.min(...next)).toBeGreaterThan(b!);
    expect(await user.order(a!)).toMatchObject({ status: "filled" });
  });

  test("DELETE /orders and DELETE /orders/:id take quotes like other orders", async () => {
    const [market, user] = [world.market(), world.user()];
    const ids = idsOf(
      await quote(user, market, [
        [0, BUY, 4_000, 5],
        [1, BUY, 4_000, 5],
        [1, BUY, 3_000, 5],
      ]),
    );
    await user.cancel(ids[0]!);
    expect((await cancelAll(user)).toSorted()).toEqual(ids.slice(1).toSorted());
    expect(await user.balance()).toMatchObject({ held: 0 });
  });

  test("a quote that would cross is rejected, in all three match types, and the others rest", async () => {
    const [market, user, other] = [world.market(), world.user(), world.user()];
    await world.split(other, market, 10);
    await world.split(user, market, 10);
    await other.place(terms(market, 0, SELL, 6_000, 5));
    await other.place(terms(market, 1, BUY, 3_500, 5));
    const crossing: QuoteSpec[] = [
      [0, BUY, 6_500, 1],
      [0, BUY, 6_000, 1],
      [1, SELL, 3_500, 1],
      [1, SELL, 4_000, 1],
    ];
    const orders = await quote(user, market, [[0, BUY, 5_999, 1], ...crossing, [1, SELL, 4_001, 1]]);
    const rejected = { status: "rejected", reason: "post_only_would_cross", filled: 0 };
    for (const [i, { id }] of orders.entries()) {
      const isGood = i === 0 || i === orders.length - 1;
      expect(await user.order(id)).toMatchObject(isGood ? { status: "open", reason: null } : rejected);
    }
    expect(await user.balance()).toMatchObject({ held: notional(5_999, 1) });
    expect(await user.position(market.outcomes[1]!)).toMatchObject({ held: 1 });
    // Of two that cross each other the first rests.
    const [first, second] = await quote(user, market, [
      [0, BUY, 5_000, 1],
      [0, SELL, 5_000, 1],
    ]);
    expect(await user.order(first!.id)).toMatchObject({ status: "open" });
    expect(await user.order(second!.id)).toMatchObject(rejected);
  });

  test("quotes may move to the prices of old ones, which are canceled first", async () => {
    const [market, user] = [world.market(), world.user()];
    await world.split(user, market, 10);
    await quote(user, market, [
      [0, BUY, 4_000, 5],
      [0, SELL, 5_000, 5],
      [1, BUY, 4_000, 5],
    ]);
    const orders = await quote(user, market, [
      [0, BUY, 5_500, 5],
      [0, SELL, 5_600, 5],
      [1, BUY, 3_900, 5],
    ]);
    for (const { id } of orders) expect(await user.order(id)).toMatchObject({ status: "open" });
  });
});

describe("many quotes", () => {
  test("100 quotes over 32 outcomes are replaced, kept and withdrawn", async () => {
    const [market, user] = [world.market(32), world.user()];
    await world.split(user, market, 100);
    const set = (shift: number): QuoteSpec[] =>
      Array.from({ length: 100 }, (_, i): QuoteSpec => {
        const outcome = i % 32;
        const level = Math.floor(i / 32);
        if (level === 3) return [outcome, BUY, 50 + shift, 1];
        return level === 0 ? [outcome, BUY, 100 + shift, 2] : [outcome, SELL, 2_000 + 100 * level + shift, 3];
      });
    const first = await quote(user, market, set(0));
    await expectStanding(user, market, idsOf(first));
    expect(idsOf(await quote(user, market, set(0)))).toEqual(idsOf(first));
    const second = await quote(user, market, set(7));
    expect(new Set([...idsOf(first), ...idsOf(second)]).size).toBe(200);
    await expectStanding(user, market, idsOf(second));
    const shown = await books(user, market);
    expect(shown).toHaveLength(32);
    for (const [i, { bids, asks }] of shown.entries()) {
      expect(bids).toEqual(
        i < 4
          ? [
              [107, 2],
              [57, 1],
            ]
          : [[107, 2]],
      );
      expect(asks).toEqual([
        [2_107, 3],
        [2_207, 3],
      ]);
    }
    for (const order of await liveOrders(user, market)) expect(order.status).toBe("open");
    await quote(user, market, []);
    await expectStanding(user, market, []);
    expect(await user.balance()).toMatchObject({ held: 0 });
    expect(await user.all("/orders?status=all")).toHaveLength(200);
  });

  test("101 quotes are rejected and change nothing", async () => {
    const [market, user] = [world.market(), world.user()];
    const [id] = idsOf(await quote(user, market, [[0, BUY, 4_000, 5]]));
    const many = Array.from({ length: 101 }, (_, i): QuoteSpec => [0, BUY, 100 + i, 1]);
    await expectRefused(putQuotes(user, market, many), 400, 40000, /quotes/);
    await expectStanding(user, market, [id!]);
    expect(await quote(user, market, many.slice(1))).toHaveLength(100);
  });

  test("random sets of quotes over five outcomes and both sides: the last request is live", async () => {
    const random = Random.printed("random sets of quotes");
    const [market, user] = [world.market(5), world.user()];
    await world.split(user, market, 200);
    let standing: OrderJson[] = [];
    for (let round = 0; round < 60; round++) {
      const quotes = Array.from({ length: random.integer(0, 24) }, (): QuoteSpec => {
        const side = random.pick([BUY, SELL]);
        const price = side === BUY ? random.integer(1_000, 1_006) : random.integer(3_000, 3_006);
        return [random.integer(0, 4), side, price, random.integer(1, 3)];
      });
      const orders = await quote(user, market, quotes);
      await expectStanding(user, market, idsOf(orders));
      for (const [i, { outcome_id, side, price, remaining, status }] of orders.entries()) {
        const [outcome, ...asked] = quotes[i]!;
        expect([outcome_id, side, price, remaining]).toEqual([market.outcomes[outcome], ...asked]);
        expect(status).toBe(standing.some(({ id }) => id === orders[i]!.id) ? "open" : "queued");
      }
      // A resting quote in the next request keeps its order.
      const key = ({ outcome_id, side, price, remaining }: OrderJson): string =>
        `${[outcome_id, side, price, remaining]}`;
      const counts = (list: readonly OrderJson[], k: string): number => list.filter((order) => key(order) === k).length;
      for (const k of new Set(orders.map(key))) {
        const kept = orders.filter((order) => key(order) === k && idsOf(standing).includes(order.id)).length;
        expect(kept).toBe(Math.min(counts(standing, k), counts(orders, k)));
      }
      standing = orders;
    }
  });
});

describe("priority", () => {
  test("an unchanged quote keeps its priority, a replaced one goes behind the others", async () => {
    const [market, user, other, seller] = [world.market(), world.user(), world.user(), world.user()];
    await world.split(seller, market, 50);
    const hit = async (): Promise<void> => void (await seller.place(terms(market, 0, SELL, 4_000, 1)));
    const [id] = idsOf(
      await quote(user, market, [
        [0, BUY, 4_000, 5],
        [1, BUY, 4_000, 5],
      ]),
    );
    const behind = await other.place(terms(market, 0, BUY, 4_000, 5));
    await quote(user, market, [
      [0, BUY, 4_000, 5],
      [1, BUY, 4_100, 5],
      [0, BUY, 3_000, 1],
    ]);
    await hit();
    expect(await user.order(id!)).toMatchObject({ filled: 1, remaining: 4 });
    // Four remain of it: asking for four keeps the place, asking for less doesn't.
    await quote(user, market, [[0, BUY, 4_000, 4]]);
    await hit();
    expect(await user.order(id!)).toMatchObject({ filled: 2, remaining: 3 });
    const [next] = idsOf(await quote(user, market, [[0, BUY, 4_000, 2]]));
    for (let i = 0; i < 5; i++) await hit();
    expect(await other.order(behind.id)).toMatchObject({ status: "filled" });
    expect(await user.order(next!)).toMatchObject({ filled: 0 });
    await hit();
    expect(await user.order(next!)).toMatchObject({ filled: 1 });
  });

  test("other orders keep their priority while quotes around them are replaced a hundred times", async () => {
    const [market, user, first, second, seller] = [
      ...[world.market(), world.user(), world.user(), world.user(), world.user()],
    ] as [TestMarket, Client, Client, Client, Client];
    await world.split(seller, market, 50);
    await quote(user, market, [[0, BUY, 4_000, 5]]);
    const a = await first.place(terms(market, 0, BUY, 4_000, 3));
    await quote(user, market, [[0, BUY, 4_000, 6]]);
    const b = await second.place(terms(market, 0, BUY, 4_000, 3));
    let id = 0;
    for (let i = 0; i < 100; i++) [id] = idsOf(await quote(user, market, [[0, BUY, 4_000, 5 + (i % 3)]])) as [number];
    const filled = async () => [
      ...[(await first.order(a.id)).filled, (await second.order(b.id)).filled, (await user.order(id)).filled],
    ];
    for (const expected of [
      [1, 0, 0],
      [2, 0, 0],
      [3, 0, 0],
      [3, 1, 0],
      [3, 2, 0],
      [3, 3, 0],
      [3, 3, 1],
    ]) {
      await seller.place(terms(market, 0, SELL, 4_000, 1));
      expect(await filled()).toEqual(expected);
    }
  });
});

describe("an invalid request", () => {
  test("an invalid request for quotes is rejected as a whole, with a message that names the quote's field", async () => {
    const [market, other, user] = [world.market(), world.market(), world.user()];
    const [id] = idsOf(await quote(user, market, [[0, BUY, 4_000, 5]]));
    const good = quotesBody(market, [
      [0, BUY, 3_000, 5],
      [1, BUY, 3_000, 5],
    ]) as { quotes: object[] };
    const wrong: [object, RegExp][] = [
      ...[0, -1, 10_000, 1.5, "1", null].map((price): [object, RegExp] => [{ price }, /price/]),
      ...[0, 1_000_000_001, 1.5, null].map((quantity): [object, RegExp] => [{ quantity }, /quantity/]),
      ...[0, 3, "buy"].map((side): [object, RegExp] => [{ side }, /side/]),
      ...[0, "x", 999_999, other.outcomes[0]].map((outcome_id): [object, RegExp] => [{ outcome_id }, /outcome_id/]),
      ...["client_order_id", "post_only", "id", "market_id", "valid_until"].map((name): [object, RegExp] => [
        { [name]: 1 },
        new RegExp(name),
      ]),
    ];
    const put = (body: unknown, marketId: unknown = market.id) =>
      user.request("PUT", `/quotes/${marketId}`, { body: body as object });
    for (const [change, message] of wrong) {
      const quotes = [good.quotes[0], { ...good.quotes[1], ...change }];
      await expectRefused(put({ quotes }), 400, 40000, message);
    }
    await expectRefused(put({}), 400, 40000, /quotes/);
    await expectRefused(put({ quotes: {} }), 400, 40000, /quotes/);
    await expectRefused(put({ quotes: [null] }), 400, 40000, /quotes/);
    await expectRefused(put({ quotes: [[]] }), 400, 40000, /quotes/);
    await expectRefused(put({ ...good, market_id: market.id }), 400, 40000, /market_id/);
    for (const bad of [0, 999_999, market.slug, "x"]) await expectRefused(put(good, bad), 404, 4040);
    await expectStanding(user, market, [id!]);
  });
});
