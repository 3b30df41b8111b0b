/**
 * The dead man's switch (POST /orders/cancel-after): it cancels all live orders of a user who falls silent, and nobody
 * else's; each call restarts it; it outlives restarts and crashes, and fires at the start if it was due while the
 * exchange was down.
 */
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { CancelTimers } from "../../server/trading/cancel-timers.ts";
import { clockAt, eventually, expectBalanced, expectSoundDatabase } from "../support/checks.ts";
import type { Client, OrderJson } from "../support/client.ts";
import { rowsOf, withDatabase } from "../support/data-dir.ts";
import { BUY, expectRefused, expectStanding, idsOf, quote, terms } from "../support/trading.ts";
import { type TestMarket, World } from "../support/world.ts";

interface TimerJson {
  readonly timeout_ms: number;
  readonly fires_at: number | null;
}

const ENDS = ["stop", "kill"] as const;
type End = (typeof ENDS)[number];
/** The users of each restart: one whose timer is due while the server is down, one with a later timer, one without. */
const namesOf = (end: End) => ({ soon: `${end}-soon`, later: `${end}-later`, none: `${end}-none` });

let world: World;
beforeAll(async () => {
  const names = ["silent", "crashed", ...ENDS.flatMap((end) => Object.values(namesOf(end)))];
  world = await World.start({
    users: 20,
    named: {
      ...{ reader: { scopes: [["portfolio:read"]] }, tier0: { tier: 0 } },
      ...Object.fromEntries(names.map((name) => [name, {}])),
    },
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

/** When the user's timer fires, as the database has it. */
function timerOf(name: string): number | null {
  const sql = "SELECT cancels_at FROM users WHERE email = ?";
  return rowsOf<{ cancels_at: number | null }>(world.server.dataDir, sql, `${name}@example.com`)[0]!.cancels_at;
}

interface Scene {
  readonly market: TestMarket;
  /** By the user's role in `namesOf`. */
  readonly orders: { readonly soon: OrderJson; readonly later: OrderJson; readonly none: OrderJson };
  readonly firesAt: { readonly soon: number; readonly later: number };
}

/** One order and one timer for each role; the timer of `soon` is due in a second. */
async function setTimers(end: End): Promise<Scene> {
  const market = world.market();
  const names = namesOf(end);
  const [soon, later, none] = [names.soon, names.later, names.none].map((name) => world.client(name)) as [
    ...[Client, Client, Client],
  ];
  const place = (user: Client) => user.place(terms(market, 0, BUY, 10, 1));
  const orders = { soon: await place(soon), later: await place(later), none: await place(none) };
  const { fires_at } = await cancelAfter(later, 10_000);
  await cancelAfter(none, 1_000);
  const due = await cancelAfter(soon, 1_000);
  await cancelAfter(none, 0);
  return { market, orders, firesAt: { soon: due.fires_at!, later: fires_at! } };
}

async function expectFiredWhileDown(end: End, { market, orders, firesAt }: Scene): Promise<void> {
  const { soon, later, none } = namesOf(end);
  expect(await statesOf(world.client(soon))).toEqual([["canceled", "cancel_after"]]);
  await expectStanding(world.client(later), market, [orders.later.id]);
  await expectStanding(world.client(none), market, [orders.none.id]);
  // A timer that fired stays on record until its cancels are durable, and a moment longer.
  await eventually(async () => expect([soon, later, none].map(timerOf)).toEqual([null, firesAt.later, null]));
}

async function expectFiresAtItsTime(end: End, { market, orders, firesAt }: Scene): Promise<void> {
  const { later, none } = namesOf(end);
  const user = world.client(later);
  const canceled = async (): Promise<OrderJson> => {
    const order = await user.order(orders.later.id);
    expect(order).toMatchObject({ status: "canceled", reason: "cancel_after" });
    return order;
  };
  await clockAt(firesAt.later);
  expect((await eventually(canceled)).updated_at).toBeGreaterThanOrEqual(firesAt.later);
  await expectStanding(world.client(none), market, [orders.none.id]);
  await eventually(async () => expect(timerOf(later)).toBeNull());
}

/** Ends the server, waits until the scene's first timer is due, and starts it again. */
async function restartAfter(end: End, { firesAt }: Scene, whileDown = (): void => {}): Promise<void> {
  await world.server[end]();
  whileDown();
  await clockAt(firesAt.soon);
  world.server = await world.server.restart();
}

// The later timer fires while the tests of the switch run.
describe("after a stop", () => {
  let scene: Scene;
  beforeAll(async () => {
    scene = await setTimers("stop");
    await restartAfter("stop", scene);
  });

  test("after a stop, a timer that was due while the exchange was down fires at the start", () =>
    expectFiredWhileDown("stop", scene));

  describe("the switch", () => {
    test("the switch cancels all live orders of its user when it fires, and nobody else's", async () => {
      const [market, elsewhere, user, other] = [world.market(), world.market(), world.client("silent"), world.user()];
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
      // Once it has fired, later orders rest, and no timer is left on disk.
      const { id } = await user.place(terms(market, 0, BUY, 10, 1));
      await eventually(async () => expect(timerOf("silent")).toBeNull());
      await expectStanding(user, market, [id]);
      await socket.close();
    });

    test("the switch is put off by asking again and ended by 0, over the socket too", async () => {
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

    test("the switch takes 0 or 1000 to 300000 ms, of who may place orders", async () => {
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

  test("after a stop, a timer that is not yet due fires at its time", () => expectFiresAtItsTime("stop", scene));
});

describe("after kill -9", () => {
  let scene: Scene;
  let ids: { before: number; after: number };
  beforeAll(async () => {
    const [market, user] = [world.market(), world.client("crashed")];
    const before = await user.place(terms(market, 0, BUY, 10, 1));
    await cancelAfter(user, 1_000);
    const socket = await world.socket(user);
    await socket.frame<OrderJson>("order.updated", ({ reason }) => reason === "cancel_after");
    const after = await user.place(terms(market, 0, BUY, 10, 1));
    ids = { before: before.id, after: after.id };
    scene = await setTimers("kill");
    await restartAfter("kill", scene, () => {
      // As if the end of the timer had not been durable.
      withDatabase(world.server.dataDir, (db) => {
        const sql = "UPDATE users SET cancels_at = ? WHERE email = 'crashed@example.com'";
        expect(db.prepare(sql).run(-before.id).changes).toBe(1);
      });
    });
  });

  test("after kill -9, a timer that was due while the exchange was down fires at the start", () =>
    expectFiredWhileDown("kill", scene));

  test("a timer that fired before the crash doesn't cancel what was placed since", async () => {
    expect(await statesOf(world.client("crashed"))).toEqual([
      ["open", null],
      ["canceled", "cancel_after"],
    ]);
    expect(ids.after).toBeGreaterThan(ids.before);
  });

  test("after kill -9, a timer that is not yet due fires at its time", () => expectFiresAtItsTime("kill", scene));
});

describe("CancelTimers", () => {
  /** Timers that log their effects; `end` completes the last cancel. */
  function recordedTimers() {
    const log: string[] = [];
    let end: () => void = () => {};
    const made = new CancelTimers({
      save: async (user, at) => void log.push(`save ${user} ${at}`),
      lastOrderId: () => 7,
      cancel: (user, last, now) => {
        log.push(`cancel ${user} ${last} ${now}`);
        return new Promise<void>((resolve) => {
          end = resolve;
        });
      },
    });
    const turn = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));
    return { made, log, turn, end: () => end() };
  }

  test("a cancel timer clears a fired time once its cancels are durable; a new time waits for that", async () => {
    const { made, log, turn, end } = recordedTimers();
    await made.set(1, 100);
    made.fireDue(99);
    made.fireDue(101);
    await turn();
    const set = made.set(1, 200);
    await turn();
    expect(log).toEqual(["save 1 100", "save 1 -7", "cancel 1 7 101"]);
    end();
    await set;
    expect(log.slice(3)).toEqual(["save 1 200"]);
    made.fireDue(200);
    await turn();
    end();
    await turn();
    expect(log.slice(4)).toEqual(["save 1 -7", "cancel 1 7 200", "save 1 null"]);
  });

  test("a cancel timer fires once, at its last time, however often it was set later, sooner or cleared", async () => {
    const { made, log } = recordedTimers();
    for (let i = 0; i < 20_000; i++) await made.set(i % 3, i % 2 === 0 ? 1_000_000 + i : 900_000 - i);
    await made.set(0, null);
    await made.set(1, 2_000_000);
    log.length = 0;
    made.fireDue(1_999_999);
    await Promise.resolve();
    expect(log).toEqual(["save 2 -7", "cancel 2 7 1999999"]);
    made.fireDue(2_000_000);
    await Promise.resolve();
    expect(log.slice(2)).toEqual(["save 1 -7", "cancel 1 7 2000000"]);
  });

  test("a cancel timer cancels before anything else is done, and after a crash only what it fired for", () => {
    const { made, log } = recordedTimers();
    made.restore(1, -5);
    made.restore(2, 100);
    expect(made.nextAt).toBe(0);
    made.fireDue(99);
    expect(log).toEqual(["save 1 -5", "cancel 1 5 99"]);
    expect(made.nextAt).toBe(100);
  });
});
