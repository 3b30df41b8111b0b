/**
 * A deprecated route announces its end in each of its responses. No route is deprecated today: the tests put some beside
 * the real table, and run them through the same code on a real socket.
 */

import type { us_listen_socket } from "uWebSockets.js";
import Type from "typebox";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { systemClock } from "../../engine/util/clock.ts";
import { Accounts } from "../../server/accounts/accounts.ts";
import { type ApiError, ErrorKind, overloaded } from "../../server/errors.ts";
import { Admission } from "../../server/http/admission.ts";
import { createAddressReader } from "../../server/http/client-address.ts";
import { deprecationHeaders } from "../../server/http/deprecation.ts";
import { compileRoutes } from "../../server/http/dispatch.ts";
import { EventLoopGuard } from "../../server/http/event-loop-guard.ts";
import { DEFAULT_RATE_LIMITS, RateLimiter } from "../../server/http/rate-limiter.ts";
import { ResponseThrottle } from "../../server/http/response-throttle.ts";
import { type Route, route } from "../../server/http/route.ts";
import { Now } from "../../server/http/schemas.ts";
import { SecurityHeaders } from "../../server/http/security-headers.ts";
import { registerRoutes } from "../../server/http/server.ts";
import { StaticSite } from "../../server/http/static-site.ts";
import { loadUws } from "../../server/http/uws.ts";
import { createLog } from "../../server/logger.ts";
import { Authenticator } from "../../server/sign-in/authenticator.ts";
import { SigningKeys } from "../../server/sign-in/signing-keys.ts";
import type { OrderedReads } from "../../server/trading/types.ts";
import { Counters } from "../../server/util/counters.ts";
import { API_BASE, ROUTES } from "../support/client.ts";
import { temporaryFolder } from "../support/server.ts";
import { PUBLIC_URL } from "../support/world.ts";

const deprecated = { since: "2026-12-01", sunset: "2027-01-31", link: "https://exchange.test/changes#old" };
const ANNOUNCED = {
  deprecation: "@1796083200",
  sunset: "Sun, 31 Jan 2027 00:00:00 GMT",
  link: '<https://exchange.test/changes#old>; rel="deprecation", <https://exchange.test/changes#old>; rel="sunset"',
};
const NONE = { deprecation: null, sunset: null, link: null };

const Body = Type.Object({ email: Type.String() }, { additionalProperties: false });
const fail = (): never => {
  throw new Error("a bug");
};
const old = { summary: "Goes", response: Now, deprecated } as const;
const OLD_ROUTES: readonly Route[] = [
  route({ ...old, method: "GET", path: "/old", handler: () => '{"now":1}' }),
  route({ ...old, method: "GET", path: "/old/late", handler: async () => '{"now":1}' }),
  route({ ...old, method: "GET", path: "/old/broken", handler: fail }),
  route({ ...old, method: "GET", path: "/old/plain", enveloped: false, handler: () => '{"now":1}' }),
  route({ ...old, method: "PUT", path: "/old/private", scope: "orders:write", handler: fail }),
  route({
    ...old,
    method: "POST",
    path: "/old/sign-in",
    rateClass: "identifier",
    idempotencyKey: "harmless",
    body: Body,
    handler: fail,
  }),
  route({
    ...old,
    method: "POST",
    path: "/old/oauth",
    oauth: true,
    enveloped: false,
    idempotencyKey: "harmless",
    body: Body,
    handler: fail,
  }),
];

let socket: us_listen_socket;
let base: string;
const lifecycle: { rejection: ApiError | null; writeRejection: ApiError | null } = {
  rejection: null,
  writeRejection: null,
};
let close: () => void;

beforeAll(async () => {
  const uws = await loadUws();
  const app = uws.App();
  const names = { issuer: PUBLIC_URL, audience: PUBLIC_URL };
  const keys = await SigningKeys.open(temporaryFolder(), { ...names, tokenTtlMs: 900_000, now: Date.now() });
  const limits = { ...DEFAULT_RATE_LIMITS, address: 5, authIdentifier: 2 };
  registerRoutes(app, compileRoutes([...OLD_ROUTES, ...ROUTES]), {
    admission: new Admission({
      authenticator: new Authenticator(new Accounts(() => {}), keys),
      limiter: new RateLimiter(limits),
      lifecycle,
      isKnown: () => false,
    }),
    logger: createLog("silent").logger,
    counters: new Counters(),
    securityHeaders: new SecurityHeaders(() => PUBLIC_URL),
    clock: systemClock,
    guard: new EventLoopGuard(),
    throttle: new ResponseThrottle(1_000, 1_000),
    addressOf: createAddressReader([]),
    hasProxies: false,
    // For routes that read a user's own state; the tests call none.
    reads: null as unknown as OrderedReads,
    site: new StaticSite("/nowhere", () => PUBLIC_URL),
    deadlines: null,
  });
  socket = await new Promise((resolve) => app.listen("127.0.0.1", 0, (listening) => resolve(listening || fail())));
  base = `http://127.0.0.1:${uws.us_socket_local_port(socket)}${API_BASE}`;
  close = () => app.close();
});
afterAll(() => close());

async function headersOf(method: string, path: string, init: RequestInit = {}): Promise<[number, object]> {
  const { status, headers } = await fetch(base + path, { method, ...init });
  return [status, Object.fromEntries(Object.keys(ANNOUNCED).map((name) => [name, headers.get(name)]))];
}

const json = (body: object): RequestInit => ({
  headers: { "Content-Type": "application/json" },
  body: JSON.stringify(body),
});

describe("each response announces it", () => {
  test.each([
    ["GET", "/old", {}, 200],
    ["GET", "/old", { headers: { Accept: "application/msgpack" } }, 200],
    ["GET", "/old/late", {}, 200],
    ["GET", "/old/plain", {}, 200],
    ["GET", "/old/late?unknown=1", {}, 400],
    ["GET", "/old/broken", {}, 500],
    ["PUT", "/old/private", {}, 401],
    ["PUT", "/old/private", { headers: { Authorization: "Bearer pm_pat_none" } }, 401],
    ["POST", "/old/sign-in", { body: "{", headers: { "Content-Type": "application/json" } }, 400],
    ["POST", "/old/sign-in", json({ email: "x".repeat(9_000) }), 413],
    ["POST", "/old/oauth", json({}), 400],
  ] as const)("each response announces a deprecation: %s %s %j: %i", async (method, path, init, status) => {
    expect(await headersOf(method, path, init)).toEqual([status, ANNOUNCED]);
  });

  test("a response announces a deprecation when a limit is passed, by address and by the e-mail of a sign-in", async () => {
    const all = await Promise.all(Array.from({ length: 6 }, () => headersOf("GET", "/old/broken")));
    expect(all).toContainEqual([429, ANNOUNCED]);
    const named = json({ email: "a@example.com" });
    const tries = [];
    for (let i = 0; i < 3; i++) tries.push(await headersOf("POST", "/old/sign-in", named));
    expect(tries.at(-1)).toEqual([429, ANNOUNCED]);
  });

  test("a response announces a deprecation while the exchange is closed", async () => {
    lifecycle.rejection = overloaded("starting");
    expect(await headersOf("GET", "/old")).toEqual([ErrorKind.overloaded.status, ANNOUNCED]);
    lifecycle.rejection = null;
  });
});

test("responses of other routes don't", async () => {
  expect(await headersOf("GET", "/time")).toEqual([200, NONE]);
  expect(await headersOf("GET", "/none")).toEqual([404, NONE]);
  expect(await headersOf("DELETE", "/time")).toEqual([405, NONE]);
  expect(ROUTES.filter((each) => each.deprecated !== null)).toEqual([]);
});

describe("the route table is rejected", () => {
  const compile = (more: object): unknown =>
    compileRoutes([{ ...OLD_ROUTES[0]!, deprecated: { ...deprecated, ...more } }]);

  test.each([
    [{ sunset: "2026-11-30" }, /no sooner/],
    [{ sunset: "2026-12-30" }, /no sooner/],
    [{ sunset: "2027-02-30" }, /is a day/],
    [{ since: "yesterday" }, /is a day/],
    [{ since: "2026-12-01T10:00:00Z" }, /is a day/],
    [{ link: "/changes" }, /URL/],
  ])("the route table is rejected with %j", (more, text) => {
    expect(() => compile(more)).toThrow(text);
  });

  test("a deprecation needs thirty days' notice; a link is optional", () => {
    expect(compile({ sunset: "2026-12-31" })).toHaveLength(1);
    const { link: _, ...days } = deprecated;
    expect(deprecationHeaders(days).map(([name]) => name)).toEqual(["Deprecation", "Sunset"]);
    expect(deprecationHeaders({ ...days, link: 'https://a.test/">,<' })[2]![1]).not.toMatch(/"><|,</);
  });
});
