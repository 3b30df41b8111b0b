/** A second box follows the log of the first, says so, and becomes active when it is asked to and nobody else is. */
import { fileURLToPath } from "node:url";
import type { Static } from "typebox";
import { describe, expect, onTestFinished, test } from "vitest";
import type { HistoryDays as HistoryDaysSchema } from "../../server/markets/schemas.ts";
import { connections, expectEveryCase } from "../http/every-state.ts";
import { admin } from "../support/admin.ts";
import { eventually } from "../support/checks.ts";
import { Client, type OrderJson } from "../support/client.ts";
import { scrape } from "../support/metrics.ts";
import type { TestServer } from "../support/server.ts";
import { PUBLIC_URL } from "../support/world.ts";
import { bid, keyed, paired, readiness, TestNodes } from "./cluster.ts";
import { journalBodies, NO_NATS } from "./streamed-log.ts";

type HistoryDays = Static<typeof HistoryDaysSchema>;

const DAY_MS = 86_400_000;
const STEPPED_CLOCK = fileURLToPath(new URL("../support/stepped-clock.mjs", import.meta.url));
const URL_OF_A = "https://a.example.com";

describe.skipIf(NO_NATS)("a standby", () => {
  const nodes = TestNodes.use();

  test("has what is acknowledged, says who is active, and takes over once nobody is", async () => {
    const both = { STANDBY_ACK: "standby", PUBLIC_URL };
    const { world, market, user } = await nodes.begin("pair", { ...both, STANDBY_BOX: "a", STANDBY_URL: URL_OF_A });
    const { server: active } = world;
    expect(await readiness(active)).toMatchObject({ status: "ok", role: "active", ack: "standby", alone: true });
    await bid(user, market, "before", 1_000);
    const standby = await nodes.standBy("pair", { ...both, MERGE_FEE: "5", MAIL_INTERVAL: "0", LOG_LEVEL: "debug" });
    await paired(active);
    await keyed(standby);
    const { msg } = await standby.logged(({ msg }) => msg.startsWith("settings "));
    expect(msg).toBe(
      "settings that must be the same on both boxes aren't those of the box a: MAIL_INTERVAL, MERGE_FEE",
    );
    const described = JSON.parse((await admin(standby.dataDir, "standby", "status")).out);
    expect(described).toMatchObject({ boxes: [{ box: "a", settings_differ: ["MAIL_INTERVAL", "MERGE_FEE"] }] });
    const leading = JSON.parse((await admin(active.dataDir, "standby", "status")).out);
    for (const { takeover } of [described, leading])
      expect(takeover).toBe("STANDBY_TAKEOVER is manual: only by command");
    expect(described.boxes[0].version).toMatch(/^\d+\.\d+\.\d+$/);
    for (const box of [active, standby]) {
      await eventually(async () => {
        const { series } = await scrape(box);
        expect(series.get("exchange_standby_settings_equal")).toBe(0);
        expect(Math.abs(series.get("exchange_standby_clock_ahead_seconds")!)).toBeLessThan(5);
      });
    }
    for (let i = 0; i < 5; i++) {
      await bid(user, market, `after-${i}`, 2_000 + i);
      // At the acknowledgement both have it; what goes on behind it may be on its way.
      const own = journalBodies(standby.dataDir);
      expect(own.at(-1)?.equals(journalBodies(active.dataDir)[own.length - 1]!)).toBe(true);
      const text = Buffer.concat(own).toString("latin1");
      expect(text).toContain(`after-${i}`);
    }

    await eventually(async () => {
      const ready = await fetch(`${standby.root}/readyz`);
      expect([ready.status, await ready.json()]).toEqual([
        503,
        {
          ...{ status: "standby", role: "standby", epoch: 1, behind_batches: 0, ack: "standby" },
          ...{ keys_copied: true, active: URL_OF_A },
        },
      ]);
    });
    expect((await fetch(`${standby.root}/livez`)).status).toBe(200);
    const { series } = await scrape(standby);
    expect(series.get('exchange_standby_role{role="standby"}')).toBe(1);
    // A standby is no exchange that isn't ready.
    expect(series.has("exchange_ready")).toBe(false);
    expect(series.get("exchange_standby_behind_batches")).toBe(0);
    for (const [method, path] of [
      ["GET", "/"],
      ["GET", "/api/v1/markets"],
      ["POST", "/api/v1/orders"],
      ["DELETE", "/nowhere"],
    ] as const) {
      const refused = await fetch(`${standby.root}${path}`, { method, ...(method === "POST" && { body: "{}" }) });
      const { headers } = refused;
      expect([refused.status, headers.get("exchange-active"), headers.get("retry-after")]).toEqual([
        503,
        URL_OF_A,
        "1",
      ]);
      expect(await refused.json()).toMatchObject({ code: 50_300, msg: `the active is ${URL_OF_A}`, data: null });
    }

    await expectEveryCase(connections(standby.port));

    const { out, code } = await admin(standby.dataDir, "standby", "status");
    expect([code, JSON.parse(out)]).toMatchObject([
      0,
      {
        role: "standby",
        box: "b",
        behind_batches: 0,
        active: { box: "a", url: URL_OF_A },
        stream: { name: "PX_pair" },
      },
    ]);
    const other = await admin(standby.dataDir, "users");
    expect([other.code, other.errors]).toEqual([1, expect.stringContaining(`the active is ${URL_OF_A}`)]);
    const active2 = await admin(active.dataDir, "standby", "promote");
    expect([active2.code, active2.errors]).toEqual([1, expect.stringContaining("this box is active")]);

    await active.kill();
    await eventually(async () => {
      const promoted = await admin(standby.dataDir, "standby", "promote");
      expect([promoted.code, promoted.errors]).toEqual([0, ""]);
      expect([promoted.code, JSON.parse(promoted.out)]).toMatchObject([0, { box: "b", role: "active", epoch: 2 }]);
    });
    await standby.ready();
    const reader = new Client(standby, user.token);
    onTestFinished(() => reader.close());
    expect((await reader.all<OrderJson>("/orders")).length).toBe(6);
    expect(await bid(reader, market, "on-b")).toMatchObject({ status: 202 });
    await standby.stop();
  });

  test("makes book history beside the active box: after a takeover no day is missing, and none is another", async () => {
    // At noon no hour ends beside the test.
    const toNoon = DAY_MS / 2 - (Date.now() % DAY_MS);
    const today = { CLOCK_OFFSET_MS: `${toNoon}`, NODE_OPTIONS: `--import ${STEPPED_CLOCK}` };
    const yesterday = { ...today, CLOCK_OFFSET_MS: `${toNoon - DAY_MS}` };
    const both = { STANDBY_ACK: "standby", PUBLIC_URL };
    const { world, market, user } = await nodes.begin("days", { ...both, ...yesterday, STANDBY_BOX: "a" });
    await bid(user, market, "yesterday", 1_000);
    const following = await nodes.standBy("days", { ...both, ...yesterday });
    await paired(world.server);
    await following.stop();
    await world.server.stop();
    // Nothing but the start ends the day, on which nobody traded since.
    const active = await world.server.restart(today);
    const standby = await nodes.standBy("days", { ...both, ...today }, following.dataDir);
    await paired(active);
    await keyed(standby);
    const listed = async (box: TestServer): Promise<HistoryDays> =>
      ((await (await fetch(`${box.root}/api/v1/markets/${market.id}/history`)).json()) as { data: HistoryDays }).data;
    const date = new Date(Date.now() + toNoon - DAY_MS).toISOString().slice(0, 10);
    await standby.logged(({ msg }) => msg === "book history is made");
    await active.logged(({ msg }) => msg === "book history is made");
    const before = await listed(active);
    expect(before.items).toMatchObject([{ date, complete: true, rows: 2 }]);
    await active.kill();
    await eventually(async () => {
      expect((await admin(standby.dataDir, "standby", "promote")).code).toBe(0);
    });
    await standby.ready();
    expect(await listed(standby)).toEqual(before);
    await standby.stop();
  });

  test("says that it is starting until it knows who is active", async () => {
    const { world } = await nodes.begin("fresh", { STANDBY_BOX: "a" });
    const standby = await nodes.standBy("fresh");
    await eventually(async () =>
      expect(await readiness(standby)).toMatchObject({ status: "standby", behind_batches: 0 }),
    );
    await world.server.kill();
    await standby.stop();
    const alone = await nodes.standBy("fresh", {}, standby.dataDir);
    expect(await readiness(alone)).toEqual({ status: "starting" });
    const refused = await (await fetch(`${alone.root}/api/v1/markets`)).json();
    expect(refused).toMatchObject({ code: 50_300, msg: "the exchange is starting" });
    await eventually(async () => expect(await readiness(alone)).toMatchObject({ status: "standby", active: null }));
    await alone.stop();
  });
});
