/** Planned switches under load, and with as many live orders as an exchange of some size has. */
import { setTimeout as delay } from "node:timers/promises";
import { describe, expect, onTestFinished, test } from "vitest";
import { freePort } from "../../bench/support/free-port.ts";
import { readHeader } from "../../engine/log/batch-format.ts";
import { packBatches } from "../../engine/replication/message-format.ts";
import { sendRequest } from "../../server/control/control-socket.ts";
import { FENCED_EXIT } from "../../server/errors.ts";
import { controlPath } from "../../server/util/data-folder.ts";
import { seededTraffic, TRAFFIC_SEED } from "../crash/traffic.ts";
import { admin } from "../support/admin.ts";
import { eventually } from "../support/checks.ts";
import { Client, type OrderJson } from "../support/client.ts";
import { scrape } from "../support/metrics.ts";
import { EFFORT } from "../support/projects.ts";
import { Random } from "../support/random.ts";
import { TestServer } from "../support/server.ts";
import { BUY, batch, terms } from "../support/trading.ts";
import { World } from "../support/world.ts";
import { bid, keyed, paired, TestNodes } from "./cluster.ts";
import { hashesOf, journalBodies, NO_NATS, Nodes } from "./streamed-log.ts";

const LIVE_ORDERS = 100_000;
const MAX_BATCH = 50;
/** As many batches wait for their acknowledgement at a time. */
const AT_ONCE = 16;
/** The goal is 1 s on a machine with nothing else to do. */
const MAX_WITHOUT_MS = 4_000;

describe.skipIf(NO_NATS)("a planned switch", () => {
  const nodes = TestNodes.use();

  test(`under load, ${2 * EFFORT} times: what was acknowledged is there, and nothing twice`, {
    timeout: 120_000 * EFFORT,
  }, async () => {
    const random = Random.printed("switches");
    const both = { STANDBY_ACK: "standby", STANDBY_TAKEOVER: "auto" };
    let active = await TestServer.start({
      seed: TRAFFIC_SEED,
      env: nodes.settings("load", { ...both, STANDBY_BOX: "a" }),
    });
    onTestFinished(() => active.kill());
    let standby = await nodes.standBy("load", both);
    const traffic = seededTraffic(random);
    for (let round = 0; round < 2 * EFFORT; round++) {
      await paired(active, 30_000);
      await keyed(standby);
      await traffic.start(active);
      await traffic.more(random.integer(100, 400));
      const how = random.pick(["promote", "demote", "SIGTERM"]);
      if (how === "SIGTERM") active.signal(how);
      else {
        const { dataDir } = how === "promote" ? standby : active;
        const { code, errors } = await admin(dataDir, "standby", how);
        expect([code, errors]).toEqual([0, ""]);
      }
      expect(await active.exit(10_000)).toBe(0);
      await traffic.end();
      await standby.ready();
      await traffic.expectKept(standby);
      await traffic.retry(standby);
      const box = round % 2 === 0 ? "a" : "b";
      [active, standby] = [standby, await nodes.standBy("load", { ...both, STANDBY_BOX: box }, active.dataDir)];
      // Nothing of the one that resigned was left behind.
      expect(standby.log.some(({ msg }) => msg.includes("went on separately"))).toBe(false);
    }
    await paired(active, 30_000);
    await standby.stop();
    await active.stop();
    const stream = await Nodes.connect(nodes.cluster, "load");
    await eventually(async () =>
      expect(hashesOf(await stream.bodies())).toEqual(hashesOf(journalBodies(active.dataDir))),
    );
    for (const { dataDir } of [active, standby]) expect((await admin(dataDir, "verify")).code).toBe(0);
  });

  test("is called off where the stream has a message more than the box that starts, which follows", {
    timeout: 60_000,
  }, async () => {
    const both = { STANDBY_ACK: "stream" };
    const { lines, urls } = await nodes.openLines();
    const env = { ...both, STANDBY_BOX: "a", STANDBY_NATS: urls };
    const { world, stream, market, user } = await nodes.begin("more", env);
    const { server: a } = world;
    const b = await nodes.standBy("more", both);
    await keyed(b);
    await bid(user, market, "both", 1_000);
    for (const line of lines) line.pull();
    await eventually(async () => expect(hashesOf(journalBodies(b.dataDir))).toEqual(hashesOf(await stream.bodies())));
    const shipped = journalBodies(b.dataDir).length;
    const late = bid(user, market, "late", 2_000).catch(() => null);
    await eventually(async () => expect(journalBodies(a.dataDir).length).toBeGreaterThan(shipped));
    const body = journalBodies(a.dataDir)[shipped]!;
    await a.kill();
    await late;
    const { state } = await stream.manager.streams.info(stream.stream);
    await eventually(async () => {
      expect(JSON.parse((await admin(b.dataDir, "standby", "status")).out)).toMatchObject({ active: null });
    });
    const asked = admin(b.dataDir, "standby", "promote");
    await b.logged(({ msg }) => msg === "promoted", 15_000);
    // What the old active had sent arrives late.
    const stored = await stream.publish(packBatches(1, readHeader(body).batch, [body]), state.last_seq);
    expect(stored).toMatchObject({ seq: state.last_seq + 1 });
    expect(await b.exit(15_000)).toBe(FENCED_EXIT);
    expect((await asked).code).toBe(1);

    const again = await nodes.standBy("more", both, b.dataDir);
    await eventually(async () => expect((await admin(again.dataDir, "standby", "promote")).code).toBe(0));
    await again.ready();
    const onB = new Client(again, user.token);
    onTestFinished(() => onB.close());
    const names = (await onB.all<OrderJson>("/orders")).map(({ client_order_id: name }) => name);
    expect(names.sort()).toEqual(["both", "late"]);
    await again.stop();
  });

  test("with 100,000 live orders leaves nobody without an active box for long", { timeout: 240_000 }, async () => {
    const both = { STANDBY_ACK: "standby", STANDBY_TAKEOVER: "auto" };
    const env = nodes.settings("orders", { ...both, STANDBY_BOX: "a" });
    const usersTerms = { max_live_orders: 2 * LIVE_ORDERS };
    const world = await World.start({ users: 2, markets: [2], usersTerms, env });
    const [a, market] = [world.server, world.market()];
    onTestFinished(() => a.kill());
    const user = new Client(a, world.user().token, AT_ONCE);
    onTestFinished(() => user.close());
    const place = async (from: number): Promise<void> => {
      const orders = Array.from({ length: MAX_BATCH }, (_, i) => {
        const name = `order-${from + i}`;
        return { op: "place", ...terms(market, 0, BUY, 1 + ((from + i) % 400), 1, { client_order_id: name }) };
      });
      await batch(user, orders);
    };
    for (let from = 0; from < LIVE_ORDERS; from += AT_ONCE * MAX_BATCH) {
      await Promise.all(Array.from({ length: AT_ONCE }, (_, i) => place(from + i * MAX_BATCH)));
    }
    // The same one before and after the switch.
    const b = await nodes.standBy("orders", { ...both, PORT: String(await freePort()) });
    await paired(a, 30_000);
    await keyed(b);
    const isReady = async (server: TestServer): Promise<boolean> =>
      fetch(`${server.root}/readyz`).then(
        ({ ok }) => ok,
        () => false,
      );
    const asked = sendRequest(controlPath(b.dataDir), { command: "standby promote", args: [] });
    while (await isReady(a)) await delay(1);
    const since = performance.now();
    while (!(await isReady(b))) await delay(1);
    const withoutMs = performance.now() - since;
    console.log(`without an active box for ${Math.round(withoutMs)} ms at ${LIVE_ORDERS} live orders`);
    expect((await asked)?.code).toBe(0);
    expect(withoutMs).toBeLessThan(MAX_WITHOUT_MS);
    expect(await a.exit(10_000)).toBe(0);
    const onB = new Client(b, world.user().token);
    onTestFinished(() => onB.close());
    expect(await bid(onB, market, "on-b")).toMatchObject({ status: 202 });
    expect((await scrape(b)).series.get("exchange_live_orders")).toBe(LIVE_ORDERS + 1);
    await b.stop();
  });
});
