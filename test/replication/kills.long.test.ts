/**
 * Nodes and exchanges that die and hang under load: whatever was acknowledged is in the stream, byte for byte, and a box made
 * of the stream alone keeps it.
 */
import { describe, expect, onTestFinished, test } from "vitest";
import { runKills } from "../crash/kill-loop.ts";
import { seededTraffic, TRAFFIC_SEED } from "../crash/traffic.ts";
import { EFFORT } from "../support/projects.ts";
import { Random } from "../support/random.ts";
import { TestServer, temporaryFolder } from "../support/server.ts";
import { expectRefused, post, terms } from "../support/trading.ts";
import { World } from "../support/world.ts";
import { TestNodes } from "./cluster.ts";
import { folderOf, journalBodies, NO_NATS, Nodes } from "./streamed-log.ts";

const NODES_MS = 60_000;
const CHECK_MS = 60_000;

describe.skipIf(NO_NATS)("nodes", () => {
  const nodes = TestNodes.use();
  const settings = (name: string) => nodes.settings(name);

  /** A new box that has nothing but the stream. */
  async function boxOf(stream: Nodes): Promise<TestServer> {
    const dataDir = temporaryFolder();
    folderOf(await stream.bodies(), dataDir);
    const box = await TestServer.start({ dataDir });
    onTestFinished(() => box.kill());
    return box;
  }

  test(`each node is killed or hangs ${EFFORT} times under load`, { timeout: 240_000 * EFFORT }, async () => {
    const random = Random.printed("nodes");
    const server = await TestServer.start({ seed: TRAFFIC_SEED, env: settings("nodes") });
    onTestFinished(() => server.kill());
    const stream = await Nodes.connect(nodes.cluster, "nodes");
    const { cluster } = nodes;
    const traffic = seededTraffic(random);
    await traffic.start(server);
    let leaders = 0;
    for (let round = 0; round < EFFORT * nodes.cluster.size; round++) {
      await traffic.more(random.integer(20, 100));
      await stream.whole(NODES_MS);
      const i = round % cluster.size;
      const leads = cluster.indexOf((await stream.leader()) ?? "") === i;
      if (leads) leaders++;
      if (random.chance(0.3)) {
        await cluster.hang(i);
        await traffic.more(leads ? 1 : 40);
        cluster.resume(i);
      } else {
        await cluster.kill(i);
        await traffic.more(40);
        cluster.restart(i);
      }
    }
    expect(leaders).toBeGreaterThan(0);
    await traffic.more(200);
    await traffic.end();
    await server.kill();

    // What the stream has is what the log has, or all of it but what nobody saw.
    const [own, streamed] = [journalBodies(server.dataDir), await stream.bodies()];
    expect(streamed.length).toBeLessThanOrEqual(own.length);
    expect(own.slice(0, streamed.length)).toEqual(streamed);
    const box = await boxOf(stream);
    await traffic.expectKept(box);
    await box.stop();
  });

  test(`kill -9 of the exchange, ${2 * EFFORT} times`, { timeout: 240_000 * EFFORT }, async () => {
    const random = Random.printed("kill -9 with a copy");
    const report = await runKills({ random, kills: 2 * EFFORT, signal: "mixed", env: settings("kills") });
    expect(report.answered).toBeGreaterThan(0);
    const stream = await Nodes.connect(nodes.cluster, "kills");
    // The last life was stopped: all of the log is there.
    const box = await boxOf(stream);
    await box.stop();
  });

  test("a stream that is made weaker pauses trading until it is mended", { timeout: 4 * CHECK_MS }, async () => {
    const world = await World.start({ users: 2, markets: [2], env: settings("mended") });
    onTestFinished(() => world.server.kill());
    const stream = await Nodes.connect(nodes.cluster, "mended");
    const [user, market] = [world.user(), world.market()];
    await stream.manager.streams.update(stream.stream, { num_replicas: 1 });
    await world.server.logged(
      ({ msg }) => msg.startsWith("the stream PX_mended is kept by 1 of the nodes"),
      2 * CHECK_MS,
    );
    const order = terms(market, 0, 1, 4_000, 1);
    await expectRefused(post(user, order), 500, 50_000, /check before you retry/);
    await expectRefused(post(user, order), 503, 50_300);
    await stream.manager.streams.update(stream.stream, { num_replicas: 3 });
    await world.server.logged(({ msg }) => msg.startsWith("the copy of the log has caught up"), 2 * CHECK_MS);
    expect(await post(world.user(), order)).toMatchObject({ status: 202 });
    await world.stop();
  });
});
