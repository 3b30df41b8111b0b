/** Nodes that don't respond for a while, policies, and batches that are larger than a message. */
import { setTimeout as delay } from "node:timers/promises";
import { describe, expect, onTestFinished, test } from "vitest";
import { EVENT_RING_RECORDS } from "../../engine/limits.ts";
import { eventually } from "../support/checks.ts";
import type { OrderJson } from "../support/client.ts";
import { writeInto } from "../support/journal.ts";
import { scrape } from "../support/metrics.ts";
import { BUY, batch, cancelAll, expectRefused, terms } from "../support/trading.ts";
import { World } from "../support/world.ts";
import { bid, TestNodes } from "./cluster.ts";
import { hashesOf, journalBodies, NO_NATS } from "./streamed-log.ts";

const UNKNOWN = 50_000;
const CLOSED = 50_300;
const HELD = /that keep a copy of the log don't respond/;

const RESTING = 60_000;
const MAX_BATCH = 50;
/** Longer than a thread may be without progress. */
const STALL_MS = 70_000;

describe.skipIf(NO_NATS)("a log that is copied to NATS", () => {
  const nodes = TestNodes.use();

  test("nodes that don't respond: what was sent is unknown, what comes is refused, reads go on, and all comes back", async () => {
    const { world, market, user } = await nodes.begin("frozen");
    const socket = await world.socket(user);
    const thaw = await nodes.freeze();
    const unknown = bid(user, market, "waits");
    const registered = world.anonymous().request("POST", "/auth/register", {
      body: { email: "late@example.com", password: "correct horse" },
    });
    await world.server.logged(({ msg }) => msg.startsWith("the copy of the log is behind"));

    const other = world.user();
    await expectRefused(bid(other, market, "refused"), 503, CLOSED, HELD);
    await expectRefused(other.request("DELETE", "/orders"), 503, CLOSED, HELD);
    const answer = await socket.ask({ op: "order.place", ...terms(market, 0, 1, 4_000, 1) });
    expect(answer).toMatchObject({ code: CLOSED });
    expect(await other.all("/orders")).toEqual([]);
    expect((await other.request("GET", `/markets/${market.id}/orderbook`)).status).toBe(200);
    const ready = await fetch(`${world.server.root}/readyz`);
    expect([ready.status, await ready.json()]).toMatchObject([503, { status: "held", role: "active" }]);
    const figures = await scrape(world.server);
    expect(figures.series.get("exchange_standby_held_batches")).toBeGreaterThan(0);
    expect(figures.series.get("exchange_ready")).toBe(0);
    // Both end with "check before you retry" at their deadline: an order, and a write of an account.
    await expectRefused(unknown, 500, UNKNOWN, /check before you retry/);
    await expectRefused(registered, 500, UNKNOWN, /check before you retry/);

    thaw();
    await world.server.logged(({ msg }) => msg.startsWith("the copy of the log has caught up"));
    const again = await bid(user, market, "waits");
    expect(again.data).toMatchObject({ client_order_id: "waits" });
    expect(await user.all<OrderJson>("/orders")).toHaveLength(1);
    socket.close();
    await world.stop();
  });

  test("without waiting, orders are acknowledged at once and shipped once the nodes respond", async () => {
    const { world, stream, market, user } = await nodes.begin("none", { STANDBY_ACK: "none" });
    const thaw = await nodes.freeze();
    for (let i = 0; i < 3; i++) expect(await bid(user, market, `order-${i}`)).toMatchObject({ status: 202 });
    const figures = await scrape(world.server);
    expect(figures.series.get("exchange_standby_behind_batches")).toBeGreaterThanOrEqual(3);
    expect(figures.series.get("exchange_standby_held_batches")).toBe(0);
    expect(figures.series.get('exchange_standby_ack{policy="none"}')).toBe(1);
    thaw();
    await eventually(async () => {
      expect((await scrape(world.server)).series.get("exchange_standby_behind_batches")).toBe(0);
    });
    await world.stop();
    expect(hashesOf(await stream.bodies())).toEqual(hashesOf(journalBodies(world.server.dataDir)));
  });

  test("a batch larger than a message goes in parts, and a part that was left behind does no harm", async () => {
    const { world, stream } = await nodes.begin("large");
    await world.stop();
    const { dataDir } = world.server;
    const note = "x".repeat(40_000);
    writeInto(
      dataDir,
      ...Array.from({ length: 40 }, () => ({
        kind: "update" as const,
        table: "users" as const,
        id: 1,
        set: { passwordHash: note },
      })),
    );
    const whole = journalBodies(dataDir);
    expect(whole.at(-1)!.length).toBeGreaterThan(2 ** 20);
    await world.server.restart(nodes.settings("large")).then((server) => server.stop());
    expect((await stream.messages()).some(({ parts }) => parts > 2)).toBe(true);
    expect(hashesOf((await stream.bodies()).slice(0, whole.length))).toEqual(hashesOf(whole));
  });

  test("an engine without room behind a closed gate waits for longer than a stall, and goes on", {
    timeout: 240_000,
  }, async () => {
    const world = await World.start({
      ...{ users: 1, markets: [2], usersTerms: { max_live_orders: 200_000 }, env: nodes.settings("full") },
    });
    onTestFinished(() => world.server.kill());
    const [user, market] = [world.user(), world.market()];
    for (let placed = 0; placed < RESTING; placed += MAX_BATCH) {
      await batch(
        user,
        Array.from({ length: MAX_BATCH }, (_, i) => {
          return { op: "place", ...terms(market, 0, BUY, 1 + ((placed + i) % 2_000), 1) };
        }),
      );
    }
    const thaw = await nodes.freeze();
    const canceled = cancelAll(user).catch((error: Error) => error.message);
    await eventually(async () => {
      const { series } = await scrape(world.server);
      expect(series.get('exchange_command_ring_records{engine="1"}')).toBeGreaterThan(0);
      expect(series.get('exchange_event_ring_records{engine="1"}')).toBeGreaterThan(EVENT_RING_RECORDS * 0.9);
    });
    await delay(STALL_MS);
    expect((await fetch(`${world.server.root}/livez`)).status).toBe(200);
    thaw();
    await canceled;
    await eventually(async () => expect(await user.all("/orders")).toEqual([]), 20_000);
    await world.stop();
  });
});
