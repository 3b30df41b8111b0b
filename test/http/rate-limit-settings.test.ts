/**
 * Settings of rate limits, over real sockets: RATE_LIMITS with other numbers and off, no trusted proxies, and the addresses
 * that a restarted server knows. The limits themselves are rate-limits.test.ts and rate-limits-identity.test.ts.
 */
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { expectEndsWell } from "../support/checks.ts";
import { type Answer, Client } from "../support/client.ts";
import { withDatabase } from "../support/data-dir.ts";
import { freshAddress, PASSWORD, type SignInJson } from "../support/identity.ts";
import { expectLimited, expectRate, rateOf } from "../support/rates.ts";
import { BUY, terms } from "../support/terms.ts";
import { World, type WorldOptions } from "../support/world.ts";
import { AddressCaller, closeCallers } from "./address-caller.ts";
import { expectAnswer, expectLimitedAck } from "./rate-expectations.ts";

const worlds: World[] = [];
async function start(options: WorldOptions): Promise<World> {
  const world = await World.start(options);
  worlds.push(world);
  return world;
}
afterAll(async () => {
  closeCallers();
  for (const world of worlds) await expectEndsWell(world);
});

describe("without trusted proxies", () => {
  test("without trusted proxies, X-Forwarded-For has no effect", async () => {
    const world = await start({ users: 3, env: { RATE_LIMITS: "on" } });
    const market = world.market();
    const nobody = world.anonymous();
    // World.start has requested the markets, and nobody the time.
    for (let n = 99; n >= 0; n--) {
      const answer = await nobody.request("GET", "/time", { headers: { "X-Forwarded-For": `192.0.2.${n}` } });
      expectRate(rateOf(answer), 100, n);
    }
    expectLimited(await nobody.request("GET", "/time", { headers: { "X-Forwarded-For": "198.51.100.1" } }), 100);
    let placed = 0;
    for (let n = 0; n < 70; n++) {
      const client = world.client(`user${n % 3}`);
      const headers = { "X-Forwarded-For": `198.51.100.${n}` };
      const { status } = await client.request("POST", "/orders", { body: terms(market, 0, BUY, 100, 1), headers });
      if (status === 202) placed++;
    }
    expect(placed).toBe(60);
  });
});

describe("with other limits of orders and users", () => {
  test("limits of orders and users that are set apply, and the others stay", async () => {
    const limits = { order_user: 5, order_address: 8, user: 7 };
    const world = await start({ users: 2, env: { RATE_LIMITS: JSON.stringify(limits) } });
    const market = world.market();
    const [one, second] = [world.user(), world.user()];
    const socket = await world.socket(one);
    const data = terms(market, 0, BUY, 100, 1);
    for (let n = 4; n >= 0; n--) expectRate((await socket.ask({ op: "order.place", data })).rate_limit, 5, n);
    expectLimitedAck(await socket.ask({ op: "order.place", data }), 5);
    for (let n = 2; n >= 0; n--) expectRate(rateOf(await second.request("POST", "/orders", { body: data })), 8, n);
    expectLimited(await second.request("POST", "/orders", { body: data }), 8);
    for (let n = 6; n >= 0; n--) expectRate(rateOf(await one.request("GET", "/time")), 7, n);
    expectLimited(await one.request("GET", "/time"), 7);
    expectRate(rateOf(await world.anonymous().request("GET", "/time")), 100, 99);
    await socket.close();
  });
});

describe("with other limits of sign-ins and refreshes", () => {
  const DAY_MS = 86_400_000;
  /** Their sessions are the first ones, the oldest first, as times rise with ids. */
  const NAMES = ["old", "expired", "out", "killed"];
  const SIGN_INS = 3;
  let world: World;
  beforeAll(async () => {
    const names = [...NAMES, "person"];
    const named = Object.fromEntries(names.map((name) => [name, { password: PASSWORD }]));
    const limits = { auth_identifier: SIGN_INS, refresh_address: 4 };
    const env = { RATE_LIMITS: JSON.stringify(limits), TRUSTED_PROXIES: "127.0.0.1" };
    world = await start({ users: 0, named, env });
  });

  /** Every account has its own network at home. */
  const home = (name: string, host = 1): string => `2001:db8:${NAMES.indexOf(name) + 1}::${host}`;
  const sign = (name: string, from: string, password = PASSWORD): Promise<Answer<SignInJson>> => {
    const body = { email: `${name}@example.com`, password };
    return new AddressCaller(world.server, null, from).request("POST", "/auth/login", body);
  };

  /** Strangers use up the account's sign-ins; then only a known address signs in. */
  async function isKnown(name: string): Promise<boolean> {
    const wrong = "not the password at all";
    for (let n = 0; n < SIGN_INS; n++) expect((await sign(name, freshAddress(), wrong)).status).toBe(401);
    expect((await sign(name, freshAddress(), wrong)).status).toBe(429);
    const { status } = await sign(name, home(name, 2));
    expect([200, 429]).toContain(status);
    return status === 200;
  }

  test("a restarted server knows the addresses of the last 30 days, of sessions that ended or expired too", async () => {
    const tokens = new Map<string, string>();
    for (const name of NAMES) tokens.set(name, (await sign(name, home(name))).data.access_token);
    const leaving = new Client(world.server, tokens.get("out")!);
    await leaving.data("POST", "/auth/logout");
    leaving.close();
    await world.server.kill();
    const set = (column: string, name: string, at: number): void =>
      withDatabase(world.server.dataDir, (db) => {
        const id = "(SELECT id FROM users WHERE email = ?)";
        const run = db.prepare(`UPDATE sessions SET ${column} = ? WHERE user_id = ${id}`);
        expect(run.run(at, `${name}@example.com`).changes).toBe(1);
      });
    set("expires_at", "expired", Date.now() - DAY_MS);
    set("created_at", "expired", Date.now() - 29 * DAY_MS);
    set("created_at", "old", Date.now() - 30 * DAY_MS - 1);
    world.server = await world.server.restart();
    const found = Object.fromEntries(await Promise.all(NAMES.map(async (name) => [name, await isKnown(name)])));
    expect(found).toEqual({ out: true, killed: true, expired: true, old: false });
  });

  test("limits of sign-ins and refreshes that are set apply, and the others stay", async () => {
    const nobody = new AddressCaller(world.server, null);
    const body = { email: "person@example.com", password: PASSWORD };
    const { data, ...first } = await nobody.request<SignInJson>("POST", "/auth/login", body);
    expectAnswer({ ...first, data }, 200, 3, 2);
    for (const path of ["/auth/register", "/auth/forgot-password", "/auth/resend-verification"]) {
      const given = path === "/auth/register" ? body : { email: body.email };
      const status = path === "/auth/register" ? 409 : 202;
      for (let n = 2; n >= 0; n--) expectAnswer(await nobody.elsewhere("POST", path, given), status, 3, n);
      expectLimited(await nobody.elsewhere("POST", path, given), 3);
    }
    for (let n = 1; n >= 0; n--) expectAnswer(await nobody.elsewhere("POST", "/auth/login", body), 200, 3, n);
    expectLimited(await nobody.elsewhere("POST", "/auth/login", body), 3);
    const refresh = { refresh_token: "x" };
    for (let n = 3; n >= 0; n--) expectAnswer(await nobody.request("POST", "/auth/refresh", refresh), 401, 4, n);
    expectLimited(await nobody.request("POST", "/auth/refresh", refresh), 4);
    expectAnswer(await nobody.request("POST", "/auth/login", {}), 400, 100, 98);
    const caller = new AddressCaller(world.server, data.access_token, nobody.from);
    expectAnswer(await caller.request("GET", "/me"), 200, 100, 99);
    const shown = (await caller.limits()).filter(({ route }) => /(login|refresh)$/.test(route));
    expect(shown.map(({ scope, limit, remaining }) => [scope, limit, remaining])).toEqual([
      ["identifier", 3, 0],
      ["known_address", 3, 3],
      ["address", 100, 98],
      ["address", 4, 0],
    ]);
  });
});

describe("with RATE_LIMITS=off", () => {
  let world: World;
  beforeAll(async () => {
    world = await start({ users: 1, named: { person: { password: PASSWORD } }, env: { RATE_LIMITS: "off" } });
  });

  test("with RATE_LIMITS=off, orders have no limits, and no response shows any", async () => {
    const [user, market] = [world.user(), world.market()];
    const data = terms(market, 0, BUY, 100, 1);
    const socket = await world.socket(user);
    for (let n = 0; n < 120; n++) {
      const answer = await user.request("POST", "/orders", { body: data });
      expect([answer.status, rateOf(answer)]).toEqual([202, null]);
      expect(await socket.ask({ op: "order.place", data })).toMatchObject({ code: 0, rate_limit: null });
    }
    expect(rateOf(await user.request("GET", "/time"))).toBeNull();
    expect(await user.get("/me/limits")).toMatchObject({ kyc_tier: 2, rate_limits: [] });
    await socket.close();
  });

  test("with RATE_LIMITS=off, sign-ins and refreshes have no limits, and no response shows any", async () => {
    const nobody = new AddressCaller(world.server, null);
    for (let n = 0; n < 15; n++) {
      const body = { email: "person@example.com", password: PASSWORD };
      const { status, headers } = await nobody.request("POST", "/auth/login", body);
      expect([status, headers["ratelimit-limit"]]).toEqual([200, undefined]);
    }
    for (let n = 0; n < 25; n++) {
      const { status, headers } = await nobody.request("POST", "/auth/refresh", { refresh_token: "x" });
      expect([status, headers["ratelimit-limit"]]).toEqual([401, undefined]);
    }
  });
});
