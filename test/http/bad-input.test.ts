/**
 * Everything that a client can get wrong, on every route of the table: tokens, scopes, methods, path ids, queries, bodies,
 * and bytes that are no request at all. Each gets the contract's code and message, never a 5xx, and leaves the exchange
 * unchanged.
 */
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { SCOPES } from "../../server/accounts/types.ts";
import { Listing } from "../../server/http/paging.ts";
import type { Route } from "../../server/http/route.ts";
import { BatchOperations } from "../../server/trading/schemas.ts";
import { eventually, expectBalanced, expectEndsWell } from "../support/checks.ts";
import { type Answer, API_BASE, type Client, type OrderJson, ROUTES } from "../support/client.ts";
import { PASSWORD, signIn } from "../support/identity.ts";
import { type TestMarket, tokenOf, World } from "../support/world.ts";
import { exchange, sendAndReset } from "./raw-connection.ts";
import { bodyLimitOf, bodyOf, TAKE_NOTHING } from "./route-bodies.ts";
import { deep, type ObjectSchema, textWith, wrongTexts, wrongValues } from "./wrong-values.ts";

let world: World;
let user: Client;
/** A session of an operator, for routes that take no personal access token. */
let owner: Client;
let anonymous: Client;
let market: TestMarket;
let before: unknown;
/** Of the resting order. */
const BUILDER_CODE = "resting-builder";

beforeAll(async () => {
  const without = SCOPES.map((scope) => SCOPES.filter((other) => other !== scope));
  const named = { scoped: { scopes: without }, owner: { password: PASSWORD, role: "operator" as const } };
  world = await World.start({ users: 1, markets: [2, 2], named });
  user = world.user();
  owner = (await signIn(world.server, "owner@example.com")).client;
  anonymous = world.anonymous();
  market = world.market();
  await world.split(user, market, 10);
  await user.request("POST", "/orders", {
    body: { ...bodyOf("/orders", market), client_order_id: "resting" },
    headers: { "X-Builder-Code": BUILDER_CODE },
  });
  await user.data("PUT", `/quotes/${market.id}`, {
    quotes: [{ outcome_id: market.outcomes[1], side: 1, price: 5, quantity: 2 }],
  });
  before = await state();
});
afterAll(async () => {
  await eventually(async () => expect(await state()).toEqual(before));
  await expectBalanced(anonymous);
  owner.close();
  await expectEndsWell(world);
});

/** Everything that a request could change. */
async function state(): Promise<unknown> {
  const { at: _, sequence: __, ...sums } = await anonymous.solvency();
  const orders = await user.all<OrderJson>("/orders?status=all");
  return [
    sums,
    await user.balance(),
    await user.all("/me/positions"),
    await user.all("/wallet/transactions"),
    orders.filter(({ client_order_id, price }) => client_order_id === "resting" || price === 5),
    await anonymous.get(`/builders/${BUILDER_CODE}/stats`),
    (await user.all("/orders")).length,
  ];
}

const withPrefix = ({ unversioned, path }: Route): string => (unversioned ? "" : API_BASE) + path;

/** The route's path with usable ids, or with `bad` in place of the `at`th. */
function pathOf(route: Route, at = -1, bad = ""): string {
  let n = 0;
  return withPrefix(route).replaceAll(/:(\w+)/g, (_, name: string) => {
    if (n++ === at) return bad;
    if (name === "code") return BUILDER_CODE;
    if (route.path === "/events/:id") return "event-0";
    return name === "outcome_id" ? String(market.outcomes[0]) : String(market.id);
  });
}

function send(client: Client, route: Route, path = pathOf(route), headers = {}): Promise<Answer> {
  const body = route.body === null ? {} : { body: bodyOf(route.path, market) };
  return client.requestRoot(route.method, path, { ...body, headers });
}

function sendBody(route: Route, body: unknown): Promise<Answer> {
  return callerOf(route).requestRoot(route.method, pathOf(route), { body });
}

function expectCode(answer: Answer, status: number, code: number, message: RegExp | string = /./): void {
  const text = typeof message === "string" ? expect.stringContaining(message) : expect.stringMatching(message);
  expect([answer.status, answer.code, answer.msg]).toEqual([status, code, text]);
}

const named = (routes: readonly Route[]) => routes.map((route) => [`${route.method} ${route.path}`, route] as const);
const guarded = ROUTES.filter(({ access }) => access !== "public");
/** A client that may use the route. */
const callerOf = ({ tokens }: Route): Client => (tokens.includes("pat") ? user : owner);
/** Without the forms of OAuth, which test/oauth/ tests. */
const withBody = ROUTES.filter(({ body, oauth }) => body !== null && !oauth);
/** Routes that reject unknown fields; the others accept what a standard or another server adds. */
const withOwnQuery = ROUTES.filter(({ query, oauth }) => {
  return !oauth && (query as { additionalProperties?: unknown }).additionalProperties === false;
});

describe("tokens", () => {
  test.for(named(guarded))("a token: %s", async ([, route]) => {
    const own = tokenOf("user0");
    for (const header of [null, "", "Bearer", "Bearer ", "Basic dTpw", "Token x", own, "Bearer nobody's"]) {
      const answer = await send(anonymous, route, undefined, header === null ? {} : { Authorization: header });
      expectCode(answer, 401, 40100);
      expect(answer.headers["www-authenticate"]).toMatch(/^Bearer/);
    }
    for (const token of [` ${own}`, `${own} x`, "x".repeat(3_000), "pm_pat_", "null", "%00"]) {
      expectCode(await send(anonymous, route, undefined, { Authorization: `Bearer ${token}` }), 401, 40100);
    }
    for (const [i, scope] of SCOPES.entries()) {
      // A route that takes either of two scopes is in replay.test.ts.
      if (route.scope !== scope || route.orScope !== null) continue;
      expectCode(await send(world.client("scoped", i), route), 403, 40300, scope);
    }
  });

  test("the case of a token's scheme doesn't matter", async () => {
    const headers = { Authorization: `bEARER ${user.token}` };
    expect(await anonymous.request("GET", "/wallet/balance", { headers })).toMatchObject({ status: 200 });
  });

  test("market data needs no token and ignores a bad one", async () => {
    // The market has no picture, and its day isn't over.
    const isOther = (path: string): boolean => /^\/(auth|oauth)\/|\/(pictures|history)\/:/.test(path);
    const isMarketData = ({ access, method, path }: Route): boolean => {
      return access === "public" && method === "GET" && !isOther(path);
    };
    for (const route of ROUTES.filter(isMarketData)) {
      const answer = await send(anonymous, route, undefined, { Authorization: "Bearer nobody's" });
      expect([route.path, answer.status]).toEqual([route.path, 200]);
    }
  });
});

describe("methods", () => {
  /** Paths that a template with an id matches too: it has the methods that they don't. */
  const BESIDE_IDS: Readonly<Record<string, string>> = {
    "/orders/batch": "/orders/:id",
    "/orders/cancel-after": "/orders/:id",
    "/me/second-factors/proof": "/me/second-factors/:id",
    "/me/second-factors/recovery-codes": "/me/second-factors/:id",
  };
  const paths = new Map<string, Route[]>();
  for (const route of ROUTES) paths.set(withPrefix(route), [...(paths.get(withPrefix(route)) ?? []), route]);

  test.for([...paths])("a method: %s", async ([, routes]) => {
    const methods = routes.flatMap(({ method }) => (method === "GET" ? ["GET", "HEAD"] : [String(method)]));
    const path = pathOf(routes[0]!);
    const ofIds = ROUTES.filter((route) => route.path === BESIDE_IDS[routes[0]!.path]);
    for (const method of ["GET", "POST", "PUT", "PATCH", "DELETE", "TRACE"]) {
      if (methods.includes(method)) continue;
      const ofId = ofIds.find((route) => route.method === method);
      if (ofId !== undefined) {
        expectCode(await send(callerOf(ofId), ofId, path), 404, 4040);
        continue;
      }
      const answer = await user.requestRoot(method, path);
      expectCode(answer, 405, 40500);
      expect(answer.headers.allow?.split(", ").sort()).toEqual([...methods].sort());
    }
  });

  /** Headers that differ from one response to the next. */
  const VARYING = ["date", "x-request-id"];

  test("HEAD is GET without the body, on every route and page, and on unknown paths", async () => {
    const routes = [...paths].filter(([, [route]]) => route!.method === "GET").map(([, [route]]) => pathOf(route!));
    const pages = ["/", "/docs", "/nothing", "/api/v1/nothing", "/api/v1/orders/batch", "/api/v1/auth/login"];
    for (const path of [...routes, ...pages]) {
      for (const accept of ["application/json", "application/msgpack", "text/html"]) {
        const headers = { Authorization: `Bearer ${user.token}`, Accept: accept };
        const got = await user.send("GET", path, headers, null);
        const asked = await user.send("HEAD", path, headers, null);
        // Counters and clocks change meanwhile, and a streamed file has no length.
        const isMoving = /\/metrics|\/solvency/.test(path) || got.headers["transfer-encoding"] !== undefined;
        const shown = ({ status, headers: all }: typeof got): unknown => {
          const kept = Object.entries(all).filter(([name]) => {
            return !VARYING.includes(name) && !(isMoving && /^(content-length|transfer-encoding)$/.test(name));
          });
          return [path, accept, status, Object.fromEntries(kept)];
        };
        expect(shown(asked)).toEqual(shown(got));
        if (!isMoving && got.status !== 304) expect(asked.headers["content-length"]).toBe(String(got.body.length));
        expect(asked.body).toHaveLength(0);
      }
    }
    expect(routes.length).toBeGreaterThan(40);
  });

  test("a response to HEAD has no body, so a client reads the next response correctly", async () => {
    const lines = ["HEAD /api/v1/time HTTP/1.1", "Host: x", "", "GET /api/v1/time HTTP/1.1", "Host: x", "", ""];
    const text = await exchange(world.server.port, lines.join("\r\n"), (got) => /"now":\d+\}\}$/.test(got));
    const [head, ...rest] = text.split(/(?=HTTP\/1\.1 )/);
    expect(rest).toHaveLength(1);
    expect(head).toMatch(/\r\n\r\n$/);
    expect(rest[0]).toMatch(/^HTTP\/1\.1 200 /);
  });

  test.for([
    ...["/api/v1", "/api/v1/", "/api/v1/nothing", "/api/v2/markets", "/api/v1/orders/", "/api/v1/orders/1/2"],
    ...["/nothing", "//api/v1/markets", "/api/v1//markets", "/API/V1/markets", "/api/v1/markets/1/trades/", "/.env"],
    ...["/api/v1/orders/%2e%2e/markets", "/api/v1/../../etc/passwd", "/%", "/api/v1/%ff"],
  ])("no such path: %s", async (path) => {
    for (const method of ["GET", "POST", "DELETE", "PUT"]) {
      expectCode(await user.requestRoot(method, path), 404, 4040);
    }
  });
});

describe("path ids", () => {
  const bad = [
    ...["0", "-1", "abc", "1e3", "1.0", "1.5", "+1", "01", "0x1", "%31", "1%20", "%201", "null", "NaN", "Infinity"],
    ...["9007199254740992", "9223372036854775808", "1".repeat(400), "__proto__", "constructor", "%00", "1%00", "''"],
    ...["%", "%zz", "..", "*", "1;", "1,2", "%c0%af", "a".repeat(300), "999999999"],
  ];
  const withId = ROUTES.filter(({ path }) => path.includes(":") && !path.endsWith("/callback"));
  test.for(named(withId))("an id in the path: %s", async ([, route]) => {
    const count = route.path.split(":").length - 1;
    for (let at = 0; at < count; at++) {
      for (const id of bad) expectCode(await send(callerOf(route), route, pathOf(route, at, id)), 404, 4040);
    }
  });

  test("an outcome of another market is not found in this one", async () => {
    const other = world.markets.find(({ id }) => id !== market.id)!;
    expectCode(await user.request("GET", `/orderbook/${market.id}/${other.outcomes[0]}`), 404, 4040);
    expect((await user.request("GET", `/orderbook/${other.id}/${other.outcomes[0]}`)).status).toBe(200);
  });
});

describe("queries", () => {
  test.for(named(withOwnQuery))("a query: %s", async ([, route]) => {
    const path = pathOf(route);
    const caller = callerOf(route);
    for (const name of ["nothing", "__proto__", "constructor", "toString", "limit%20", "a".repeat(200)]) {
      expectCode(await send(caller, route, `${path}?${name}=1`), 400, 40000, /unknown field/);
    }
    for (const [name, schema] of Object.entries((route.query as unknown as ObjectSchema).properties)) {
      for (const text of wrongTexts(schema)) {
        expectCode(await send(caller, route, `${path}?${name}=${encodeURIComponent(text)}`), 400, 40000, name);
      }
      expectCode(await send(caller, route, `${path}?${name}=1&${name}=1`), 400, 40000, `${name}: given twice`);
    }
  });

  test.for(named(ROUTES.filter(({ query }) => "cursor" in (query as unknown as ObjectSchema).properties)))(
    "a malformed cursor in a query: %s",
    async ([, route]) => {
      const encode = (value: unknown): string => Buffer.from(JSON.stringify(value)).toString("base64url");
      const values = [{}, [], ["1"], [1, 2, 3], [1.5], [null], [1e300], "x", null, { length: 1, 0: 1 }];
      for (const cursor of ["x", "%00", "%F0%9F", "W10", ...values.map(encode)]) {
        expectCode(await send(callerOf(route), route, `${pathOf(route)}?cursor=${cursor}`), 400, 40000, "cursor");
      }
      const empty = await send(callerOf(route), route, `${pathOf(route)}?cursor=`);
      expect([empty.status, empty.msg]).toEqual([400, "cursor: must not be empty"]);
      const another = new Listing("/another", {});
      for (const cursor of [another.cursor(1), another.cursor(1, 2)]) {
        expectCode(await send(callerOf(route), route, `${pathOf(route)}?cursor=${cursor}`), 400, 40000, "cursor");
      }
    },
  );

  test("a query's range that ends before it starts", async () => {
    expectCode(await user.request("GET", "/wallet/transactions?from=2&to=1"), 400, 40000, "from");
  });
});

describe("bodies", () => {
  test.for(named(withBody))("a body of %s: no JSON object", async ([, route]) => {
    const good = JSON.stringify(bodyOf(route.path, market));
    const bad: (string | Buffer)[] = [
      ...["", " ", "{", "}", good.slice(0, -1), `${good}x`, `${good}{}`, "{'a':1}", "{a:1}", "undefined", "NaN"],
      ...["[]", `[${good}]`, "null", "true", "1", '"x"', "{}", deep("[", "]", 30_000), deep('{"a":', "}", 5_000)],
      ...[`/* */${good}`, good.replaceAll('"', "\u201c"), "\u0000", `\u0000${good}`, good.replace(":", ":0")],
      Buffer.concat([Buffer.from('{"market_id":"'), Buffer.from([0xc3, 0x28]), Buffer.from('"}')]),
      Buffer.from([0xff, 0xfe, 0x7b, 0x00]),
      Buffer.from(good, "utf16le"),
    ];
    for (const body of bad.filter(({ length }) => length <= bodyLimitOf(route))) {
      if (["", "{}"].includes(String(body)) && TAKE_NOTHING.includes(route.path)) {
        const path = pathOf(route, 0, "999999999");
        expectCode(await callerOf(route).requestRoot(route.method, path, { body }), 404, 4040);
        continue;
      }
      expectCode(await sendBody(route, body), 400, 40000);
    }
  });

  test.for(named(withBody))("a body of %s: wrong content types", async ([, route]) => {
    const form = "application/x-www-form-urlencoded";
    const wrong = ["text/plain", form, "application/jsonx", "json", "multipart/form-data"];
    for (const type of wrong) {
      expectCode(
        await send(callerOf(route), route, pathOf(route), { "Content-Type": type }),
        400,
        40000,
        "Content-Type",
      );
    }
  });

  test.for(named(withBody))("a body of %s: unknown and missing fields", async ([, route]) => {
    const good = bodyOf(route.path, market);
    for (const name of ["nothing", "__proto__", "constructor", "prototype", "hasOwnProperty", "id", "", "Price", "ü"]) {
      for (const value of ["1", "null", '{"price":1}']) {
        const body = textWith(good, name, value);
        expectCode(await sendBody(route, body), 400, 40000, /unknown field/);
      }
    }
    const many = Object.fromEntries(Array.from({ length: bodyLimitOf(route) >> 5 }, (_, i) => [`field${i}`, i]));
    const crowd = JSON.stringify({ ...good, ...many });
    expectCode(await sendBody(route, crowd), 400, 40000, /unknown field/);
    for (const name of (route.body as unknown as ObjectSchema).required ?? []) {
      const { [name]: _, ...rest } = good;
      const answer = await sendBody(route, rest);
      expectCode(answer, 400, 40000, `${name}: required`);
    }
    expect(({} as Record<string, unknown>)["price"]).toBeUndefined();
  });

  test.for(named(withBody))("a body of %s: each field with wrong values", async ([, route]) => {
    const good = bodyOf(route.path, market);
    for (const [name, schema] of Object.entries((route.body as unknown as ObjectSchema).properties)) {
      for (const value of wrongValues(schema)) {
        const answer = await sendBody(route, textWith(good, name, value));
        expect([value, answer.status, answer.code]).toEqual([value, 400, 40000]);
        expect(answer.msg).toContain(name);
      }
    }
  });

  test("a body of a quote: each field with wrong values", async () => {
    const { quotes } = bodyOf("/quotes/:market_id", market) as { quotes: [Record<string, unknown>] };
    const route = ROUTES.find(({ path }) => path === "/quotes/:market_id")!;
    const { items } = (route.body as unknown as ObjectSchema).properties["quotes"]!;
    expect(Object.keys(items!.properties)).toEqual(Object.keys(quotes[0]));
    for (const [name, schema] of Object.entries(items!.properties)) {
      const missing = JSON.stringify({ ...quotes[0], [name]: undefined });
      const bodies = [missing, ...wrongValues(schema).map((value) => textWith(quotes[0], name, value))];
      for (const wrong of bodies) {
        // Good quotes around it change nothing.
        const body = `{"quotes":[${JSON.stringify(quotes[0])},${wrong},${JSON.stringify(quotes[0])}]}`;
        expectCode(await user.requestRoot("PUT", pathOf(route), { body }), 400, 40000, name);
      }
    }
    const body = { quotes: [{ ...quotes[0], client_order_id: "x" }] };
    expectCode(await user.requestRoot("PUT", pathOf(route), { body }), 400, 40000, /unknown field/);
  });

  test.for(Object.entries(BatchOperations))(
    "a body of %s in a batch: each field with wrong values",
    async ([op, given]) => {
      const { properties, required = [] } = given as unknown as ObjectSchema;
      const good: Record<string, unknown> = {
        op,
        ...(op === "place" ? bodyOf("/orders", market) : { id: 999_999_999 }),
      };
      if (op === "amend") good["price"] = 11;
      const wrong: [name: string, operation: string][] = required.map((name) => {
        return [name, JSON.stringify({ ...good, [name]: undefined })];
      });
      for (const [name, schema] of Object.entries(properties)) {
        for (const value of wrongValues(schema)) wrong.push([name, textWith(good, name, value)]);
      }
      for (const name of ["nothing", "__proto__", "constructor", "operations", "", "Op"]) {
        wrong.push(["unknown field", textWith(good, name, "1")]);
      }
      expect(wrong.length).toBeGreaterThan(20);
      for (let at = 0; at < wrong.length; at += 50) {
        const some = wrong.slice(at, at + 50);
        const body = `{"operations":[${some.map(([, operation]) => operation).join(",")}]}`;
        type Results = { results: { code: number; msg: string; data: null }[] };
        const { status, data } = await user.request<Results>("POST", "/orders/batch", { body });
        expect([status, data.results.length]).toEqual([202, some.length]);
        for (const [i, { code, msg, data: order }] of data.results.entries()) {
          const [name, operation] = some[i]!;
          expect([operation, code, msg, order]).toEqual([operation, 40000, expect.stringContaining(name), null]);
        }
      }
    },
  );

  test("a body that is compressed, or in another encoding: the message names the header", async () => {
    const body = JSON.stringify(bodyOf("/orders", market));
    const wrong: [headers: Record<string, string>, message: string][] = [
      [{ "Content-Encoding": "gzip" }, "Content-Encoding: a body must not be compressed"],
      [{ "Content-Encoding": "identity, br" }, "Content-Encoding: a body must not be compressed"],
      [{ "Content-Type": "application/json; charset=utf-16" }, "Content-Type: charset must be utf-8"],
      [{ "Content-Type": 'application/json;charset="ISO-8859-1"' }, "Content-Type: charset must be utf-8"],
    ];
    for (const [headers, message] of wrong) {
      expectCode(await user.request("POST", "/orders", { body, headers }), 400, 40000, message);
    }
    for (const headers of [
      { "Content-Encoding": "identity" },
      { "Content-Type": 'application/json; charset="UTF-8"' },
    ]) {
      const { status, data } = await user.request<OrderJson>("POST", "/orders", { body, headers });
      expect(status).toBe(202);
      await user.cancel(data.id);
    }
    expect((await user.request("GET", "/time", { headers: { "Content-Encoding": "gzip" } })).status).toBe(200);
  });

  describe("on routes that take none", () => {
    const withoutBody = ROUTES.filter(({ body }) => body === null);
    const json = { "Content-Type": "application/json" };
    const bodies: [name: string, body: string | Buffer, headers: Record<string, string>][] = [
      ["a filter", '{"market_id":2}', json],
      ["a list", "[1]", json],
      ["broken JSON", '{"id":', json],
      ["null", "null", json],
      ["text", "all of them", { "Content-Type": "text/plain" }],
      ["a form", "id=7", { "Content-Type": "application/x-www-form-urlencoded" }],
      ["without a type", '{"dry_run":true}', {}],
      ["MessagePack", Buffer.from([0x81, 0xa2, 0x69, 0x64, 1]), { "Content-Type": "application/msgpack" }],
      ["chunks", '{"all":true}', { ...json, "Transfer-Encoding": "chunked" }],
      ["a long one", " ".repeat(50_000), json],
    ];

    /** The status and the text of the response: some of these routes have no envelope. */
    const ask = async (
      route: Route,
      body: string | Buffer | null,
      headers = {},
    ): Promise<[status: number, text: string]> => {
      const client = callerOf(route);
      const all = { Authorization: `Bearer ${client.token}`, Accept: "application/json", ...headers };
      const answer = await client.send(route.method, pathOf(route), all, body);
      return [answer.status, answer.body.toString()];
    };

    test.for(named(withoutBody))("%s, which takes no body, rejects any, and does nothing", async ([, route]) => {
      for (const [name, body, headers] of bodies) {
        expect([name, ...(await ask(route, body, headers))]).toEqual([
          name,
          400,
          expect.stringContaining("takes none"),
        ]);
      }
    });

    test.for(named(withoutBody.filter(({ method }) => method === "GET")))(
      "%s, which takes no body, accepts {}",
      async ([, route]) => {
        const [status] = await ask(route, null);
        for (const body of ["{}", " { }\n", Buffer.from([0x80])]) {
          expect([body, (await ask(route, body))[0]]).toEqual([body, status]);
        }
      },
    );

    test("DELETE accepts {} as body", async () => {
      const place = async (): Promise<number> => (await user.place(bodyOf("/orders", market) as never)).id;
      for (const body of ["{}", "", "{ }"]) {
        expect(await user.request("DELETE", `/orders/${await place()}`, { body })).toMatchObject({ status: 202 });
      }
    });
  });

  test("unusual but valid JSON is accepted in a body: 10.0 and 1e1 for 10, spaces, escapes, a charset, capital letters", async () => {
    const good = JSON.stringify({ ...bodyOf("/orders", market), client_order_id: "odd" });
    const bodies = [
      good.replace('"price":10', '"price":10.0'),
      good.replace('"price":10', '"price":1e1'),
      good.replace('"odd"', '"\\u006fdd"'),
      ` \n\t${good}\r\n`,
      good.padEnd(65_536, " "),
    ];
    const ids = new Set<number>();
    for (const body of bodies) {
      for (const type of ["application/json", "application/json; charset=utf-8", "APPLICATION/JSON"]) {
        const options = { body, headers: { "Content-Type": type } };
        const { status, data } = await user.request<OrderJson>("POST", "/orders", options);
        expect([body.trim(), status]).toEqual([body.trim(), 202]);
        ids.add(data.id);
      }
    }
    expect(ids.size).toBe(1);
    for (const id of ids) await user.cancel(id);
  });

  test("of a key that is in a body twice, the last value counts, as documented", async () => {
    const good = JSON.stringify({ ...bodyOf("/orders", market), price: 12 });
    const body = good
      .replace("{", '{"price":11,"client_order_id":"first",')
      .replace(/}$/, ',"client_order_id":"twice"}');
    const { status, data } = await user.request<OrderJson>("POST", "/orders", { body });
    expect([status, data.price, data.client_order_id]).toEqual([202, 12, "twice"]);
    await user.cancel(data.id);
  });

  describe.for(named(withBody))("%s: more than 64 KiB", ([, route]) => {
    test.for([65_537, 100_000, 2_000_000])("a body of more than 64 KiB: %i bytes", async (size) => {
      const body = JSON.stringify(bodyOf(route.path, market)).padEnd(size, " ");
      for (const headers of [{}, { "Transfer-Encoding": "chunked" }] as Record<string, string>[]) {
        try {
          const answer = await callerOf(route).requestRoot(route.method, pathOf(route), { body, headers });
          expectCode(answer, 413, 40000);
        } catch (error) {
          // A client that still writes a large body to a closed connection may be unable to read the response.
          if (size < 1_000_000) throw error;
          expect((error as NodeJS.ErrnoException).code).toMatch(/^(EPIPE|ECONNRESET)$/);
        }
      }
    });
  });

  test("a body in chunks is accepted like one in a single piece", async () => {
    const body = JSON.stringify({ ...bodyOf("/orders", market), client_order_id: "chunked" });
    const headers = { "Transfer-Encoding": "chunked" };
    const { data, status } = await user.request<OrderJson>("POST", "/orders", { body, headers });
    expect(status).toBe(202);
    await user.cancel(data.id);
    const other = body.replace("chunked", "bit-by-bit");
    const head = `POST /api/v1/orders HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ${user.token}\r\nContent-Length: `;
    const text = await exchange(
      world.server.port,
      [`${head}${other.length}\r\n\r\n`, ...other].map(String),
      (got) => got.endsWith("}") && got.includes("202 Accepted"),
    );
    const { id } = (JSON.parse(text.split("\r\n\r\n")[1]!) as { data: OrderJson }).data;
    await user.cancel(id);
  });

  test("an unread body, and a rejected one, don't disturb the next request", async () => {
    for (let i = 0; i < 3; i++) {
      const body = JSON.stringify({ padding: "x".repeat(20_000) });
      expectCode(await user.request("GET", "/time", { body }), 400, 40000, "takes none");
      expectCode(await user.request("POST", "/nothing", { body }), 404, 4040);
      expectCode(await user.request("POST", "/markets", { body }), 405, 40500);
      expectCode(await anonymous.request("POST", "/orders", { body }), 401, 40100);
      expect((await user.request("GET", "/time")).status).toBe(200);
    }
  });
});

describe("request ids", () => {
  test("a valid request id is echoed, any other is replaced", async () => {
    for (const id of ["a", "x".repeat(64), "Az09._-"]) {
      const { headers } = await user.send("GET", "/api/v1/time", { "X-Request-Id": id }, null);
      expect(headers["x-request-id"]).toBe(id);
    }
    const made = new Set<unknown>();
    for (const id of ["", "x".repeat(65), "a b", "a\tb", "\u00fc", "!~#", "<b>", "a;b"]) {
      const { headers } = await user.send("GET", "/api/v1/time", { "X-Request-Id": id }, null);
      expect(headers["x-request-id"]).toMatch(/^[A-Za-z0-9._-]{1,64}$/);
      made.add(headers["x-request-id"]);
    }
    expect(made.size).toBe(8);
  });
});

describe("bytes", () => {
  const requests: [string, string][] = [
    ["no HTTP", "hello\r\n\r\n"],
    ["binary", "\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03"],
    ["no version", "GET /api/v1/time\r\n\r\n"],
    ["an unknown version", "GET /api/v1/time HTTP/9.9\r\nHost: x\r\n\r\n"],
    ["no path", "GET  HTTP/1.1\r\nHost: x\r\n\r\n"],
    ["a header without a colon", "GET /api/v1/time HTTP/1.1\r\nHost x\r\n\r\n"],
    ["a header of 100 KB", `GET /api/v1/time HTTP/1.1\r\nHost: x\r\nX: ${"x".repeat(100_000)}\r\n\r\n`],
    ["a path of 100 KB", `GET /${"x".repeat(100_000)} HTTP/1.1\r\nHost: x\r\n\r\n`],
    ["500 headers", `GET /api/v1/time HTTP/1.1\r\nHost: x\r\n${"X: 1\r\n".repeat(500)}\r\n`],
    ["a negative length", "POST /api/v1/orders HTTP/1.1\r\nHost: x\r\nContent-Length: -1\r\n\r\n"],
    ["a length that is no number", "POST /api/v1/orders HTTP/1.1\r\nHost: x\r\nContent-Length: x\r\n\r\n"],
    ["a length beyond all", `POST /api/v1/orders HTTP/1.1\r\nHost: x\r\nContent-Length: ${"9".repeat(30)}\r\n\r\n`],
    ["two lengths", "POST /api/v1/orders HTTP/1.1\r\nHost: x\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nab"],
    ["a chunk of no size", "POST /api/v1/orders HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\nab\r\n"],
  ];

  test.for(requests)(
    "bytes that are no request: %s: refused or closed, never a 5xx other than 505",
    async ([, bytes]) => {
      const text = await exchange(world.server.port, bytes, (got) => got.includes("\r\n\r\n"), true);
      expect(text).not.toMatch(/^HTTP\/1\.1 (50[0-4])/);
      expect(await user.request("GET", "/time")).toMatchObject({ status: 200 });
    },
  );

  test("clients that disconnect amid a request, or before its response, harm nobody", async () => {
    const body = JSON.stringify({ ...bodyOf("/orders", market), time_in_force: "ioc" });
    const head = `POST /api/v1/orders HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ${user.token}\r\n`;
    const placing = `${head}Content-Length: ${body.length}\r\n\r\n${body}`;
    const reading = `GET /api/v1/me/fills HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ${user.token}\r\n\r\n`;
    for (const bytes of [placing.slice(0, 20), placing.slice(0, -5), placing, reading]) {
      for (let i = 0; i < 20; i++) await sendAndReset(world.server.port, bytes);
    }
    // The orders that were placed have ended: they are immediate or cancel.
    expect(await user.request("GET", "/time")).toMatchObject({ status: 200 });
  });
});
