/**
 * Recorded time never falls, even if the machine's clock is set back while three engine threads trade, and is further
 * behind at the next start. client.ts and socket.ts check the times in every list and stream that the test reads.
 */
import { fileURLToPath } from "node:url";
import { afterAll, expect, test } from "vitest";
import { eventually, expectEndsWell } from "../support/checks.ts";
import type { Client, OrderJson } from "../support/client.ts";
import { Socket } from "../support/socket.ts";
import { BUY, SELL, terms } from "../support/terms.ts";
import { tokenOf, World } from "../support/world.ts";

const HOUR_MS = 3_600_000;
const PRELOAD = fileURLToPath(new URL("../support/stepped-clock.mjs", import.meta.url));
const BEHIND = "the machine's clock is behind the last timestamp: timestamps are clamped until it catches up";

let world: World;
afterAll(() => expectEndsWell(world));

const timeOf = async (client: Client): Promise<number> => (await client.get<{ now: number }>("/time")).now;

/** Creates some of everything that has a time. */
async function trade(maker: Client, taker: Client, sets: number): Promise<void> {
  await Promise.all(
    world.markets.map(async (market) => {
      await world.split(maker, market, sets);
      for (let i = 0; i < 5; i++) {
        await maker.place(terms(market, 0, SELL, 5_000, 2));
        await taker.place({ ...terms(market, 0, BUY, 5_000, 3), time_in_force: "ioc" });
      }
    }),
  );
}

async function readLists(client: Client): Promise<Record<string, unknown[]>> {
  const lists: Record<string, unknown[]> = {};
  for (const path of ["/orders?status=all", "/me/fills", "/wallet/transactions", "/wallet/deposits", "/markets"]) {
    lists[path] = await client.all(path, 50);
    expect(lists[path].length).toBeGreaterThan(0);
  }
  for (const { id } of world.markets) lists[`trades of ${id}`] = await client.all(`/markets/${id}/trades`, 50);
  return lists;
}

test("lists and streams stay in order when the clock is set back, and further back at the next start", async () => {
  const env = { ENGINE_THREADS: "3", NODE_OPTIONS: `--import ${PRELOAD}` };
  world = await World.start({ users: 2, markets: [2, 2, 2], env });
  const [maker, taker] = [world.user(), world.user()];
  const socket = await world.socket(taker);
  await trade(maker, taker, 20);
  const last = (await taker.all<OrderJson>("/orders?status=all"))[0]!;

  const before = await timeOf(taker);
  world.server.signal("SIGUSR2");
  await eventually(async () => expect(await timeOf(taker)).toBeLessThan(before - HOUR_MS / 2));
  await trade(maker, taker, 20);
  await world.server.logged(({ msg }) => msg === BEHIND);
  // A client's valid_until refers to the current clock.
  const market = world.markets[0]!;
  const now = await timeOf(taker);
  const late = await taker.place({ ...terms(market, 0, BUY, 10, 1), valid_until: now - 10_000 });
  const timely = await taker.place({ ...terms(market, 0, BUY, 10, 1), valid_until: now + 10_000 });
  const ended = await socket.frame<OrderJson>("order.updated", ({ id }) => id === late.id);
  expect(ended.data).toMatchObject({ status: "rejected", reason: "too_late" });
  const opened = await socket.frame<OrderJson>("order.updated", ({ id }) => id === timely.id);
  expect(opened.data.status).toBe("open");
  expect(opened.ts).toBeGreaterThanOrEqual(last.created_at);
  await socket.fence();
  const received = socket.of("order.updated").map((frame) => JSON.stringify(frame));
  const lists = await readLists(taker);
  await world.server.stop();

  world.server = await world.server.restart({ CLOCK_OFFSET_MS: String(-2 * HOUR_MS) });
  const [makerAgain, takerAgain] = [maker, taker].map((_, i) => world.client(`user${i}`)) as [Client, Client];
  expect(await timeOf(takerAgain)).toBeLessThan(before - HOUR_MS);
  expect(await readLists(takerAgain)).toEqual(lists);
  await trade(makerAgain, takerAgain, 20);
  await readLists(takerAgain);
  const again = await Socket.open(world.server, tokenOf("user1"));
  await again.ask({ op: "resume", sequence: 0 });
  await again.frame("balance.updated");
  const replayed = again.of("order.updated").map((frame) => JSON.stringify(frame));
  expect(replayed.slice(0, received.length)).toEqual(received);
  expect(replayed.length).toBeGreaterThan(received.length);
});
