/**
 * Access control: the tests request every route and every WebSocket operation with every kind of token. They derive the
 * expected responses from the route table, which access-contract.test.ts compares with the contract.
 */
import { createPrivateKey, randomBytes, sign } from "node:crypto";
import { once } from "node:events";
import { connect } from "node:net";
import { decodeJwt, decodeProtectedHeader } from "jose";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { eventually, expectBalanced, expectEndsWell, expectQuiet, expectUnlogged } from "../support/checks.ts";
import { type Answer, API_BASE, Client, type OrderJson } from "../support/client.ts";
import { signingKeys } from "../support/data-dir.ts";
import { createPat, login, PASSWORD, type SignedIn, signIn } from "../support/identity.ts";
import { HIGH_LIMITS } from "../support/rates.ts";
import type { TestServer } from "../support/server.ts";
import { type Frame, Socket, upgradeRefusal } from "../support/socket.ts";
import { BUY, quote, terms } from "../support/terms.ts";
import { CALLBACK, ThirdParty } from "../support/third-party.ts";
import { ALL_SCOPES, PUBLIC_URL, type TestMarket, tokenOf, World } from "../support/world.ts";
import {
  ask,
  CALLERS,
  ENDS_SESSIONS,
  headerOf,
  INVALID,
  MISSING,
  OTHER_SCHEME,
  PROBES,
  type Probe,
  rejectionOf,
  SCOPES,
  SUSPENDED,
  shown,
  tokens,
  UNKNOWN_ID,
} from "./access-callers.ts";

const EVERY_SCOPE = ALL_SCOPES.join(" ");

/** "With orders:write: order.place, order.cancel, ..."; public channels need nothing. */
const OPERATIONS: readonly (readonly [op: string, rule: "none" | "orders:write", message: object, letIn: number])[] = [
  ["ping", "none", {}, 0],
  ["subscribe", "none", { channel: "trades", market_id: 1 }, 0],
  ["unsubscribe", "none", { channel: "trades", market_id: 1 }, 0],
  ["order.place", "orders:write", { data: { nothing: 1 } }, 40000],
  ["order.cancel", "orders:write", { data: { id: UNKNOWN_ID } }, 4040],
  ["order.cancel_all", "orders:write", { data: { nothing: 1 } }, 40000],
  ["order.cancel_after", "orders:write", { data: { nothing: 1 } }, 40000],
  ["order.amend", "orders:write", { data: { id: UNKNOWN_ID, price: 1 } }, 4040],
  ["order.batch", "orders:write", { data: { operations: [] } }, 40000],
  ["quotes.replace", "orders:write", { data: { market_id: UNKNOWN_ID, quotes: [] } }, 4040],
  ["cancel_on_disconnect", "orders:write", { enabled: false }, 0],
];
/** The minimum tier of every operation that needs a token. */
const OPERATION_TIER = 1;

// ---------------------------------------------------------------- tokens

/**
 * Returns a genuine token with a new `jti` and other changes, signed with the server's own key: a token that the server
 * has not seen.
 */
function another(dataDir: string, token: string, change: object = {}): string {
  const key = createPrivateKey({ key: signingKeys(dataDir)[0]!, format: "jwk" });
  const encode = (part: object): string => Buffer.from(JSON.stringify(part)).toString("base64url");
  const claims = { ...decodeJwt(token), jti: randomBytes(16).toString("base64url"), ...change };
  const input = `${encode(decodeProtectedHeader(token))}.${encode(claims)}`;
  return `${input}.${sign("sha256", Buffer.from(input), key).toString("base64url")}`;
}

type Attempt = [method: string, path: string, body?: object];
type Row = Record<string, unknown> & { readonly id: number };

// ---------------------------------------------------------------- one exchange, restarted repeatedly

const NAMES = ["tier0", "tier1", "tier2", "operator", "suspended"] as const;
type Name = (typeof NAMES)[number];

let world: World;
let market: TestMarket;
let people: Record<Name, SignedIn>;
let party: ThirdParty;
const servers: TestServer[] = [];

/** Creates the tokens that need an active user or long-lived access tokens. */
async function makeTokens(): Promise<void> {
  const { server } = world;
  const made = NAMES.map(async (name) => [name, await signIn(server, `${name}@example.com`)] as const);
  people = Object.fromEntries(await Promise.all(made)) as Record<Name, SignedIn>;
  const { tier0, tier1, tier2, operator, suspended } = people;
  const set = (name: string, token: string | (() => string)): void => void tokens.set(name, token);

  set("another scheme", tier2.accessToken);
  set("the scheme alone", "");
  set("garbage", "garbage");
  set("a personal access token that never was", `pm_pat_${randomBytes(32).toString("base64url")}`);
  set("a damaged session token", tier2.accessToken.slice(0, -8));
  set("a refresh token", tier2.refreshToken);

  set("a session of tier 0", tier0.accessToken);
  set("a session of tier 1", tier1.accessToken);
  set("a session of tier 2", tier2.accessToken);
  set("a session of tier 2 by tokens not seen before", () => another(server.dataDir, tier2.accessToken));
  set("an operator's session", operator.accessToken);
  set("a session of a suspended user", suspended.accessToken);
  set("a personal access token of tier 0", tokenOf("tier0"));
  set("a personal access token of tier 1", tokenOf("tier1"));
  set("a personal access token of tier 2", tokenOf("tier2"));
  set("an operator's personal access token", tokenOf("operator"));
  set("a personal access token of a suspended user", tokenOf("suspended"));
  for (const [i, scope] of SCOPES.entries()) {
    set(`a personal access token with ${scope}`, tokenOf("tier2", i + 1));
    set(`a personal access token of tier 0 with ${scope}`, tokenOf("tier0", i + 1));
  }

  const revoked = await createPat(tier2.client);
  await tier2.client.data("DELETE", `/me/personal-access-tokens/${revoked.id}`);
  set("a revoked personal access token", revoked.token);
  const bound = await createPat(tier2.client, { allowed_ips: ["192.0.2.1", "2001:db8::/32"] });
  set("a personal access token from elsewhere", bound.token);
  const brief = await createPat(tier2.client, { expires_at: Date.now() + 1_500 });
  set("an expired personal access token", brief.token);

  const [loggedOut, ended] = [await signIn(server, "tier2@example.com"), await signIn(server, "tier2@example.com")];
  await loggedOut.client.data("POST", "/auth/logout");
  loggedOut.client.close();
  ended.client.close();
  await endNewest(tier2.client);
  set("a session that logged out", loggedOut.accessToken);
  set("a session that another one ended", ended.accessToken);

  party = await ThirdParty.register(world, tier1.client);
  // Create the narrow ones first and last: neither the grant nor another of its sessions may widen them.
  for (const [i, scope] of SCOPES.entries()) {
    set(`an OAuth token with ${scope}`, (await party.tokens(tier2.client, scope)).access_token);
    if (i > 0) continue;
    const all = await party.tokens(tier2.client, EVERY_SCOPE);
    set("an OAuth token of tier 2", all.access_token);
    set("OAuth tokens of tier 2 not seen before", () => another(server.dataDir, all.access_token));
  }
  set("an OAuth token of tier 0", (await party.tokens(tier0.client, EVERY_SCOPE)).access_token);
  set("an OAuth token of a suspended user", (await party.tokens(suspended.client, EVERY_SCOPE)).access_token);
  const other = await ThirdParty.register(world, tier1.client);
  set("an OAuth token whose grant was revoked", (await other.tokens(tier2.client, EVERY_SCOPE)).access_token);
  const grants = await tier2.client.all<{ id: number; client_id: string }>("/me/oauth-grants");
  const grant = grants.find((row) => row.client_id === other.clientId);
  await tier2.client.data("DELETE", `/me/oauth-grants/${grant!.id}`);
}

/** Creates expired tokens of live sessions and grants, and of an ended session. Waits for the token with an own end. */
async function makeExpired(): Promise<void> {
  const { server } = world;
  const now = Math.floor(Date.now() / 1_000);
  const expiredOf = (name: string): string => {
    const token = tokens.get(name);
    return another(server.dataDir, token as string, { iat: now - 901, exp: now - 1 });
  };
  tokens.set("an expired session token", expiredOf("a session of tier 2"));
  tokens.set("a session that expired and had ended", expiredOf("a session that another one ended"));
  tokens.set("an expired OAuth token", expiredOf("an OAuth token of tier 2"));
  const client = new Client(server, null);
  for (const name of ["an expired session token", "an expired OAuth token", "an expired personal access token"]) {
    await eventually(async () => {
      expect((await client.request("GET", "/me", { headers: { Authorization: headerOf(name)! } })).code).toBe(2002);
    });
  }
  client.close();
}

/** Ends the newest session from another session. */
async function endNewest(client: Client): Promise<void> {
  const [newest] = await client.all<{ id: number; current: boolean }>("/me/sessions");
  expect(newest!.current).toBe(false);
  await client.data("DELETE", `/me/sessions/${newest!.id}`);
}

beforeAll(async () => {
  const scopes = [ALL_SCOPES, ...ALL_SCOPES.map((scope) => [scope])];
  const named = Object.fromEntries(
    NAMES.map((name) => {
      const tier = name === "tier0" ? 0 : name === "tier1" ? 1 : 2;
      const role = name === "operator" ? ("operator" as const) : ("user" as const);
      return [name, { tier, role, password: PASSWORD, scopes }];
    }),
  );
  world = await World.start({ users: 1, named, env: { PUBLIC_URL } });
  servers.push(world.server);
  market = world.market();
  await makeTokens();
  await makeExpired();
  await people.operator.client.data("POST", `/admin/users/${people.suspended.user.id}/suspend`, {});
});

afterAll(async () => {
  await expectBalanced(world.anonymous());
  await expectEndsWell(world);
  const secrets = [...tokens.values()].filter((token) => typeof token === "string").filter((token) => token !== "");
  for (const { client } of Object.values(people)) client.close();
  for (const server of servers) {
    expectQuiet(server);
    expectUnlogged(secrets, server);
  }
});

describe.each(["without limits", "with limits, after a restart"])("%s", (mode) => {
  let strangers: Map<Probe, Answer>;
  beforeAll(async () => {
    if (mode !== "without limits") {
      await world.server.stop();
      world.server = await world.server.restart({ RATE_LIMITS: HIGH_LIMITS });
      servers.push(world.server);
    }
    strangers = await ask(world.server, "no token", PROBES);
  });

  test("public routes let everybody in", () => {
    for (const [{ route, name, letIn }, answer] of strangers) {
      if (route.access !== "public") continue;
      // OAuth errors of a third party carry no code of the exchange.
      if (route.oauth) expect([name, answer.status === 400 || answer.status === 401]).toEqual([name, true]);
      else expect([name, answer.code]).toEqual([name, letIn]);
    }
  });

  test.each(CALLERS)("access to %s", async (caller, what) => {
    // A session with access would log itself out and end other sessions of the user.
    const isSession = "kind" in what && what.kind === "session";
    const probes = PROBES.filter(({ name }) => !(isSession && ENDS_SESSIONS.includes(name)));
    const answers = await ask(world.server, caller, probes);
    const found: unknown[] = [];
    const expected: unknown[] = [];
    for (const [probe, answer] of answers) {
      const { route, name, letIn } = probe;
      const rejection = route.access === "public" ? null : rejectionOf(route, what);
      if (route.oauth && caller !== "no token") {
        // A client that authenticates by an unsupported scheme: RFC 6749, section 5.2.
        found.push([name, answer.status >= 400 && answer.status <= 401]);
        expected.push([name, true]);
      } else if (rejection !== null) {
        found.push([name, shown(answer)]);
        expected.push([name, rejection]);
        if (answer.status === 401) expect([name, answer.headers["www-authenticate"]]).toEqual([name, "Bearer"]);
      } else {
        const isBodyRead = route.body !== null && !route.oauth;
        found.push(isBodyRead ? [name, answer.code, answer.msg] : [name, answer.code]);
        expected.push(isBodyRead ? [name, letIn, "nothing: unknown field"] : [name, route.oauth ? answer.code : letIn]);
        // A public route responds the same to every caller.
        if (route.access === "public") expect([name, shown(answer)]).toEqual([name, shown(strangers.get(probe)!)]);
      }
    }
    expect(found).toEqual(expected);
  });

  test.each(CALLERS)("access to %s over the WebSocket", async (caller, what) => {
    const { server } = world;
    if (what === OTHER_SCHEME) return;
    const token = headerOf(caller)?.slice("Bearer ".length) ?? null;
    const isLetIn = what === MISSING || "kind" in what;
    if (!isLetIn) {
      expect(shown(await upgradeRefusal(server, token!))).toEqual(what);
      return;
    }
    const socket = await Socket.open(server, token);
    const found: unknown[] = [];
    const expected: unknown[] = [];
    for (const [op, rule, message, letIn] of OPERATIONS) {
      const { code, msg } = await socket.ask({ op, ...message });
      const forbidden = (why: string): unknown[] => [op, 40300, why];
      const isRefused = code !== letIn;
      found.push(isRefused ? [op, code, msg] : [op, code]);
      if (rule === "none") expected.push([op, letIn]);
      else if (!("kind" in what)) expected.push([op, 40100, "connect with a token to trade"]);
      else if (!what.scopes.includes(rule)) expected.push(forbidden(`the token lacks the scope ${rule}`));
      else if (what.tier < OPERATION_TIER) {
        expected.push(forbidden(`requires KYC tier ${OPERATION_TIER}, the account has ${what.tier}`));
      } else expected.push([op, letIn]);
    }
    expect(found).toEqual(expected);
    await socket.close();
  });

  test("a socket gets the updates of an account that its scopes allow", async () => {
    const { server } = world;
    const names = [
      ...SCOPES.flatMap((scope) => [`a personal access token with ${scope}`, `an OAuth token with ${scope}`]),
      "a session of tier 2",
      "a session of tier 1",
    ];
    const sockets = await Promise.all(names.map((name) => Socket.open(server, headerOf(name)!.slice(7))));
    const trader = new Client(server, tokenOf("tier2"));
    const { id } = await trader.place(terms(market, 0, BUY, 100, 1));
    const full = sockets[names.indexOf("a session of tier 2")]!;
    await full.frame<OrderJson>("order.updated", (order) => order.id === id && order.status === "open");
    await full.frame("balance.updated");
    const heard: unknown[] = [];
    for (const socket of sockets) {
      await socket.fence();
      heard.push(
        [...new Set(socket.frames.map(({ event }: Frame) => event))].filter((event) => event !== "heartbeat").sort(),
      );
    }
    const orders = ["order.updated"];
    const account = ["balance.updated", "order.updated"];
    const expected = SCOPES.flatMap((scope) => {
      const own = scope === "orders:write" ? orders : scope === "portfolio:read" ? account : [];
      return [own, own];
    });
    expect(heard).toEqual([...expected, account, []]);
    await Promise.all(sockets.map((socket) => socket.close()));
    await trader.cancel(id);
    trader.close();
  });

  test("a rejection changes nothing, and another user's resources are not found", async () => {
    const { server } = world;
    const session = new Client(server, people.tier2.accessToken);
    const trader = new Client(server, tokenOf("tier2"));
    const order = await trader.place(terms(market, 0, BUY, 100, 1));
    /** All state that a rejected request might change, except the time of the last use, which may advance. */
    const state = async (): Promise<Row[][]> => {
      const lists = ["/me/personal-access-tokens", "/me/sessions", "/me/oauth-grants", "/me/oauth-clients", "/orders"];
      const rows = await Promise.all(lists.map((list) => session.all<Row>(list)));
      return rows.map((list) => list.map((row) => ({ ...row, last_used_at: null })));
    };
    const before = await state();
    const [pats, sessions, grants] = before as [Row[], Row[], Row[], ...Row[][]];
    const own: Attempt[] = [
      ...pats.map(({ id }): Attempt => ["DELETE", `/me/personal-access-tokens/${id}`]),
      ...sessions.map(({ id }): Attempt => ["DELETE", `/me/sessions/${id}`]),
      ...grants.map(({ id }): Attempt => ["DELETE", `/me/oauth-grants/${id}`]),
    ];
    const others: Attempt[] = [
      ["POST", "/auth/logout"],
      ["DELETE", "/me/sessions"],
      ["POST", "/me/personal-access-tokens", { name: "more", scopes: ALL_SCOPES }],
      ["POST", "/me/oauth-clients", { name: "more", redirect_uris: [CALLBACK], confidential: false }],
      ["POST", "/me/password", { current: PASSWORD, new: "another quiet harbour" }],
      ["POST", "/me/phone", { phone: "+14155552671" }],
    ];
    const ownOrder: Attempt[] = [
      ["DELETE", `/orders/${order.id}`],
      ["PATCH", `/orders/${order.id}`, { price: 90 }],
    ];
    const more = terms(market, 0, BUY, 100, 1);
    const trades: Attempt[] = [
      ["POST", "/orders", more],
      ["DELETE", "/orders"],
      ["POST", "/orders/batch", { operations: [{ op: "cancel", id: order.id }] }],
      ["PUT", `/quotes/${market.id}`, { quotes: [quote(market, 0, BUY, 10, 1)] }],
      ["POST", "/wallet/split", { market_id: market.id, quantity: 1 }],
    ];
    const refuse = async (name: string, attempts: Attempt[], expected: number): Promise<void> => {
      for (const [method, path, body] of attempts) {
        const headers = { Authorization: headerOf(name)! };
        const { code } = await trader.request(method, path, body === undefined ? { headers } : { headers, body });
        expect([name, method, path, code]).toEqual([name, method, path, expected]);
      }
    };
    const balance = await trader.balance();
    await refuse("a personal access token of tier 2", [...own, ...others], 40300);
    await refuse("an OAuth token of tier 2", [...own, ...others], 40300);
    await refuse("a personal access token with portfolio:read", [...ownOrder, ...trades], 40300);
    await refuse("an OAuth token with markets:propose", [...ownOrder, ...trades], 40300);
    await refuse("a session of a suspended user", [...own, ...others, ...trades], 40300);
    await refuse("a personal access token from elsewhere", [...own, ...others, ...ownOrder, ...trades], 40300);
    await refuse("a session of tier 1", [...own, ...ownOrder], 4040);
    await refuse("an operator's session", [...own, ...ownOrder], 4040);
    expect(await state()).toEqual(before);
    expect(await trader.balance()).toEqual(balance);
    await trader.cancel(order.id);
    for (const client of [session, trader]) client.close();
  });

  test("no other spelling of a path gives access", async () => {
    const client = new Client(world.server, null);
    const spellings = ["/me/", "//me", "/ME", "/Me", "/%6de", "/me%2f", "/me%00", "/me;x", "/me/.", "\\me", "/me#"];
    const longer = ["/markets/../me", "/./me", "/markets/%2e%2e/me", "/wallet//balance", "/wallet/balance/"];
    for (const path of [...spellings, ...longer]) {
      const { status, code, data } = await client.request("GET", path);
      expect([path, [`404 4040`, `401 40100`].includes(`${status} ${code}`), data]).toEqual([path, true, null]);
    }
    for (const method of ["HEAD", "OPTIONS", "TRACE", "PROPFIND", "QUERY"]) {
      const { status } = await client.send(method, `${API_BASE}/me`, {}, null);
      expect([method, status]).toEqual([method, method === "HEAD" ? 401 : 405]);
    }
    client.close();
  });

  test("a token outside the Authorization header is ignored", async () => {
    const client = new Client(world.server, null);
    const { accessToken } = people.tier2;
    const ways: [path: string, headers: Record<string, string>][] = [
      [`/me?token=${accessToken}`, {}],
      [`/me?access_token=${accessToken}`, {}],
      ["/me", { Cookie: `access_token=${accessToken}; token=${accessToken}` }],
      ["/me", { "X-Access-Token": accessToken, "X-Authorization": `Bearer ${accessToken}` }],
      ["/me", { "Proxy-Authorization": `Bearer ${accessToken}` }],
      ["/me", { "Sec-WebSocket-Protocol": accessToken }],
    ];
    for (const [path, headers] of ways) expect(shown(await client.request("GET", path, { headers }))).toEqual(MISSING);
    client.close();
  });

  test("a logout ends the caller's session at once, and nothing else of the user", async () => {
    const { server } = world;
    const { client, accessToken } = await signIn(server, "tier1@example.com");
    const logout = PROBES.find(({ name }) => name === "POST /auth/logout")!;
    tokens.set("the session that logs out", accessToken);
    for (const name of ["a personal access token of tier 1", "an OAuth token of tier 2"]) {
      expect((await ask(server, name, [logout])).get(logout)!.code).toBe(40300);
    }
    const unseen = another(server.dataDir, accessToken);
    expect((await ask(server, "the session that logs out", [logout])).get(logout)!.code).toBe(0);
    for (const answer of (await ask(server, "the session that logs out", PROBES)).entries()) {
      if (answer[0].route.access === "user") expect(shown(answer[1])).toEqual(INVALID);
    }
    const headers = { Authorization: `Bearer ${unseen}` };
    expect(shown(await client.request("GET", "/me", { headers }))).toEqual(INVALID);
    const others = { Authorization: headerOf("a session of tier 1")! };
    expect((await client.request("GET", "/me", { headers: others })).code).toBe(0);
    client.close();
  });

  test("the whole body is read if the server has not seen the token before", async () => {
    const { server } = world;
    const client = new Client(server, null);
    const fresh = (): Record<string, string> => ({
      Authorization: headerOf("a session of tier 2 by tokens not seen before")!,
    });
    const order = terms(market, 0, BUY, 100, 1);
    const placed = await client.request<OrderJson>("POST", "/orders", { headers: fresh(), body: order });
    const uri = `https://client.example/${"x".repeat(1_900)}`;
    const wish = { name: "A third party", redirect_uris: Array(10).fill(uri), confidential: false };
    const large = await client.request("POST", "/me/oauth-clients", { headers: fresh(), body: wish });
    const listed = await client.request("GET", "/orders?client_order_id=none&status=all", { headers: fresh() });
    const first = { status: placed.status, price: placed.data?.price };
    expect([first, large.status, listed.data]).toEqual([
      { status: 202, price: 100 },
      201,
      { items: [], next_cursor: null },
    ]);
    await client.request("DELETE", "/orders", { headers: fresh() });
    client.close();
  });

  test("the whole body is read even if it arrives in pieces", async () => {
    const text = JSON.stringify(terms(market, 0, BUY, 100, 1));
    const socket = connect(world.server.port, "127.0.0.1");
    const answer = once(socket, "data") as Promise<[Buffer]>;
    socket.setNoDelay(true);
    const head = [
      `POST ${API_BASE}/orders HTTP/1.1`,
      "Host: x",
      `Authorization: ${headerOf("a session of tier 2 by tokens not seen before")}`,
      `Content-Length: ${text.length}`,
    ];
    for (const piece of [`${head.join("\r\n")}\r\n\r\n${text.slice(0, 20)}`, text.slice(20, 40), text.slice(40)]) {
      await new Promise<void>((resolve) => socket.write(piece, () => setImmediate(resolve)));
    }
    expect((await answer)[0].toString()).toMatch(/^HTTP\/1\.1 202 .*"status":"queued"/s);
    socket.destroy();
    const client = new Client(world.server, headerOf("a session of tier 2")!.slice("Bearer ".length));
    await client.data("DELETE", "/orders");
    client.close();
  });

  test("a suspended user can't sign in, and only the right password reveals the suspension", async () => {
    const { server } = world;
    const right = await login(server, "suspended@example.com");
    expect(shown(right as Answer)).toEqual(SUSPENDED);
    const wrong = await login(server, "suspended@example.com", "not the password");
    expect([wrong.status, wrong.code]).toEqual([401, 40100]);
    const client = new Client(server, null);
    const body = { refresh_token: people.suspended.refreshToken };
    expect(await client.request("POST", "/auth/refresh", { body })).toMatchObject({ status: 401, code: 40100 });
    client.close();
  });
});
