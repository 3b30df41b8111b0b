/**
 * Many operations under way on one connection: each is acknowledged before its order's first update, and the sequence of
 * updates has no gap. After a restart the orders and idempotency keys are as before; the restarts share the server.
 */
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { expectBalanced, expectEndsWell, expectQuiet, expectSoundDatabase } from "../support/checks.ts";
import { Client, type OrderJson } from "../support/client.ts";
import { Random } from "../support/random.ts";
import type { Socket } from "../support/socket.ts";
import { BUY, quote, SELL, terms } from "../support/terms.ts";
import { type TestMarket, USDC, World } from "../support/world.ts";
import { expectAnswersFirst, expectNoGap, expectStates, isFinal, placedAt, type Results } from "./order-frames.ts";
import { UNKNOWN_ID } from "./wrong-operations.ts";

let world: World;
/** Of the tests that share markets. */
let markets: readonly TestMarket[];
beforeAll(async () => {
  world = await World.start({ users: 14, named: { poor: { deposit: 10 * USDC } }, markets: [2, 2, 3, 2, 2, 2] });
  markets = [world.market(), world.market(), world.market(3), world.market()];
});
afterAll(async () => {
  await expectBalanced(world.anonymous());
  await expectEndsWell(world);
});

test("256 placements at once get 256 acknowledgements, orders in the order sent, each before its update", async () => {
  const user = world.user();
  const [socket, twin] = [await world.socket(user), await world.socket(user)];
  const sent = Array.from({ length: 256 }, (_, n) =>
    socket.post({ op: "order.place", data: terms(markets[n % 4]!, n % 2, BUY, 1 + (n % 90), 1) }),
  );
  const answers = await Promise.all(sent.map((id) => socket.answer(id)));
  expect(answers.filter(({ code }) => code !== 0)).toEqual([]);
  const ids = answers.map(({ data }) => (data as OrderJson).id);
  expect(ids).toEqual([...ids].sort((a, b) => a - b));
  expect(new Set(ids).size).toBe(256);
  const listed = await user.all<OrderJson>("/orders");
  expect(listed.map(({ id }) => id)).toEqual([...ids].reverse());
  expect(listed.map(({ price }) => price).reverse()).toEqual(ids.map((_, n) => 1 + (n % 90)));
  const canceled = await socket.data<{ order_ids: number[] }>("order.cancel_all", {});
  expect([...canceled.order_ids].sort((a, b) => a - b)).toEqual(ids);
  for (const each of [socket, twin]) {
    await each.until(() => (each.of("order.updated").length === 512 ? true : undefined), "all updates");
    expectNoGap(each.of("order.updated"));
    expectStates(each.of("order.updated"));
  }
  expectAnswersFirst(socket);
  expect(twin.of("order.updated")).toEqual(socket.of("order.updated"));
  expect(twin.acknowledgements).toEqual([]);
  for (const each of [socket, twin]) await each.close();
});

test("a cancel by client order id right behind its placement finds the order", async () => {
  const user = world.user();
  const socket = await world.socket(user);
  for (let n = 0; n < 20; n++) {
    const data = terms(markets[n % 4]!, 0, BUY, 100, 1, { client_order_id: `quick-${n}` });
    const placed = socket.post({ op: "order.place", data });
    const canceled = socket.post({ op: "order.cancel", data: { client_order_id: `quick-${n}` } });
    const { id } = (await socket.answer(placed)).data as OrderJson;
    expect(await socket.answer(canceled)).toMatchObject({ code: 0, data: { id, reason: null } });
    await socket.frame<OrderJson>("order.updated", (order) => order.id === id && isFinal(order));
    const about = socket.arrivals.flatMap((message, at) => {
      const order = message.data as OrderJson | null;
      return order?.id === id ? [["event" in message ? order.status : "answer", at]] : [];
    });
    const what = about.map(([name]) => name);
    expect([what[0], what.at(-1)]).toEqual(["answer", "canceled"]);
    expect(what.filter((name) => name !== "answer")).toEqual(["open", "canceled"]);
  }
  expect((await user.balance()).held).toBe(0);
  await socket.close();
});

test("batches over several markets, even those that wait for money, are acknowledged before their orders' updates", async () => {
  const user = world.client("poor");
  const [socket, twin] = [await world.socket(user), await world.socket(user)];
  let last = await socket.data<OrderJson>("order.place", terms(markets[0]!, 0, BUY, 5_000, 20));
  for (let n = 0; n < 30; n++) {
    // Each placement needs all the money: it waits for the cancel before it.
    const place = (at: number, name: string): object => {
      return { op: "place", ...terms(markets[at % 4]!, 0, BUY, 5_000, 20, { client_order_id: `${n}-${name}` }) };
    };
    const operations = [
      { op: "cancel", id: last.id },
      place(n, "a"),
      { op: "cancel", client_order_id: `${n}-a` },
      { op: "place", ...terms(markets[(n + 1) % 4]!, 1, BUY, 5_000, 21) },
      place(n + 1, "b"),
      { op: "cancel", client_order_id: `${n}-b` },
      place(n + 2, "c"),
    ];
    const { results } = await socket.data<Results>("order.batch", { operations });
    expect(results.map(({ code }) => code)).toEqual([0, 0, 0, 42201, 0, 0, 0]);
    last = results.at(-1)!.data!;
  }
  // Several such batches at once take the money from each other; whatever their results, they end.
  await socket.data("order.cancel", { id: last.id });
  const pipelined = Array.from({ length: 12 }, (_, n) => {
    const name = (k: number): string => `pipelined-${n}-${k}`;
    const operations = Array.from({ length: 10 }, (_, k) => {
      if (k % 2 === 1) return { op: "cancel", client_order_id: name(k - 1) };
      return { op: "place", ...terms(markets[(n + k) % 4]!, 0, BUY, 5_000, 20, { client_order_id: name(k) }) };
    });
    return socket.post({ op: "order.batch", data: { operations } });
  });
  const codes = new Set<number>();
  for (const id of pipelined) {
    const { results } = (await socket.answer(id)).data as Results;
    expect(results).toHaveLength(10);
    for (const { code } of results) codes.add(code);
  }
  expect([...codes].filter((code) => ![0, 42201, 4040].includes(code))).toEqual([]);
  expect(codes).toContain(0);
  last = await socket.data<OrderJson>("order.place", terms(markets[0]!, 0, BUY, 5_000, 20));
  const all = await socket.data<{ order_ids: number[] }>("order.cancel_all", {});
  expect(all.order_ids).toEqual([last.id]);
  await socket.frame<OrderJson>("order.updated", (order) => order.id === last.id && isFinal(order));
  await twin.frame<OrderJson>("order.updated", (order) => order.id === last.id && isFinal(order));
  expectAnswersFirst(socket);
  expectNoGap(twin.of("order.updated"));
  expectStates(twin.of("order.updated"));
  expect(twin.of("order.updated")).toEqual(socket.of("order.updated"));
  expect(await user.balance()).toMatchObject({ held: 0, available: 10 * USDC });
  for (const each of [socket, twin]) await each.close();
});

test("random pipelined operations of two users who trade with each other", async () => {
  const random = Random.printed("pipelined operations");
  const users = [world.user(), world.user()];
  for (const user of users) for (const market of markets) await world.split(user, market, 300);
  const sockets = await Promise.all(users.map((user) => world.socket(user)));
  const twins = await Promise.all(users.map((user) => world.socket(user)));
  const placement = (): object => {
    const market = random.pick(markets);
    const even = Math.floor(10_000 / market.outcomes.length);
    const outcome = random.integer(0, market.outcomes.length - 1);
    const price = even + 10 * random.integer(-4, 4);
    return terms(market, outcome, random.pick([BUY, SELL]), price, random.integer(1, 6), {
      time_in_force: random.pick(["gtc", "gtc", "gtc", "ioc", "fok"]),
      self_trade_prevention: random.pick(["cancel_taker", "cancel_maker", "cancel_both", "decrement"]),
    });
  };
  const known = (socket: Socket): number => random.pick([...placedAt(socket).keys(), UNKNOWN_ID]);
  const operation = (socket: Socket): { op: string; data: object } => {
    const kind = random.next();
    if (kind < 0.45) return { op: "order.place", data: placement() };
    if (kind < 0.55) return { op: "order.cancel", data: { id: known(socket) } };
    if (kind < 0.65) return { op: "order.amend", data: { id: known(socket), quantity: random.integer(1, 9) } };
    if (kind < 0.7) return { op: "order.cancel_all", data: { market_id: random.pick(markets).id } };
    if (kind < 0.8) {
      const market = random.pick(markets);
      const quotes = Array.from({ length: random.integer(0, 4) }, () => {
        return quote(market, 0, BUY, 2_900 + random.integer(0, 40), random.integer(1, 4));
      });
      return { op: "quotes.replace", data: { market_id: market.id, quotes } };
    }
    const operations = Array.from({ length: random.integer(1, 12) }, () =>
      random.chance(0.75) ? { op: "place", ...placement() } : { op: "cancel", id: known(socket) },
    );
    return { op: "order.batch", data: { operations } };
  };
  const codes = new Map<number, number>();
  for (let round = 0; round < 25; round++) {
    const posted = sockets.flatMap((socket) =>
      Array.from({ length: 20 }, () => [socket, socket.post(operation(socket))] as const),
    );
    for (const [socket, id] of posted) {
      const { code } = await socket.answer(id);
      codes.set(code, (codes.get(code) ?? 0) + 1);
    }
  }
  expect([...codes.keys()].filter((code) => ![0, 4040, 40900].includes(code))).toEqual([]);
  expect(codes.get(0)).toBeGreaterThan(600);
  for (const [i, socket] of sockets.entries()) {
    const live = await users[i]!.all<OrderJson>("/orders");
    for (const each of [socket, twins[i]!]) {
      await each.fence();
      const updates = each.of<OrderJson>("order.updated");
      expectNoGap(updates);
      expectStates(updates);
      const last = new Map(updates.map(({ data }) => [data.id, data]));
      const open = [...last.values()].filter((order) => !isFinal(order));
      expect(open.map((order) => ({ ...order, trades: [] })).sort((a, b) => b.id - a.id)).toEqual(live);
    }
    expectAnswersFirst(socket);
    expect(twins[i]!.of("order.updated")).toEqual(socket.of("order.updated"));
  }
  for (const each of [...sockets, ...twins]) await each.close();
});

describe("a restart", () => {
  test.each(["SIGTERM", "kill -9"])(
    "a restart by %s leaves orders and idempotency keys of pipelined operations as they were",
    async (how) => {
      const [user, market] = [world.user(), world.market()];
      const body = (n: number): object => terms(market, 0, BUY, 100 + n, 1, { client_order_id: `kept-${n}` });
      let socket = await world.socket(user);
      const first = await Promise.all([0, 1, 2].map((n) => socket.data<OrderJson>("order.place", body(n))));
      await socket.data("order.cancel", { client_order_id: "kept-1" });
      const listed = await user.all("/orders");
      await socket.fence();
      const sequence = socket.of("order.updated").at(-1)!.sequence;
      user.close();
      expectQuiet(world.server);
      if (how === "SIGTERM") await world.server.stop();
      else await world.server.kill();
      expectSoundDatabase(world.server.dataDir);
      world.server = await world.server.restart();
      const again = new Client(world.server, user.token);
      expect(await again.all("/orders")).toEqual(listed);
      socket = await world.socket(again);
      for (const [n, order] of first.entries()) expect(await socket.data("order.place", body(n))).toEqual(order);
      expect(await again.place(body(1))).toEqual(first[1]);
      expect(await socket.ask({ op: "order.place", data: { ...body(1), price: 1 } })).toMatchObject({ code: 40900 });
      expect(await again.all("/orders")).toEqual(listed);
      await socket.data("order.cancel", { client_order_id: "kept-2" });
      const canceled = await socket.frame<OrderJson>("order.updated");
      expect(canceled).toMatchObject({ data: { id: first[2]!.id, status: "canceled", reason: "user" } });
      expect(canceled.sequence).toBeGreaterThan(sequence);
      await socket.close();
      again.close();
    },
  );
});
