/** A planned switch: the active box ends its epoch in order, and its standby goes on at once. */
import { describe, expect, onTestFinished, test } from "vitest";
import { WebSocket } from "ws";
import { admin } from "../support/admin.ts";
import { eventually } from "../support/checks.ts";
import { API_BASE, Client, type OrderJson } from "../support/client.ts";
import { decoded, SBE } from "../support/sbe.ts";
import { TestServer } from "../support/server.ts";
import { bid, keyed, paired, readiness, TestNodes } from "./cluster.ts";
import { hashesOf, journalBodies, NO_NATS, Nodes } from "./streamed-log.ts";

const URL_OF_B = "https://b.example.com";

/** A connection with these subprotocols; `last` is the last frame that it gets. */
async function lastOf(server: TestServer, protocols: string[]): Promise<{ readonly last: Promise<Buffer> }> {
  const socket = new WebSocket(`${server.root.replace("http", "ws")}${API_BASE}/ws`, protocols);
  let newest: Buffer = Buffer.alloc(0);
  socket.on("message", (bytes: Buffer) => {
    newest = bytes;
  });
  await new Promise((resolve) => socket.once("open", resolve));
  return { last: new Promise((resolve) => socket.once("close", () => resolve(newest))) };
}

describe.skipIf(NO_NATS)("a planned switch", () => {
  const nodes = TestNodes.use();

  test("goes to the standby that asks for it, to the one that is there, and with a stop of the active box", async () => {
    const both = { STANDBY_ACK: "standby", STANDBY_TAKEOVER: "auto" };
    const { world, market, user } = await nodes.begin("switch", { ...both, STANDBY_BOX: "a" });
    const { server: a } = world;
    const alone = await admin(a.dataDir, "standby", "demote");
    expect([alone.code, alone.errors]).toEqual([1, expect.stringContaining("no standby is heard")]);
    const b = await nodes.standBy("switch", { ...both, STANDBY_URL: URL_OF_B });
    await paired(a);
    await keyed(b);
    const farewells = await Promise.all([lastOf(a, []), lastOf(a, [SBE])]);
    const unasked = await admin(b.dataDir, "standby", "demote");
    expect([unasked.code, unasked.errors]).toEqual([1, expect.stringContaining("this box is a standby")]);
    await bid(user, market, "on-a", 1_000);

    const promoted = await admin(b.dataDir, "standby", "promote");
    expect([promoted.errors, promoted.code]).toEqual(["", 0]);
    expect(JSON.parse(promoted.out)).toMatchObject({ box: "b", role: "active", epoch: 2 });
    expect(await a.exit(10_000)).toBe(0);
    expect(a.log.map(({ msg }) => msg)).toEqual(
      expect.arrayContaining(["handing over to the box b", "resigned: the box b goes on"]),
    );
    const [json, binary] = await Promise.all(farewells.map(({ last }) => last));
    expect(JSON.parse(json!.toString())).toMatchObject({ data: { reason: "standby", url: URL_OF_B } });
    expect(decoded(binary!).at(-1)).toMatchObject({
      ...{ template: "Shutdown", fields: { reason: "standby" }, texts: { url: URL_OF_B } },
    });
    await b.ready();
    await eventually(async () => {
      const { items } = JSON.parse((await admin(b.dataDir, "audit", "--action", "standby.promoted")).out);
      const promoted = (box: string, epoch: number) => ({ actor: "exchange", details: { box, epoch } });
      expect(items).toMatchObject([promoted("b", 2), promoted("a", 1)]);
    });
    const onB = new Client(b, user.token);
    onTestFinished(() => onB.close());
    expect((await onB.all<OrderJson>("/orders")).length).toBe(1);
    expect(await bid(onB, market, "on-b", 2_000)).toMatchObject({ status: 202 });

    // It comes back as the standby, and gets it back.
    const a2 = await nodes.standBy("switch", { ...both, STANDBY_BOX: "a" }, a.dataDir);
    await paired(b);
    await keyed(a2);
    const demoted = await admin(b.dataDir, "standby", "demote");
    expect([demoted.errors, JSON.parse(demoted.out)]).toEqual(["", { box: "b", to: "a" }]);
    expect(await b.exit(10_000)).toBe(0);
    await a2.ready();
    const onA = new Client(a2, user.token);
    onTestFinished(() => onA.close());
    expect((await onA.all<OrderJson>("/orders")).length).toBe(2);

    const b2 = await nodes.standBy("switch", both, b.dataDir);
    await paired(a2);
    await keyed(b2);
    a2.signal("SIGTERM");
    expect(await a2.exit(10_000)).toBe(0);
    await b2.ready();
    expect(await readiness(b2)).toMatchObject({ role: "active", epoch: 4 });

    // Without anybody to hand over to, a stop is a stop.
    await b2.stop();
    const again = await TestServer.start({
      dataDir: b.dataDir,
      env: nodes.settings("switch", { ...both, STANDBY_BOX: "b" }),
    });
    onTestFinished(() => again.kill());
    expect(await readiness(again)).toMatchObject({ role: "active", epoch: 5 });
    await again.stop();
    const stream = await Nodes.connect(nodes.cluster, "switch");
    await eventually(async () => expect(hashesOf(await stream.bodies())).toEqual(hashesOf(journalBodies(b.dataDir))));
  });

  test("a single box has nobody to hand over to", async () => {
    const single = await TestServer.start();
    onTestFinished(() => single.kill());
    const { code, errors } = await admin(single.dataDir, "standby", "demote");
    expect([code, errors]).toEqual([1, expect.stringContaining("this is a single box: STANDBY_NATS isn't set")]);
    await single.stop();
  });
});
