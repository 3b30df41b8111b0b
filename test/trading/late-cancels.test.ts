/**
 * Bursts of late cancels and amends: each receives 40900, from memory if the order ended recently and from the database
 * otherwise; another user's order is 4040. And fair reads: a user who floods the pool with heavy reads delays only itself.
 */
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { BatchedLookups } from "../../server/queries/batched-lookups.ts";
import { FairReads } from "../../server/queries/fair-reads.ts";
import { MAX_RECENTLY_ENDED_ORDERS } from "../../server/trading/limits.ts";
import { RecentlyEndedOrders } from "../../server/trading/recently-ended-orders.ts";
import { expectBalanced, expectSoundDatabase } from "../support/checks.ts";
import type { Client } from "../support/client.ts";
import type { Socket } from "../support/socket.ts";
import { alone, BUY, batch, cancelAll, expectRefused, idsOf, patch, post, SELL, terms } from "../support/trading.ts";
import { type TestMarket, World } from "../support/world.ts";

let world: World;
beforeAll(async () => {
  world = await World.start({ users: 20, named: { owner: {}, stranger: {} }, markets: Array<number>(10).fill(2) });
});
afterAll(async () => {
  await expectBalanced(world.anonymous());
  await world.stop();
  expectSoundDatabase(world.server.dataDir);
});

/** Places and cancels this many orders; returns their ids. */
async function endedOrders(user: Client, market: TestMarket, count: number): Promise<number[]> {
  const place = { op: "place", ...terms(market, 0, BUY, 10, 1) };
  const ids: number[] = [];
  while (ids.length < count) ids.push(...(await batch(user, Array(50).fill(place))).map(({ data }) => data!.id));
  await cancelAll(user);
  return ids;
}

/** Sends operations at once; returns the number of responses by code. */
async function burst(socket: Socket, operations: readonly object[]): Promise<Record<number, number>> {
  const asked = operations.map((operation) => socket.post(operation));
  const counts: Record<number, number> = {};
  for (const id of asked) {
    const { code } = await socket.answer(id);
    counts[code] = (counts[code] ?? 0) + 1;
  }
  return counts;
}

const late = (ids: readonly number[], count: number): object[] =>
  Array.from({ length: count }, (_, i) => {
    const id = ids[i % ids.length]!;
    return i % 2 === 0 ? { op: "order.cancel", data: { id } } : { op: "order.amend", data: { id, price: 11 } };
  });

describe("a burst on one socket", () => {
  test("a burst of cancels and amends of recently ended orders receives 40900, all 8,000 times", async () => {
    const [market, user, other] = [world.market(), world.user(), world.user()];
    const ids = await endedOrders(user, market, 500);
    const socket = await world.socket(user);
    expect(await burst(socket, late(ids, 8_000))).toEqual({ 40900: 8_000 });
    const stranger = await world.socket(other);
    expect(await burst(stranger, late(ids, 8_000))).toEqual({ 4040: 8_000 });
    await expectRefused(patch(user, ids[0]!, { price: 11 }), 409, 40900, /^the order is finished/);
    await expectRefused(user.request("DELETE", `/orders/${ids[0]}`), 409, 40900, /^the order is finished/);
    await expectRefused(other.request("DELETE", `/orders/${ids[0]}`), 404, 4040);
    for (const each of [socket, stranger]) await each.close();
  });

  test("a burst of cancels for filled and rejected orders receives 40900 too", async () => {
    const [market, user, other] = [world.market(), world.user(), world.user()];
    const filled = await user.place(terms(market, 0, BUY, 5_000, 1));
    await world.split(other, market, 1);
    const taken = await other.place(terms(market, 0, SELL, 5_000, 1));
    const rejected = await user.place(terms(market, 0, BUY, 10, 1, { valid_until: 1 }));
    const socket = await world.socket(user);
    expect(await burst(socket, late([filled.id, rejected.id], 100))).toEqual({ 40900: 100 });
    expect(await burst(socket, late([taken.id], 100))).toEqual({ 4040: 100 });
    await socket.close();
  });

  test("a burst of cancels for orders from before a restart receives 40900, for unknown ids 4040, all 8,000 times", async () => {
    const ids = await endedOrders(world.client("owner"), world.market(), 1_000);
    await world.server.stop();
    world.server = await world.server.restart();
    const [user, other] = [world.client("owner"), world.client("stranger")];
    const socket = await world.socket(user);
    expect(await burst(socket, late(ids, 8_000))).toEqual({ 40900: 8_000 });
    expect(await burst(socket, late([ids.at(-1)! + 1, 2 ** 50], 8_000))).toEqual({ 4040: 8_000 });
    const stranger = await world.socket(other);
    expect(await burst(stranger, late(ids, 8_000))).toEqual({ 4040: 8_000 });
    const results = await batch(
      user,
      ids.slice(0, 50).map((id) => ({ op: "cancel", id })),
    );
    expect(results.map(({ code }) => code)).toEqual(Array(50).fill(40900));
    for (const each of [socket, stranger]) await each.close();
  });

  test("a burst of cancels under the usual rate limits receives 40900 for every accepted request", async () => {
    await alone({ users: 1, markets: [2], env: { RATE_LIMITS: "on" } }, async (own) => {
      const user = own.user();
      const place = { op: "place", ...terms(own.market(), 0, BUY, 10, 1) };
      const ids = (await batch(user, Array(50).fill(place))).map(({ data }) => data!.id);
      await cancelAll(user);
      await own.server.kill();
      own.server = await own.server.restart();
      const again = own.client("user0", 0, 30);
      const operations = ids.map((id) => ({ op: "cancel", id }));
      const answers = await Promise.all(
        Array.from({ length: 30 }, () =>
          again.request<{ results: { code: number }[] }>("POST", "/orders/batch", { body: { operations } }),
        ),
      );
      const codes = answers.flatMap(({ data }) => data.results.map(({ code }) => code));
      expect(codes).toEqual(Array(30 * 50).fill(40900));
    });
  });
});

test("RecentlyEndedOrders keeps the latest orders, whatever their ids", () => {
  const ended = new RecentlyEndedOrders();
  const first = 2 ** 40;
  expect([ended.ownerOf(0), ended.ownerOf(1), ended.ownerOf(first)]).toEqual([0, 0, 0]);
  for (let i = 0; i < MAX_RECENTLY_ENDED_ORDERS; i++) ended.add(first + i, (i % 7) + 1);
  for (let i = 0; i < MAX_RECENTLY_ENDED_ORDERS; i++) {
    if (ended.ownerOf(first + i) !== (i % 7) + 1) throw new Error(`the order ${i} is forgotten`);
  }
  ended.add(first + MAX_RECENTLY_ENDED_ORDERS, 9);
  expect([ended.ownerOf(first), ended.ownerOf(first + MAX_RECENTLY_ENDED_ORDERS)]).toEqual([0, 9]);
});

test("BatchedLookups batches lookups into reads, users in turn, and a failed read rejects its own lookups only", async () => {
  const reads: number[][] = [];
  const lookups = new BatchedLookups<number, number>(async (ids) => {
    reads.push([...ids]);
    if (ids.includes(13)) throw new Error("unlucky");
    await new Promise((resolve) => setImmediate(resolve));
    return ids.map((id) => id * 10);
  });
  const flood = Array.from({ length: 5_000 }, (_, i) => lookups.find("1", i + 100));
  const other = lookups.find("2", 7);
  expect(await other).toBe(70);
  expect([reads[0]!.length, ...reads[0]!.slice(0, 3)]).toEqual([1_000, 100, 7, 101]);
  expect(await Promise.all(flood)).toEqual(Array.from({ length: 5_000 }, (_, i) => (i + 100) * 10));
  expect(reads).toHaveLength(6);
  await expect(lookups.find("1", 13)).rejects.toThrow("unlucky");
  expect(await lookups.find("1", 14)).toBe(140);
});

describe("FairReads", () => {
  /** Reads that end when `ends` is called. */
  function jobs(reads: FairReads) {
    const begun: string[] = [];
    const ends = new Map<string, () => void>();
    const run = (reader: string, name: string): Promise<void> =>
      reads.run(reader, () => {
        begun.push(name);
        return new Promise<void>((resolve) => ends.set(name, resolve));
      });
    return { begun, ends, run };
  }

  test("no reader occupies all threads of fair reads, and others' turns come before a flood's", async () => {
    const reads = new FairReads(2);
    const { begun, ends, run } = jobs(reads);
    const flood = Array.from({ length: 100 }, (_, i) => run("a", `a${i}`));
    expect(begun).toEqual(["a0"]);
    const own = run("b", "b0");
    expect(begun).toEqual(["a0", "b0"]);
    const waiting = [run("c", "c0"), run("b", "b1")];
    expect(reads.queued).toBe(101);
    const end = async (name: string, ended: Promise<void>): Promise<void> => {
      ends.get(name)!();
      await ended;
      await Promise.resolve();
    };
    // The flood keeps its one thread; the free thread serves the others in turn.
    await end("b0", own);
    expect(begun).toEqual(["a0", "b0", "c0"]);
    await end("c0", waiting[0]!);
    expect(begun).toEqual(["a0", "b0", "c0", "b1"]);
    await end("a0", flood[0]!);
    await end("b1", waiting[1]!);
    expect(begun).toEqual(["a0", "b0", "c0", "b1", "a1"]);
    const last = run("d", "d0");
    expect(begun.at(-1)).toBe("d0");
    await end("d0", last);
    for (let i = 1; i < 100; i++) {
      ends.get(`a${i}`)!();
      await flood[i];
      await Promise.resolve();
    }
    expect(reads.queued).toBe(0);
  });

  test("the queue of one reader is bounded: the next read is rejected; a failed read frees its thread", async () => {
    const reads = new FairReads(2);
    const { ends, run } = jobs(reads);
    const flood = Array.from({ length: 2_001 }, (_, i) => run("a", `a${i}`));
    await expect(run("a", "late")).rejects.toMatchObject({ message: expect.stringMatching(/^too many reads/) });
    const failing = reads.run("b", () => Promise.reject(new Error("broken")));
    await expect(failing).rejects.toThrow("broken");
    const other = run("c", "c0");
    ends.get("c0")!();
    await other;
    for (let i = 0; i < flood.length; i++) {
      ends.get(`a${i}`)!();
      await flood[i];
      await Promise.resolve();
    }
  });
});

test("while one user floods heavy reads, others' reads complete at once", async () => {
  const [market, heavy, light] = [world.market(), world.user(), world.user()];
  for (let i = 0; i < 4; i++) await endedOrders(heavy, market, 500);
  const { id } = await light.place(terms(market, 0, BUY, 10, 1));
  await light.cancel(id);
  const flooding = world.client(heavy.token!.split("-")[1]!, 0, 400);
  let answered = 0;
  const flood = Array.from({ length: 400 }, async () => {
    const { status } = await flooding.request("GET", "/orders?status=all&client_order_id=none");
    expect(status).toBe(200);
    answered++;
  });
  // The first response shows that the flood has started.
  await Promise.race(flood);
  for (let i = 0; i < 5; i++) expect(idsOf(await light.all("/orders?status=all"))).toEqual([id]);
  expect(answered).toBeLessThan(300);
  await Promise.all(flood);
  await expectRefused(post(light, { ...terms(market, 0, BUY, 10, 1), price: 0 }), 400, 40000);
});
