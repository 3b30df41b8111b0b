/**
 * What a restart leaves unchanged, after SIGTERM and after kill -9: time priority, fills, due orders, builder credits,
 * limits, quotes. One exchange serves all scenes: each prepares its own users and markets, then the server ends and
 * restarts once for all of them. Restarts in the middle of traffic are in quotes-races.test.ts and test/crash.
 */
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { clockAt, expectEndsWell } from "../support/checks.ts";
import type { Client, OrderJson, OwnFillJson } from "../support/client.ts";
import { feeOn, notional } from "../support/reference.ts";
import type { Socket } from "../support/socket.ts";
import {
  amend, BUY, expectRefused, idsOf, post, putQuotes, quote, quotesBody, SELL, terms,
} from "../support/trading.ts"; // biome-ignore format: one list
import { type TestMarket, World } from "../support/world.ts";
import { amendedQueue, EXPECTED_QUEUE, fillOrder, QUANTITIES } from "./amend-queue.ts";
import { creditEveryWay, statsOf } from "./builder-credits.ts";

const DAY_MS = 86_400_000;
const ENDS = ["stop", "kill"] as const;

let world: World;
beforeAll(async () => {
  const five = { terms: { max_live_orders: 5 } };
  world = await World.start({
    users: 40,
    named: { "five-stop": five, "five-kill": five },
    markets: [...Array<number>(16).fill(2), 3, 3],
  });
});
afterAll(() => expectEndsWell(world));

let nextUser = 0;
/** Names of fresh users: their clients don't outlive the server. */
const freshNames = (count: number): string[] => Array.from({ length: count }, () => `user${nextUser++}`);
const clients = (names: readonly string[]): Client[] => names.map((name) => world.client(name));

/** Asserts that the exchange is as a scene left it; runs after every later restart too, unless it trades away the state. */
type Check = () => Promise<void>;

interface Scene {
  readonly name: string;
  /** Whether the check can run again after the next restart. */
  readonly isRepeatable: boolean;
  prepare(end: (typeof ENDS)[number]): Promise<Check>;
}

/** When the server may restart: an order must come due while it is down. */
let restartAt = 0;

const SCENES: readonly Scene[] = [
  {
    name: "amended orders keep their time priority",
    isRepeatable: false,
    async prepare() {
      const market = world.market();
      const [seller, ...names] = freshNames(5);
      const ids = idsOf(await amendedQueue(market, clients(names)));
      return async () => {
        const users = clients(names);
        for (const [i, id] of ids.entries()) {
          const { quantity, price, status } = await users[i]!.order(id);
          expect([quantity, price, status]).toEqual([QUANTITIES[i], 5_000, "open"]);
        }
        // An order that is amended after the restart goes behind those from before it.
        await amend(users[2]!, ids[2]!, { price: 5_001 });
        await amend(users[2]!, ids[2]!, { price: 5_000 });
        expect(await fillOrder(world, market, world.client(seller!), users, ids)).toEqual(EXPECTED_QUEUE);
      };
    },
  },
  { name: "GET /orders/:id and /me/fills?order_id list the same trades", isRepeatable: true, prepare: fillsByOrder },
  {
    name: "builder codes keep their credits, and live orders their codes",
    isRepeatable: true,
    async prepare(end) {
      const [market, three, names] = [world.market(), world.market(3), freshNames(3)];
      const { sale, maker, both } = await creditEveryWay(world, clients(names), [market, three], `${end}.`);
      let rest = 2;
      return async () => {
        expect(await statsOf(world, maker.code)).toEqual(maker);
        expect(await statsOf(world, both.code)).toEqual(both);
        if (rest > 0) {
          const { id } = await world.client(names[1]!).place(terms(market, 0, BUY, 4_500, rest));
          expect(await world.client(names[1]!).order(id)).toMatchObject({ status: "filled", filled: rest });
          maker.fills++;
          maker.volume += rest;
          maker.notional += notional(4_500, rest);
          maker.fees += feeOn(notional(4_500, rest));
          rest = 0;
        }
        expect(await statsOf(world, maker.code)).toEqual(maker);
        const filled = { status: "filled", builder_code: maker.code };
        expect(await world.client(names[0]!).order(sale.id)).toMatchObject(filled);
      };
    },
  },
  { name: "a market order without a bound has no price", isRepeatable: true, prepare: unboundedMarketOrders },
  { name: "live orders count towards their limit as before", isRepeatable: true, prepare: liveOrderCounts },
  { name: "quotes whose end was put off end at the new time", isRepeatable: true, prepare: endsPutOff },
  {
    // The last scene: its order must not come due before the server ends.
    name: "an order that was due while the server was down ends at its start and never fills",
    isRepeatable: false,
    async prepare() {
      const market = world.market();
      const [name, takerName] = freshNames(2) as [string, string];
      const [user, taker] = [world.client(name), world.client(takerName)];
      await world.split(taker, market, 10);
      const gtd = (expires_at: number) => terms(market, 0, BUY, 5_000, 3, { time_in_force: "gtd", expires_at });
      const later = await user.place(gtd(Date.now() + DAY_MS));
      const due = await user.place(gtd(Date.now() + 500));
      restartAt = due.expires_at! + 1;
      return async () => {
        const again = world.client(name);
        await world.client(takerName).place(terms(market, 0, SELL, 5_000, 6, { time_in_force: "ioc" }));
        expect(await again.order(due.id)).toMatchObject({ status: "expired", reason: "expired", filled: 0 });
        expect(await again.order(later.id)).toMatchObject({ status: "filled", filled: 3 });
        expect(await again.balance()).toMatchObject({ held: 0 });
      };
    },
  },
];

async function fillsByOrder(): Promise<Check> {
  const market = world.market();
  const [name, takerName] = freshNames(2) as [string, string];
  const [user, taker] = [world.client(name), world.client(takerName)];
  await world.split(taker, market, 50);
  const [filled, part, gone, plain] = (await Promise.all([
    ...[user.place(terms(market, 0, BUY, 5_000, 3)), user.place(terms(market, 0, BUY, 4_900, 9))],
    ...[user.place(terms(market, 0, BUY, 4_800, 5)), user.place(terms(market, 0, BUY, 4_700, 1))],
  ])) as [OrderJson, OrderJson, OrderJson, OrderJson];
  for (const quantity of [1, 2, 2, 3]) await taker.place(terms(market, 0, SELL, 4_900, quantity));
  await amend(user, gone.id, { price: 5_100 });
  await taker.place(terms(market, 0, SELL, 5_100, 2));
  await user.cancel(gone.id);
  const expected: readonly (readonly [OrderJson, string, readonly number[]])[] = [
    [filled, "filled", [1, 2]],
    [part, "partially_filled", [2, 3]],
    [gone, "canceled", [2]],
    [plain, "open", []],
  ];
  let before: OrderJson[] | undefined;
  const check = async (): Promise<void> => {
    const [owner, other] = [world.client(name), world.client(takerName)];
    const now: OrderJson[] = [];
    for (const [{ id }, status, sizes] of expected) {
      const order = await owner.order(id);
      expect([order.status, order.trades.map(({ quantity }) => quantity)]).toEqual([status, sizes]);
      const fills = await owner.all<OwnFillJson>(`/me/fills?order_id=${id}`, 1);
      const bare = fills.map(({ order_id, market_id, outcome_id, side, builder_code, ...fill }) => {
        expect([order_id, market_id, outcome_id, side, builder_code]).toEqual([
          ...[id, market.id, market.outcomes[0], BUY, null],
        ]);
        return fill;
      });
      expect(bare.toReversed()).toEqual(order.trades);
      expect(order.filled).toBe(sizes.reduce((sum, size) => sum + size, 0));
      await expectRefused(other.request("GET", `/orders/${id}`), 404, 4040);
      expect(await other.all(`/me/fills?order_id=${id}`)).toEqual([]);
      now.push(order);
    }
    before ??= now;
    expect(now).toEqual(before);
  };
  await check();
  return check;
}

/** Waits for the end of a replay from the first update; returns what was replayed of the user's orders. */
async function replayed(socket: Socket): Promise<[sequence: number, OrderJson][]> {
  await socket.ask({ op: "resume", sequence: 0 });
  await socket.until(() => (socket.of("balance.updated").length > 0 ? true : undefined), "the end of the replay");
  return orderUpdates(socket);
}

const orderUpdates = (socket: Socket): [sequence: number, OrderJson][] =>
  socket.of<OrderJson>("order.updated").map(({ sequence, data }) => [sequence, data]);

async function unboundedMarketOrders(): Promise<Check> {
  const market = world.market();
  const [name, otherName] = freshNames(2) as [string, string];
  const [user, other] = [world.client(name), world.client(otherName)];
  await world.split(other, market, 9);
  await other.place(terms(market, 0, SELL, 6_000, 3));
  const socket = await world.socket(user);
  const unbounded = { ...terms(market, 0, BUY, 1, 2), type: "market", price: undefined };
  const shown = new Map<number, [price: number | null, status: string]>();
  for (const [more, price, status] of [
    [{ client_order_id: "filled" }, null, "filled"],
    [{ price: 9_999 }, 9_999, "canceled"],
    [{}, null, "canceled"],
    [{ side: SELL }, null, "canceled"],
    [{ quantity: 7, time_in_force: "fok" }, null, "canceled"],
  ] as const) {
    const order = await user.place({ ...unbounded, ...more });
    expect(order).toMatchObject({ type: "market", price, status: "queued" });
    shown.set(order.id, [price, status]);
  }
  await socket.fence();
  const updates = orderUpdates(socket).map(([, order]) => order);
  const expectShown = (orders: readonly OrderJson[]): void => {
    expect(new Map(orders.map(({ id, price, status }) => [id, [price, status]]))).toEqual(shown);
  };
  expectShown(updates);
  await socket.close();
  const check = async (): Promise<void> => {
    const client = world.client(name);
    expectShown(await client.all<OrderJson>("/orders?status=all"));
    expectShown(await Promise.all([...shown.keys()].map((id) => client.order(id))));
    const repeat = await client.place({ ...unbounded, client_order_id: "filled" });
    expect(repeat).toMatchObject({ price: null, status: "queued" });
    const again = await world.socket(client);
    expect((await replayed(again)).map(([, order]) => order)).toEqual(updates);
    await again.close();
  };
  await check();
  return check;
}

async function liveOrderCounts(end: string): Promise<Check> {
  const [market, name] = [world.market(), `five-${end}`];
  const bid = terms(market, 0, BUY, 1, 1);
  const expectUsed = async (user: Client, used: number): Promise<void> => {
    expect((await user.get<{ live_orders: object }>("/me/limits")).live_orders).toEqual({ used, limit: 5 });
  };
  const expectFull = (answer: ReturnType<Client["request"]>) =>
    expectRefused(answer, 422, 42204, /has 5 of at most 5 live orders/);
  const user = world.client(name);
  for (let i = 0; i < 3; i++) await user.place(bid);
  await quote(user, market, [[0, BUY, 7, 1]]);
  return async () => {
    const again = world.client(name);
    await expectUsed(again, 4);
    const { id } = await again.place(bid);
    await expectFull(post(again, bid));
    await expectFull(putQuotes(again, market, [[0, BUY, 7, 1], [0, BUY, 8, 1]])); // biome-ignore format: short
    await expectUsed(again, 5);
    await quote(again, market, [[0, BUY, 9, 1]]);
    await again.cancel(id);
    await expectUsed(again, 4);
  };
}

async function endsPutOff(): Promise<Check> {
  const market: TestMarket = world.market();
  const [name, otherName] = freshNames(2) as [string, string];
  const [user, other] = [world.client(name), world.client(otherName)];
  const socket = await world.socket(user);
  const [soon, later] = [Date.now() + 3_000, Date.now() + 600_000];
  const replace = (quotes: Parameters<typeof quotesBody>[1], expires_at: number | null) =>
    socket.ask({ op: "quotes.replace", data: { market_id: market.id, ...quotesBody(market, quotes), expires_at } });
  const both = [[0, BUY, 4_000, 5], [1, BUY, 3_000, 5]] as const; // biome-ignore format: one list
  for (const expires_at of [soon, later]) expect(await replace(both, expires_at)).toMatchObject({ code: 0 });
  await world.split(other, market, 2);
  await other.place(terms(market, 0, SELL, 4_000, 2));
  // In one pass or in several: placed, put off, and without an end.
  const asked = [later, soon, null].map((expires_at) => replace([[0, BUY, 4_000, 3]], expires_at));
  for (const answer of await Promise.all(asked)) expect(answer).toMatchObject({ code: 0 });
  await socket.fence();
  const updates = orderUpdates(socket);
  const shown = await user.all<OrderJson>("/orders?status=all");
  const [first] = shown.filter(({ price }) => price === 4_000);
  expect(first).toMatchObject({ time_in_force: "gtc", expires_at: null, status: "partially_filled" });
  expect(updates.length).toBeGreaterThan(6);
  await socket.close();
  return async () => {
    const again = world.client(name);
    expect(await again.all<OrderJson>("/orders?status=all")).toEqual(shown);
    const reopened = await world.socket(again);
    expect(await replayed(reopened)).toEqual(updates);
    await reopened.close();
    await clockAt(soon + 300);
    expect(await again.order(first!.id)).toMatchObject({ status: "partially_filled", remaining: 3 });
  };
}

/** The checks of all scenes so far, by the scene's name: those of the first end run again after the second. */
const checks = new Map<string, Check[]>(SCENES.map(({ name }) => [name, []]));

describe.each(ENDS)("after a restart (%s)", (end) => {
  beforeAll(async () => {
    for (const { name, isRepeatable, prepare } of SCENES) {
      const check = await prepare(end);
      checks.set(name, isRepeatable ? [...checks.get(name)!, check] : [check]);
    }
    await world.server[end]();
    await clockAt(restartAt);
    world.server = await world.server.restart();
  });

  test.each(SCENES)("after a restart: $name", async ({ name }) => {
    for (const check of checks.get(name)!) await check();
  });
});
