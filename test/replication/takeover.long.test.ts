/** Takeovers: where the stream's leader is. Those under load are in crash/pair.long.test.ts. */
import { describe, expect, test } from "vitest";
import { eventually } from "../support/checks.ts";
import { paired, TestNodes } from "./cluster.ts";
import { NO_NATS } from "./streamed-log.ts";

describe.skipIf(NO_NATS)("a takeover", () => {
  const nodes = TestNodes.use();

  test("moves the stream's leader to the node that no box uses", { timeout: 120_000 }, async () => {
    const { cluster } = nodes;
    const both = { STANDBY_ACK: "standby" };
    const { world, stream } = await nodes.begin("place", { ...both, STANDBY_BOX: "a", STANDBY_NATS: cluster.urls(0) });
    const b = await nodes.standBy("place", { ...both, STANDBY_NATS: cluster.urls(1) });
    await paired(world.server);
    await eventually(async () => expect(await stream.leader()).toBe("n3"), 90_000);
    // The next leader is a box's node, and is noticed at once.
    const elected = await stream.elected();
    await stream.stepDown();
    await eventually(async () => expect(elected.at(-1)).toBe("n3"), 90_000);
    expect(elected[0]).toMatch(/^n[12]$/);
    await b.stop();
    await world.stop();
  });
});
