/**
 * Idempotency-Key on every route that may create something: where it is honored, a repeat gets the first response, also
 * after a restart and after what it made has changed; on POST /orders it stands for the client_order_id; where it can't
 * be honored, the response names what to use instead, and nothing has happened. The last test restarts the server.
 */
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { expectBalanced, expectEndsWell } from "../support/checks.ts";
import { type Answer, type Client, type MarketJson, type OrderJson, ROUTES } from "../support/client.ts";
import { rowsOf } from "../support/data-dir.ts";
import { Guests, PASSWORD } from "../support/identity.ts";
import { pack } from "../support/packed.ts";
import { BUY, terms } from "../support/terms.ts";
import { expectRefused, post } from "../support/trading.ts";
import { PUBLIC_URL, type TestMarket, USDC, World } from "../support/world.ts";
import { bodyOf } from "./route-bodies.ts";

let world: World;
let session: Client;
let operator: Client;
let proposer: Client;
let market: TestMarket;
const guests = new Guests();
beforeAll(async () => {
  const named = {
    owner: { password: PASSWORD },
    boss: { password: PASSWORD, role: "operator" },
    proposer: {},
  } as const;
  world = await World.start({ users: 8, named, markets: [2], env: { PUBLIC_URL } });
  market = world.market();
  ({ session, operator, proposer } = await clients());
});
afterAll(async () => {
  await expectBalanced(world.anonymous());
  guests.close();
  await expectEndsWell(world);
});

const clients = async () => ({
  session: (await guests.signIn(world.server, "owner@example.com")).client,
  operator: (await guests.signIn(world.server, "boss@example.com")).client,
  proposer: world.client("proposer"),
});

const keyed = (client: Client, path: string, key: string, body: object): Promise<Answer> =>
  client.request("POST", path, { body, headers: { "Idempotency-Key": key } });
const count = (table: string): number => rowsOf(world.server.dataDir, `SELECT 1 FROM ${table}`).length;

const CLOSES_AT = Date.now() + 86_400_000;
const POSTS = ROUTES.filter(({ method }) => method === "POST");

test("every POST honors a key, is harmless to repeat, or refuses it", () => {
  const honoring = POSTS.filter(({ idempotencyKey }) => idempotencyKey === "kept").map(({ path }) => path);
  expect(honoring.sort()).toEqual([
    "/admin/events",
    "/admin/markets",
    "/markets/proposals",
    "/wallet/merge",
    "/wallet/split",
    "/wallet/withdrawals",
  ]);
  // What creates something is never harmless to repeat.
  const creating = POSTS.filter(({ status, idempotencyKey }) => status === 201 && idempotencyKey === "harmless");
  expect(creating.map(({ path }) => path)).toEqual([]);
});

describe("where it can't be honored", () => {
  const refusing = POSTS.filter(({ idempotencyKey, oauth }) => typeof idempotencyKey === "object" && !oauth);
  const TABLES = ["personal_access_tokens", "oauth_clients", "entries", "users", "sessions", "identity_applications"];

  test.each(refusing.map((route) => [route.path, route] as const))(
    "where an idempotency key can't be honored, POST %s says what to use",
    async (path, route) => {
      const client = route.access === "operator" ? operator : session;
      const before = TABLES.map(count);
      const body = route.body === null ? {} : bodyOf(path, market);
      const text = /^Idempotency-Key: this path honors none: .{20,}/;
      await expectRefused(keyed(client, path.replace(":id", "1"), "key-1", body), 400, 40000, text);
      expect(TABLES.map(count)).toEqual(before);
    },
  );

  test("the token endpoint says in OAuth's form what to use instead of an idempotency key", async () => {
    const headers = { "Idempotency-Key": "k", "Content-Type": "application/x-www-form-urlencoded" };
    const { status, body } = await session.send(
      "POST",
      "/api/v1/oauth/token",
      headers,
      "grant_type=authorization_code",
    );
    expect([status, JSON.parse(body.toString())]).toEqual([
      400,
      { error: "invalid_request", error_description: expect.stringMatching(/^Idempotency-Key: /) },
    ]);
  });
});

describe("on POST /orders", () => {
  test("the idempotency key of POST /orders is the client_order_id where the body has none: a repeat places nothing", async () => {
    const user = world.user();
    const body = terms(market, 0, BUY, 5_000, 4);
    const first = await post(user, body, { "Idempotency-Key": "first-1" });
    expect([first.status, first.data.client_order_id]).toEqual([202, "first-1"]);
    expect((await post(user, body, { "Idempotency-Key": "first-1" })).data).toEqual(first.data);
    expect((await post(user, { ...body, client_order_id: "first-1" })).data).toEqual(first.data);
    const packed = { "Idempotency-Key": "first-1", "Content-Type": "application/msgpack" };
    const again = await user.request<OrderJson>("POST", "/orders", { body: pack(body), headers: packed });
    expect(again.data).toEqual(first.data);
    await expectRefused(post(user, { ...body, quantity: 5 }, { "Idempotency-Key": "first-1" }), 409, 40900);
    expect((await user.all<OrderJson>("/orders?status=all")).map(({ id }) => id)).toEqual([first.data.id]);
    expect((await user.data<OrderJson>("DELETE", "/orders/by-client-id/first-1")).id).toBe(first.data.id);
  });

  test("the body's client_order_id counts where there is an idempotency key as well", async () => {
    const user = world.user();
    const body = terms(market, 0, BUY, 5_000, 4, { client_order_id: "own" });
    const first = await post(user, body, { "Idempotency-Key": "a.b:c/not-a-client-id" });
    expect(first.data.client_order_id).toBe("own");
    expect((await post(user, body, { "Idempotency-Key": "other" })).data).toEqual(first.data);
  });

  test("an idempotency key that can't be a client_order_id places nothing", async () => {
    const user = world.user();
    const body = terms(market, 0, BUY, 5_000, 4);
    const text = /^Idempotency-Key: stands for the client_order_id here, and must match/;
    for (const key of ["a/b", "{}", `${"x".repeat(63)}~`]) {
      await expectRefused(post(user, body, { "Idempotency-Key": key }), 400, 40000, text);
    }
    await expectRefused(
      post(user, body, { "Idempotency-Key": "a b" }),
      400,
      40000,
      /^Idempotency-Key: 1 to 64 visible/,
    );
    expect(await user.all("/orders?status=all")).toEqual([]);
  });
});

describe("markets, proposals and events", () => {
  /** The routes with a client, a body and another body. */
  const cases = (): [path: string, Client, body: object, other: object][] => [
    ["/markets/proposals", proposer, { question: "Proposed?", outcomes: ["Yes", "No"] }, { question: "Other?" }],
    ["/admin/markets", operator, { question: "Made?", outcomes: ["A", "B", "C"], category: "x" }, { category: "y" }],
    ["/admin/events", operator, { slug: "made", title: "Made up", closes_at: CLOSES_AT }, { title: "Other" }],
  ];
  const first = new Map<string, unknown>();

  test("requests for markets, proposals and events at once with one key are one; repeats get its response, and another body 40900", async () => {
    for (const [path, client, body, other] of cases()) {
      const [markets, events] = [count("markets"), count("events")];
      const answers = await Promise.all(Array.from({ length: 4 }, () => keyed(client, path, path, body)));
      first.set(path, answers[0]!.data);
      for (const { msg, status, data } of answers)
        expect([path, msg, status, data]).toEqual([path, "ok", 201, first.get(path)]);
      expect([path, count("markets") + count("events")]).toEqual([path, markets + events + 1]);
      const shown = path === "/admin/events" ? "/events/made" : `/markets/${(answers[0]!.data as MarketJson).id}`;
      const reader = path === "/markets/proposals" ? null : await client.request("GET", shown);
      if (reader !== null) expect(reader.data).toEqual(first.get(path));
      await expectRefused(keyed(client, path, path, { ...body, ...other }), 409, 40900, /another request/);
    }
  });

  test("a rejected request for a market, proposal or event leaves its key free", async () => {
    const late = { question: "Late?", outcomes: ["Yes", "No"], closes_at: 1 };
    await expectRefused(keyed(operator, "/admin/markets", "late", late), 400, 40000, /closes_at/);
    expect((await keyed(operator, "/admin/markets", "late", { ...late, closes_at: null })).status).toBe(201);
  });

  test("a repeat for a market, proposal or event gets the first response after a restart, whatever became of what it made", async () => {
    const { id } = first.get("/markets/proposals") as MarketJson;
    await operator.data("POST", `/admin/proposals/${id}/approve`, {});
    const made = first.get("/admin/markets") as MarketJson;
    await operator.data("PATCH", `/admin/markets/${made.id}`, { category: "z", description: "Changed" });
    const buyer = world.user();
    await buyer.place({ market_id: made.id, outcome_id: made.outcomes[0]!.id, side: BUY, price: 100, quantity: USDC });
    await operator.data("POST", "/admin/markets", { question: "In it?", outcomes: ["Yes", "No"], event_id: 1 });
    for (const isRestarted of [false, true]) {
      if (isRestarted) {
        await world.server.stop();
        world.server = await world.server.restart();
        ({ operator, proposer } = await clients());
      }
      for (const [path, client, body] of cases()) {
        const { status, data } = await keyed(client, path, path, body);
        expect([isRestarted, path, status, data]).toEqual([isRestarted, path, 201, first.get(path)]);
      }
    }
  });
});
