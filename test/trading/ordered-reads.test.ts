/**
 * REST reads of a user's own trading leave after the messages about it: a bot that refreshes its state over REST never
 * receives older updates afterwards on a socket that was open before.
 */
import { afterAll, beforeAll, expect, test } from "vitest";
import { expectBalanced } from "../support/checks.ts";
import type { Client, OrderJson, OwnFillJson } from "../support/client.ts";
import { EFFORT } from "../support/projects.ts";
import type { Socket } from "../support/socket.ts";
import { BUY, batch, cancelAll, liveOrders, post, SELL, terms } from "../support/trading.ts";
import { type TestMarket, World } from "../support/world.ts";

let world: World;
beforeAll(async () => {
  world = await World.start({ users: 8, named: { reader: {}, bot: {}, bot2: {} }, markets: [2, 2, 2] });
});
afterAll(async () => {
  await expectBalanced(world.anonymous());
  await world.stop();
});

/** Order updates that the socket received before the response to a ping sent now. */
async function updatesSoFar(socket: Socket): Promise<ReadonlySet<string>> {
  await socket.ask({ op: "ping" });
  return new Set(socket.of<OrderJson>("order.updated").map(({ data: { id, status } }) => `${id} ${status}`));
}

/** An order of the user's that has ended: to explain why it can't be canceled takes a look into the database. */
async function endedOrder(user: Client, market: TestMarket): Promise<number> {
  const { data } = await post(user, terms(market, 0, BUY, 1, 1));
  await cancelAll(user);
  return data.id;
}

test("live orders are shown only after their updates have left, however long a response delays them", async () => {
  // Several connections each: a request must not wait for the response to the previous one.
  const [user, market] = [world.client("bot", 0, 8), world.market()];
  const [ended, reader] = [await endedOrder(user, market), world.client("reader", 0, 64)];
  // Long histories: the look-up of the ended order waits behind reads of them.
  for (let i = 0; i < 8; i++) {
    await batch(
      reader,
      Array.from({ length: 50 }, () => ({ op: "place", ...terms(market, 0, BUY, 1, 1, { time_in_force: "ioc" }) })),
    );
  }
  const socket = await world.socket(user);
  for (let round = 0; round < EFFORT; round++) {
    const busy = Array.from({ length: 256 }, () => reader.get("/orders?status=all&limit=200"));
    const operations = [
      { op: "cancel", id: ended },
      { op: "place", ...terms(market, 0, BUY, 10 + round, 1) },
    ];
    const answered = batch(user, operations);
    let shown: OrderJson[] = [];
    while (shown.length <= round) shown = (await liveOrders(user, market)).filter(({ status }) => status !== "queued");
    const updated = await updatesSoFar(socket);
    expect(shown.filter(({ id, status }) => !updated.has(`${id} ${status}`))).toEqual([]);
    expect((await answered).map(({ code }) => code)).toEqual([40900, 0]);
    await Promise.all(busy);
  }
  await cancelAll(user);
  socket.close();
});

test("ended orders and fills are shown only after their updates have left, while others trade", async () => {
  const [user, other, market] = [world.client("bot2", 0, 8), world.user(), world.market()];
  await world.split(other, market, 1_000);
  const socket = await world.socket(user);
  const noisy = world.market();
  let trading = true;
  const noise = Array.from({ length: 4 }, async () => {
    const client = world.user();
    while (trading) await batch(client, Array.from({ length: 50 }, () => ({ op: "place", ...terms(noisy, 0, BUY, 1, 1, { time_in_force: "ioc" }) })));
  }); // biome-ignore format: one line
  for (let round = 0; round < 30 * EFFORT; round++) {
    await post(other, terms(market, 0, SELL, 500, 1));
    const placed = post(user, terms(market, 0, BUY, 500, 1));
    for (let seen = 0; seen <= round; ) {
      const [{ items }, list] = await Promise.all([
        user.get<{ items: OwnFillJson[] }>("/me/fills?limit=5"),
        user.get<{ items: OrderJson[] }>("/orders?status=all&limit=5"),
      ]);
      const updated = await updatesSoFar(socket);
      const final = list.items.filter(({ status }) => status === "filled");
      expect(final.filter(({ id }) => !updated.has(`${id} filled`))).toEqual([]);
      expect(items.filter(({ order_id }) => !updated.has(`${order_id} filled`))).toEqual([]);
      seen = updated.size;
    }
    await placed;
  }
  trading = false;
  await Promise.all(noise);
  socket.close();
});
