/** Expiry of access tokens, refresh tokens and sockets, on a server with short lifetimes, and over a kill -9. */
import { decodeJwt } from "jose";
import { afterAll, beforeAll, expect, test } from "vitest";
import { CLOSE_DEADLINE_MS, clockAt, expectEndsWell, expectUnlogged } from "../support/checks.ts";
import { expectUnkept } from "../support/data-dir.ts";
import { Guests, PASSWORD, type SignedIn } from "../support/identity.ts";
import { within } from "../support/server.ts";
import { refusedUpgrade, Socket } from "../support/socket.ts";
import { expectRefused } from "../support/trading.ts";
import { PUBLIC_URL, World } from "../support/world.ts";
import {
  askMe,
  endOf,
  isGone,
  logout,
  refresh,
  type SessionJson,
  sessionHolder,
  sessionsOf,
} from "./session-holder.ts";

const NAMES = ["expiring", "logged-out", "mixed", "refreshing", "expired-before", "logged-out-before"];
const guests = new Guests();
const { secrets } = guests;
const { clientOf, enter, refreshed } = sessionHolder(guests);
let world: World;
/** Sessions that expire before the kill, one of them after a logout. */
let expired: SignedIn;
let left: SignedIn;

beforeAll(async () => {
  const named = Object.fromEntries(NAMES.map((name) => [name, { password: PASSWORD }]));
  world = await World.start({ users: 0, named, env: { PUBLIC_URL, ACCESS_TOKEN_TTL: "2", REFRESH_TOKEN_TTL: "4" } });
  [expired, left] = [await enter(world, "expired-before"), await enter(world, "logged-out-before")];
  await logout(left.client);
});
afterAll(async () => {
  guests.close();
  await expectEndsWell(world);
  expectUnlogged(secrets, world.server);
  expectUnkept(secrets, world.server.dataDir);
});

test.concurrent("an expired token is rejected with 2002, its sockets close, and its session can refresh", async () => {
  const { server } = world;
  const { client, accessToken, refreshToken } = await enter(world, "expiring");
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
  // Market data needs no token, so an expired one is accepted.
  expect((await client.request("GET", "/markets")).code).toBe(0);
  const { access_token } = await refreshed(server, refreshToken);
  expect((await askMe(clientOf(server, access_token))).code).toBe(0);
  await expectRefused(askMe(client), 401, 2002);
});

test.concurrent("a logged-out token is still rejected with 40100 after its expiry", async () => {
  const { client, accessToken } = await enter(world, "logged-out");
  expect((await logout(client)).code).toBe(0);
  await isGone(client);
  await clockAt(endOf(accessToken));
  await isGone(client);
  expect(await refusedUpgrade(world.server, accessToken)).toEqual([401, 40100]);
});

test.concurrent("a socket closes at the expiry of the token that opened it", async () => {
  const { server } = world;
  const { accessToken, refreshToken } = await enter(world, "mixed");
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

test.concurrent("each refresh extends the refresh token, which is rejected after its expiry", async () => {
  const { server } = world;
  const { client, refreshToken } = await enter(world, "refreshing");
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

test("a kill -9 changes none of these rejections", async () => {
  await clockAt(Math.max(endOf(expired.accessToken), endOf(left.accessToken)));
  await world.server.kill();
  expectUnlogged(secrets, world.server);
  world.server = await world.server.restart();
  const { server } = world;
  await expectRefused(askMe(clientOf(server, expired.accessToken)), 401, 2002);
  expect(await refusedUpgrade(server, expired.accessToken)).toEqual([401, 2002]);
  await isGone(clientOf(server, left.accessToken));
  // An expired token with a wrong signature is a forgery, not an expired token.
  const [head, claims, signature] = expired.accessToken.split(".");
  const forged = `${head}.${claims}.${signature!.startsWith("A") ? "B" : "A"}${signature!.slice(1)}`;
  await isGone(clientOf(server, forged));
});
