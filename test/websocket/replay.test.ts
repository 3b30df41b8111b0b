/** Replays of the private stream on one connection: which resumes are valid, with which scopes, and in which order. */
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { expectEndsWell } from "../support/checks.ts";
import type { OrderJson } from "../support/client.ts";
import { SPEAKS_SBE } from "../support/projects.ts";
import { Random } from "../support/random.ts";
import { resume, updatesAfter } from "../support/resume.ts";
import { Socket } from "../support/socket.ts";
import { BUY, SELL, terms } from "../support/terms.ts";
import { expectRefused } from "../support/trading.ts";
import { tokenOf, World } from "../support/world.ts";

describe("one connection", () => {
  let world: World;
  beforeAll(async () => {
    const named = { scoped: { scopes: [["orders:write"], ["portfolio:read"], ["markets:read"]] } };
    world = await World.start({
      users: 10,
      named,
      markets: Array<number>(8).fill(2),
      env: { RATE_LIMITS: '{"order_user":100000,"order_address":100000}' },
    });
  });
  afterAll(() => expectEndsWell(world));

  test.skipIf(SPEAKS_SBE)("an invalid resume is rejected, and the connection stays open", async () => {
    const [market, user] = [world.market(), world.user()];
    const socket = await world.socket(user);
    await user.place(terms(market, 0, BUY, 10, 1));
    await socket.frame("order.updated");
    const wrong: [object, number, RegExp][] = [
      [{ sequence: 2 }, 40000, /^sequence: the last is 1$/],
      [{ sequence: 2 ** 53 - 1 }, 40000, /the last is 1/],
      [{ sequence: 2 ** 53 }, 40000, /sequence/],
      [{ sequence: -1 }, 40000, /sequence/],
      [{ sequence: 0.5 }, 40000, /sequence/],
      [{ sequence: "0" }, 40000, /sequence/],
      [{ sequence: null }, 40000, /sequence/],
      [{}, 40000, /sequence/],
      [{ sequence: 0, after: 0 }, 40000, /after/],
    ];
    for (const [operation, code, msg] of wrong) {
      expect(await socket.ask({ op: "resume", ...operation })).toMatchObject({ code, msg: expect.stringMatching(msg) });
    }
    await user.place(terms(market, 0, BUY, 11, 1));
    await socket.frame("order.updated", (_, { sequence }) => sequence === 2);
    expect(socket.of("order.updated").map(({ sequence }) => sequence)).toEqual([1, 2]);
    const anonymous = await Socket.open(world.server, null);
    expect(await anonymous.ask({ op: "resume", sequence: 0 })).toMatchObject({ code: 40100 });
    const queries = ["after=3", "after=-1", "after=x", "after=0.5", "limit=0", "limit=201", "cursor=x", "nothing=1"];
    for (const query of queries) await expectRefused(user.request("GET", `/me/events?${query}`), 400, 40000);
    const cursor = (...keys: number[]): string => Buffer.from(JSON.stringify(keys)).toString("base64url");
    for (const keys of [[-1], [3], [0, 0], []])
      await expectRefused(user.request("GET", `/me/events?cursor=${cursor(...keys)}`), 400, 40000);
    await expectRefused(world.anonymous().request("GET", "/me/events"), 401, 40100);
    for (const each of [socket, anonymous]) await each.close();
  });

  test("scopes of a replay: orders:write resumes without its money, portfolio:read with it, markets:read not at all", async () => {
    const market = world.market();
    await world.client("scoped", 0).place(terms(market, 0, BUY, 10, 1));
    const sockets = await Promise.all([0, 1, 2].map((i) => Socket.open(world.server, tokenOf("scoped", i))));
    const answers = [];
    for (const socket of sockets) answers.push(await socket.ask({ op: "resume", sequence: 0 }));
    expect(answers.map(({ code }) => code)).toEqual([0, 0, 40300]);
    await sockets[0]!.frame("order.updated");
    await sockets[1]!.frame("balance.updated");
    const kinds = sockets.map(({ frames }) => frames.map(({ event }) => event));
    expect(kinds).toEqual([["order.updated"], ["order.updated", "balance.updated"], []]);
    const reads = [0, 1, 2].map((i) => world.client("scoped", i).request("GET", "/me/events"));
    expect((await Promise.all(reads)).map(({ code }) => code)).toEqual([0, 0, 40300]);
    expect((await reads[2]!).msg).toBe(answers[2]!.msg);
    for (const socket of sockets) await socket.close();
  });

  test("a resume counts against the rate limit of GET /me/events", async () => {
    const user = world.user();
    const socket = await world.socket(user);
    for (let n = 0; n < 60; n++) expect((await socket.ask({ op: "resume", sequence: 0 })).code).toBe(0);
    const { headers } = await user.request("GET", "/me/events");
    expect(headers["ratelimit-remaining"]).toBe("39");
    const answers = await Promise.all(Array.from({ length: 60 }, () => socket.ask({ op: "resume", sequence: 1 })));
    expect(answers.filter(({ code }) => code === 42900)).toHaveLength(21);
    const refused = answers.at(-1)!;
    expect(refused).toMatchObject({ code: 42900, rate_limit: { limit: 100, remaining: 0 } });
    const { headers: asHttp } = await user.request("GET", "/me/events");
    expect([refused.retry_after, refused.retry_after! + 1]).toContain(Number(asHttp["retry-after"]));
    await socket.close();
  });

  test("a live connection replays its own updates and continues after them", async () => {
    const [market, user] = [world.market(), world.user()];
    const socket = await world.socket(user);
    for (let n = 1; n <= 5; n++) await user.place(terms(market, 0, BUY, n, 1));
    await socket.fence();
    for (const sequence of [5, 3, 0]) {
      const answer = await resume(socket, sequence);
      const expected = [1, 2, 3, 4, 5].slice(sequence);
      expect(updatesAfter(socket, answer).map((frame) => frame.sequence)).toEqual(expected);
    }
    await user.place(terms(market, 0, BUY, 6, 1));
    await socket.frame("order.updated", (_, { sequence }) => sequence === 6);
    await socket.close();
  });

  test("the response to an order precedes its first update, also within a replay", async () => {
    const random = Random.printed("answers first");
    const [market, user, other] = [world.market(), world.user(), world.user()];
    for (const each of [user, other]) await world.split(each, market, 200);
    const socket = await world.socket(user);
    const place = (): object => terms(market, 0, random.pick([BUY, SELL]), 5_000 + random.integer(-3, 3), 1);
    for (let round = 0; round < 30; round++) {
      const posted = [socket.post({ op: "order.place", data: place() })];
      const operations = Array.from({ length: 6 }, () => ({ op: "place", ...place() }));
      posted.push(socket.post({ op: "order.batch", data: { operations } }));
      posted.push(socket.post({ op: "resume", sequence: Math.max(0, 6 * round - random.integer(0, 8)) }));
      posted.push(socket.post({ op: "order.batch", data: { operations } }));
      posted.push(socket.post({ op: "order.place", data: place() }));
      await Promise.all([...posted.map((id) => socket.answer(id)), other.place(place())]);
    }
    await socket.fence();
    const answered = new Set<number>();
    let updates = 0;
    for (const arrival of socket.arrivals) {
      if ("event" in arrival) {
        if (arrival.event !== "order.updated") continue;
        updates++;
        expect(answered).toContain((arrival.data as OrderJson).id);
        continue;
      }
      const { id, results } = (arrival.data ?? {}) as { id?: number; results?: { data: OrderJson | null }[] };
      for (const order of results ?? []) if (order.data !== null) answered.add(order.data.id);
      if (id !== undefined) answered.add(id);
    }
    expect(updates).toBeGreaterThan(400);
    await socket.close();
  });
});
