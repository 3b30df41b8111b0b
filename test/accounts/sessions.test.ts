/**
 * Sessions, as owners and token thieves use them: sign-in, refresh token rotation, expiry, immediate logout, logout
 * everywhere, and the list of sessions. The tests include restarts and crashes. For forged tokens, see
 * signing-keys.test.ts.
 */

import { decodeJwt, decodeProtectedHeader } from "jose";
import type { Static } from "typebox";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { Session } from "../../server/accounts/schemas.ts";

import { CLOSE_DEADLINE_MS, clockAt, expectEnded, expectEndsWell, expectUnlogged } from "../support/checks.ts";
import { type Answer, API_BASE, askOnce, type Client } from "../support/client.ts";
import { expectUnkept, withDatabase } from "../support/data-dir.ts";
import { Guests, PASSWORD, type SignedIn, type SignInJson, type TokensJson } from "../support/identity.ts";
import { type TestServer, within } from "../support/server.ts";
import { refusedUpgrade, Socket } from "../support/socket.ts";
import { BUY, expectRefused, terms } from "../support/trading.ts";
import { ALL_SCOPES, PUBLIC_URL, type UserSpec, World, type WorldOptions } from "../support/world.ts";

type SessionJson = Static<typeof Session>;

const MAX_SESSIONS = 100;

const guests = new Guests();
const { secrets } = guests;
const worlds: World[] = [];

/** The names of the users who can sign in. */
async function start(
  names: readonly string[],
  env: Record<string, string> = {},
  more: WorldOptions = {},
): Promise<World> {
  const named = Object.fromEntries(names.map((name): [string, UserSpec] => [name, { password: PASSWORD }]));
  const made = await World.start({ users: 0, ...more, named, env: { PUBLIC_URL, ...env } });
  worlds.push(made);
  return made;
}

afterAll(async () => {
  guests.close();
  for (const each of worlds) {
    await expectEndsWell(each);
    expectUnlogged(secrets, each.server);
    expectUnkept(secrets, each.server.dataDir);
  }
});

const clientOf = (server: TestServer, token: string | null, sockets = 1): Client =>
  guests.client(server, token, sockets);
const enter = (at: World, name: string): Promise<SignedIn> => guests.signIn(at.server, `${name}@example.com`);
const post = <T = unknown>(server: TestServer, path: string, body: unknown, headers = {}): Promise<Answer<T>> =>
  askOnce(server, null, "POST", path, { body, headers });

const refresh = (server: TestServer, refresh_token: unknown): Promise<Answer<TokensJson>> =>
  post<TokensJson>(server, "/auth/refresh", { refresh_token });

/** Spends the refresh token. Fails if the server rejects it. */
async function refreshed(server: TestServer, token: string): Promise<TokensJson> {
  const { code, msg, data } = await refresh(server, token);
  expect([code, msg]).toEqual([0, expect.any(String)]);
  secrets.add(data.access_token).add(data.refresh_token);
  return data;
}

const askMe = (client: Client): Promise<Answer> => client.request("GET", "/me");
const isGone = (client: Client): Promise<Answer> => expectRefused(askMe(client), 401, 40100);
const sessionsOf = (client: Client, limit = 200): Promise<SessionJson[]> => client.all("/me/sessions", limit);
const logout = (client: Client): Promise<Answer> => client.request("POST", "/auth/logout");

async function isCurrent(client: Client, token: string): Promise<void> {
  expect((await askMe(client)).code).toBe(0);
  secrets.add((await refreshed(client.server, token)).access_token);
}

/** Returns the expiry of an access token in ms. */
const endOf = (token: string): number => decodeJwt(token).exp! * 1_000;

const NAMES = [
  [
    "shape",
    "wrong",
    "rotating",
    "racing",
    "garbage",
    "leaving",
    "ending",
    "crowded",
    "other",
    "listing",
    "described",
    "sockets",
  ],
  ["crossing"],
].flat();
let world: World;
beforeAll(async () => {
  world = await start(NAMES, { TRUSTED_PROXIES: "127.0.0.1" });
});

describe("sign-in", () => {
  test("answers tokens and the user, and nothing may keep them", async () => {
    const before = Date.now();
    const body = { email: "Shape@Example.COM", password: PASSWORD };
    const { status, data, headers } = await post<SignInJson>(world.server, "/auth/login", body);
    const { access_token: accessToken, refresh_token: refreshToken, user, ...rest } = data;
    secrets.add(accessToken).add(refreshToken);
    expect([status, rest, headers["cache-control"]]).toEqual([200, {}, "no-store"]);
    const client = clientOf(world.server, accessToken);
    expect(user).toEqual(await client.get("/me"));
    expect(user).toMatchObject({ email: "shape@example.com", email_verified: true, kyc_tier: 2, role: "user" });

    const [header, claims] = [decodeProtectedHeader(accessToken), decodeJwt(accessToken)];
    expect(header).toEqual({ alg: "RS256", typ: "JWT", kid: expect.stringMatching(/^[A-Za-z0-9_-]{43}$/) });
    const { keys } = await client.get<{ keys: { kid: string }[] }>("/.well-known/jwks.json");
    expect(keys.map(({ kid }) => kid)).toContain(header.kid);
    const { scope, iat, exp, jti, ...others } = claims;
    expect(others).toMatchObject({ iss: PUBLIC_URL, aud: `${PUBLIC_URL}${API_BASE}`, sub: String(user.id) });
    expect(String(scope).split(" ").sort()).toEqual(ALL_SCOPES.toSorted());
    expect(Number(exp) - Number(iat)).toBe(900);
    expect(Number(iat)).toBeGreaterThanOrEqual(Math.floor(before / 1_000));
    expect(Number(iat)).toBeLessThanOrEqual(Date.now() / 1_000);
    expect(jti).toMatch(/^[A-Za-z0-9_-]{16,}$/);
    expect(JSON.stringify(claims)).not.toContain("example.com");
    // Opaque, with at least 256 bits.
    expect(refreshToken).toMatch(/^[A-Za-z0-9_-]{43,512}$/);

    const second = (await post<SignInJson>(world.server, "/auth/login", body)).data;
    expect(new Set([accessToken, refreshToken, second.access_token, second.refresh_token]).size).toBe(4);
    expect(decodeJwt(second.access_token).jti).not.toBe(jti);
  });

  test("a wrong password and an unknown address are answered alike, and leave no session", async () => {
    const bodies = [
      { email: "wrong@example.com", password: `${PASSWORD} ` },
      { email: "wrong@example.com", password: PASSWORD.slice(1) },
      { email: "wrong@example.com", password: PASSWORD.toUpperCase() },
      { email: "wrong@example.com", password: "x" },
      { email: "unknown@example.com", password: PASSWORD },
    ];
    const seen = new Set<string>();
    for (const body of bodies) {
      const answer = await expectRefused(post(world.server, "/auth/login", body), 401, 40100);
      const { "x-request-id": _, date: __, ...headers } = answer.headers;
      seen.add(JSON.stringify([answer.msg, headers]));
      expect(headers["www-authenticate"]).toMatch(/^Bearer/);
    }
    expect(seen.size).toBe(1);
    for (const password of ["", null, 7, "x".repeat(1_025)]) {
      const body = { email: "wrong@example.com", password };
      await expectRefused(post(world.server, "/auth/login", body), 400, 40000, /^password/);
    }
    const { client } = await enter(world, "wrong");
    expect(await sessionsOf(client)).toHaveLength(1);
  });

  test("a session token does everything that scopes allow, over HTTP and on a socket", async () => {
    const { client, accessToken } = await enter(world, "sockets");
    const market = world.market();
    const socket = await Socket.open(world.server, accessToken);
    const order = await client.place(terms(market, 0, BUY, 100, 1));
    await socket.frame<{ id: number }>("order.updated", ({ id }) => id === order.id);
    await socket.data("order.cancel", { id: order.id });
    for (const path of ["/orders", "/wallet/balance", "/me/positions", "/me/limits", "/me/sessions"])
      await client.get(path);
    for (const header of [`bearer ${accessToken}`, `BEARER ${accessToken}`]) {
      const answer = await client.request("GET", "/me", { headers: { Authorization: header } });
      expect(answer.code).toBe(0);
    }
    for (const header of ["", "Bearer", "Bearer ", `Basic ${accessToken}`, accessToken, `Bearer ${accessToken} x`]) {
      await expectRefused(client.request("GET", "/me", { headers: { Authorization: header } }), 401, 40100);
    }
    await socket.close();
  });
});

describe("refresh", () => {
  test("gives new tokens of the same session, and the spent token ends it with all of its sockets", async () => {
    const { server } = world;
    const [own, bystander] = [await enter(world, "rotating"), await enter(world, "rotating")];
    const first = await sessionsOf(own.client);
    const answer = await refresh(server, own.refreshToken);
    expect([answer.status, Object.keys(answer.data).sort()]).toEqual([200, ["access_token", "refresh_token"]]);
    expect(answer.headers["cache-control"]).toBe("no-store");
    const next = answer.data;
    const last = await refreshed(server, next.refresh_token);
    const tokens = [own.refreshToken, next.refresh_token, last.refresh_token];
    expect(new Set([own.accessToken, next.access_token, last.access_token, ...tokens]).size).toBe(6);
    const callers = [own.client, clientOf(server, next.access_token), clientOf(server, last.access_token)];
    // Earlier access tokens stay valid until they expire.
    for (const caller of callers) expect((await askMe(caller)).code).toBe(0);
    const sessions = await sessionsOf(callers[2]!);
    expect(sessions.map(({ id }) => id)).toEqual(first.map(({ id }) => id));
    expect(sessions.find(({ current }) => current)!.id).toBe(first.find(({ current }) => current)!.id);
    const sockets = await Promise.all(
      [own.accessToken, next.access_token, last.access_token].map((token) => Socket.open(server, token)),
    );
    const other = await Socket.open(server, bystander.accessToken);

    await expectRefused(refresh(server, next.refresh_token), 401, 40100);
    await expectEnded(...sockets);
    for (const caller of callers) await isGone(caller);
    for (const token of tokens) await expectRefused(refresh(server, token), 401, 40100);
    for (const token of [own.accessToken, last.access_token]) {
      expect(await refusedUpgrade(server, token)).toEqual([401, 40100]);
    }
    await other.settled();
    await isCurrent(bystander.client, bystander.refreshToken);
    expect(await sessionsOf(bystander.client)).toHaveLength(1);
    await other.close();
  });

  test("of two with one token at one time one has success at most, and the session is over", async () => {
    const { server } = world;
    const bystander = await enter(world, "racing");
    for (let round = 0; round < 6; round++) {
      const { client, refreshToken } = await enter(world, "racing");
      const both = clientOf(server, null, 4);
      const body = { refresh_token: refreshToken };
      const count = 2 + (round % 3);
      const answers = await Promise.all(
        Array.from({ length: count }, () => both.request<TokensJson>("POST", "/auth/refresh", { body })),
      );
      const winners = answers.filter(({ code }) => code === 0);
      const losers = answers.filter(({ code }) => code === 40100);
      expect([winners.length <= 1, winners.length + losers.length]).toEqual([true, count]);
      await isGone(client);
      for (const { data } of winners) {
        await isGone(clientOf(server, data.access_token));
        await expectRefused(refresh(server, data.refresh_token), 401, 40100);
      }
    }
    await isCurrent(bystander.client, bystander.refreshToken);
  });

  test("takes nothing else, and nothing else harms the session", async () => {
    const { server } = world;
    const { client, accessToken, refreshToken } = await enter(world, "garbage");
    const head = refreshToken.slice(0, -43);
    const others = [
      "x",
      "null",
      accessToken.slice(0, 400),
      world.client("garbage").token!,
      refreshToken.slice(0, -1),
      `${refreshToken}A`,
      ` ${refreshToken}`,
      `${refreshToken}\n`,
      refreshToken.toUpperCase(),
      `pm_ref_${"A".repeat(24 + 43)}`,
      "x".repeat(512),
      "\u0000\ud83d\ude00",
    ];
    expect(head.length).toBeGreaterThan(0);
    for (const token of others) await expectRefused(refresh(server, token), 401, 40100);
    for (const token of ["", null, 7, [refreshToken], { token: refreshToken }]) {
      await expectRefused(refresh(server, token), 400, 40000, /^refresh_token/);
    }
    await expectRefused(post(server, "/auth/refresh", {}), 400, 40000, /^refresh_token/);
    const more = { refresh_token: refreshToken, scope: "orders:write" };
    await expectRefused(post(server, "/auth/refresh", more), 400, 40000, /^scope/);
    // A refresh token is not an access token.
    await isGone(clientOf(server, refreshToken));
    expect(await refusedUpgrade(server, refreshToken)).toEqual([401, 40100]);
    await isCurrent(client, refreshToken);
  });

  test("an access token is no refresh token", async () => {
    const { client, accessToken, refreshToken } = await enter(world, "garbage");
    await expectRefused(refresh(world.server, accessToken), 401, 40100);
    await isCurrent(client, refreshToken);
  });
});

describe("the end of a session", () => {
  test("logout is at once, for all of its tokens, connections and sockets", async () => {
    const { server } = world;
    const [own, other] = [await enter(world, "leaving"), await enter(world, "leaving")];
    const { access_token: later, refresh_token: refreshToken } = await refreshed(server, own.refreshToken);
    const connections = [clientOf(server, own.accessToken), clientOf(server, later), clientOf(server, own.accessToken)];
    for (const client of connections) expect((await askMe(client)).code).toBe(0);
    const sockets = await Promise.all([own.accessToken, later].map((token) => Socket.open(server, token)));
    const otherSocket = await Socket.open(server, other.accessToken);
    await expectRefused(logout(world.client("leaving")), 403, 40300);
    await expectRefused(post(server, "/auth/logout", undefined), 401, 40100);

    expect(await logout(own.client)).toMatchObject({ status: 200, code: 0, data: null });
    const answers = await Promise.all(connections.map(askMe));
    expect(answers.map(({ status, code }) => [status, code])).toEqual(connections.map(() => [401, 40100]));
    await expectEnded(...sockets);
    await expectRefused(logout(own.client), 401, 40100);
    await expectRefused(refresh(server, refreshToken), 401, 40100);
    await expectRefused(refresh(server, own.refreshToken), 401, 40100);
    expect(await refusedUpgrade(server, later)).toEqual([401, 40100]);
    await otherSocket.settled();
    await isCurrent(other.client, other.refreshToken);
    await otherSocket.close();
  });

  test("a logout and a refresh at one time leave nothing that works", async () => {
    const { server } = world;
    for (let round = 0; round < 6; round++) {
      const { client, refreshToken } = await enter(world, "crossing");
      const asked = [() => logout(client), () => refresh(server, refreshToken)];
      if (round % 2 === 1) asked.reverse();
      const answers = await Promise.all(asked.map((ask) => ask()));
      const given = answers.map(({ data }) => data).find((data) => data !== null) as TokensJson | undefined;
      await isGone(client);
      if (given === undefined) continue;
      await isGone(clientOf(server, given.access_token));
      await expectRefused(refresh(server, given.refresh_token), 401, 40100);
    }
  });

  test("an owner ends one by its id, the current one too; another's is none", async () => {
    const { server } = world;
    const [one, two, stranger] = [
      await enter(world, "ending"),
      await enter(world, "ending"),
      await enter(world, "other"),
    ];
    const idOf = async ({ client }: SignedIn): Promise<number> =>
      (await sessionsOf(client)).find(({ current }) => current)!.id;
    const [idOne, idTwo] = [await idOf(one), await idOf(two)];
    const end = (client: Client, id: unknown): Promise<Answer> => client.request("DELETE", `/me/sessions/${id}`);
    const sockets = await Promise.all([one, two].map(({ accessToken }) => Socket.open(server, accessToken)));

    for (const id of [idOne, idTwo, 999_999_999]) await expectRefused(end(stranger.client, id), 404, 4040);
    for (const id of ["0", "-1", "x", "1.5", "1e3", `0${idOne}`, `${idOne}x`, "99999999999999999999"]) {
      await expectRefused(end(one.client, id), 404, 4040);
    }
    await expectRefused(end(world.client("ending"), idTwo), 403, 40300);
    for (const socket of sockets) await socket.settled();

    expect(await end(one.client, idTwo)).toMatchObject({ status: 200, code: 0, data: null });
    await isGone(two.client);
    await expectEnded(sockets[1]!);
    await expectRefused(refresh(server, two.refreshToken), 401, 40100);
    await expectRefused(end(one.client, idTwo), 404, 4040);
    await sockets[0]!.settled();

    expect(await end(one.client, idOne)).toMatchObject({ status: 200, code: 0, data: null });
    await isGone(one.client);
    await expectEnded(sockets[0]!);
    await expectRefused(refresh(server, one.refreshToken), 401, 40100);
    expect((await askMe(stranger.client)).code).toBe(0);
  });

  test("an owner ends all others at once, with their sockets, and nobody else's", async () => {
    const { server } = world;
    const [kept, ...others] = [
      await enter(world, "crowded"),
      await enter(world, "crowded"),
      await enter(world, "crowded"),
    ];
    const stranger = await enter(world, "other");
    const [keptSocket, ...sockets] = await Promise.all(
      [kept!, ...others].map(({ accessToken }) => Socket.open(server, accessToken)),
    );
    expect(await sessionsOf(kept!.client)).toHaveLength(3);

    expect(await kept!.client.request("DELETE", "/me/sessions")).toMatchObject({ status: 200, code: 0, data: null });
    for (const { client, refreshToken } of others) {
      await isGone(client);
      await expectRefused(refresh(server, refreshToken), 401, 40100);
    }
    for (const socket of sockets) await expectEnded(socket);
    expect((await sessionsOf(kept!.client)).map(({ current }) => current)).toEqual([true]);
    await keptSocket!.settled();
    expect((await askMe(stranger.client)).code).toBe(0);
    expect((await kept!.client.request("DELETE", "/me/sessions")).code).toBe(0);
    expect((await askMe(kept!.client)).code).toBe(0);
  });
});

describe("the list of sessions", () => {
  test("shows one's own, newest first, by pages, and which one asks", async () => {
    await enter(world, "other");
    const own = [];
    for (let i = 0; i < 5; i++) own.push(await enter(world, "listing"));
    const { client } = own[2]!;
    const before = Date.now();
    const all = await sessionsOf(client);
    expect(all).toHaveLength(5);
    expect(all.map(({ id }) => id)).toEqual(all.map(({ id }) => id).toSorted((a, b) => b - a));
    expect(all.map(({ current }) => current)).toEqual([false, false, true, false, false]);
    for (const limit of [1, 2, 4, 5]) expect(await sessionsOf(client, limit)).toEqual(all);
    for (const { method, created_at, last_used_at, expires_at } of all) {
      expect([method, expires_at - created_at, created_at <= last_used_at]).toEqual(["password", 2_592_000_000, true]);
      expect(last_used_at).toBeLessThanOrEqual(before);
    }
    const text = JSON.stringify(all);
    for (const { accessToken, refreshToken } of own) {
      expect(text).not.toContain(accessToken);
      expect(text).not.toContain(refreshToken.slice(7, 31));
    }
    for (const query of ["limit=0", "limit=201", "limit=x", "cursor=x", "page=1"]) {
      await expectRefused(
        client.request("GET", `/me/sessions?${query}`),
        400,
        40000,
        new RegExp(`^${query.split("=")[0]}`),
      );
    }
    const next = await refreshed(world.server, own[4]!.refreshToken);
    const newest = (await sessionsOf(clientOf(world.server, next.access_token)))[0]!;
    expect([newest.id, newest.current, newest.created_at]).toEqual([all[0]!.id, true, all[0]!.created_at]);
    expect(newest.expires_at).toBeGreaterThan(all[0]!.expires_at);
    expect(newest.last_used_at).toBe(newest.expires_at - 2_592_000_000);
    await expectRefused(world.client("listing").request("GET", "/me/sessions"), 403, 40300);
  });

  test("records from where the sign-in came", async () => {
    const { server } = world;
    const from: [headers: Record<string, string>, userAgent: string | null, address: string][] = [
      [{}, null, "127.0.0.1"],
      [{ "User-Agent": "bot/1.0 (+https://bot.example)" }, "bot/1.0 (+https://bot.example)", "127.0.0.1"],
      [{ "User-Agent": "x".repeat(1_000), "X-Forwarded-For": "203.0.113.9" }, "x".repeat(200), "203.0.113.9"],
      // The proxy observed the rightmost entry.
      [{ "User-Agent": 'q"\\<b>', "X-Forwarded-For": "10.9.9.9, 2001:DB8::0:1" }, 'q"\\<b>', "2001:db8::1"],
    ];
    const body = { email: "described@example.com", password: PASSWORD };
    let client: Client | null = null;
    for (const [headers] of from) {
      const { data } = await post<SignInJson>(server, "/auth/login", body, headers);
      client = clientOf(server, data.access_token);
    }
    const found = (await sessionsOf(client!)).map(({ user_agent, address }) => [user_agent, address]);
    expect(found.reverse()).toEqual(from.map(([, userAgent, address]) => [userAgent, address]));
  });
});

describe("short-lived tokens", () => {
  let short: World;
  beforeAll(async () => {
    const names = ["expiring", "logged-out", "mixed", "refreshing", "unknown"];
    short = await start(names, { ACCESS_TOKEN_TTL: "2", REFRESH_TOKEN_TTL: "4" });
  });

  test.concurrent("an expired token is 2002, its sockets close, and a refresh goes on", async () => {
    const { server } = short;
    const { client, accessToken, refreshToken } = await enter(short, "expiring");
    const end = endOf(accessToken);
    const socket = await Socket.open(server, accessToken);
    expect((await askMe(client)).code).toBe(0);
    const closed = socket.closed.then((code) => [code, Date.now()] as const);
    const [code, at] = await closed;
    expect(code).toBe(4401);
    expect(at).toBeGreaterThanOrEqual(end);
    expect(at).toBeLessThanOrEqual(end + CLOSE_DEADLINE_MS);
    const refused = await expectRefused(askMe(client), 401, 2002);
    expect(refused.headers["www-authenticate"]).toMatch(/^Bearer/);
    await expectRefused(client.request("POST", "/orders", { body: {} }), 401, 2002);
    await expectRefused(logout(client), 401, 2002);
    expect(await refusedUpgrade(server, accessToken)).toEqual([401, 2002]);
    // Market data needs no token, so an expired one does no harm.
    expect((await client.request("GET", "/markets")).code).toBe(0);
    const { access_token } = await refreshed(server, refreshToken);
    expect((await askMe(clientOf(server, access_token))).code).toBe(0);
    await expectRefused(askMe(client), 401, 2002);
  });

  test.concurrent("a logged-out token stays 40100 when its time is over", async () => {
    const { client, accessToken } = await enter(short, "logged-out");
    expect((await logout(client)).code).toBe(0);
    await isGone(client);
    await clockAt(endOf(accessToken));
    await isGone(client);
    expect(await refusedUpgrade(short.server, accessToken)).toEqual([401, 40100]);
  });

  test.concurrent("a socket goes by the token that opened it", async () => {
    const { server } = short;
    const { accessToken, refreshToken } = await enter(short, "mixed");
    const old = await Socket.open(server, accessToken);
    // The claims count whole seconds: wait, so that the next token expires later.
    await clockAt(decodeJwt(accessToken).iat! * 1_000 + 1_000);
    const { access_token: later } = await refreshed(server, refreshToken);
    const fresh = await Socket.open(server, later);
    expect(endOf(later)).toBeGreaterThan(endOf(accessToken));
    const freshClosed = fresh.closed.then((code) => [code, Date.now()] as const);
    expect(await within(old.closed, 5_000)).toBe(4401);
    const [code, at] = await freshClosed;
    expect([code, at >= endOf(later)]).toEqual([4401, true]);
  });

  test.concurrent("a refresh token slides with each refresh, and is over when its time is", async () => {
    const { server } = short;
    const { client, refreshToken } = await enter(short, "refreshing");
    const [{ created_at, expires_at }] = (await sessionsOf(client)) as [SessionJson];
    expect(expires_at - created_at).toBe(4_000);
    await clockAt(created_at + 1_000);
    const next = await refreshed(server, refreshToken);
    const [session] = (await sessionsOf(clientOf(server, next.access_token))) as [SessionJson];
    expect(session.expires_at - session.last_used_at).toBe(4_000);
    expect(session.expires_at).toBeGreaterThanOrEqual(created_at + 5_000);
    await clockAt(session.expires_at);
    await expectRefused(refresh(server, next.refresh_token), 401, 40100);
    await expectRefused(refresh(server, refreshToken), 401, 40100);
    await expectRefused(askMe(client), 401, 2002);
  });

  test("a restart changes nothing of that", async () => {
    const [expired, left] = [await enter(short, "expiring"), await enter(short, "logged-out")];
    await logout(left.client);
    await clockAt(Math.max(endOf(expired.accessToken), endOf(left.accessToken)));
    await short.server.kill();
    short.server = await short.server.restart();
    const { server } = short;
    await expectRefused(askMe(clientOf(server, expired.accessToken)), 401, 2002);
    expect(await refusedUpgrade(server, expired.accessToken)).toEqual([401, 2002]);
    await isGone(clientOf(server, left.accessToken));
    // An expired token with a wrong signature is a forgery, not an expired token.
    const [head, claims, signature] = expired.accessToken.split(".");
    const forged = `${head}.${claims}.${signature!.startsWith("A") ? "B" : "A"}${signature!.slice(1)}`;
    await isGone(clientOf(server, forged));
  });
});

describe("what was answered is there", () => {
  const NAMED = ["staying", "ended", "fresh"];

  test("after kill -9 and after SIGTERM: sessions, rotation, and ends", async () => {
    const own = await start(NAMED);
    const old = own.server;
    const [staying, rotated, reused, leaving, ended] = [
      await enter(own, "staying"),
      await enter(own, "staying"),
      await enter(own, "staying"),
      await enter(own, "ended"),
      await enter(own, "ended"),
    ];
    const spent = await refreshed(old, reused!.refreshToken);
    const [other] = (await sessionsOf(ended!.client)).filter(({ current }) => current);
    const ender = await enter(own, "ended");
    const answers = await Promise.all([
      refresh(old, rotated!.refreshToken),
      refresh(old, reused!.refreshToken),
      logout(leaving!.client),
      ender.client.request("DELETE", `/me/sessions/${other!.id}`),
      post<SignInJson>(old, "/auth/login", { email: "fresh@example.com", password: PASSWORD }),
    ]);
    await old.kill();
    expect(answers.map(({ code }) => code)).toEqual([0, 40100, 0, 0, 0]);
    const next = answers[0]!.data as TokensJson;
    const fresh = answers[4]!.data as SignInJson;

    const check = async (): Promise<void> => {
      const { server } = own;
      const tokens = [staying!.accessToken, rotated!.accessToken, next.access_token, fresh.access_token];
      for (const token of [...tokens, ender.accessToken]) expect((await askMe(clientOf(server, token))).code).toBe(0);
      const gone = [reused!.accessToken, spent.access_token, leaving!.accessToken, ended!.accessToken];
      for (const token of gone) {
        await isGone(clientOf(server, token));
        expect(await refusedUpgrade(server, token)).toEqual([401, 40100]);
      }
      for (const token of [spent.refresh_token, leaving!.refreshToken, ended!.refreshToken]) {
        await expectRefused(refresh(server, token), 401, 40100);
      }
      const socket = await Socket.open(server, staying!.accessToken);
      await socket.settled();
      await socket.close();
      const listed = await sessionsOf(clientOf(server, staying!.accessToken));
      expect(listed.map(({ current }) => current)).toEqual([false, true]);
    };
    own.server = await old.restart();
    await check();
    const third = await refreshed(own.server, next.refresh_token);
    await own.server.stop();
    own.server = await own.server.restart();
    await check();
    expect((await askMe(clientOf(own.server, third.access_token))).code).toBe(0);
    // Reuse of the token spent before the crash still ends the session.
    await expectRefused(refresh(own.server, rotated!.refreshToken), 401, 40100);
    for (const token of [rotated!.accessToken, third.access_token]) await isGone(clientOf(own.server, token));
    await expectRefused(refresh(own.server, third.refresh_token), 401, 40100);
    await isCurrent(clientOf(own.server, fresh.access_token), fresh.refresh_token);
  });
});

describe("a hundred sessions", () => {
  let full: World;
  const firsts = new Map<string, { readonly signedIn: SignedIn; readonly row: SessionJson }>();
  beforeAll(async () => {
    full = await start(["crowd", "rush", "neighbour"]);
    for (const name of ["crowd", "rush"]) {
      const signedIn = await enter(full, name);
      firsts.set(name, { signedIn, row: (await sessionsOf(signedIn.client))[0]! });
    }
    await full.server.stop();
    withDatabase(full.server.dataDir, (db) => {
      const insert = db.prepare(`
      INSERT INTO sessions (user_id, method, scopes, family, refresh_hash, created_at, last_used_at, expires_at)
      SELECT user_id, method, scopes, 'family-' || id || '-' || ?, refresh_hash, (SELECT max(created_at) FROM sessions),
        last_used_at, expires_at + ? FROM sessions WHERE id = ?`);
      for (const [name, { row }] of firsts) {
        // For "crowd", the oldest session counts as the most recently refreshed one.
        for (let i = 1; i < MAX_SESSIONS; i++) insert.run(i, name === "crowd" ? -i * 1_000 : i, row.id);
      }
    });
    full.server = await full.server.restart();
  });

  test("the next one ends the oldest, also where a younger one was refreshed longer ago", async () => {
    const { server } = full;
    const { signedIn: first, row } = firsts.get("crowd")!;
    const neighbour = await enter(full, "neighbour");
    const client = clientOf(server, first.accessToken);
    expect(await sessionsOf(client)).toHaveLength(MAX_SESSIONS);
    const socket = await Socket.open(server, first.accessToken);

    const newest = await enter(full, "crowd");
    await expectEnded(socket);
    await isGone(client);
    await expectRefused(refresh(server, first.refreshToken), 401, 40100);
    const left = await sessionsOf(newest.client);
    expect([left.length, left[0]!.current, left.some(({ id }) => id === row.id)]).toEqual([MAX_SESSIONS, true, false]);
    expect((await askMe(clientOf(server, neighbour.accessToken))).code).toBe(0);
  });

  test("several at one time end as many", async () => {
    const { server } = full;
    const before = (await sessionsOf(clientOf(server, firsts.get("rush")!.signedIn.accessToken))).map(({ id }) => id);
    expect(before).toHaveLength(MAX_SESSIONS);
    const count = 6;
    const entered = await Promise.all(Array.from({ length: count }, () => enter(full, "rush")));
    const lists = await Promise.all(entered.map(({ client }) => sessionsOf(client)));
    const ids = lists[0]!.map(({ id }) => id);
    expect([ids.length, ids.slice(count)]).toEqual([MAX_SESSIONS, before.slice(0, MAX_SESSIONS - count)]);
    expect(lists.map((list) => list.filter(({ current }) => current).length)).toEqual(entered.map(() => 1));
  });
});
