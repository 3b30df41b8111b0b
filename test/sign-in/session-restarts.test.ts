/** Sessions over kill -9 and a stop: each is as the last response said, and a user has a hundred at most. */
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { expectEnded, expectEndsWell, expectUnlogged } from "../support/checks.ts";
import { expectUnkept, withDatabase } from "../support/data-dir.ts";
import { Guests, PASSWORD, type SignedIn, type SignInJson, type TokensJson } from "../support/identity.ts";
import { refusedUpgrade, Socket } from "../support/socket.ts";
import { expectRefused } from "../support/trading.ts";
import { PUBLIC_URL, World } from "../support/world.ts";
import { askMe, isGone, logout, post, refresh, type SessionJson, sessionHolder, sessionsOf } from "./session-holder.ts";

const MAX_SESSIONS = 100;

const NAMES = ["staying", "ended", "fresh", "crowd", "rush", "neighbour"];
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

/** Sessions in every state before the kill, and what the requests just before it returned. */
async function prepareSessions() {
  const { server } = world;
  const entered: SignedIn[] = [];
  for (const name of ["staying", "staying", "staying", "ended", "ended"]) entered.push(await enter(world, name));
  const [staying, rotated, reused, leaving, ended] = entered as [SignedIn, SignedIn, SignedIn, SignedIn, SignedIn];
  const spent = await refreshed(server, reused.refreshToken);
  const [other] = (await sessionsOf(ended.client)).filter(({ current }) => current);
  const ender = await enter(world, "ended");
  const replies = await Promise.all([
    refresh(server, rotated.refreshToken),
    refresh(server, reused.refreshToken),
    logout(leaving.client),
    ender.client.request("DELETE", `/me/sessions/${other!.id}`),
    post<SignInJson>(server, "/auth/login", { email: "fresh@example.com", password: PASSWORD }),
  ]);
  expect(replies.map(({ code }) => code)).toEqual([0, 40100, 0, 0, 0]);
  const [next, fresh] = [replies[0]!.data as TokensJson, replies[4]!.data as SignInJson];
  return {
    staying,
    rotated,
    next,
    fresh,
    ender,
    ended: [leaving, ended],
    reused,
    spent,
  };
}

describe("after a kill -9", () => {
  let before: Awaited<ReturnType<typeof prepareSessions>>;
  const firsts = new Map<string, { readonly signedIn: SignedIn; readonly row: SessionJson }>();
  beforeAll(async () => {
    for (const name of ["crowd", "rush"]) {
      const signedIn = await enter(world, name);
      firsts.set(name, { signedIn, row: (await sessionsOf(signedIn.client))[0]! });
    }
    before = await prepareSessions();
    await world.server.kill();
    expectUnlogged(secrets, world.server);
    world.server = await world.server.restart();
  });

  /** Expects sessions, rotations and ends to be as before the kill. */
  async function expectSessionsAsBefore(): Promise<void> {
    const { server } = world;
    const { staying, rotated, next, fresh, ender, ended, reused, spent } = before;
    const tokens = [staying.accessToken, rotated.accessToken, next.access_token, fresh.access_token];
    for (const token of [...tokens, ender.accessToken]) expect((await askMe(clientOf(server, token))).code).toBe(0);
    for (const token of [reused.accessToken, spent.access_token, ...ended.map(({ accessToken }) => accessToken)]) {
      await isGone(clientOf(server, token));
      expect(await refusedUpgrade(server, token)).toEqual([401, 40100]);
    }
    for (const token of [spent.refresh_token, ...ended.map(({ refreshToken }) => refreshToken)]) {
      await expectRefused(refresh(server, token), 401, 40100);
    }
    const socket = await Socket.open(server, staying.accessToken);
    await socket.fence();
    await socket.close();
    const listed = await sessionsOf(clientOf(server, staying.accessToken));
    expect(listed.map(({ current }) => current)).toEqual([false, true]);
  }

  test("after a kill -9, sessions, rotations and ends are as the server's responses said", expectSessionsAsBefore);

  describe("and a stop", () => {
    let third: TokensJson;
    beforeAll(async () => {
      third = await refreshed(world.server, before.next.refresh_token);
      await world.server.stop();
      expectUnlogged(secrets, world.server);
      withDatabase(world.server.dataDir, (db) => {
        const insert = db.prepare(`
      INSERT INTO sessions (user_id, method, scopes, family, refresh_hash, created_at, last_used_at, expires_at)
      SELECT user_id, method, scopes, 'family-' || id || '-' || ?, refresh_hash, (SELECT max(created_at) FROM sessions),
        last_used_at, expires_at + ? FROM sessions WHERE id = ?`);
        for (const [name, { row }] of firsts) {
          // For "crowd", the oldest session counts as the most recently refreshed one.
          for (let i = 1; i < MAX_SESSIONS; i++) insert.run(i, name === "crowd" ? -i * 1_000 : i, row.id);
        }
      });
      world.server = await world.server.restart();
    });

    test("after a kill -9 and a stop, sessions are as the responses said, and reuse of a token spent before the kill ends its session", async () => {
      await expectSessionsAsBefore();
      const { server } = world;
      expect((await askMe(clientOf(server, third.access_token))).code).toBe(0);
      await expectRefused(refresh(server, before.rotated.refreshToken), 401, 40100);
      for (const token of [before.rotated.accessToken, third.access_token]) await isGone(clientOf(server, token));
      await expectRefused(refresh(server, third.refresh_token), 401, 40100);
      await isCurrent(clientOf(server, before.fresh.access_token), before.fresh.refresh_token);
    });

    test("a user with a hundred sessions loses the oldest at the next sign-in, even if a younger one was refreshed longer ago", async () => {
      const { server } = world;
      const { signedIn: first, row } = firsts.get("crowd")!;
      const neighbour = await enter(world, "neighbour");
      const client = clientOf(server, first.accessToken);
      expect(await sessionsOf(client)).toHaveLength(MAX_SESSIONS);
      const socket = await Socket.open(server, first.accessToken);

      const newest = await enter(world, "crowd");
      await expectEnded(socket);
      await isGone(client);
      await expectRefused(refresh(server, first.refreshToken), 401, 40100);
      const left = await sessionsOf(newest.client);
      expect([left.length, left[0]!.current, left.some(({ id }) => id === row.id)]).toEqual([
        MAX_SESSIONS,
        true,
        false,
      ]);
      expect((await askMe(clientOf(server, neighbour.accessToken))).code).toBe(0);
    });

    test("several concurrent sign-ins of a user with a hundred sessions end as many", async () => {
      const { server } = world;
      const before = (await sessionsOf(clientOf(server, firsts.get("rush")!.signedIn.accessToken))).map(({ id }) => id);
      expect(before).toHaveLength(MAX_SESSIONS);
      const count = 6;
      const entered = await Promise.all(Array.from({ length: count }, () => enter(world, "rush")));
      const lists = await Promise.all(entered.map(({ client }) => sessionsOf(client)));
      const ids = lists[0]!.map(({ id }) => id);
      expect([ids.length, ids.slice(count)]).toEqual([MAX_SESSIONS, before.slice(0, MAX_SESSIONS - count)]);
      expect(lists.map((list) => list.filter(({ current }) => current).length)).toEqual(entered.map(() => 1));
    });
  });
});
