/**
 * What pages of other origins may do: read public data and call with their own token, but not use sessions.
 * support/client.ts checks that every response carries the policy; this file adds responses that no other test requests,
 * preflights, and a server behind HTTPS.
 */
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { Route } from "../../server/http/route.ts";
import { expectEndsWell } from "../support/checks.ts";
import { API_BASE, type Client, expectPolicy, type RawAnswer, ROUTES } from "../support/client.ts";
import { PASSWORD } from "../support/identity.ts";
import { tokenOf, World } from "../support/world.ts";

const OWN = "https://exchange.test";
const FOREIGN = "https://evil.example";

let world: World;
let anonymous: Client;
let user: Client;
beforeAll(async () => {
  // Few requests exceed a user's limit; the other limits are out of reach.
  const limits = JSON.stringify({ user: 3, address: 1_000, auth_identifier: 1_000 });
  const env = { PUBLIC_URL: OWN, RATE_LIMITS: limits };
  world = await World.start({ users: 1, named: { owner: { password: PASSWORD } }, markets: [2], env });
  anonymous = world.anonymous();
  user = world.user();
});
afterAll(() => expectEndsWell(world));

function send(method: string, path: string, headers: Record<string, string>, body: object | null = null) {
  const bytes = body === null ? null : Buffer.from(JSON.stringify(body));
  const type: Record<string, string> = body === null ? {} : { "Content-Type": "application/json" };
  return anonymous.send(method, path, { ...type, ...headers }, bytes);
}

const pathOf = (route: Route): string => {
  return (route.unversioned ? "" : API_BASE) + route.path.replaceAll(/:\w+/g, "1");
};
const withPrefix = (route: Route): string => (route.unversioned ? "" : API_BASE) + route.path;

describe("responses carry the policy", () => {
  const bearer = { Authorization: `Bearer ${tokenOf("user0")}` };
  const place = { market_id: 1, outcome_id: 1, side: 1, price: 10, quantity: 1 };
  const cases: readonly (readonly [number, string, string, Record<string, string>, (object | null)?])[] = [
    [200, "GET", "/api/v1/time", {}],
    [200, "GET", "/livez", {}],
    [200, "GET", "/metrics", {}],
    [200, "GET", "/.well-known/jwks.json", {}],
    [200, "GET", "/api/v1/wallet/transactions", { ...bearer, Accept: "text/csv" }],
    [202, "POST", "/api/v1/orders", bearer, place],
    [200, "GET", "/api/v1/markets", { Accept: "application/msgpack" }],
    [400, "POST", "/api/v1/orders", bearer, { ...place, side: 3 }],
    [401, "GET", "/api/v1/me", {}],
    [403, "POST", "/api/v1/me/personal-access-tokens", bearer, { name: "x", scopes: ["orders:write"] }],
    [404, "GET", "/nothing", {}],
    [405, "PUT", "/api/v1/time", {}],
    [200, "HEAD", "/api/v1/time", {}],
    [413, "POST", "/api/v1/orders", bearer, { padding: "x".repeat(70_000) }],
  ];
  test.for(cases)(
    "the response carries the policy: %i to %s %s",
    async ([status, method, path, headers, body = null]) => {
      const raw = await send(method, path, headers, body);
      expect(raw.status).toBe(status);
      expectPolicy(
        ROUTES.find((route) => route.method === method && pathOf(route) === path),
        raw,
      );
      expect(raw.headers["strict-transport-security"]).toBe("max-age=31536000");
    },
  );

  test("a 429 carries the policy, with the remaining limit", async () => {
    let raw: RawAnswer;
    do raw = await send("GET", "/api/v1/me/fills", bearer);
    while (raw.status === 200);
    expect(raw.status).toBe(429);
    expectPolicy(undefined, raw);
    const exposed = String(raw.headers["access-control-expose-headers"]).split(", ");
    const names = Object.keys(raw.headers).filter((name) => /^(ratelimit-.*|retry-after|x-request-id)$/.test(name));
    expect(names).toHaveLength(5);
    expect(exposed.map((name) => name.toLowerCase())).toEqual(expect.arrayContaining(names));
  });
});

describe("preflights", () => {
  const paths = new Map<string, Route[]>();
  for (const route of ROUTES) paths.set(withPrefix(route), [...(paths.get(withPrefix(route)) ?? []), route]);
  const isForOwnPages = ({ access, tokens, path }: Route): boolean => {
    return access === "operator" || tokens.join() === "session" || /^\/auth\/|^\/metrics$/.test(path);
  };
  const methodsIn = (text: unknown): string[] => (text === undefined ? [] : String(text).split(", ").sort());

  test.for([...paths])("preflight: %s", async ([path, routes]) => {
    const target = path.replaceAll(/:\w+/g, "1");
    // Every route with GET has HEAD.
    const methodsOf = (some: readonly Route[]): string[] =>
      some.flatMap(({ method }) => (method === "GET" ? ["GET", "HEAD"] : [method])).sort();
    const all = methodsOf(routes);
    const open = methodsOf(routes.filter((route) => !isForOwnPages(route)));
    const own = methodsOf(routes.filter(isForOwnPages));
    const every = ["DELETE", "GET", "HEAD", "PATCH", "POST", "PUT"];
    // What the path doesn't take may be sent too, so that the page can read the 405.
    const others = open.length === 0 ? [] : every.filter((method) => !own.includes(method));
    for (const [origin, granted] of [
      [FOREIGN, others],
      ["null", others],
      [OWN, every],
      [`${OWN}.evil.example`, others],
    ] as const) {
      const asked = { Origin: origin, "Access-Control-Request-Method": all[0]! };
      const { status, headers, body } = await send("OPTIONS", target, asked);
      expect([status, body.length, methodsIn(headers.allow)]).toEqual([204, 0, all]);
      expect([origin, methodsIn(headers["access-control-allow-methods"])]).toEqual([origin, granted]);
      const reader = granted.length === 0 ? undefined : origin === OWN ? OWN : "*";
      expect([origin, headers["access-control-allow-origin"]]).toEqual([origin, reader]);
      expect(headers["access-control-allow-credentials"]).toBeUndefined();
      expect([headers["x-content-type-options"], headers.vary]).toEqual(["nosniff", "Origin"]);
      if (granted.length === 0) continue;
      expect(headers["access-control-max-age"]).toBe("7200");
      expect(headers["access-control-allow-headers"]).toMatch(/^Authorization, Content-Type, .*, \*$/);
    }
  });

  test.each(["/api/v1/odrers", "/api/v2/orders", "/nothing", "/docs", "/%zz"])(
    "%s: a page of another origin may ask, and reads the answer",
    async (path) => {
      const asked = { Origin: FOREIGN, "Access-Control-Request-Method": "GET" };
      const preflight = await send("OPTIONS", path, {
        ...asked,
        "Access-Control-Request-Headers": "x-own, traceparent",
      });
      expect([preflight.status, preflight.headers["access-control-allow-origin"]]).toEqual([204, "*"]);
      expect(methodsIn(preflight.headers["access-control-allow-methods"])).toContain("GET");
      expect(preflight.headers["access-control-allow-headers"]).toMatch(/, \*$/);
      if (!path.startsWith("/api")) return;
      const { status, headers, body } = await send("GET", path, { Origin: FOREIGN });
      expect([status, headers["access-control-allow-origin"], JSON.parse(body.toString()).code]).toEqual([
        404,
        "*",
        4040,
      ]);
    },
  );

  test("a page of another origin reads that a path doesn't take its method", async () => {
    const asked = { Origin: FOREIGN, "Access-Control-Request-Method": "PUT" };
    const preflight = await send("OPTIONS", "/api/v1/markets", asked);
    expect(methodsIn(preflight.headers["access-control-allow-methods"])).toContain("PUT");
    const { status, headers } = await send("PUT", "/api/v1/markets", { Origin: FOREIGN });
    expect([status, headers["access-control-allow-origin"]]).toEqual([405, "*"]);
  });

  test("OPTIONS without a requested method is handled like any other method", async () => {
    const { status, headers } = await send("OPTIONS", "/api/v1/orders", { Origin: FOREIGN });
    expect([status, methodsIn(headers.allow)]).toEqual([405, ["DELETE", "GET", "HEAD", "POST"]]);
  });

  test("preflights don't count against the caller's rate limits", async () => {
    const asked = { "Access-Control-Request-Method": "GET" };
    const own = { Authorization: `Bearer ${tokenOf("user0")}`, Origin: FOREIGN, ...asked };
    for (let n = 0; n < 20; n++) await send("OPTIONS", "/api/v1/orders/1", own);
    expect((await send("GET", "/api/v1/orders/1", own)).headers["ratelimit-remaining"]).toBe("2");
  });
});

describe("pages of other sites", () => {
  const signIn = { email: "owner@example.com", password: PASSWORD };

  test.for([FOREIGN, "null", `${OWN}.evil.example`, "http://exchange.test", "file://", "https://exchange.test:444"])(
    "pages of other sites: %s may not sign in, nor refresh",
    async (origin) => {
      for (const [path, body] of [
        ["/api/v1/auth/login", signIn],
        ["/api/v1/auth/refresh", { refresh_token: "x" }],
      ] as const) {
        const raw = await send("POST", path, { Origin: origin }, body);
        expect([raw.status, JSON.parse(raw.body.toString())]).toEqual([403, expect.objectContaining({ code: 40300 })]);
        expect(raw.headers["access-control-allow-origin"]).toBe(OWN);
      }
    },
  );

  test("pages of PUBLIC_URL and of the requested host may sign in, and so may callers that send no Origin", async () => {
    const host = `127.0.0.1:${world.server.port}`;
    const headers: readonly Record<string, string>[] = [{ Origin: OWN }, { Origin: `http://${host}`, Host: host }, {}];
    for (const each of headers) expect((await send("POST", "/api/v1/auth/login", each, signIn)).status).toBe(200);
  });

  test("pages of other sites may not read metrics through a browser inside the network", async () => {
    const raw = await send("GET", "/metrics", { Origin: FOREIGN });
    expect([raw.status, raw.headers["access-control-allow-origin"]]).toEqual([403, OWN]);
    expect(raw.body.toString()).not.toMatch(/exchange_money/);
  });

  test("pages of other sites may read market data and trade with a token of their own", async () => {
    const raw = await send("GET", "/api/v1/markets", { Origin: FOREIGN });
    expect([raw.status, raw.headers["access-control-allow-origin"]]).toEqual([200, "*"]);
    const order = { market_id: 1, outcome_id: 1, side: 1, price: 10, quantity: 1 };
    const headers = { Origin: FOREIGN, Authorization: `Bearer ${user.token}` };
    expect((await send("POST", "/api/v1/orders", headers, order)).status).toBe(202);
  });
});
