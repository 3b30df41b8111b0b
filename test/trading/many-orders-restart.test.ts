/**
 * A restart with so many live orders that threads read them: every order is as it was, with its texts, its place in the
 * book and its client order id. What the threads can't read fails the start.
 */
import { afterAll, beforeAll, expect, test } from "vitest";
import { UNBOUNDED_TERMS } from "../../bench/support/terms.ts";
import { MAX_CLIENT_ORDER_ID_LENGTH } from "../../engine/limits.ts";
import { CHUNK_ORDERS } from "../../server/trading/order-chunks.ts";
import { expectEndsWell } from "../support/checks.ts";
import type { Client, OrderJson } from "../support/client.ts";
import { withDatabase } from "../support/data-dir.ts";
import { TestServer } from "../support/server.ts";
import { amend, BUY, cancelAll, expectRefused, idsOf, post, type ResultJson, terms } from "../support/trading.ts";
import { type TestMarket, World } from "../support/world.ts";
import { amendedQueue, EXPECTED_QUEUE, fillOrder } from "./amend-queue.ts";
import { builderHeader } from "./builder-credits.ts";

/** The chunks of a list don't end with it. */
const ORDERS = CHUNK_ORDERS * 2 + 150;
const BATCH = 50;
const DAY_MS = 86_400_000;
/** The first orders, as if placed two days ago: one in ten has ended. */
const OLD_ORDERS = 100;

let world: World;
beforeAll(async () => {
  world = await World.start({ users: 7, usersTerms: UNBOUNDED_TERMS, markets: [2, 3, 2] });
});
afterAll(() => expectEndsWell(world));

/** The terms of the maker's order `i`: of every kind that rests, with every text or none. */
function orderOf(markets: readonly TestMarket[], i: number): Record<string, unknown> {
  const market = markets[i % markets.length]!;
  const order = terms(market, (i >> 1) % market.outcomes.length, BUY, 1 + (i % 90), 1 + (i % 3));
  const longest = `${"x".repeat(MAX_CLIENT_ORDER_ID_LENGTH - 6)}${100_000 + i}`;
  const names = [{}, { client_order_id: `order-${i}` }, { client_order_id: String(i) }, { client_order_id: longest }];
  const kinds = [{}, { time_in_force: "gtd", expires_at: Date.now() + DAY_MS }, { post_only: true }];
  return { ...order, ...names[i % names.length], ...kinds[i % kinds.length] };
}

async function placeAll(maker: Client, markets: readonly TestMarket[]): Promise<OrderJson[]> {
  const orders: OrderJson[] = [];
  for (let first = 0; first < ORDERS; first += BATCH) {
    const operations = Array.from({ length: Math.min(BATCH, ORDERS - first) }, (_, i) => {
      return { op: "place", ...orderOf(markets, first + i) };
    });
    const headers = first % 3 === 0 ? {} : builderHeader(`code-${first % 7}`);
    const options = { body: { operations }, headers };
    const { data } = await maker.request<{ results: ResultJson[] }>("POST", "/orders/batch", options);
    expect(data.results.map(({ code, msg }) => `${code} ${msg}`)).toEqual(operations.map(() => "0 ok"));
    for (const { data: order } of data.results) orders.push(order!);
  }
  return orders;
}

test("thousands of live orders are the same after a restart, and so are their queues and client order ids", async () => {
  const [first, three, queued] = [world.market(), world.market(3), world.market()];
  const queueNames = ["user2", "user3", "user4", "user5"];
  const maker = world.user();
  const placed = await placeAll(maker, [first, three]);
  const queue = idsOf(
    await amendedQueue(
      queued,
      queueNames.map((name) => world.client(name)),
    ),
  );
  await Promise.all(placed.slice(0, OLD_ORDERS).filter((_, i) => i % 10 === 1).map(({ id }) => maker.cancel(id))); // biome-ignore format: one line
  // Some get a later priority, and fewer or more shares.
  for (let i = 200; i < 260; i++) await amend(maker, placed[i]!.id, { quantity: 1 + ((i + 1) % 4) });
  const before = await maker.all<OrderJson>("/orders");
  const books = async (client: Client): Promise<unknown[]> => {
    const all = [first, three].flatMap(({ id, outcomes }) => outcomes.map((outcome) => client.book(id, outcome)));
    return (await Promise.all(all)).map(({ bids, asks }) => ({ bids, asks }));
  };
  const booksBefore = await books(maker);

  await world.server.kill();
  withDatabase(world.server.dataDir, (db) => {
    const change = db.prepare("UPDATE orders SET created_at = created_at - ? WHERE id < ?");
    change.run(2 * DAY_MS, placed[OLD_ORDERS]!.id);
  });
  world.server = await world.server.restart();

  const again = world.client("user0");
  const after = await again.all<OrderJson>("/orders");
  const created = new Map(before.map(({ id, created_at }) => [id, created_at]));
  expect(after.map((order) => ({ ...order, created_at: created.get(order.id) }))).toEqual(before);
  expect(after).toHaveLength(ORDERS - OLD_ORDERS / 10);
  expect(await books(again)).toEqual(booksBefore);
  for (const i of [2, 3, 5, 6, CHUNK_ORDERS - 1, CHUNK_ORDERS + 1, ORDERS - 3, ORDERS - 1]) {
    await expectRefused(post(again, { ...orderOf([first, three], i), quantity: 9 }), 409, 40900);
  }
  // An order that is sent again is the one that is there.
  for (const i of [3, CHUNK_ORDERS + 1, ORDERS - 3]) {
    const code = placed[i]!.builder_code;
    const headers = code === null ? {} : builderHeader(code);
    expect((await post(again, orderOf([first, three], i), headers)).data.id).toBe(placed[i]!.id);
  }
  // Two days after its order has ended an id is free.
  const free = await again.place(orderOf([first, three], 1));
  expect(free.client_order_id).toBe(placed[1]!.client_order_id);
  const users = queueNames.map((name) => world.client(name));
  expect(await fillOrder(world, queued, world.client("user6"), users, queue)).toEqual(EXPECTED_QUEUE);
  expect(await cancelAll(again)).toHaveLength(after.length + 1);
});

test("what a thread can't read ends the start with its reason", async () => {
  const maker = world.client("user1");
  const placed = await placeAll(maker, [world.markets[0]!, world.markets[1]!]);
  await world.server.stop();
  const { dataDir } = world.server;
  const setBuilder = (builder: number | null): void =>
    withDatabase(dataDir, (db) => {
      db.prepare("UPDATE orders SET builder_id = ? WHERE id = ?").run(builder, placed[CHUNK_ORDERS + 3]!.id);
    });
  const builderOf = (): number | null => {
    let id: number | null = null;
    withDatabase(dataDir, (db) => {
      const row = db.prepare("SELECT builder_id FROM orders WHERE id = ?").pluck();
      id = row.get(placed[CHUNK_ORDERS + 3]!.id) as number | null;
    });
    return id;
  };
  const builder = builderOf();
  setBuilder(9_999);
  const { code, errors } = await TestServer.refuse({ dataDir });
  expect([code, errors]).toEqual([1, expect.stringContaining("every order's builder has a code")]);
  setBuilder(builder);
  world.server = await world.server.restart();
  expect(await cancelAll(world.client("user1"))).toHaveLength(placed.length);
});
