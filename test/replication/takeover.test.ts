/** The active box is gone, hangs or is cut off: its standby takes over without an operator, once. */
import { describe, expect, onTestFinished, test } from "vitest";
import { FENCED_EXIT } from "../../server/errors.ts";
import { admin } from "../support/admin.ts";
import { eventually } from "../support/checks.ts";
import { Client, type OrderJson } from "../support/client.ts";
import { PASSWORD, signIn } from "../support/identity.ts";
import { scrape } from "../support/metrics.ts";
import { addApp, signInWithCode } from "../support/second-factor.ts";
import type { TestServer } from "../support/server.ts";
import type { TestMarket, WorldOptions } from "../support/world.ts";
import { bid, keyed, paired, readiness, TestNodes } from "./cluster.ts";
import { NO_NATS } from "./streamed-log.ts";

/** What the goal allows on a machine with nothing else to do, and as much again. */
const TAKEOVER_MS = 12_000;
const URL_OF_B = "https://b.example.com";

describe.skipIf(NO_NATS)("a standby whose active box", () => {
  const nodes = TestNodes.use();
  const both = { STANDBY_ACK: "standby", STANDBY_TAKEOVER: "auto", STANDBY_LOST: "alone:3" };

  async function pair(name: string, ofActive: Record<string, string> = {}, named: WorldOptions["named"] = {}) {
    const { world, market, user } = await nodes.begin(name, { ...both, STANDBY_BOX: "a", ...ofActive }, named);
    const b = await nodes.standBy(name, { ...both, STANDBY_URL: URL_OF_B });
    await paired(world.server);
    await keyed(b);
    await bid(user, market, "on-a", 1_000);
    return { world, a: world.server, b, market, user };
  }

  async function expectTaken(b: TestServer, token: string | null, market: TestMarket): Promise<Client> {
    await b.logged(({ msg }) => msg === "ready", TAKEOVER_MS);
    await b.ready();
    const onB = new Client(b, token);
    onTestFinished(() => onB.close());
    expect(await onB.all<OrderJson>("/orders")).toMatchObject([{ client_order_id: "on-a" }]);
    expect(await bid(onB, market, "on-b", 2_000)).toMatchObject({ status: 202 });
    expect(await readiness(b)).toMatchObject({ status: "ok", role: "active", epoch: 2 });
    expect((await scrape(b)).series.get("exchange_standby_takeovers_total")).toBe(1);
    return onB;
  }

  test("is killed takes over, and the other one follows when it is back", async () => {
    const { a, b, market, user } = await pair("killed");
    await a.kill();
    await expectTaken(b, user.token, market);
    const back = await nodes.standBy("killed", { ...both, STANDBY_BOX: "a" }, a.dataDir);
    await paired(b);
    // A standby that stops in order leaves nothing waiting. The one that led leads again, the other doesn't take its start for its end.
    await back.stop();
    await b.stop();
    const again = await b.restart();
    onTestFinished(() => again.kill());
    expect(await readiness(again)).toMatchObject({ role: "active", epoch: 3 });
    await again.stop();
  });

  test("is killed after somebody's first second factor knows the factor, and so does the other one when it is back", async () => {
    const { a, b, market, user } = await pair("factor", {}, { owner: { password: PASSWORD } });
    const email = "owner@example.com";
    const factor = await addApp((await signIn(a, email)).client);
    await a.kill();
    await expectTaken(b, user.token, market);
    (await signInWithCode(b, email, factor.app.next())).client.close();
    const back = await nodes.standBy("factor", { ...both, STANDBY_BOX: "a" }, a.dataDir);
    await paired(b);
    await keyed(back);
    await eventually(async () => expect(await readiness(b)).toMatchObject({ keys_copied: true }));
    await b.kill();
    await back.ready();
    (await signInWithCode(back, email, factor.app.next())).client.close();
    await back.stop();
  });

  test("hangs takes over, and the other one is told where to go on when it wakes up", async () => {
    const { world, a, b, market, user } = await pair("hung");
    const socket = await world.socket(user);
    a.signal("SIGSTOP");
    await expectTaken(b, user.token, market);
    a.signal("SIGCONT");
    expect(await a.exit(15_000)).toBe(FENCED_EXIT);
    await socket.closed;
    expect(socket.frames.at(-1)).toMatchObject({
      event: "system.shutdown",
      data: { reason: "standby", url: URL_OF_B },
    });
    const back = await nodes.standBy("hung", { ...both, STANDBY_BOX: "a" }, a.dataDir);
    await paired(b);
    await back.stop();
    await b.stop();
  });

  test("is cut off from the nodes takes over; one that is cut off itself doesn't", async () => {
    const { lines, urls } = await nodes.openLines();
    const { a, b, market, user } = await pair("cut", { STANDBY_NATS: urls });
    for (const line of lines) line.pull();
    const onB = await expectTaken(b, user.token, market);
    for (const line of lines) line.plugIn();
    expect(await a.exit(15_000)).toBe(FENCED_EXIT);
    const back = await nodes.standBy("cut", { ...both, STANDBY_BOX: "a", STANDBY_NATS: urls }, a.dataDir);
    await paired(b);
    for (const line of lines) line.pull();
    await eventually(async () => {
      const { out } = await admin(back.dataDir, "standby", "status");
      expect(JSON.parse(out)).toMatchObject({ role: "standby", active: null, boxes: [] });
    });
    // It is lost.
    expect(await bid(onB, market, "alone", 3_000)).toMatchObject({ status: 202 });
    await eventually(async () => expect(await readiness(b)).toMatchObject({ status: "ok", alone: true }));
    expect(await readiness(back)).toMatchObject({ role: "standby" });
    for (const line of lines) line.plugIn();
    await paired(b, 30_000);
    expect((await scrape(back)).series.get("exchange_standby_epoch")).toBe(2);
    await back.stop();
    await b.stop();
  });
});
