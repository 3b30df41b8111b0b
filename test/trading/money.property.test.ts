/**
 * A random trading session over HTTP beside the reference exchange: users of all tiers, markets of 2, 3 and 5 outcomes,
 * every kind of order, amends, batches, quotes, bulk cancels, repeats. TEST_SEED repeats a run.
 */
import { afterEach, test } from "vitest";
import { expectSoundDatabase } from "../support/checks.ts";
import { EFFORT, variants } from "../support/projects.ts";
import { Random } from "../support/random.ts";
import { World } from "../support/world.ts";
import { RandomSession, USERS } from "./random-session.ts";

let world: World | null = null;
afterEach(async () => {
  await world?.server.kill();
  world = null;
});

const RUNS = variants<[threads: number, orders: number]>(
  [[1, 200 * EFFORT]],
  [
    [2, 250],
    [3, 250],
  ],
);
for (const [threads, orders] of RUNS) {
  test(`${orders} random orders end as in the reference, with ENGINE_THREADS=${threads}`, async () => {
    const random = Random.printed(`session of ${orders} orders`);
    world = await World.start({
      users: 0,
      named: USERS,
      markets: [2, 3, 5, 2],
      env: { ENGINE_THREADS: String(threads) },
    });
    const session = new RandomSession(world, random);
    try {
      while (session.placed < orders) await session.step();
      await session.compare();
      await session.compareHistory();
    } catch (error) {
      (error as Error).message += `\nTEST_SEED=${random.seed}, after\n${session.log.slice(-12).join("\n")}`;
      throw error;
    }
    await world.stop();
    expectSoundDatabase(world.server.dataDir);
  });
}
