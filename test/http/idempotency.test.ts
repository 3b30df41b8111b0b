/**
 * client_order_id as idempotency key: whoever repeats a placement, however and whenever, gets the first answer again and
 * never a second order. Concurrent repeats, restarts, crashes, 24 hours, and clients that retry under load.
 */
import { connect } from "node:net";
import { encode } from "@msgpack/msgpack";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { eventually, expectBalanced, expectSoundDatabase } from "../support/checks.ts";
import { API_BASE, type Client, type OrderJson } from "../support/client.ts";
import { EFFORT } from "../support/projects.ts";
import { Random } from "../support/random.ts";
import { notional } from "../support/reference.ts";
import {
  alone,
  amend,
  BUY,
  batch,
  cancelAll,
  expectRefused,
  post,
  rawPlacement,
  restartWith,
  SELL,
  terms,
} from "../support/trading.ts";
import { type TestMarket, tokenOf, USDC, World } from "../support/world.ts";

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
    named: { poor: { deposit: 3 * USDC }, many: {}, storm: {}, taker: {} },
    markets: Array<number>(40).fill(2),
  });
});
afterAll(async () => {
  await expectBalanced(world.anonymous());
  await world.stop();
  expectSoundDatabase(world.server.dataDir);
});

/** The user once more, with sockets of its own. */
const again = (client: Client, sockets = 1): Client => world.client(client.token!.split("-")[1]!, 0, sockets);

async function expectOneOrder(client: Client, id: number): Promise<void> {
  expect((await client.all<OrderJson>("/orders?status=all")).map((order) => order.id)).toEqual([id]);
}

describe("the same body", () => {
  test("is answered byte for byte as at first, in whatever form it is said", async () => {
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

  test("a builder code on the repeat doesn't count, the first one stays", async () => {
    const [market, user] = [world.market(), world.user()];
    const body = terms(market, 0, BUY, 5_000, 4, { client_order_id: "built" });
    const first = await post(user, body, { "X-Builder-Code": "first" });
    const others: Record<string, string>[] = [{}, { "X-Builder-Code": "second" }];
    for (const headers of others) expect((await post(user, body, headers)).data).toEqual(first.data);
    await user.cancel(first.data.id);
    for (const headers of others) expect((await post(user, body, headers)).data).toEqual(first.data);
    expect(first.data.builder_code).toBe("first");
  });

  test("is the same with another valid_until or none: that is the request's, not the order's", async () => {
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

  /** What becomes of an order of 4 at 5000 between the first request and its repeats. */
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
    ["came too late", { valid_until: 1 }, async () => {}, "rejected"],
    ["was immediate or cancel", { time_in_force: "ioc" }, async () => {}, "canceled"],
  ]; // biome-ignore format: one line each

  async function fill(market: TestMarket, quantity: number): Promise<void> {
    const other = world.user();
    await world.split(other, market, quantity);
    await other.place(terms(market, 0, SELL, 1, quantity));
  }

  test.for(fates)("is answered as at first when the order %s", async ([, more, become, status]) => {
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

  test("is answered as at first when a gtd order's time has passed", async () => {
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

  test("is a conflict, field by field, while the order lives and when it has ended", async () => {
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

  test("is a conflict in a batch, and the operations around it go on", async () => {
    const [market, user] = [world.market(), world.user()];
    const body = { op: "place", ...terms(market, 0, BUY, 5_000, 4, { client_order_id: "b" }) };
    const results = await batch(user, [body, { ...body, price: 1 }, body, { ...body, client_order_id: "c" }]);
    expect(results.map(({ code }) => code)).toEqual([0, 40900, 0, 0]);
    expect(results[2]!.data).toEqual(results[0]!.data);
    expect(await user.all("/orders")).toHaveLength(2);
  });

  test("of another user is another order", async () => {
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

  test("20 requests on 20 sockets are one order and get 20 equal answers, round after round", async () => {
    const [market, maker] = [world.market(), world.user()];
    await world.split(maker, market, 100);
    const user = again(world.user(), SOCKETS);
    for (let round = 0; round < 5 * EFFORT; round++) {
      // Every other one is filled as soon as it is placed.
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

  test("of two bodies one wins: its senders get the order, the others a conflict", async () => {
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
      // However often it was asked for, one of them ended it.
      expect([...ended, ...last]).toEqual([...ids]);
      expect(await user.order([...ids][0]!)).toMatchObject({ status: "canceled", reason: "user" });
    }
    expect(await user.balance()).toMatchObject({ held: 0 });
  });
});

describe("ids", () => {
  test("a refused placement doesn't use its id up", async () => {
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
    // Nor does a repeat need the means once more.
    expect(await user.balance()).toMatchObject({ available: USDC, held: 2 * USDC });
    expect(await user.place(body)).toEqual(order);
    await expectOneOrder(user, order.id);
    await expectRefused(post(user, { ...body, quantity: 7 }), 409, 40900);
  });

  test("are 1 to 64 of A-Z a-z 0-9 . _ : - and differ by case", async () => {
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
      "{}",
      7,
      true,
      [],
      {},
      ["a"],
    ]) {
      await expectRefused(place(bad), 400, 40000, /client_order_id/);
    }
    const good = ["a", "A", "0", ".", "..", "_", ":", "-", "a".repeat(64), "a".repeat(63), "__proto__", "null", "-1"];
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

  test("many that look alike are many orders, each found again by its own", async () => {
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

/** Placements of every kind and fate under ids of their own; answers their bodies with the bytes that answered them. */
async function history(user: Client, other: Client, market: TestMarket): Promise<[body: string, answer: string][]> {
  await world.split(user, market, 10);
  await world.split(other, market, 10);
  const kept: [string, string][] = [];
  const place = async (name: string, price: number | null, more: object = {}): Promise<OrderJson> => {
    const body = JSON.stringify({ ...terms(market, 0, BUY, 1, 2, { client_order_id: name, ...more }), price });
    const answer = await rawPlacement(user, body, { "X-Builder-Code": "kept" });
    expect(answer).toMatch(/^202 /);
    kept.push([body, answer]);
    return (JSON.parse(answer.slice(4)) as { data: OrderJson }).data;
  };
  await place("filled", 5_000);
  const gone = await place("canceled", 4_900);
  const part = await place("partly", 4_800, { quantity: 5 });
  await other.place(terms(market, 0, SELL, 4_801, 2));
  await user.cancel(gone.id);
  await other.place(terms(market, 0, SELL, 4_800, 3));
  expect(await user.order(part.id)).toMatchObject({ status: "partially_filled", remaining: 2 });
  await place("live", 4_000, { self_trade_prevention: "decrement", post_only: true });
  await amend(user, (await place("amended", 4_000)).id, { price: 4_100, quantity: 7 });
  await place("market", null, { type: "market" });
  await place("bound", 17, { type: "market", time_in_force: "fok" });
  await place("late", 4_000, { valid_until: 5 });
  await place("gtd", 4_000, { time_in_force: "gtd", expires_at: Date.now() + DAY_MS });
  const { id } = await place("expired", 4_000, { time_in_force: "gtd", expires_at: Date.now() + 200 });
  await eventually(async () => expect(await user.order(id)).toMatchObject({ status: "expired" }));
  await place("sold", 9_000, { side: SELL, outcome_id: market.outcomes[1] });
  return kept;
}

test("restarts and crashes don't change what a repeat is answered", async () => {
  await alone({ users: 2, markets: [2] }, async (own) => {
    const kept = await history(own.user(), own.user(), own.market());
    for (const end of ["stop", "kill", "kill", "stop"] as const) {
      await own.server[end]();
      own.server = await own.server.restart();
      const user = own.client("user0");
      const before = [await user.balance(), await user.all("/orders?status=all")];
      for (const [body, answer] of kept) {
        expect(await rawPlacement(user, body)).toBe(answer);
        const { quantity, ...rest } = JSON.parse(body) as { quantity: number };
        await expectRefused(post(user, { ...rest, quantity: quantity + 1 }), 409, 40900, /client_order_id/);
      }
      expect([await user.balance(), await user.all("/orders?status=all")]).toEqual(before);
      expect(before[1]).toHaveLength(kept.length);
    }
  });
});

test("an id is free after 24 hours, but not while its order lives", async () => {
  await alone({ users: 1, markets: [2] }, async (own) => {
    const market = own.market();
    const body = (name: string): object => terms(market, 0, BUY, 10, 1, { client_order_id: name });
    const names = ["old-live", "old-ended", "old-late", "young-live", "young-ended"];
    const first = new Map<string, OrderJson>();
    const before = own.user();
    for (const name of names) {
      const order = await before.place({ ...body(name), ...(name === "old-late" ? { valid_until: 1 } : {}) });
      if (name.endsWith("ended")) await before.cancel(order.id);
      first.set(name, order);
    }
    await restartWith(
      own,
      `UPDATE orders SET created_at = created_at - ?
        - CASE WHEN client_order_id LIKE 'old%' THEN 60000 ELSE -60000 END`,
      DAY_MS,
    );
    const user = own.client("user0");
    const idOf = async (name: string): Promise<number> => (await user.place(body(name))).id;
    for (const name of ["old-live", "young-live", "young-ended"]) {
      expect([name, await idOf(name)]).toEqual([name, first.get(name)!.id]);
      await expectRefused(post(user, { ...body(name), price: 11 }), 409, 40900);
    }
    for (const name of ["old-ended", "old-late"]) {
      const other = await user.place({ ...body(name), price: 11 });
      expect(other.id).toBeGreaterThan(first.get("young-ended")!.id);
      expect((await post(user, { ...body(name), price: 11 })).data).toEqual(other);
      await expectRefused(post(user, body(name)), 409, 40900);
      const found = await user.all<OrderJson>(`/orders?status=all&client_order_id=${name}`);
      expect(found.map(({ id }) => id)).toEqual([other.id, first.get(name)!.id]);
    }
    // What lived beyond its 24 hours has its id until it ends, and no longer.
    await user.cancel(first.get("old-live")!.id);
    await user.cancel(first.get("young-live")!.id);
    expect(await idOf("young-live")).toBe(first.get("young-live")!.id);
    const next = await idOf("old-live");
    expect(next).toBeGreaterThan(first.get("old-live")!.id);
    await own.server.kill();
    own.server = await own.server.restart();
    const after = own.client("user0");
    expect((await after.place(body("old-live"))).id).toBe(next);
    expect((await after.place(body("young-ended"))).id).toBe(first.get("young-ended")!.id);
  });
});

describe("a retry storm", () => {
  const ORDERS = 150;
  const CLIENTS = 12;

  /** Sends a placement; goes away right after, or waits. Answers the order's id, null where none came. */
  function attempt(port: number, body: string, impatient: boolean): Promise<number | null> {
    return new Promise((resolve, reject) => {
      const socket = connect(port, "127.0.0.1");
      let got = "";
      const end = (id: number | null): void => {
        socket.destroy();
        resolve(id);
      };
      socket.on("error", () => end(null));
      socket.on("close", () => end(null));
      socket.on("data", (chunk: Buffer) => {
        got += chunk.toString();
        const text = got.split("\r\n\r\n")[1];
        if (text?.endsWith("}") !== true) return;
        if (got.startsWith("HTTP/1.1 202")) end((JSON.parse(text) as { data: OrderJson }).data.id);
        else reject(new Error(got));
      });
      const head = `POST ${API_BASE}/orders HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ${tokenOf("storm")}\r\n`;
      socket.write(`${head}Content-Length: ${body.length}\r\n\r\n${body}`, () => {
        if (impatient) socket.resetAndDestroy();
      });
    });
  }

  async function storm(own: World, market: TestMarket, random: Random, prefix: string): Promise<Map<string, number>> {
    const waiting = Array.from({ length: ORDERS }, (_, i) => `${prefix}-${i}`);
    const ids = new Map<string, number>();
    const retry = async (): Promise<void> => {
      for (let name = waiting.pop(); name !== undefined; name = waiting.pop()) {
        const side = name.endsWith("0") ? SELL : BUY;
        const price = side === BUY ? 4_000 + (Number(name.split("-")[1]) % 7) * 100 : 3_900;
        const body = JSON.stringify(terms(market, 0, side, price, 1 + (name.length % 3), { client_order_id: name }));
        let id: number | null = null;
        while (id === null) id = await attempt(own.server.port, body, random.chance(0.75));
        ids.set(name, id);
      }
    };
    await Promise.all(Array.from({ length: CLIENTS }, retry));
    return ids;
  }

  test("in the end exactly one order for each id, also when the server was killed in between", async () => {
    const random = Random.printed("retry storm");
    await alone({ users: 0, named: { storm: {}, taker: {} }, markets: [2] }, async (own) => {
      const market = own.market();
      const [user, taker] = [own.client("storm"), own.client("taker")];
      await own.split(user, market, 200);
      await own.split(taker, market, 200);
      let storming = true;
      const trade = async (): Promise<void> => {
        while (storming) {
          await taker.place(terms(market, 0, random.pick([BUY, SELL]), 4_300, 2, { time_in_force: "ioc" }));
        }
      };
      const trading = trade();
      const ids = await storm(own, market, random, "calm");
      storming = false;
      await trading;
      await expectOnce(user, ids);
      // Once more, with a kill -9 in the middle: the answers before it and after it name the same orders.
      const killed = storm(own, market, random, "killed");
      await eventually(async () => expect((await user.all("/orders?status=all")).length).toBeGreaterThan(ORDERS * 1.4));
      await own.server.kill();
      own.server = await own.server.restart();
      await expectOnce(own.client("storm"), new Map([...ids, ...(await killed)]));
    });
  });

  async function expectOnce(user: Client, ids: ReadonlyMap<string, number>): Promise<void> {
    const orders = await user.all<OrderJson>("/orders?status=all");
    const found = orders.map(({ client_order_id, id }) => [client_order_id, id] as [string, number]);
    expect(new Map(found)).toEqual(ids);
    expect(found).toHaveLength(ids.size);
    const fills = await user.all<{ quantity: number }>("/me/fills");
    const filled = orders.reduce((sum, order) => sum + order.filled, 0);
    expect(fills.reduce((sum, { quantity }) => sum + quantity, 0)).toBe(filled);
    expect(filled).toBeGreaterThan(0);
  }
});
