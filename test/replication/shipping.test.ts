/**
 * The log reaches the nodes before anybody sees what it has: the stream is read back and compared with journal.db, and a box
 * made of the stream alone has everything that was acknowledged.
 */
import { describe, expect, onTestFinished, test } from "vitest";
import { admin } from "../support/admin.ts";
import { eventually } from "../support/checks.ts";
import { Client, type OrderJson } from "../support/client.ts";
import { scrape } from "../support/metrics.ts";
import { TestServer, temporaryFolder } from "../support/server.ts";
import { tokenOf } from "../support/world.ts";
import { bid, TestNodes } from "./cluster.ts";
import { folderOf, hashesOf, journalBodies, NO_NATS } from "./streamed-log.ts";

describe.skipIf(NO_NATS)("a log that is copied to NATS", () => {
  const nodes = TestNodes.use();

  test("the stream has every batch of the log as it is, and a box made of it has what was acknowledged", async () => {
    const { world, stream, market, user } = await nodes.begin("whole");
    const orders: OrderJson[] = [];
    for (let i = 0; i < 20; i++) orders.push((await bid(user, market, `order-${i}`, 1_000 + i)).data);
    const figures = await scrape(world.server);
    expect(figures.series.get('exchange_standby_role{role="active"}')).toBe(1);
    expect(figures.series.get('exchange_standby_ack{policy="stream"}')).toBe(1);
    expect(figures.series.get("exchange_standby_behind_batches")).toBe(0);
    expect(figures.series.get("exchange_standby_sync_checked")).toBe(1);
    expect(figures.series.get("exchange_standby_shipped_messages_total")).toBeGreaterThanOrEqual(20);
    expect(figures.series.get('exchange_standby_gate_seconds_count{stage="stream"}')).toBeGreaterThanOrEqual(20);
    const ready = await fetch(`${world.server.root}/readyz`);
    expect(await ready.json()).toEqual({
      keys_copied: false,
      status: "ok",
      role: "active",
      epoch: 1,
      behind_batches: 0,
      ack: "stream",
    });
    const { out } = await admin(world.server.dataDir, "standby", "status");
    expect(JSON.parse(out)).toMatchObject({
      ...{ role: "active", epoch: 1, behind_batches: 0, behind_ms: 0, ack: "stream", syncs_each_write: true },
      stream: {
        name: "PX_whole",
        replicas: 3,
        current: 3,
        leader: expect.stringMatching(/^n[123]$/),
        connected_to: "n1",
      },
    });
    await world.stop();

    const streamed = await stream.bodies();
    expect(hashesOf(streamed)).toEqual(hashesOf(journalBodies(world.server.dataDir)));

    const dataDir = temporaryFolder();
    folderOf(streamed, dataDir);
    const copy = await TestServer.start({ dataDir });
    onTestFinished(() => copy.kill());
    const reader = new Client(copy, tokenOf("user0"));
    expect((await reader.all<OrderJson>("/orders")).map(({ id }) => id).sort()).toEqual(
      orders.map(({ id }) => id).sort(),
    );
    reader.close();
    await copy.stop();
  });

  test("what the log had at a kill -9 is in the stream before the exchange is ready again", async () => {
    const { world, stream, market, user } = await nodes.begin("killed");
    const thaw = await nodes.freeze();
    const before = journalBodies(world.server.dataDir).length;
    const unheard = bid(user, market, "unheard").catch(() => null);
    await eventually(async () => expect(journalBodies(world.server.dataDir).length).toBeGreaterThan(before));
    await world.server.kill();
    await unheard;
    const starting = TestServer.spawn({ dataDir: world.server.dataDir, env: nodes.settings("killed") });
    onTestFinished(() => starting.kill());
    await starting.logged(({ msg }) => /^(connected|waiting)/.test(msg));
    expect(starting.log.some(({ msg }) => msg === "ready")).toBe(false);
    thaw();
    await starting.ready();
    const reader = new Client(starting, user.token);
    expect(await reader.all<OrderJson>("/orders")).toMatchObject([{ client_order_id: "unheard" }]);
    reader.close();
    await starting.stop();
    expect(hashesOf(await stream.bodies())).toEqual(hashesOf(journalBodies(world.server.dataDir)));
  });
});
