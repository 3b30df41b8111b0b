/**
 * client_order_id as idempotency key: a repeated placement gets the first response again and never places a second order,
 * whatever its encoding, however the order has changed, and however many repeats arrive at once. Restarts, crashes and
 * expiry are idempotency-restarts.test.ts.
 */
import { encode } from "@msgpack/msgpack";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { eventually, expectBalanced, expectSoundDatabase } from "../support/checks.ts";
import type { Client, OrderJson } from "../support/client.ts";
import { EFFORT } from "../support/projects.ts";
import { notional } from "../support/reference.ts";
import { amend, BUY, batch, cancelAll, expectRefused, post, rawPlacement, SELL, terms } from "../support/trading.ts";
import { type TestMarket, USDC, World } from "../support/world.ts";

const DAY_MS = 86_400_000;
const DEFAULTS = {
  type: "limit",
  time_in_force: "gtc",
  post_only: false,
  self_trade_prevention: "cancel_taker",
  expires_at: null,
  valid_until: null,
};

let world: World;
beforeAll(async () => {
  world = await World.start({
    users: 60,
    named: { poor: { deposit: 3 * USDC }, many: {} },
    markets: Array<number>(40).fill(2),
  });
});
afterAll(async () => {
  await expectBalanced(world.anonymous());
  await world.stop();
  expectSoundDatabase(world.server.dataDir);
});

/** Another client of the same user, with its own sockets. */
const again = (client: Client, sockets = 1): Client => world.client(client.token!.split("-")[1]!, 0, sockets);

async function expectOneOrder(client: Client, id: number): Promise<void> {
  expect((await client.all<OrderJson>("/orders?status=all")).map((order) => order.id)).toEqual([id]);
}

describe("the same body", () => {
  test("the same body gets the first response byte for byte, whatever its encoding", async () => {
    const [market, user] = [world.market(), world.user()];
    const body = terms(market, 0, BUY, 5_000, 4, { client_order_id: "same" });
    const first = await rawPlacement(user, JSON.stringify(body));
    const { id } = (JSON.parse(first.slice(4)) as { data: OrderJson }).data;
    const forms: string[] = [
      JSON.stringify(body),
      JSON.stringify(Object.fromEntries(Object.entries(body).reverse())),
      JSON.stringify({ ...DEFAULTS, ...body }),
      JSON.stringify(body, null, 2).replace("5000", "5e3").replace("same", "s\\u0061me"),
    ];
    for (const form of forms) expect(await rawPlacement(user, form)).toBe(first);
    expect(await rawPlacement(user, forms[0]!, { "X-Builder-Code": "else" })).toBe(first);
    const packed = await user.request<OrderJson>("POST", "/orders", {
      body: Buffer.from(encode({ ...DEFAULTS, ...body })),
      headers: { "Content-Type": "application/msgpack" },
    });
    expect(packed.data).toMatchObject({ id, status: "queued" });
    const [inBatch] = await batch(user, [{ op: "place", ...body }]);
    expect(JSON.stringify(inBatch!.data)).toBe(JSON.stringify(packed.data));
    await expectOneOrder(user, id);
    expect(await user.balance()).toMatchObject({ held: notional(5_000, 4) });
  });

  test("the same body keeps the builder code of the first request, whatever code a repeat has", async () => {
    const [market, user] = [world.market(), world.user()];
    const body = terms(market, 0, BUY, 5_000, 4, { client_order_id: "built" });
    const first = await post(user, body, { "X-Builder-Code": "first" });
    const others: Record<string, string>[] = [{}, { "X-Builder-Code": "second" }];
    for (const headers of others) expect((await post(user, body, headers)).data).toEqual(first.data);
    await user.cancel(first.data.id);
    for (const headers of others) expect((await post(user, body, headers)).data).toEqual(first.data);
    expect(first.data.builder_code).toBe("first");
  });

  test("the same body has another valid_until or none: that belongs to the request and not to the order", async () => {
    const [market, user] = [world.market(), world.user()];
    const body = terms(market, 0, BUY, 5_000, 4, { client_order_id: "until", valid_until: Date.now() + 60_000 });
    const first = await rawPlacement(user, JSON.stringify(body));
    const { id } = (JSON.parse(first.slice(4)) as { data: OrderJson }).data;
    const repeats = [Date.now() + 90_000, 1, 0, null, undefined].map((valid_until) => ({ ...body, valid_until }));
    for (const ending of [false, true]) {
      if (ending) await user.cancel(id);
      for (const repeat of repeats) expect(await rawPlacement(user, JSON.stringify(repeat))).toBe(first);
      await expectRefused(post(user, { ...body, valid_until: 1, price: 5_001 }), 409, 40900, /client_order_id/);
    }
    const [inBatch] = await batch(user, [{ op: "place", ...repeats[0] }]);
    expect(inBatch).toMatchObject({ code: 0, data: { id, status: "queued" } });
    await expectOneOrder(user, id);
  });

  /** What happens to an order of 4 at 5000 between the first request and its repeats. */
  const fates: [what: string, more: object, become: (market: TestMarket, user: Client, id: number) => Promise<void>, status: string][] = [
    ["was amended", {}, async (_, user, id) => void (await amend(user, id, { price: 4_321, quantity: 3 })), "open"],
    ["was partly filled", {}, async (market) => fill(market, 1), "partially_filled"],
    ["was filled", {}, async (market) => fill(market, 4), "filled"],
    ["was canceled", {}, async (_, user, id) => void (await user.cancel(id)), "canceled"],
    ["was amended, partly filled and canceled", {}, async (market, user, id) => {
      await amend(user, id, { price: 6_000, quantity: 9 });
      await fill(market, 2);
      await user.cancel(id);
    }, "canceled"],
    ["was a market order", { type: "market", price: null }, async () => {}, "canceled"],
    ["was a market order with a bound", { type: "market", time_in_force: "fok" }, async () => {}, "canceled"],
    ["arrived too late", { valid_until: 1 }, async () => {}, "rejected"],
    ["was immediate or cancel", { time_in_force: "ioc" }, async () => {}, "canceled"],
  ]; // biome-ignore format: one line each

  async function fill(market: TestMarket, quantity: number): Promise<void> {
    const other = world.user();
    await world.split(other, market, quantity);
    await other.place(terms(market, 0, SELL, 1, quantity));
  }

  test.for(fates)("the same body gets the first response when the order %s", async ([, more, become, status]) => {
    const [market, user] = [world.market(), world.user()];
    const body = JSON.stringify(terms(market, 0, BUY, 5_000, 4, { client_order_id: "x", ...more }));
    const first = await rawPlacement(user, body);
    const { id } = (JSON.parse(first.slice(4)) as { data: OrderJson }).data;
    await become(market, user, id);
    await eventually(async () => expect(await user.order(id)).toMatchObject({ status }));
    const before = [await user.balance(), await user.order(id)];
    for (let i = 0; i < 3; i++) expect(await rawPlacement(user, body)).toBe(first);
    await expectOneOrder(user, id);
    expect([await user.balance(), await user.order(id)]).toEqual(before);
  });

  test("the same body gets the first response when a gtd order has expired", async () => {
    const [market, user] = [world.market(), world.user()];
    const more = { client_order_id: "gtd", time_in_force: "gtd", expires_at: Date.now() + 150 };
    const body = terms(market, 0, BUY, 5_000, 4, more);
    const first = await rawPlacement(user, JSON.stringify(body));
    const { id } = (JSON.parse(first.slice(4)) as { data: OrderJson }).data;
    await eventually(async () => expect(await user.order(id)).toMatchObject({ status: "expired" }));
    expect(await rawPlacement(user, JSON.stringify(body))).toBe(first);
    await expectRefused(post(user, { ...body, price: 4_999 }), 409, 40900, /client_order_id/);
    await expectRefused(post(user, { ...body, client_order_id: "new" }), 400, 40000, /expires_at/);
    await expectOneOrder(user, id);
  });
});

describe("another body", () => {
  const soon = Date.now() + DAY_MS;
  const base = { client_order_id: "mine", time_in_force: "gtd", expires_at: soon, valid_until: soon };
  const changes = (market: TestMarket): object[] => [
    ...[{ price: 4_999 }, { price: 5_001 }, { quantity: 5 }, { side: SELL }, { outcome_id: market.outcomes[1] }],
    ...[{ expires_at: soon + 1 }],
    ...[{ post_only: true }, { time_in_force: "gtc", expires_at: null }, { time_in_force: "ioc", expires_at: null }],
    ...[{ type: "market", time_in_force: "ioc", expires_at: null }],
    ...["cancel_maker", "cancel_both", "decrement"].map((self_trade_prevention) => ({ self_trade_prevention })),
  ];

  test("another body is a conflict, field by field, while the order lives and when it has ended", async () => {
    const [market, other, user] = [world.market(), world.market(), world.user()];
    const body = terms(market, 0, BUY, 5_000, 4, base);
    const order = await user.place(body);
    const state = async () => [await user.balance(), await user.all("/orders?status=all")];
    for (const ending of [null, "canceled"]) {
      if (ending !== null) await user.cancel(order.id);
      const before = await state();
      const elsewhere = { market_id: other.id, outcome_id: other.outcomes[0] };
      for (const change of [...changes(market), elsewhere]) {
        const answer = post(user, { ...body, ...change });
        await expectRefused(answer, 409, 40900, /client_order_id/);
      }
      expect(await user.place(body)).toEqual(order);
      expect(await state()).toEqual(before);
    }
  });

  test("another body is a conflict in a batch, and the operations around it succeed", async () => {
    const [market, user] = [world.market(), world.user()];
    const body = { op: "place", ...terms(market, 0, BUY, 5_000, 4, { client_order_id: "b" }) };
    const results = await batch(user, [body, { ...body, price: 1 }, body, { ...body, client_order_id: "c" }]);
    expect(results.map(({ code }) => code)).toEqual([0, 40900, 0, 0]);
    expect(results[2]!.data).toEqual(results[0]!.data);
    expect(await user.all("/orders")).toHaveLength(2);
  });

  test("another user's body with the same id is another order", async () => {
    const market = world.market();
    const users = [world.user(), world.user(), world.user()];
    const ids = new Set<number>();
    for (const [i, user] of users.entries()) {
      const body = terms(market, 0, BUY, 1_000 + i, 4, { client_order_id: "shared" });
      const order = await user.place(body);
      expect(await user.place(body)).toEqual(order);
      ids.add(order.id);
    }
    expect(ids.size).toBe(3);
    const [first] = await users[0]!.all<OrderJson>("/orders?client_order_id=shared");
    expect(await cancelAll(users[0]!, "?client_order_id=shared")).toEqual([first!.id]);
    for (const user of users.slice(1)) expect(await user.all("/orders?client_order_id=shared")).toHaveLength(1);
  });
});

describe("at the same time", () => {
  const SOCKETS = 20;

  test("20 requests on 20 sockets are one order and get 20 equal responses, round after round", async () => {
    const [market, maker] = [world.market(), world.user()];
    await world.split(maker, market, 100);
    const user = again(world.user(), SOCKETS);
    for (let round = 0; round < 5 * EFFORT; round++) {
      // Every second order is filled as soon as it is placed.
      if (round % 2 === 1) await maker.place(terms(market, 0, SELL, 5_000, 3));
      const body = JSON.stringify(terms(market, 0, BUY, 5_000, 3, { client_order_id: `round-${round}` }));
      const answers = await Promise.all(Array.from({ length: SOCKETS }, () => rawPlacement(user, body)));
      expect(new Set(answers).size).toBe(1);
      expect(answers[0]).toMatch(/^202 .*"status":"queued".*"trades":\[\]/);
      const orders = await user.all<OrderJson>("/orders?status=all");
      expect(orders).toHaveLength(round + 1);
      await cancelAll(user);
    }
    expect(await user.balance()).toMatchObject({ held: 0 });
  });

  test("of two bodies, one wins: its senders get the order, the others a conflict", async () => {
    const [market, fresh] = [world.market(), world.user()];
    const user = again(fresh, SOCKETS);
    for (let round = 0; round < 3 * EFFORT; round++) {
      const bodies = [2, 3].map((quantity) => terms(market, 0, BUY, 1_000, quantity, { client_order_id: `r${round}` }));
      const answers = await Promise.all(Array.from({ length: SOCKETS }, (_, i) => post(user, bodies[i % 2]!)));
      const won = answers.findIndex(({ code }) => code === 0) % 2;
      const order = answers[won]!.data;
      for (const [i, { code, data }] of answers.entries()) {
        expect([code, data]).toEqual(i % 2 === won ? [0, order] : [40900, null]);
      }
      expect((await user.all<OrderJson>("/orders")).map(({ id, quantity }) => [id, quantity])).toEqual([
        [order.id, won + 2],
      ]);
      await user.cancel(order.id);
    }
  });

  test("a placement, its repeats and cancels by client id end with one order, canceled", async () => {
    const [market, fresh] = [world.market(), world.user()];
    const user = again(fresh, SOCKETS);
    for (let round = 0; round < 3 * EFFORT; round++) {
      const body = terms(market, 0, BUY, 1_000, 2, { client_order_id: `c${round}` });
      const placed = Array.from({ length: 10 }, () => post(user, body));
      const canceled = Array.from({ length: 10 }, () => cancelAll(user, `?client_order_id=c${round}`));
      const ids = new Set((await Promise.all(placed)).map(({ data }) => data.id));
      const ended = (await Promise.all(canceled)).flat();
      expect(ids.size).toBe(1);
      const last = await cancelAll(user, `?client_order_id=c${round}`);
      // However many cancels there were, one of them canceled the order.
      expect([...ended, ...last]).toEqual([...ids]);
      expect(await user.order([...ids][0]!)).toMatchObject({ status: "canceled", reason: "user" });
    }
    expect(await user.balance()).toMatchObject({ held: 0 });
  });
});

describe("ids", () => {
  test("a rejected placement leaves its client order id free", async () => {
    const [market, user] = [world.market(), world.client("poor")];
    const id = { client_order_id: "refused" };
    const body = terms(market, 0, BUY, 5_000, 4, id);
    await expectRefused(post(user, { ...body, quantity: 7 }), 422, 42201);
    await expectRefused(post(user, { ...body, side: SELL }), 422, 42202);
    await expectRefused(post(user, { ...body, quantity: 1_000_000_000 }), 429, 42901);
    await expectRefused(post(user, { ...body, expires_at: 1 }), 400, 40000);
    await expectRefused(post(user, { ...body, time_in_force: "gtd", expires_at: 1 }), 400, 40000);
    await expectRefused(post(user, { ...body, market_id: 999_999 }), 404, 4040);
    const many = again(user, 10);
    const refused = Array.from({ length: 10 }, () => expectRefused(post(many, { ...body, quantity: 7 }), 422, 42201));
    await Promise.all(refused);
    const order = await user.place(body);
    // A repeat needs no money either.
    expect(await user.balance()).toMatchObject({ available: USDC, held: 2 * USDC });
    expect(await user.place(body)).toEqual(order);
    await expectOneOrder(user, order.id);
    await expectRefused(post(user, { ...body, quantity: 7 }), 409, 40900);
  });

  test("client order ids are 1 to 64 of A-Z a-z 0-9 . _ : - and differ by case", async () => {
    const [market, user] = [world.market(), world.user()];
    const place = (client_order_id: unknown) => post(user, terms(market, 0, BUY, 1, 1, { client_order_id }));
    for (const bad of [
      "",
      "a".repeat(65),
      " a",
      "a b",
      "a/b",
      "a+b",
      "ü",
      "a\n",
      "a\0",
      // Parts of a path that clients resolve.
      ".",
      "..",
      "{}",
      7,
      true,
      [],
      {},
      ["a"],
    ]) {
      await expectRefused(place(bad), 400, 40000, /client_order_id/);
    }
    const good = [
      "a",
      "A",
      "0",
      "...",
      ".a",
      "..-",
      "_",
      ":",
      "-",
      "a".repeat(64),
      "a".repeat(63),
      "__proto__",
      "null",
      "-1",
    ];
    const ids = new Set<number>();
    for (const client_order_id of good) {
      const { data } = await place(client_order_id);
      expect(data).toMatchObject({ client_order_id, status: "queued" });
      ids.add(data.id);
    }
    expect(ids.size).toBe(good.length);
    for (const name of good) {
      const found = await user.all<OrderJson>(`/orders?client_order_id=${encodeURIComponent(name)}`);
      expect(found.map(({ client_order_id }) => client_order_id)).toEqual([name]);
    }
  });

  test("many similar client order ids are as many orders, and each finds its own", async () => {
    const [market, user] = [world.market(), world.client("many")];
    const names = Array.from(
      { length: 3_000 },
      (_, i) => `quote-${i % 2 === 0 ? "a" : "b"}-${String(i).padStart(6, "0")}`,
    );
    const operation = (client_order_id: string): object => ({
      op: "place",
      ...terms(market, 0, BUY, 1, 1, { client_order_id }),
    });
    const place = async (): Promise<number[]> => {
      const ids: number[] = [];
      for (let i = 0; i < names.length; i += 50) {
        const results = await batch(user, names.slice(i, i + 50).map(operation));
        for (const { data } of results) ids.push(data!.id);
      }
      return ids;
    };
    const ids = await place();
    expect(new Set(ids).size).toBe(names.length);
    expect(await place()).toEqual(ids);
    const ended = await cancelAll(user);
    expect(ended.toSorted((a, b) => a - b)).toEqual(ids);
    expect(await place()).toEqual(ids);
  });
});
