/** Two boxes that don't hear each other, although both reach the nodes. */
import { setTimeout as delay } from "node:timers/promises";
import { describe, expect, onTestFinished, test } from "vitest";
import { SUSPICION_MS } from "../../server/replication/limits.ts";
import { admin } from "../support/admin.ts";
import { eventually } from "../support/checks.ts";
import { Client, type OrderJson } from "../support/client.ts";
import { Line } from "../support/line.ts";
import { bid, keyed, paired, readiness, TestNodes } from "./cluster.ts";
import { NO_NATS } from "./streamed-log.ts";

const TAKEOVER_MS = 15_000;

describe.skipIf(NO_NATS)("two boxes whose nodes don't reach each other", () => {
  const lines: Line[] = [];
  const nodes = TestNodes.use({
    between: async (port) => {
      const line = await Line.open(port);
      lines.push(line);
      return line.port;
    },
  });

  test("stay what they are while the third node has both, and the standby takes over once the active box is gone", {
    timeout: 120_000,
  }, async () => {
    const { cluster } = nodes;
    const both = { STANDBY_ACK: "standby", STANDBY_TAKEOVER: "auto", STANDBY_LOST: "alone:2" };
    const [own, other] = [0, 1].map((i) => `nats://${cluster.address(i)}`);
    const { world, market, user, stream } = await nodes.begin("apart", {
      ...both,
      STANDBY_BOX: "a",
      STANDBY_NATS: own!,
    });
    const b = await nodes.standBy("apart", { ...both, STANDBY_NATS: other! });
    await paired(world.server);
    await keyed(b);
    await eventually(async () => expect(await stream.leader()).toBe("n3"), 60_000);
    for (const line of lines) line.pull();
    onTestFinished(() => {
      for (const line of lines) line.close();
    });
    await eventually(async () => {
      expect(JSON.parse((await admin(b.dataDir, "standby", "status")).out)).toMatchObject({ active: null, boxes: [] });
    });
    // Idle, then at work: longer than the standby waits where nobody is there.
    await delay(4 * SUSPICION_MS);
    for (let i = 0; i < 5; i++) {
      expect(await bid(user, market, `apart-${i}`, 1_000 + i)).toMatchObject({ status: 202 });
      await delay(SUSPICION_MS);
    }
    expect(await readiness(world.server)).toMatchObject({ role: "active", epoch: 1, alone: true });
    expect(await readiness(b)).toMatchObject({ role: "standby", epoch: 1 });
    await world.server.kill();
    await b.logged(({ msg }) => msg === "ready", TAKEOVER_MS);
    await b.ready();
    const onB = new Client(b, user.token);
    onTestFinished(() => onB.close());
    expect((await onB.all<OrderJson>("/orders")).length).toBe(5);
    await b.stop();
  });
});
