/**
 * kill -9 under load, at a random moment, and a restart on the same folder, several times over: every word that the
 * server said before holds after it, the invariants hold in the database, and trading goes on.
 */
import { afterEach, expect, test } from "vitest";
import { expectBalanced, expectSoundDatabase } from "../server/support/checks.ts";
import { Client } from "../server/support/client.ts";
import { Random } from "../server/support/random.ts";
import { TestServer } from "../server/support/server.ts";
import { seededTraffic, TRAFFIC_SEED } from "./traffic.ts";

let server: TestServer | null = null;
afterEach(async () => {
  await server?.kill();
  server = null;
});

for (const [threads, rounds] of [
  [1, 4],
  [2, 2],
  [3, 1],
] as const) {
  test(`kill -9 under load, ${rounds} times, with ENGINE_THREADS=${threads}`, async () => {
    const random = Random.printed(`kill -9, ${threads} engine threads`);
    server = await TestServer.start({ seed: TRAFFIC_SEED, env: { ENGINE_THREADS: String(threads) } });
    const traffic = seededTraffic(random);
    let sequence = await expectSequence(server, 0);
    for (let round = 0; round < rounds; round++) {
      await traffic.start(server);
      await traffic.more(random.integer(100, 700));
      await server.kill();
      await traffic.end();
      expectSoundDatabase(server.dataDir);
      server = await server.restart();
      await traffic.expectKept(server);
      sequence = await expectSequence(server, sequence);
    }
    await traffic.start(server);
    await traffic.more(200);
    await traffic.end();
    await traffic.expectKept(server);
    expect(traffic.refusals.get(50300) ?? 0).toBe(0);
    await server.stop();
    expectSoundDatabase(server.dataDir);
  });
}

/** Solvency holds and its commit counter didn't fall back; answers the counter. */
async function expectSequence(on: TestServer, last: number): Promise<number> {
  const client = new Client(on, null);
  await expectBalanced(client);
  const { sequence } = await client.solvency();
  client.close();
  expect(sequence).toBeGreaterThanOrEqual(last);
  return sequence;
}
