/**
 * Trading over the WebSocket: the same operations, checks and answers as over REST, answered by id; many at a time, each
 * answered before its order's first update; and the same idempotency keys, also after a restart.
 */
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from "vitest";
import { expectBalanced, expectSoundDatabase } from "../support/checks.ts";
import { Client, type OrderJson } from "../support/client.ts";
import { variants } from "../support/projects.ts";
import { Random } from "../support/random.ts";
import { type Acknowledgement, type Frame, Socket } from "../support/socket.ts";
import { BUY, quote, SELL, terms } from "../support/terms.ts";
import { type TestMarket, tokenOf, USDC, World } from "../support/world.ts";

interface Result<T = OrderJson | null> {
  readonly code: number;
  readonly msg: string;
  readonly data: T;
}

interface Results {
  readonly results: readonly Result[];
}

const UNKNOWN_ID = 999_999_999;
const ROUTE_OPERATIONS = [
  ...["order.place", "order.cancel", "order.cancel_all", "order.amend", "order.batch", "quotes.replace"],
] as const;

async function ended(world: World): Promise<void> {
  await expectBalanced(world.anonymous());
  expect(world.server.log.filter(({ level }) => level >= 50)).toEqual([]);
  await world.stop();
  expectSoundDatabase(world.server.dataDir);
}

function expectNoGap(frames: readonly { readonly sequence: number }[]): void {
  const first = frames[0]?.sequence ?? 0;
  expect(frames.map(({ sequence }) => sequence)).toEqual(frames.map((_, i) => first + i));
}

describe("one operation at a time", () => {
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
  afterAll(() => ended(world));

  test("each is answered by its id with what the same REST request is answered with", async () => {
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

  test("ids of any size are echoed, and null where there is none", async () => {
    const before = socket.acknowledgements.length;
    const ids = [0, 4_294_967_296, Number.MAX_SAFE_INTEGER, null, undefined];
    for (const id of ids) socket.socket.send(JSON.stringify({ op: "order.cancel", data: { id: UNKNOWN_ID }, id }));
    const answers = await socket.until(() => {
      const found = socket.acknowledgements.slice(before);
      return found.length === ids.length ? found : undefined;
    }, "an answer to each");
    expect(answers.map(({ code }) => code)).toEqual(ids.map(() => 4040));
    // What has to be looked up in the database may come in another order.
    expect(answers.map(({ id }) => id).sort()).toEqual(ids.map((id) => id ?? null).sort());
    for (const id of [-1, 1.5, "7", true, 2 ** 53]) {
      const count = socket.acknowledgements.length;
      socket.socket.send(JSON.stringify({ op: "order.cancel_all", data: {}, id }));
      const answer = await socket.until(() => socket.acknowledgements[count], `an answer to ${id}`);
      expect([id, answer.code]).toEqual([id, 40000]);
    }
  });

  test("subscribe, unsubscribe, ping and cancel_on_disconnect have no limit and say none", async () => {
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

  test("unknown operations, unknown fields and what is no object are 40000 and name it", async () => {
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
  });

  test("ids within data are integers, as in a batch", async () => {
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

  /** A mistake over REST and over the socket. */
  type Mistake = readonly [code: number, body: Record<string, unknown>];

  async function expectSame(
    mistakes: readonly Mistake[],
    overRest: (body: Record<string, unknown>) => Promise<Result<unknown>>,
    overSocket: (body: Record<string, unknown>) => Promise<Acknowledgement>,
  ): Promise<void> {
    const different = [];
    for (const [code, body] of mistakes) {
      const rest = await overRest(body);
      const { msg, ...ours } = await overSocket(body);
      const same = [ours.code, msg.replace(/^data\./, ""), JSON.stringify(ours.data)];
      const expected = [code, rest.msg, JSON.stringify(rest.data)];
      if (rest.code !== code || JSON.stringify(same) !== JSON.stringify(expected)) {
        different.push({
          body: JSON.stringify(body).slice(0, 200),
          wanted: code,
          rest: [rest.code, rest.msg],
          ours,
          msg,
        });
      }
    }
    expect(different).toEqual([]);
  }

  test("a wrong placement is refused with the code and the words of REST", async () => {
    const good = terms(market, 0, BUY, 5_000, 1);
    const used = await user.place({ ...good, price: 100, client_order_id: "taken" });
    const fields: [string, unknown[]][] = [
      ["market_id", [undefined, null, "1", 0, -1, 1.5, 2 ** 53, true, [], {}]],
      ["outcome_id", [undefined, null, "1", 0, 1.5, foreign.outcomes[0]]],
      ["side", [undefined, 0, 3, "buy", 1.5, null]],
      ["price", [undefined, null, 0, 10_000, -1, 0.5, "5000", [], {}]],
      ["quantity", [undefined, 0, -1, 1.5, 1_000_000_001, "1", null]],
      ["type", ["Limit", "stop", 1, null]],
      ["time_in_force", ["day", "GTC", 0, null, "gtd"]],
      ["post_only", ["true", 1, null]],
      ["client_order_id", ["", " ", "x".repeat(65), "ä", "a/b", 7, "\u0000"]],
      ["self_trade_prevention", ["none", 0, null]],
      ["expires_at", [1, -1, 1.5, "later", Date.now() + 60_000]],
      ["valid_until", [-1, 1.5, "later", 2 ** 53]],
      ["nothing", [1]],
      ["id", [1]],
      ["__proto__", [{}]],
    ];
    const mistakes: Mistake[] = fields.flatMap(([field, values]) =>
      values.map((value): Mistake => {
        const text = JSON.stringify({ ...good, [`${field}`]: value });
        return [40000, field === "__proto__" ? JSON.parse(`{"__proto__":{},${text.slice(1)}`) : JSON.parse(text)];
      }),
    );
    mistakes.push(
      [40000, {}],
      [40000, { ...good, type: "market", time_in_force: "gtc" }],
      [40000, { ...good, type: "market", post_only: true }],
      [40000, { ...good, time_in_force: "ioc", post_only: true }],
      [40000, { ...good, time_in_force: "gtd", expires_at: 1 }],
      [4040, { ...good, market_id: UNKNOWN_ID }],
      [42201, { ...good, side: BUY, price: 9_000, quantity: 11_000 }],
      [42202, { ...good, side: SELL }],
      [42901, { ...good, quantity: 1_000_000_000 }],
      [40900, { ...good, client_order_id: "taken" }],
    );
    expect(mistakes.length).toBeGreaterThan(70);
    // More money than a day's activity lets through: 42201 has to come first.
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

  test("a wrong amend is refused with the code and the words of REST", async () => {
    const standing = await user.place(terms(market, 0, BUY, 100, 10));
    const finished = await user.place(terms(market, 0, BUY, 101, 1));
    await user.cancel(finished.id);
    const theirs = await other.place(terms(market, 0, BUY, 102, 1));
    await other.cancel(theirs.id);
    const late = await other.place(terms(market, 0, BUY, 103, 1));
    const mistakes: Mistake[] = [
      ...[{}, { price: null }, { price: null, quantity: null }, { valid_until: 1 }].map(
        (body): Mistake => [40000, body],
      ),
      ...[0, 10_000, 1.5, "100", -1, [], true].map((price): Mistake => [40000, { price }]),
      ...[0, 1_000_000_001, 1.5, "1"].map((quantity): Mistake => [40000, { quantity }]),
      ...[-1, 1.5, "x"].map((valid_until): Mistake => [40000, { price: 200, valid_until }]),
      ...["side", "nothing", "client_order_id", "op"].map((field): Mistake => [40000, { price: 200, [field]: 1 }]),
      [40900, { price: 200, valid_until: 1 }],
      [40900, { id: finished.id, price: 200 }],
      [4040, { id: theirs.id, price: 200 }],
      [4040, { id: late.id, price: 200 }],
      [4040, { id: UNKNOWN_ID, price: 200 }],
      [42901, { price: 9_999, quantity: 1_000_000_000 }],
    ];
    await expectSame(
      mistakes,
      ({ id = standing.id, ...body }) => user.request("PATCH", `/orders/${id}`, { body }),
      ({ id = standing.id, ...data }) => socket.ask({ op: "order.amend", data: { id, ...data } }),
    );
    expect(await user.order(standing.id)).toMatchObject({ price: 100, quantity: 10, status: "open" });
    await user.cancel(standing.id);
    await other.cancel(late.id);
  });

  test("wrong cancels are refused with the code and the words of REST", async () => {
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
    // Over REST a cancel that may name either of the two is an operation of a batch.
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

  test("wrong batches and quotes are refused with the code and the words of REST, operation by operation", async () => {
    const place = { op: "place", ...terms(market, 0, BUY, 100, 1) };
    const operations = [
      { op: "place" },
      { ...place, price: 0 },
      { ...place, nothing: 1 },
      { ...place, market_id: UNKNOWN_ID },
      { ...place, side: SELL },
      { op: "amend", id: UNKNOWN_ID, price: 1 },
      { op: "amend", price: 1 },
      { op: "amend", id: "1", price: 1 },
      { op: "cancel" },
      { op: "cancel", id: UNKNOWN_ID },
      { op: "" },
      { op: "Place" },
      { op: "constructor" },
      { op: 1 },
      {},
    ];
    await expectSame(
      [
        [40000, {}],
        [40000, { operations: [] }],
        [40000, { operations: Array(51).fill(place) }],
        [40000, { operations: {} }],
        [40000, { operations: "x" }],
        [40000, { operations: [1] }],
        [40000, { operations: [null] }],
        [40000, { operations: [[]] }],
        [40000, { operations: [place, 1] }],
        [40000, { operations: [place], nothing: 1 }],
        [0, { operations }],
      ],
      (body) => user.request("POST", "/orders/batch", { body }),
      (data) => socket.ask({ op: "order.batch", data }),
    );
    const good = quote(market, 0, BUY, 100, 1);
    await expectSame(
      [
        [40000, {}],
        [40000, { quotes: 1 }],
        [40000, { quotes: null }],
        [40000, { quotes: [1] }],
        [40000, { quotes: [{}] }],
        [40000, { quotes: Array(101).fill(good) }],
        [40000, { quotes: [good, { ...good, price: 0 }] }],
        [40000, { quotes: [good, { ...good, quantity: 0 }] }],
        [40000, { quotes: [good, { ...good, side: 3 }] }],
        [40000, { quotes: [good, { ...good, post_only: true }] }],
        [40000, { quotes: [good, { ...good, outcome_id: foreign.outcomes[0] }] }],
        [40000, { quotes: [good], nothing: 1 }],
        [4040, { market_id: UNKNOWN_ID, quotes: [good] }],
        [42202, { quotes: [{ ...good, side: SELL }] }],
        [42901, { quotes: [{ ...good, quantity: 1_000_000_000 }] }],
      ],
      ({ market_id = market.id, ...body }) => user.request("PUT", `/quotes/${market_id}`, { body }),
      ({ market_id = market.id, ...data }) => socket.ask({ op: "quotes.replace", data: { market_id, ...data } }),
    );
    expect(await user.all("/orders")).toEqual([]);
  });

  test("scopes, tiers and connections without a token are refused as over REST", async () => {
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

  test("a repeated client order id is one order, whichever way it comes", async () => {
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
    // All at once: one places, the others are answered as it is.
    const own = new Client(world.server, owner.token, 8);
    const all = await Promise.all(
      Array.from({ length: 24 }, (_, n) =>
        n % 3 === 0 ? own.place(body(4)) : (n % 3 === 1 ? ours : packed).data<OrderJson>("order.place", body(4)),
      ),
    );
    own.close();
    expect(all).toEqual(all.map(() => all[0]));
    expect((await owner.all<OrderJson>("/orders?client_order_id=both-4")).map(({ id }) => id)).toEqual([all[0]!.id]);
    // In the end, after a cancel and an amend, it is still the first answer.
    await ours.data("order.amend", { id: first.id, price: 60 });
    await ours.data("order.cancel", { client_order_id: "both-1" });
    expect(await ours.data("order.place", body(1))).toEqual(first);
    await ours.data("order.cancel_all", {});
    for (const each of [ours, packed]) await each.close();
  });
});

/** Of each order that answers to operations name as placed: where the first such answer stands among all that came. */
function placedAt(socket: Socket): Map<number, number> {
  const placed = new Map<number, number>();
  socket.arrivals.forEach((message, at) => {
    if ("event" in message || message.code !== 0) return;
    const data = message.data as Partial<OrderJson & Results> | null;
    const orders = data?.results === undefined ? [data] : data.results.map((result) => result.data);
    for (const order of orders) {
      if (order?.status === "queued" && !placed.has(order.id!)) placed.set(order.id!, at);
    }
  });
  return placed;
}

/** Every order's answer stands before its first update, and a cancel-all's answer before the ends that it made. */
function expectAnswersFirst(socket: Socket): void {
  const placed = placedAt(socket);
  const updates = new Map<number, number[]>();
  socket.arrivals.forEach((message, at) => {
    if (!("event" in message) || message.event !== "order.updated") return;
    const { id } = message.data as OrderJson;
    updates.set(id, [...(updates.get(id) ?? []), at]);
  });
  const early = [...placed].filter(([id, at]) => (updates.get(id)?.[0] ?? -1) < at);
  expect(early, "orders without an update behind their answer").toEqual([]);
  socket.arrivals.forEach((message, at) => {
    if ("event" in message || message.code !== 0) return;
    const { order_ids: ids } = (message.data ?? {}) as { order_ids?: number[] };
    for (const id of ids ?? []) expect(updates.get(id)!.at(-1)).toBeGreaterThan(at);
  });
}

const isFinal = ({ status }: OrderJson): boolean => !["queued", "open", "partially_filled"].includes(status);

/** Each order's updates: states that only go forward, one final one at most, and nothing behind it. */
function expectStates(frames: readonly Frame<OrderJson>[]): void {
  const seen = new Map<number, OrderJson>();
  for (const { data } of frames) {
    const last = seen.get(data.id);
    if (last !== undefined && isFinal(last)) throw new Error(`order ${data.id} goes on after ${last.status}`);
    expect(data.filled).toBe((last?.filled ?? 0) + data.trades.reduce((sum, { quantity }) => sum + quantity, 0));
    seen.set(data.id, data);
  }
}

describe.each(variants([1], [3]))("many at a time, ENGINE_THREADS=%i", (threads) => {
  let world: World;
  let markets: readonly TestMarket[];
  beforeAll(async () => {
    world = await World.start({
      users: 12,
      named: { poor: { deposit: 10 * USDC } },
      markets: [2, 2, 3, 2],
      env: { ENGINE_THREADS: String(threads) },
    });
    markets = world.markets;
  });
  afterAll(() => ended(world));

  test("256 placements at once: 256 answers, orders in the order sent, each before its update", async () => {
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

  test("a cancel by client order id right behind its placement finds it", async () => {
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

  test("batches over several markets, those that wait for money too, are answered before their orders' updates", async () => {
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
    // Several such batches at once take the money from each other; whatever they come to, they end.
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

  test("random operations pipelined by two users who trade with each other", async () => {
    const random = Random.printed(`pipelined operations, ${threads} engine threads`);
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
        await each.settled();
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
});

describe("a restart", () => {
  test.each(["SIGTERM", "kill -9"])("by %s leaves orders and idempotency keys as they were", async (how) => {
    const world = await World.start({ users: 1, markets: [2] });
    const [user, market] = [world.user(), world.market()];
    const body = (n: number): object => terms(market, 0, BUY, 100 + n, 1, { client_order_id: `kept-${n}` });
    let socket = await world.socket(user);
    const first = await Promise.all([0, 1, 2].map((n) => socket.data<OrderJson>("order.place", body(n))));
    await socket.data("order.cancel", { client_order_id: "kept-1" });
    const listed = await user.all("/orders");
    await socket.settled();
    const sequence = socket.of("order.updated").at(-1)!.sequence;
    user.close();
    if (how === "SIGTERM") await world.server.stop();
    else await world.server.kill();
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
    await world.stop();
    expectSoundDatabase(world.server.dataDir);
  });
});
