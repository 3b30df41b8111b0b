/**
 * Trading over the WebSocket, one operation at a time: the same operations, checks and responses as over REST, each
 * acknowledged by its id.
 */
import { afterAll, afterEach, beforeAll, beforeEach, expect, test } from "vitest";
import { expectBalanced, expectEndsWell } from "../support/checks.ts";
import { Client, type OrderJson } from "../support/client.ts";
import { SPEAKS_SBE } from "../support/projects.ts";
import { Socket } from "../support/socket.ts";
import { BUY, quote, SELL, terms } from "../support/terms.ts";
import { type TestMarket, tokenOf, USDC, World } from "../support/world.ts";
import type { Results } from "./order-frames.ts";
import {
  expectSame,
  type Mistake,
  UNKNOWN_ID,
  wrongAmends,
  wrongBatches,
  wrongPlacements,
  wrongQuotes,
} from "./wrong-operations.ts";

const ROUTE_OPERATIONS = [
  ...["order.place", "order.cancel", "order.cancel_all", "order.amend", "order.batch", "quotes.replace"],
] as const;

let world: World;
let user: Client;
let other: Client;
let socket: Socket;
let market: TestMarket;
let foreign: TestMarket;
beforeAll(async () => {
  world = await World.start({
    users: 30,
    named: {
      scoped: { scopes: [["portfolio:read", "markets:read"], ["orders:write"]] },
      unknown: { tier: 0 },
      small: { tier: 1, deposit: 1_000 * USDC },
      poor: { deposit: 10 * USDC },
    },
    markets: Array<number>(12).fill(2),
  });
  [market, foreign] = [world.market(), world.market()];
});
beforeEach(async () => {
  [user, other] = [world.user(), world.user()];
  socket = await world.socket(user);
});
afterEach(() => socket.close());
afterAll(async () => {
  await expectBalanced(world.anonymous());
  await expectEndsWell(world);
});

test("each acknowledgement has the operation's id and the data of the same REST request", async () => {
  const listener = await world.socket(user);
  const order = await socket.data<OrderJson>("order.place", terms(market, 0, BUY, 4_000, 10, { post_only: true }));
  expect(order).toMatchObject({ status: "queued", trades: [], price: 4_000, remaining: 10, post_only: true });
  expect(await user.order(order.id)).toMatchObject({ ...order, status: "open", updated_at: expect.any(Number) });

  const amended = await socket.data<OrderJson>("order.amend", { id: order.id, price: 4_100, quantity: 12 });
  expect(amended).toMatchObject({ id: order.id, price: 4_100, quantity: 12, status: "open" });
  const quotes = [quote(market, 0, BUY, 3_000, 5), quote(market, 1, BUY, 3_000, 6)];
  const { results } = await socket.data<Results>("quotes.replace", { market_id: market.id, quotes });
  expect(results.map(({ code, data }) => [code, data!.price, data!.quantity])).toEqual([[0, 3_000, 5], [0, 3_000, 6]]); // biome-ignore format: pairs
  const canceled = await socket.data<OrderJson>("order.cancel", { id: order.id });
  expect(canceled).toMatchObject({ id: order.id, status: "open" });
  const operations = [
    { op: "place", ...terms(market, 1, BUY, 200, 3) },
    { op: "cancel", id: results[0]!.data!.id },
  ];
  const batch = await socket.data<Results>("order.batch", { operations });
  expect(batch.results.map(({ code, data }) => [code, data!.status])).toEqual([[0, "queued"], [0, "open"]]); // biome-ignore format: pairs
  const rest = [results[1]!.data!.id, batch.results[0]!.data!.id];
  const all = await socket.data<{ order_ids: number[] }>("order.cancel_all", {});
  expect([...all.order_ids].sort()).toEqual(rest.sort());
  expect(await user.all("/orders")).toEqual([]);

  for (const id of [order.id, ...rest]) {
    const end = await listener.frame<OrderJson>("order.updated", (data) => data.id === id && data.reason !== null);
    expect(end.data).toMatchObject({ status: "canceled", reason: "user" });
  }
  for (const answer of socket.acknowledgements) {
    expect(Object.keys(answer).sort()).toEqual(["code", "data", "id", "msg", "rate_limit"]);
    expect(answer.rate_limit).toBeNull();
  }
  await listener.close();
});

test.skipIf(SPEAKS_SBE)("ids of any size are echoed, and null where there is none", async () => {
  const before = socket.acknowledgements.length;
  const ids = [0, 4_294_967_296, Number.MAX_SAFE_INTEGER, null, undefined];
  for (const id of ids) socket.socket.send(JSON.stringify({ op: "order.cancel", data: { id: UNKNOWN_ID }, id }));
  const answers = await socket.until(() => {
    const found = socket.acknowledgements.slice(before);
    return found.length === ids.length ? found : undefined;
  }, "an answer to each");
  expect(answers.map(({ code }) => code)).toEqual(ids.map(() => 4040));
  // Lookups in the database may finish in another order.
  expect(answers.map(({ id }) => id).sort()).toEqual(ids.map((id) => id ?? null).sort());
  for (const id of [-1, 1.5, "7", true, 2 ** 53]) {
    const count = socket.acknowledgements.length;
    socket.socket.send(JSON.stringify({ op: "order.cancel_all", data: {}, id }));
    const answer = await socket.until(() => socket.acknowledgements[count], `an answer to ${id}`);
    expect([id, answer.code]).toEqual([id, 40000]);
  }
});

test("subscribe, unsubscribe, ping and cancel_on_disconnect have no rate limit and report none", async () => {
  const ours = await world.socket(other);
  const channel = { channel: "trades", market_id: market.id };
  for (const operation of [
    { op: "ping" },
    { op: "subscribe", ...channel },
    { op: "unsubscribe", ...channel },
    { op: "cancel_on_disconnect", enabled: true },
    { op: "cancel_on_disconnect", enabled: false },
  ]) {
    const answer = await ours.ask(operation);
    expect([operation.op, answer.code, "rate_limit" in answer]).toEqual([operation.op, 0, false]);
    if ("enabled" in operation) expect(answer.data).toEqual({ enabled: operation.enabled });
  }
  await ours.close();
});

test.skipIf(SPEAKS_SBE)(
  "unknown operations, unknown fields and data that is no object are 40000, and the message names them",
  async () => {
    const place = { op: "order.place", data: terms(market, 0, BUY, 100, 1) };
    const wrong: [object, RegExp][] = [
      [{ op: "order.replace", data: {} }, /^op: .*order\.place.*quotes\.replace/],
      [{ op: "Order.place", data: {} }, /^op: /],
      [{ ...place, nothing: 1 }, /^nothing: unknown/],
      [{ ...place, market_id: 1 }, /^market_id: unknown/],
      [{ ...place, data: [] }, /^data: /],
      [{ ...place, data: null }, /^data: /],
      [{ ...place, data: "x" }, /^data: /],
      [{ ...place, data: 7 }, /^data: /],
      [{ ...place, builder_code: 7 }, /^builder_code: /],
      [{ ...place, builder_code: "" }, /^builder_code: /],
      [{ ...place, builder_code: "a b" }, /^builder_code: /],
      [{ ...place, builder_code: "x".repeat(33) }, /^builder_code: /],
      [{ op: "order.amend", data: { id: 1, price: 2 }, builder_code: "bot" }, /^builder_code: /],
      [{ op: "order.cancel", data: { id: 1 }, builder_code: "bot" }, /^builder_code: /],
      [{ op: "order.cancel_all", data: {}, builder_code: "bot" }, /^builder_code: /],
      [{ op: "cancel_on_disconnect" }, /enabled: required/],
      [{ op: "cancel_on_disconnect", enabled: 1 }, /^enabled: /],
      [{ op: "cancel_on_disconnect", enabled: "true" }, /^enabled: /],
      [{ op: "cancel_on_disconnect", enabled: true, data: {} }, /^data: unknown/],
      [{ op: "order.amend", data: { price: 2 } }, /id: required/],
      [{ op: "quotes.replace", data: { quotes: [] } }, /market_id: required/],
    ];
    const found = [];
    for (const [operation, naming] of wrong) {
      const { code, msg, data } = await socket.ask(operation);
      if (code !== 40000 || !naming.test(msg) || data !== null) found.push([JSON.stringify(operation), code, msg]);
    }
    expect(found).toEqual([]);
    expect(await user.all("/orders")).toEqual([]);
  },
);

test.skipIf(SPEAKS_SBE)("ids within data are integers, as in a batch", async () => {
  const { id } = await socket.data<OrderJson>("order.place", terms(market, 0, BUY, 100, 2));
  const found = [];
  for (const wrong of [String(id), [id], { id }, 1.5, true, null, 0, -1]) {
    for (const [op, data] of [
      ["order.cancel", { id: wrong }],
      ["order.amend", { id: wrong, quantity: 1 }],
      ["quotes.replace", { market_id: wrong, quotes: [] }],
    ] as const) {
      const { code, msg } = await socket.ask({ op, data });
      if (code !== 40000) found.push([op, wrong, code, msg]);
    }
  }
  expect(found).toEqual([]);
  expect(await user.order(id)).toMatchObject({ status: "open", quantity: 2 });
  await socket.data("order.cancel", { id });
});

test.skipIf(SPEAKS_SBE)("a wrong placement is rejected with the code and the message of REST", async () => {
  const good = terms(market, 0, BUY, 5_000, 1);
  const used = await user.place({ ...good, price: 100, client_order_id: "taken" });
  const mistakes = wrongPlacements(good, foreign.outcomes[0]!);
  expect(mistakes.length).toBeGreaterThan(70);
  // This one exceeds the daily activity limit as well: 42201 takes precedence.
  await expectSame(
    mistakes.filter(([code]) => code !== 42201),
    (body) => user.request("POST", "/orders", { body }),
    (data) => socket.ask({ op: "order.place", data }),
  );
  const poor = world.client("poor");
  const poorSocket = await world.socket(poor);
  await expectSame(
    [[42201, { ...good, price: 9_000, quantity: 12 }]],
    (body) => poor.request("POST", "/orders", { body }),
    (data) => poorSocket.ask({ op: "order.place", data }),
  );
  await poorSocket.close();
  await user.cancel(used.id);
  expect(await user.all("/orders")).toEqual([]);
});

test.skipIf(SPEAKS_SBE)("a wrong amend is rejected with the code and the message of REST", async () => {
  const resting = await user.place(terms(market, 0, BUY, 100, 10));
  const finished = await user.place(terms(market, 0, BUY, 101, 1));
  await user.cancel(finished.id);
  const theirs = await other.place(terms(market, 0, BUY, 102, 1));
  await other.cancel(theirs.id);
  const late = await other.place(terms(market, 0, BUY, 103, 1));
  const mistakes = wrongAmends({ finished, theirs, late });
  await expectSame(
    mistakes,
    ({ id = resting.id, ...body }) => user.request("PATCH", `/orders/${id}`, { body }),
    ({ id = resting.id, ...data }) => socket.ask({ op: "order.amend", data: { id, ...data } }),
  );
  expect(await user.order(resting.id)).toMatchObject({ price: 100, quantity: 10, status: "open" });
  await user.cancel(resting.id);
  await other.cancel(late.id);
});

test.skipIf(SPEAKS_SBE)("wrong cancels are rejected with the code and the message of REST", async () => {
  const finished = await user.place(terms(market, 0, BUY, 101, 1, { client_order_id: "finished" }));
  await user.cancel(finished.id);
  const theirs = await other.place(terms(market, 0, BUY, 102, 1, { client_order_id: "theirs" }));
  await expectSame(
    [
      [40900, { id: finished.id }],
      [4040, { id: theirs.id }],
      [4040, { id: UNKNOWN_ID }],
    ],
    ({ id }) => user.request("DELETE", `/orders/${id}`),
    (data) => socket.ask({ op: "order.cancel", data }),
  );
  // Over REST only a cancel within a batch takes either id.
  await expectSame(
    [
      [40000, {}],
      [40000, { id: 1, client_order_id: "x" }],
      [40000, { id: "1" }],
      [40000, { id: null }],
      [40000, { client_order_id: null }],
      [40000, { client_order_id: "" }],
      [40000, { client_order_id: 7 }],
      [40000, { id: 1, price: 1 }],
      [4040, { client_order_id: "unknown" }],
      [4040, { client_order_id: "theirs" }],
      [40900, { client_order_id: "finished" }],
    ],
    async (body) => {
      const operations = [{ op: "cancel", ...body }];
      return (await user.data<Results>("POST", "/orders/batch", { operations })).results[0]!;
    },
    (data) => socket.ask({ op: "order.cancel", data }),
  );
  const filters: Record<string, unknown[]> = {
    market_id: [0, -1, "x", 1.5],
    outcome_id: [0, "x"],
    side: [0, 3, "buy"],
    client_order_id: ["", "ä", "x".repeat(65)],
    nothing: ["1"],
    status: ["all"],
  };
  await expectSame(
    Object.entries(filters).flatMap(([name, values]) => values.map((value): Mistake => [40000, { [name]: value }])),
    (query) => user.request("DELETE", `/orders?${new URLSearchParams(query as Record<string, string>)}`),
    (data) => socket.ask({ op: "order.cancel_all", data }),
  );
  expect(await other.order(theirs.id)).toMatchObject({ status: "open" });
  await other.cancel(theirs.id);
});

test.skipIf(SPEAKS_SBE)(
  "wrong batches and quotes are rejected with the code and the message of REST, operation by operation",
  async () => {
    const place = { op: "place", ...terms(market, 0, BUY, 100, 1) };
    await expectSame(
      wrongBatches(place),
      (body) => user.request("POST", "/orders/batch", { body }),
      (data) => socket.ask({ op: "order.batch", data }),
    );
    const good = quote(market, 0, BUY, 100, 1);
    await expectSame(
      wrongQuotes(good, foreign.outcomes[0]!),
      ({ market_id = market.id, ...body }) => user.request("PUT", `/quotes/${market_id}`, { body }),
      ({ market_id = market.id, ...data }) => socket.ask({ op: "quotes.replace", data: { market_id, ...data } }),
    );
    expect(await user.all("/orders")).toEqual([]);
  },
);

test("missing scopes, low tiers and connections without a token are rejected as over REST", async () => {
  const data: Record<(typeof ROUTE_OPERATIONS)[number], object> = {
    "order.place": terms(market, 0, BUY, 100, 1),
    "order.cancel": { id: 1 },
    "order.cancel_all": {},
    "order.amend": { id: 1, price: 100 },
    "order.batch": { operations: [{ op: "place", ...terms(market, 0, BUY, 100, 1) }] },
    "quotes.replace": { market_id: market.id, quotes: [quote(market, 0, BUY, 100, 1)] },
  };
  const rest = (client: Client) => client.request("POST", "/orders", { body: data["order.place"] });
  for (const [token, client, code] of [
    [tokenOf("scoped", 0), world.client("scoped", 0), 40300],
    [tokenOf("unknown"), world.client("unknown"), 40300],
    [null, world.anonymous(), 40100],
  ] as const) {
    const ours = await Socket.open(world.server, token);
    const refused = await rest(client);
    expect(refused.code).toBe(code);
    for (const op of ROUTE_OPERATIONS) {
      const answer = await ours.ask({ op, data: data[op] });
      expect([op, answer.code, answer.data]).toEqual([op, code, null]);
      if (code === 40300) expect(answer.msg).toBe(refused.msg);
    }
    const tie = await ours.ask({ op: "cancel_on_disconnect", enabled: true });
    expect([tie.code, tie.data]).toEqual([code, null]);
    await ours.close();
  }
  const writer = await Socket.open(world.server, tokenOf("scoped", 1));
  const { id } = await writer.data<OrderJson>("order.place", data["order.place"]);
  await writer.data("order.cancel", { id });
  await writer.close();
});

test("a tier's daily activity counts over both", async () => {
  const small = world.client("small");
  const ours = await world.socket(small);
  await small.place(terms(market, 0, BUY, 6_000, 100));
  const over = await ours.ask({ op: "order.place", data: terms(market, 0, BUY, 4_100, 100) });
  expect([over.code, over.data]).toEqual([42901, null]);
  await ours.data("order.place", terms(market, 0, BUY, 4_000, 100));
  expect(await small.request("POST", "/orders", { body: terms(market, 0, BUY, 1, 1) })).toMatchObject({
    code: 42901,
  });
  await ours.data("order.cancel_all", {});
  await ours.close();
});

test("a builder code counts as the header does", async () => {
  const ours = await world.socket(other);
  const answer = await ours.ask({ op: "order.place", data: terms(market, 0, BUY, 100, 1), builder_code: "ws-bot" });
  expect(answer).toMatchObject({ code: 0, data: { builder_code: "ws-bot" } });
  const operations = [{ op: "place", ...terms(market, 0, BUY, 100, 1) }];
  const batch = await ours.ask({ op: "order.batch", data: { operations }, builder_code: "ws-bot" });
  expect((batch.data as Results).results[0]).toMatchObject({ code: 0, data: { builder_code: "ws-bot" } });
  const quotes = { market_id: market.id, quotes: [quote(market, 0, BUY, 100, 1)] };
  const quoted = await ours.ask({ op: "quotes.replace", data: quotes, builder_code: "ws-bot" });
  expect((quoted.data as Results).results[0]).toMatchObject({ code: 0, data: { builder_code: "ws-bot" } });
  const plain = await ours.ask({ op: "order.place", data: terms(market, 0, BUY, 100, 1), builder_code: null });
  expect(plain).toMatchObject({ code: 0, data: { builder_code: null } });
  expect(await other.get("/builders/ws-bot/stats")).toMatchObject({ orders: 3, fills: 0 });
  await ours.data("order.cancel_all", {});
  await ours.close();
});

test("order.cancel_all takes the filters of DELETE /orders", async () => {
  const [owner, second] = [world.user(), world.market()];
  const ours = await world.socket(owner);
  await world.split(owner, second, 10);
  const place = (of: TestMarket, outcome: number, side: number, price: number, more = {}): Promise<OrderJson> =>
    ours.data("order.place", terms(of, outcome, side, price, 1, more));
  const a = await place(market, 0, BUY, 10);
  const b = await place(second, 0, BUY, 10);
  const c = await place(second, 0, SELL, 9_990);
  const d = await place(second, 1, BUY, 10, { client_order_id: "d" });
  const end = async (data: object): Promise<number[]> =>
    (await ours.data<{ order_ids: number[] }>("order.cancel_all", data)).order_ids;
  expect(await end({ market_id: second.id, side: SELL })).toEqual([c.id]);
  expect(await end({ market_id: UNKNOWN_ID })).toEqual([]);
  expect(await end({ client_order_id: "d" })).toEqual([d.id]);
  expect(await end({ client_order_id: "d" })).toEqual([]);
  expect(await end({ outcome_id: second.outcomes[0] })).toEqual([b.id]);
  expect(await end({})).toEqual([a.id]);
  await ours.close();
});

test("a repeated client order id is one order, over REST and over either encoding", async () => {
  const owner = world.user();
  const [ours, packed] = [await world.socket(owner), await Socket.open(world.server, owner.token, { protocols: ["msgpack"] })]; // biome-ignore format: pair
  const body = (n: number): object => terms(market, 1, BUY, 50, 1, { client_order_id: `both-${n}` });
  const first = await owner.place(body(1));
  expect(await ours.data("order.place", body(1))).toEqual(first);
  expect(await packed.data("order.place", { ...body(1), type: "limit", post_only: false })).toEqual(first);
  const second = await packed.data<OrderJson>("order.place", body(2));
  expect(await owner.place(body(2))).toEqual(second);
  expect(await ours.data("order.place", body(2))).toEqual(second);
  for (const change of [{ price: 51 }, { quantity: 2 }, { side: SELL }, { post_only: true }]) {
    const other = { ...body(2), ...change };
    expect([change, (await ours.ask({ op: "order.place", data: other })).code]).toEqual([change, 40900]);
    expect([change, (await owner.request("POST", "/orders", { body: other })).code]).toEqual([change, 40900]);
  }
  // Concurrently: one places the order, and all get the same response.
  const own = new Client(world.server, owner.token, 8);
  const all = await Promise.all(
    Array.from({ length: 24 }, (_, n) =>
      n % 3 === 0 ? own.place(body(4)) : (n % 3 === 1 ? ours : packed).data<OrderJson>("order.place", body(4)),
    ),
  );
  own.close();
  expect(all).toEqual(all.map(() => all[0]));
  expect((await owner.all<OrderJson>("/orders?client_order_id=both-4")).map(({ id }) => id)).toEqual([all[0]!.id]);
  // After an amend and a cancel it is still the first response.
  await ours.data("order.amend", { id: first.id, price: 60 });
  await ours.data("order.cancel", { client_order_id: "both-1" });
  expect(await ours.data("order.place", body(1))).toEqual(first);
  await ours.data("order.cancel_all", {});
  for (const each of [ours, packed]) await each.close();
});
