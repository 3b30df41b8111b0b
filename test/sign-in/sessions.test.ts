/**
 * Sessions, as owners and token thieves use them: sign-in, refresh token rotation, immediate logout, logout everywhere,
 * and the list of sessions. For kills, see session-restarts.test.ts; for expiry, session-expiry.test.ts; for forged
 * tokens, forged-tokens.test.ts.
 */
import { decodeJwt, decodeProtectedHeader } from "jose";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { expectEnded, expectEndsWell, expectUnlogged } from "../support/checks.ts";
import { type Answer, API_BASE, type Client } from "../support/client.ts";
import { expectUnkept } from "../support/data-dir.ts";
import { Guests, PASSWORD, type SignedIn, type SignInJson, type TokensJson } from "../support/identity.ts";
import { refusedUpgrade, Socket } from "../support/socket.ts";
import { BUY, expectRefused, terms } from "../support/trading.ts";
import { ALL_SCOPES, PUBLIC_URL, World } from "../support/world.ts";
import { askMe, isGone, logout, post, refresh, sessionHolder, sessionsOf } from "./session-holder.ts";

const NAMES = [
  ...["shape", "wrong", "rotating", "racing", "garbage", "leaving", "ending", "crowded", "other", "listing"],
  ...["described", "sockets", "crossing"],
];
const guests = new Guests();
const { secrets } = guests;
const { clientOf, enter, refreshed, isCurrent } = sessionHolder(guests);
let world: World;

beforeAll(async () => {
  const named = Object.fromEntries(NAMES.map((name) => [name, { password: PASSWORD }]));
  world = await World.start({ users: 0, named, env: { PUBLIC_URL, TRUSTED_PROXIES: "127.0.0.1" } });
});
afterAll(async () => {
  guests.close();
  await expectEndsWell(world);
  expectUnlogged(secrets, world.server);
  expectUnkept(secrets, world.server.dataDir);
});

describe("sign-in", () => {
  test("a sign-in returns tokens and the user, and the response must not be stored", async () => {
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

  test("a wrong password and an unknown address get the same response, and open no session", async () => {
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

  test("a session token has all scopes, over HTTP and on a socket", async () => {
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
  test("a refresh returns new tokens of the same session, and a spent token ends it with all of its sockets", async () => {
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
    await other.fence();
    await isCurrent(bystander.client, bystander.refreshToken);
    expect(await sessionsOf(bystander.client)).toHaveLength(1);
    await other.close();
  });

  test("at most one of several concurrent refreshes with one token succeeds, and the session ends", async () => {
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

  test("a refresh rejects anything but a refresh token, and no rejected token harms the session", async () => {
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

  test("a refresh rejects an access token", async () => {
    const { client, accessToken, refreshToken } = await enter(world, "garbage");
    await expectRefused(refresh(world.server, accessToken), 401, 40100);
    await isCurrent(client, refreshToken);
  });
});

describe("the end of a session", () => {
  test("logout is immediate, for all of its tokens, connections and sockets", async () => {
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
    await otherSocket.fence();
    await isCurrent(other.client, other.refreshToken);
    await otherSocket.close();
  });

  test("a logout and a concurrent refresh leave no valid token", async () => {
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

  test("an owner ends a session by its id, including the current one, and cannot end another user's", async () => {
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
    for (const socket of sockets) await socket.fence();

    expect(await end(one.client, idTwo)).toMatchObject({ status: 200, code: 0, data: null });
    await isGone(two.client);
    await expectEnded(sockets[1]!);
    await expectRefused(refresh(server, two.refreshToken), 401, 40100);
    await expectRefused(end(one.client, idTwo), 404, 4040);
    await sockets[0]!.fence();

    expect(await end(one.client, idOne)).toMatchObject({ status: 200, code: 0, data: null });
    await isGone(one.client);
    await expectEnded(sockets[0]!);
    await expectRefused(refresh(server, one.refreshToken), 401, 40100);
    expect((await askMe(stranger.client)).code).toBe(0);
  });

  test("an owner ends all of their other sessions with their sockets, and no other user's", async () => {
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
    await keptSocket!.fence();
    expect((await askMe(stranger.client)).code).toBe(0);
    expect((await kept!.client.request("DELETE", "/me/sessions")).code).toBe(0);
    expect((await askMe(kept!.client)).code).toBe(0);
  });
});

describe("the list of sessions", () => {
  test("the list of sessions contains the caller's own, newest first, by pages, and marks the current one", async () => {
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

  test("the list of sessions contains the address and the user agent of the sign-in", async () => {
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
