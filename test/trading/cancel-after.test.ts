/**
 * The dead man's switch: all of a user's live orders end when the user falls silent, and none of anybody else's; asking
 * again puts it off; it outlives restarts and crashes, and comes due while the exchange is down.
 */
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { openSqlite } from "../../engine/util/sqlite.ts";
import { CancelTimers } from "../../server/trading/cancel-timers.ts";
import { eventually, expectBalanced, expectSoundDatabase } from "../support/checks.ts";
import type { Client, OrderJson } from "../support/client.ts";
import { rowsOf } from "../support/data-dir.ts";
import { alone, BUY, expectRefused, expectStanding, idsOf, quote, terms } from "../support/trading.ts";
import { World } from "../support/world.ts";

interface TimerJson {
  readonly timeout_ms: number;
  readonly fires_at: number | null;
}

let world: World;
beforeAll(async () => {
  world = await World.start({
    users: 20,
    named: { reader: { scopes: [["portfolio:read"]] }, tier0: { tier: 0 } },
    markets: Array<number>(12).fill(2),
  });
});
afterAll(async () => {
  await expectBalanced(world.anonymous());
  await world.stop();
  expectSoundDatabase(world.server.dataDir);
});

const cancelAfter = (client: Client, timeout_ms: number): Promise<TimerJson> =>
  client.data("POST", "/orders/cancel-after", { timeout_ms });

const statesOf = async (client: Client): Promise<(string | null)[][]> =>
  (await client.all<OrderJson>("/orders?status=all")).map(({ status, reason }) => [status, reason]);

describe("the switch", () => {
  test("cancels all live orders of its user when it fires, and nobody else's", async () => {
    const [market, elsewhere, user, other] = [world.market(), world.market(), world.user(), world.user()];
    const socket = await world.socket(user);
    const own = [
      await user.place(terms(market, 0, BUY, 10, 1)),
      await user.place(terms(elsewhere, 1, BUY, 10, 1, { client_order_id: "named" })),
      ...(await quote(user, market, [[0, BUY, 11, 1]])),
    ];
    const stays = await other.place(terms(market, 0, BUY, 10, 1));
    const asked = Date.now();
    const timer = await cancelAfter(user, 1_000);
    expect(timer).toEqual({ timeout_ms: 1_000, fires_at: expect.any(Number) });
    expect(timer.fires_at! - asked).toBeGreaterThanOrEqual(1_000);
    expect(timer.fires_at! - Date.now()).toBeLessThanOrEqual(1_000);
    const added = await user.place(terms(market, 0, BUY, 12, 1));
    await socket.until(
      () =>
        socket.of<OrderJson>("order.updated").filter(({ data }) => data.status === "canceled").length === 4
          ? true
          : undefined,
      "the ends of four orders",
    );
    const ended = socket.of<OrderJson>("order.updated").filter(({ data }) => data.status === "canceled");
    expect(ended.map(({ data }) => data.id).sort()).toEqual(idsOf([...own, added]).sort());
    for (const { data, ts } of ended) {
      expect(data.reason).toBe("cancel_after");
      expect(ts).toBeGreaterThanOrEqual(timer.fires_at!);
      expect(ts).toBeLessThan(timer.fires_at! + 2_000);
    }
    expect(await user.balance()).toMatchObject({ held: 0 });
    await expectStanding(other, market, [stays.id]);
    // It has fired: what comes now stays, and nothing is left of it on disk.
    const { id } = await user.place(terms(market, 0, BUY, 10, 1));
    await eventually(async () => expect(timersOf(world)).toEqual([]));
    await expectStanding(user, market, [id]);
    await socket.close();
  });

  test("is put off by asking again and ended by 0, over the socket too", async () => {
    const [market, user, off] = [world.market(), world.user(), world.user()];
    const socket = await world.socket(user);
    for (const client of [user, off]) await client.place(terms(market, 0, BUY, 10, 1));
    await cancelAfter(off, 1_000);
    expect(await cancelAfter(off, 0)).toEqual({ timeout_ms: 0, fires_at: null });
    let last = await socket.data<TimerJson>("order.cancel_after", { timeout_ms: 1_000 });
    const until = last.fires_at! + 1_500;
    while (Date.now() < until) {
      const next = await socket.data<TimerJson>("order.cancel_after", { timeout_ms: 1_000 });
      expect(next.fires_at).toBeGreaterThanOrEqual(last.fires_at!);
      last = next;
    }
    expect(await statesOf(user)).toEqual([["open", null]]);
    expect(await statesOf(off)).toEqual([["open", null]]);
    // One that is set sooner comes sooner, whatever was set before.
    await cancelAfter(user, 300_000);
    await cancelAfter(user, 1_000);
    await socket.frame<OrderJson>("order.updated", ({ reason }) => reason === "cancel_after");
    expect(await statesOf(user)).toEqual([["canceled", "cancel_after"]]);
    expect(await statesOf(off)).toEqual([["open", null]]);
    await socket.close();
  });

  test("takes 0 or 1000 to 300000 ms, of who may place orders", async () => {
    const user = world.user();
    for (const timeout_ms of [1, 999, -1, 300_001, 1_000.5, "1000", null, undefined]) {
      const body = { timeout_ms };
      await expectRefused(user.request("POST", "/orders/cancel-after", { body }), 400, 40000, /timeout_ms/);
    }
    await expectRefused(
      user.request("POST", "/orders/cancel-after", { body: { timeout_ms: 0, x: 1 } }),
      400,
      40000,
      /^x/,
    );
    for (const name of ["reader", "tier0"]) {
      const request = world.client(name).request("POST", "/orders/cancel-after", { body: { timeout_ms: 0 } });
      await expectRefused(request, 403, 40300);
    }
    const request = world.anonymous().request("POST", "/orders/cancel-after", { body: { timeout_ms: 0 } });
    await expectRefused(request, 401, 40100);
    expect(await cancelAfter(user, 300_000)).toMatchObject({ timeout_ms: 300_000 });
    expect(await cancelAfter(user, 0)).toMatchObject({ fires_at: null });
  });
});

const timersOf = ({ server }: World): object[] =>
  rowsOf(server.dataDir, "SELECT id, cancels_at FROM users WHERE cancels_at IS NOT NULL");

describe("restarts", () => {
  test.for(["stop", "kill"] as const)(
    "after a %s it fires at its time, or at once where that has passed",
    async (end) => {
      await alone({ users: 3, markets: [2] }, async (own) => {
        const market = own.market();
        const [soon, later, none] = [own.user(), own.user(), own.user()];
        const orders = await Promise.all([soon, later, none].map((user) => user.place(terms(market, 0, BUY, 10, 1))));
        const timer = await cancelAfter(later, 10_000);
        await cancelAfter(none, 1_000);
        await cancelAfter(soon, 1_000);
        await cancelAfter(none, 0);
        await own.server[end]();
        const until = Date.now() + 1_000;
        while (Date.now() < until) await new Promise((resolve) => setTimeout(resolve, until - Date.now()));
        own.server = await own.server.restart();
        // It was due while the exchange was down.
        expect(await statesOf(own.client("user0"))).toEqual([["canceled", "cancel_after"]]);
        await expectStanding(own.client("user1"), market, [orders[1]!.id]);
        await expectStanding(own.client("user2"), market, [orders[2]!.id]);
        // One that came stays on record until what it canceled is, and a moment longer.
        const left = [{ id: 2, cancels_at: timer.fires_at }];
        await eventually(async () => expect(timersOf(own)).toEqual(left));
        const socket = await own.socket(own.client("user1"));
        const { ts } = await socket.frame<OrderJson>("order.updated", ({ reason }) => reason === "cancel_after");
        expect(ts).toBeGreaterThanOrEqual(timer.fires_at!);
        await expectStanding(own.client("user2"), market, [orders[2]!.id]);
        await eventually(async () => expect(timersOf(own)).toEqual([]));
      });
    },
  );

  test("a crash after it fired doesn't cancel what was placed since", async () => {
    await alone({ users: 1, markets: [2] }, async (own) => {
      const [market, user] = [own.market(), own.user()];
      const first = await user.place(terms(market, 0, BUY, 10, 1));
      const { fires_at } = await cancelAfter(user, 1_000);
      const socket = await own.socket(user);
      await socket.frame<OrderJson>("order.updated", ({ reason }) => reason === "cancel_after");
      const second = await user.place(terms(market, 0, BUY, 10, 1));
      await own.server.kill();
      // As if its end had not been durable.
      const db = openSqlite(`${own.server.dataDir}/exchange.db`);
      db.prepare("UPDATE users SET cancels_at = ? WHERE id = 1").run(fires_at);
      db.close();
      own.server = await own.server.restart();
      expect(await statesOf(own.client("user0"))).toEqual([
        ["open", null],
        ["canceled", "cancel_after"],
      ]);
      expect(second.id).toBeGreaterThan(first.id);
    });
  });
});

describe("times", () => {
  /** Records what it is asked for; ends cancels when it is told to. */
  function timers() {
    const log: string[] = [];
    let end: () => void = () => {};
    const made = new CancelTimers({
      save: async (user, at) => void log.push(`save ${user} ${at}`),
      cancel: (user, before, now) => {
        log.push(`cancel ${user} ${before} ${now}`);
        return new Promise((resolve) => {
          end = resolve;
        });
      },
    });
    const turn = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));
    return { made, log, turn, end: () => end() };
  }

  test("a time that came is forgotten once its cancels are durable, and a new one waits for that", async () => {
    const { made, log, turn, end } = timers();
    await made.set(1, 100);
    made.fireDue(99);
    made.fireDue(101);
    await turn();
    const set = made.set(1, 200);
    await turn();
    expect(log).toEqual(["save 1 100", "cancel 1 100 101"]);
    end();
    await set;
    expect(log).toEqual(["save 1 100", "cancel 1 100 101", "save 1 200"]);
    made.fireDue(200);
    await turn();
    end();
    await turn();
    expect(log.slice(3)).toEqual(["cancel 1 200 200", "save 1 null"]);
  });

  test("however often they are set, later, sooner or ended: each fires once, at its last time", async () => {
    const { made, log } = timers();
    for (let i = 0; i < 20_000; i++) await made.set(i % 3, i % 2 === 0 ? 1_000_000 + i : 900_000 - i);
    await made.set(0, null);
    await made.set(1, 2_000_000);
    log.length = 0;
    made.fireDue(1_999_999);
    await Promise.resolve();
    expect(log).toEqual([expect.stringMatching(/^cancel 2 \d+ 1999999$/)]);
    made.fireDue(2_000_000);
    await Promise.resolve();
    expect(log.slice(1)).toEqual(["cancel 1 2000000 2000000"]);
  });
});
