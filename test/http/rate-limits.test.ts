/**
 * Rate limits of orders and market data, over real sockets: headers, rejections that cost nothing, one set of buckets for
 * REST and the WebSocket, by user and by address. Sign-in is rate-limits-identity.test.ts, settings are
 * rate-limit-settings.test.ts, the sliding window is rate-limiter.test.ts. The server trusts a proxy, and each test has its
 * own address.
 */
import { once } from "node:events";
import { connect } from "node:net";
import type { TObject } from "typebox";
import { afterAll, beforeAll, expect, test } from "vitest";
import { expectEndsWell } from "../support/checks.ts";
import { type Answer, Client, type OrderJson, ROUTES } from "../support/client.ts";
import { freshAddress } from "../support/identity.ts";
import { expectLimited, expectRate, type LimitsJson, rateOf } from "../support/rates.ts";
import { Socket } from "../support/socket.ts";
import { BUY, quote, terms } from "../support/terms.ts";
import { type TestMarket, tokenOf, World } from "../support/world.ts";
import { expectLimitedAck } from "./rate-expectations.ts";

const UNKNOWN_ID = 999_999_999;

let world: World;
let market: TestMarket;
beforeAll(async () => {
  world = await World.start({
    users: 40,
    named: { twice: { scopes: [["orders:write"], ["orders:write", "portfolio:read"]] } },
    env: { RATE_LIMITS: "on", TRUSTED_PROXIES: "127.0.0.1, 10.0.0.0/8" },
  });
  market = world.market();
});
afterAll(() => expectEndsWell(world));

/** Requests of one client from one address. */
class Caller {
  readonly client: Client;
  readonly from: string;

  constructor(client: Client, from: string) {
    this.client = client;
    this.from = from;
  }

  request<T = unknown>(method: string, path: string, body?: unknown): Promise<Answer<T>> {
    const headers = { "X-Forwarded-For": this.from };
    return this.client.request<T>(method, path, body === undefined ? { headers } : { headers, body });
  }

  place(more: object = {}): Promise<Answer<OrderJson>> {
    return this.request("POST", "/orders", { ...terms(market, 0, BUY, 100, 1), ...more });
  }

  socket(): Promise<Socket> {
    return Socket.open(world.server, this.client.token, { headers: { "X-Forwarded-For": this.from } });
  }

  async limits(): Promise<LimitsJson> {
    return (await this.request<LimitsJson>("GET", "/me/limits")).data;
  }
}

const caller = (from = freshAddress()): Caller => new Caller(world.user(), from);

async function remaining(of: Caller, route: string, scope: string): Promise<number> {
  const found = (await of.limits()).rate_limits.filter((each) => each.route === route && each.scope === scope);
  expect([route, scope, found.length]).toEqual([route, scope, 1]);
  return found[0]!.remaining;
}

test("every limited response shows the rest, success or error; an unlimited response shows none", async () => {
  const one = caller();
  const order = await one.place();
  expectRate(rateOf(order), 30, 29);
  expectRate(rateOf(await one.place({ price: 0 })), 30, 28);
  expectRate(rateOf(await one.place({ market_id: UNKNOWN_ID })), 30, 27);
  expectRate(rateOf(await one.place({ price: 9_999, quantity: 1_000_000_000 })), 30, 26);
  expectRate(rateOf(await one.request("DELETE", `/orders/${order.data.id}`)), 30, 29);
  expectRate(rateOf(await one.request("DELETE", "/orders/x")), 30, 28);
  expectRate(rateOf(await one.request("GET", "/markets")), 100, 99);
  expectRate(rateOf(await one.request("GET", `/markets/${market.id}`)), 100, 99);
  expectRate(rateOf(await one.request("GET", `/markets/${market.slug}`)), 100, 98);
  expectRate(rateOf(await one.request("GET", `/markets/${UNKNOWN_ID}`)), 100, 97);
  for (const path of ["/livez", "/readyz"]) expect(rateOf(await one.client.requestRoot("GET", path))).toBeNull();
  expect(rateOf(await one.request("GET", "/nothing"))).toBeNull();
  expect(rateOf(await one.request("DELETE", "/markets"))).toBeNull();
});

test("the 31st placement in a minute is refused, places nothing and costs nothing", async () => {
  const address = freshAddress();
  const [one, second, third] = [caller(address), caller(address), caller(address)];
  for (let n = 29; n >= 0; n--) expectRate(rateOf(await one.place()), 30, n);
  for (let n = 0; n < 12; n++) expectLimited(await one.place({ price: 200 }), 30);
  // A malformed placement counts before the server reads it, so the rejection is the same.
  expectLimited(await one.place({ price: 0 }), 30);
  const live = await one.request<{ items: OrderJson[] }>("GET", "/orders?limit=200");
  expect(live.data.items.map(({ price }) => price)).toEqual(Array(30).fill(100));
  // The address has exactly thirty more: rejections took none of them.
  for (let n = 29; n >= 0; n--) expectRate(rateOf(await second.place()), 30, n);
  expectLimited(await third.place(), 60);
  // A rejection by address takes nothing from the third user.
  expectRate(rateOf(await new Caller(third.client, freshAddress()).place()), 30, 29);
});

test("headers show the address's limit where it is the nearer one", async () => {
  const address = freshAddress();
  const [one, second] = [caller(address), caller(address)];
  for (let n = 0; n < 25; n++) await one.place();
  for (let n = 0; n < 20; n++) expectRate(rateOf(await second.place()), 30, 29 - n);
  const third = caller(address);
  expectRate(rateOf(await third.place()), 60, 14);
  expect(await remaining(third, "POST /orders", "user")).toBe(29);
  expect(await remaining(third, "POST /orders", "address")).toBe(14);
});

test("of requests all at once, exactly thirty pass", async () => {
  const one = caller();
  const wide = new Caller(new Client(world.server, one.client.token, 20), one.from);
  const answers = await Promise.all(Array.from({ length: 80 }, () => wide.place()));
  wide.client.close();
  expect(answers.filter(({ status }) => status === 202)).toHaveLength(30);
  for (const answer of answers.filter(({ status }) => status !== 202)) expectLimited(answer, 30);
  const passed = answers.filter(({ status }) => status === 202).map((answer) => rateOf(answer)!.remaining);
  expect(passed.sort((a, b) => a - b)).toEqual(Array.from({ length: 30 }, (_, n) => n));
});

test("REST and the WebSocket take from the same buckets, and each response counts down", async () => {
  const one = caller();
  const socket = await one.socket();
  const data = terms(market, 0, BUY, 100, 1);
  for (let n = 0; n < 15; n++) {
    expectRate((await socket.ask({ op: "order.place", data })).rate_limit, 30, 29 - 2 * n);
    expectRate(rateOf(await one.place()), 30, 28 - 2 * n);
  }
  expectLimitedAck(await socket.ask({ op: "order.place", data }), 30);
  expectLimited(await one.place(), 30);
  expect(await remaining(one, "POST /orders", "address")).toBe(30);
  // A second connection has the same buckets; pings don't count.
  const second = await one.socket();
  expectLimitedAck(await second.ask({ op: "order.place", data }), 30);
  for (let n = 0; n < 150; n++) expect((await second.ask({ op: "ping" })).code).toBe(0);
  for (const each of [socket, second]) await each.close();
  expect((await one.request<{ items: object[] }>("GET", "/orders?limit=200")).data.items).toHaveLength(30);
});

test("each operation counts on its REST route", async () => {
  const one = caller();
  const socket = await one.socket();
  const { id } = (await one.place()).data;
  const routes: [op: string, data: object, route: string][] = [
    ["order.place", terms(market, 0, BUY, 100, 1), "POST /orders"],
    ["order.amend", { id, price: 90 }, "PATCH /orders/:id"],
    ["order.cancel", { id }, "DELETE /orders/:id"],
    ["order.cancel_all", {}, "DELETE /orders"],
    ["order.batch", { operations: [{ op: "cancel", id }] }, "POST /orders/batch"],
    ["quotes.replace", { market_id: market.id, quotes: [] }, "PUT /quotes/:market_id"],
  ];
  for (const [op, data, route] of routes) {
    const before = await remaining(one, route, "user");
    const { code, rate_limit } = await socket.ask({ op, data });
    expect([op, code]).toEqual([op, 0]);
    expectRate(rate_limit, 30, before - 1);
    expect([op, await remaining(one, route, "user")]).toEqual([op, before - 1]);
  }
  await socket.close();
});

test("a malformed operation counts too, and its response shows the rest", async () => {
  const one = caller();
  const socket = await one.socket();
  const data = terms(market, 0, BUY, 100, 1);
  let left = 30;
  const found = [];
  for (const [what, operation] of [
    ["no data", { op: "order.place" }],
    ["a wrong price", { op: "order.place", data: { ...data, price: 0 } }],
    ["an unknown market", { op: "order.place", data: { ...data, market_id: UNKNOWN_ID } }],
    ["a wrong builder code", { op: "order.place", data, builder_code: "a b" }],
    ["data that is no object", { op: "order.place", data: [] }],
    ["an unknown field", { op: "order.place", data, nothing: 1 }],
    ["a builder code that is no text", { op: "order.place", data, builder_code: 1 }],
  ] as const) {
    const answer = await socket.ask(operation);
    expect([what, [40000, 4040].includes(answer.code)]).toEqual([what, true]);
    left--;
    if (answer.rate_limit?.remaining !== left) found.push([what, left, answer.rate_limit]);
  }
  expect(found).toEqual([]);
  await socket.close();
});

test("a batch is one request, and its route has its own bucket", async () => {
  const one = caller();
  const operations = Array.from({ length: 50 }, () => ({ op: "place", ...terms(market, 0, BUY, 100, 1) }));
  for (let n = 29; n >= 25; n--) {
    const answer = await one.request<{ results: { code: number }[] }>("POST", "/orders/batch", { operations });
    expectRate(rateOf(answer), 30, n);
    expect(answer.data.results.map(({ code }) => code)).toEqual(Array(50).fill(0));
  }
  expectRate(rateOf(await one.place()), 30, 29);
  const quotes = [quote(market, 1, BUY, 10, 1), quote(market, 1, BUY, 11, 1)];
  expectRate(rateOf(await one.request("PUT", `/quotes/${market.id}`, { quotes })), 30, 29);
});

test("ids in a path share one bucket, and methods of one path have their own", async () => {
  const one = caller();
  for (let n = 1; n <= 30; n++) expect((await one.request("DELETE", `/orders/${UNKNOWN_ID + n}`)).status).toBe(404);
  expectLimited(await one.request("DELETE", `/orders/${UNKNOWN_ID}`), 30);
  const order = await one.place();
  expectLimited(await one.request("DELETE", `/orders/${order.data.id}`), 30);
  expect((await one.request<OrderJson>("GET", `/orders/${order.data.id}`)).data.status).toBe("open");
  expectRate(rateOf(await one.request("PATCH", `/orders/${order.data.id}`, { price: 90 })), 30, 29);
  expectRate(rateOf(await one.request("DELETE", "/orders")), 30, 29);
  const socket = await one.socket();
  expectLimitedAck(await socket.ask({ op: "order.cancel", data: { id: order.data.id } }), 30);
  expectLimitedAck(await socket.ask({ op: "order.cancel", data: { client_order_id: "x" } }), 30);
  await socket.close();
});

test("all tokens of a user share one bucket", async () => {
  const [first, second] = [0, 1].map((index) => new Caller(world.client("twice", index), freshAddress()));
  for (let n = 0; n < 15; n++) for (const each of [first!, second!]) expect((await each.place()).status).toBe(202);
  for (const each of [first!, second!]) expectLimited(await each.place(), 30);
});

test("a request counts by user with a valid token, else by address, on public routes too", async () => {
  const address = freshAddress();
  const nobody = new Caller(world.anonymous(), address);
  const forged = new Caller(new Client(world.server, `${tokenOf("user0")}x`), address);
  for (let n = 99; n >= 50; n--) expectRate(rateOf(await nobody.request("GET", "/time")), 100, n);
  for (let n = 49; n >= 0; n--) expectRate(rateOf(await forged.request("GET", "/time")), 100, n);
  expectLimited(await nobody.request("GET", "/time"), 100);
  expectLimited(await forged.request("GET", "/time"), 100);
  expectRate(rateOf(await nobody.request("GET", "/markets")), 100, 99);
  expectRate(rateOf(await caller(address).request("GET", "/time")), 100, 99);
  expectRate(rateOf(await new Caller(world.anonymous(), freshAddress()).request("GET", "/time")), 100, 99);
  // A request without a valid token is rejected, and counts all the same.
  const refused = await forged.place();
  expect(refused.code).toBe(40100);
  expectRate(rateOf(refused), 100, 99);
  const anonymous = await nobody.socket();
  const answer = await anonymous.ask({ op: "order.place", data: terms(market, 0, BUY, 100, 1) });
  expect(answer.code).toBe(40100);
  expectRate(answer.rate_limit, 100, 98);
  await anonymous.close();
  forged.client.close();
});

test("the address is the right-most one that is not a trusted proxy's", async () => {
  const real = freshAddress();
  const from = (text: string): Caller => new Caller(world.anonymous(), text);
  const spoofed = [real, `9.9.9.9, ${real}`, `${freshAddress()},${real}`, `junk, ${real}`, `${real}, 10.1.2.3`, `${real}, 10.1.2.3, 127.0.0.1`]; // biome-ignore format: addresses
  for (const [n, text] of spoofed.entries()) {
    expect([text, rateOf(await from(text).request("GET", "/time"))!.remaining]).toEqual([text, 99 - n]);
  }
});

test("the last X-Forwarded-For line counts, which the proxy added, not the client's own line", async () => {
  const real = freshAddress();
  const left = [];
  for (let n = 0; n < 3; n++) {
    const lines = [
      "GET /api/v1/time HTTP/1.1",
      "Host: x",
      `X-Forwarded-For: ${freshAddress()}`,
      `X-Forwarded-For: ${real}`,
    ];
    const socket = connect(world.server.port, "127.0.0.1");
    socket.write(`${lines.join("\r\n")}\r\n\r\n`);
    const [answer] = (await once(socket, "data")) as [Buffer];
    left.push(/RateLimit-Remaining: (\d+)/i.exec(answer.toString())![1]);
    socket.destroy();
  }
  expect(left).toEqual(["99", "98", "97"]);
});

test("/me/limits shows every limited route with its scopes, and takes from its own bucket only", async () => {
  const one = caller();
  await one.place({ price: 100, quantity: 3 });
  await one.request("GET", "/markets");
  const first = await one.limits();
  expect(first.kyc_tier).toBe(2);
  expect(first.daily_activity).toEqual({ used: 100 * 100 * 3, limit: 10_000_000_000 });
  const expected = ROUTES.flatMap(({ method, path, access, rateClass, oauth, unversioned, body }) => {
    const route = `${method} ${path}`;
    // Only operators see operators' routes.
    if (access === "operator") return [];
    // A route that is also at the root has one bucket.
    if (rateClass === "none" || (unversioned && path.endsWith("jwks.json"))) return [];
    if (rateClass === "mail" || rateClass === "identifier") {
      // A second step names a challenge instead of an account.
      const isNamed = "email" in ((body as TObject | null)?.properties ?? {});
      return [...(isNamed ? [[route, "identifier", 10, 10]] : []), [route, "address", 100, 100]];
    }
    if (rateClass === "sign_up") {
      return [
        [route, "identifier", 10, 10],
        [route, "address", 20, 20],
      ];
    }
    if (rateClass === "refresh" || rateClass === "registration") return [[route, "address", 20, 20]];
    // These take a client's credentials instead of a user's token.
    if (oauth) return [[route, "address", 100, 100]];
    const left = ["POST /orders", "GET /markets", "GET /me/limits"].includes(route) ? 1 : 0;
    if (rateClass === "default") return [[route, "user", 100, 100 - left]];
    return [
      [route, "user", 30, 30 - left],
      [route, "address", 60, 60 - left],
    ];
  });
  const shown = ({ rate_limits }: LimitsJson): unknown[] =>
    rate_limits.map(({ route, scope, limit, remaining }) => [route, scope, limit, remaining]);
  expect(shown(first).sort()).toEqual(expected.sort());
  for (const { limit, remaining, reset } of first.rate_limits) {
    expect(remaining === limit ? reset === 0 : reset > 0 && reset <= 60).toBe(true);
  }
  const second = await one.limits();
  const own = (rows: unknown[]): unknown[] => rows.filter((row) => (row as unknown[])[0] !== "GET /me/limits");
  expect(own(shown(second))).toEqual(own(shown(first)));
  expect(await remaining(one, "GET /me/limits", "user")).toBe(97);
  // Another user at the same address sees the same bucket of the address.
  const other = caller(one.from);
  expect([await remaining(other, "POST /orders", "user"), await remaining(other, "POST /orders", "address")]).toEqual([30, 59]); // biome-ignore format: pair
});
