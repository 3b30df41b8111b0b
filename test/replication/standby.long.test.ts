/** Two boxes under load, with kills, pulled lines, hanging boxes and mistakes of operators. */
import { existsSync, readdirSync, readFileSync, statSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, onTestFinished, test } from "vitest";
import { FENCED_EXIT } from "../../server/errors.ts";
import { keyFolder } from "../../server/util/data-folder.ts";
import { seededTraffic, TRAFFIC_SEED } from "../crash/traffic.ts";
import { admin } from "../support/admin.ts";
import { eventually } from "../support/checks.ts";
import { Client } from "../support/client.ts";
import { writeInto } from "../support/journal.ts";
import { scrape } from "../support/metrics.ts";
import { EFFORT } from "../support/projects.ts";
import { Random } from "../support/random.ts";
import { TestServer, temporaryFolder } from "../support/server.ts";
import { expectRefused } from "../support/trading.ts";
import { bid, expectEqual, keyed, paired, readiness, SYNC_MS, stopBoth, TestNodes, tableHashes } from "./cluster.ts";
import { folderOf, hashesOf, journalBodies, NO_NATS, Nodes } from "./streamed-log.ts";

describe.skipIf(NO_NATS)("two boxes", () => {
  const nodes = TestNodes.use();

  /** An exchange with the traffic's users, and a standby that follows it. */
  async function pair(name: string, more: Record<string, string> = {}) {
    const both = { STANDBY_ACK: "standby", STANDBY_LOST: "alone:1", ...more };
    const env = nodes.settings(name, { STANDBY_BOX: "a", ...both });
    const active = await TestServer.start({ seed: TRAFFIC_SEED, env });
    onTestFinished(() => active.kill());
    const standby = await nodes.standBy(name, both);
    await paired(active);
    await keyed(standby);
    return { active, standby, both };
  }

  test(`the standby is killed ${5 * EFFORT} times under load`, { timeout: 240_000 * EFFORT }, async () => {
    const random = Random.printed("kills of a standby");
    const { active, both, standby: first } = await pair("killed");
    let standby = first;
    const traffic = seededTraffic(random);
    await traffic.start(active);
    for (let round = 0; round < 5 * EFFORT; round++) {
      await traffic.more(random.integer(10, 300));
      await standby.kill();
      if (random.chance(0.3)) await traffic.more(random.integer(10, 100));
      standby = await nodes.standBy("killed", both, standby.dataDir);
      // Some are killed while they catch up.
      if (random.chance(0.7)) await paired(active, SYNC_MS);
    }
    await paired(active, SYNC_MS);
    await traffic.more(200);
    await traffic.end();
    await stopBoth(active, standby);
    await expectEqual(active.dataDir, standby.dataDir);
  });

  test("the active box is killed under load: the standby has everything that was acknowledged", {
    timeout: 240_000 * EFFORT,
  }, async () => {
    const random = Random.printed("kills of an active box");
    const { active: first, standby: second, both } = await pair("active");
    let [active, standby] = [first, second];
    const traffic = seededTraffic(random);
    for (let round = 0; round < 2 * EFFORT; round++) {
      await traffic.start(active);
      await traffic.more(random.integer(100, 400));
      await active.kill();
      await traffic.end();
      await eventually(async () => expect((await admin(standby.dataDir, "standby", "promote")).code).toBe(0));
      await standby.ready();
      await traffic.expectKept(standby);
      await traffic.retry(standby);
      // The log of the box that was killed may go on where nobody followed: it begins anew.
      const box = round % 2 === 0 ? "a" : "b";
      [active, standby] = [standby, await nodes.standBy("active", { ...both, STANDBY_BOX: box })];
      await paired(active, SYNC_MS);
      await keyed(standby);
    }
    await stopBoth(active, standby);
    await expectEqual(active.dataDir, standby.dataDir);
  });

  test("a standby whose lines are pulled is lost, doesn't take itself for the only one, and catches up", {
    timeout: 120_000,
  }, async () => {
    const random = Random.printed("pulled lines");
    const both = { STANDBY_ACK: "standby", STANDBY_LOST: "alone:3" };
    const active = await TestServer.start({
      seed: TRAFFIC_SEED,
      env: nodes.settings("pulled", { STANDBY_BOX: "a", ...both }),
    });
    onTestFinished(() => active.kill());
    const { lines, urls } = await nodes.openLines();
    const standby = await nodes.standBy("pulled", { ...both, STANDBY_NATS: urls });
    await paired(active);
    const traffic = seededTraffic(random);
    await traffic.start(active);
    await traffic.more(200);
    for (const line of lines) line.pull();
    await active.logged(({ msg }) => msg.startsWith("the standby is lost"), 20_000);
    await eventually(async () => expect(await readiness(active)).toMatchObject({ status: "ok", alone: true }));
    await traffic.more(500);
    const promoted = await admin(standby.dataDir, "standby", "promote");
    expect([promoted.code, promoted.errors]).toEqual([
      1,
      expect.stringContaining("this box has no connection to NATS"),
    ]);
    for (const line of lines) line.plugIn();
    await paired(active, SYNC_MS);
    await traffic.more(200);
    await traffic.end();
    await stopBoth(active, standby);
    await expectEqual(active.dataDir, standby.dataDir);
  });

  test("with STANDBY_LOST=wait nothing is acknowledged without the standby", { timeout: 60_000 }, async () => {
    const wait = { STANDBY_ACK: "standby", STANDBY_LOST: "wait" };
    // The first start has no standby to wait for yet.
    const { world, market, user } = await nodes.begin("waits", { STANDBY_BOX: "a" });
    await world.server.stop();
    const active = TestServer.spawn({
      dataDir: world.server.dataDir,
      env: { ...nodes.settings("waits", wait), STANDBY_BOX: "a" },
    });
    onTestFinished(() => active.kill());
    const standby = await nodes.standBy("waits", wait);
    await active.ready();
    const reader = new Client(active, user.token);
    onTestFinished(() => reader.close());
    expect(await bid(reader, market, "both")).toMatchObject({ status: 202 });
    standby.signal("SIGSTOP");
    const waiting = bid(reader, market, "waiting");
    await active.logged(({ msg }) => msg.startsWith("the copy of the log is behind"));
    const other = new Client(active, user.token);
    onTestFinished(() => other.close());
    await expectRefused(bid(other, market, "refused"), 503, 50_300);
    standby.signal("SIGCONT");
    expect(await waiting).toMatchObject({ status: 202 });
    // A stop writes when each token was used last, which waits, too.
    await active.stop();
    await standby.stop();
  });

  test("an older copy and an empty folder get the rest, batches in parts included, and may lead", {
    timeout: 120_000,
  }, async () => {
    const env = nodes.settings("rest", { STANDBY_BOX: "a" });
    const server = await TestServer.start({ seed: TRAFFIC_SEED, env });
    onTestFinished(() => server.kill());
    const traffic = seededTraffic(Random.printed("the rest"));
    await traffic.start(server);
    await traffic.more(300);
    await server.kill();
    await traffic.end();
    const { dataDir } = server;
    const set = { passwordHash: "x".repeat(40_000) };
    writeInto(dataDir, ...Array.from({ length: 30 }, () => ({ kind: "update", table: "users", id: 1, set }) as const));
    const owner = await TestServer.start({ dataDir, env });
    const bodies = journalBodies(dataDir);
    const older = temporaryFolder();
    folderOf(bodies.slice(0, Math.floor(bodies.length / 2)), older);
    const [half, empty] = [
      await nodes.standBy("rest", { STANDBY_BOX: "b" }, older),
      await nodes.standBy("rest", { STANDBY_BOX: "c" }),
    ];
    await eventually(async () => {
      for (const box of [half, empty])
        expect(hashesOf(journalBodies(box.dataDir))).toEqual(hashesOf(journalBodies(dataDir)));
    }, SYNC_MS);
    await keyed(empty);
    await owner.kill();
    await eventually(async () => expect((await admin(empty.dataDir, "standby", "promote")).code).toBe(0));
    await empty.ready();
    await traffic.expectKept(empty);
    await traffic.retry(empty);
    // The third box follows whoever leads.
    await stopBoth(empty, half);
    await expectEqual(empty.dataDir, older);
  });

  test("an active box that hangs is fenced when it goes on, and nothing of it is stored", {
    timeout: 120_000,
  }, async () => {
    const { active, standby, both } = await pair("fenced");
    const { dataDir } = active;
    active.signal("SIGSTOP");
    await eventually(async () => expect((await admin(standby.dataDir, "standby", "promote")).code).toBe(0), SYNC_MS);
    await standby.ready();
    active.signal("SIGCONT");
    const line = await active.logged(({ level }) => level === 60);
    expect(line).toMatchObject({
      thread: "replication",
      error: expect.stringMatching(/another box|the box b is active/),
    });
    expect(await active.exit(15_000)).toBe(FENCED_EXIT);
    const stream = await Nodes.connect(nodes.cluster, "fenced");
    await eventually(async () =>
      expect(hashesOf(await stream.bodies())).toEqual(hashesOf(journalBodies(standby.dataDir))),
    );

    // It had nothing of its own: it follows.
    const back = await nodes.standBy("fenced", { ...both, STANDBY_BOX: "a" }, dataDir);
    await paired(standby);
    await stopBoth(standby, back);
    await expectEqual(standby.dataDir, dataDir);
  });

  test.each(["standby", "none"])(
    "a box that was cut off from the nodes loses what only it had: STANDBY_ACK=%s",
    {
      timeout: 120_000,
    },
    async (ack) => {
      const name = `tail-${ack}`;
      const { lines, urls } = await nodes.openLines();
      const both = { STANDBY_ACK: ack };
      const { world, market, user } = await nodes.begin(name, { ...both, STANDBY_BOX: "a", STANDBY_NATS: urls });
      const { server: active } = world;
      const { dataDir } = active;
      const standby = await nodes.standBy(name, both);
      await keyed(standby);
      await bid(user, market, "both", 1_000);
      // With STANDBY_ACK=none a response is ahead of the stream.
      const shared = await eventually(async () => {
        const { length } = journalBodies(dataDir);
        expect(journalBodies(standby.dataDir)).toHaveLength(length);
        return length;
      });
      for (const line of lines) line.pull();
      const lost = bid(user, market, "lost", 2_000).catch(() => null);
      await eventually(async () => expect(journalBodies(dataDir).length).toBeGreaterThan(shared));
      // Only without waiting do the tables have it.
      if (ack === "none") expect((await lost)?.status).toBe(202);
      await eventually(async () => expect(await user.all("/orders")).toHaveLength(ack === "none" ? 2 : 1));
      active.signal("SIGSTOP");
      await eventually(async () => expect((await admin(standby.dataDir, "standby", "promote")).code).toBe(0), SYNC_MS);
      await standby.ready();
      const reader = new Client(standby, user.token);
      onTestFinished(() => reader.close());
      expect(await bid(reader, market, "after", 3_000)).toMatchObject({ status: 202 });
      for (const line of lines) line.plugIn();
      active.signal("SIGCONT");
      expect(await active.exit(20_000)).toBe(FENCED_EXIT);
      await lost;

      const back = await nodes.standBy(name, { ...both, STANDBY_BOX: "a" }, dataDir);
      const line = await back.logged(({ msg }) => msg.includes("went on separately"), SYNC_MS);
      const [, first, path] = /cut batches (\d+) to \d+, which are in (\S+)$/.exec(line.msg)!;
      expect([Number(first), existsSync(path!)]).toEqual([expect.any(Number), true]);
      expect(Number(first)).toBe(shared + 1);
      expect((await admin(dataDir, "log", "--file", path!)).out).toContain("lost");
      await eventually(async () =>
        expect((await scrape(back)).series.get("exchange_standby_cut_batches_total")).toBeGreaterThan(0),
      );
      await stopBoth(standby, back);
      await expectEqual(standby.dataDir, dataDir);
    },
  );

  test("a box that led leads again, one that followed doesn't by itself", { timeout: 60_000 }, async () => {
    const { active, standby, both } = await pair("again");
    await active.kill();
    const again = await active.restart();
    onTestFinished(() => again.kill());
    expect(await readiness(again)).toMatchObject({ role: "active", epoch: 2 });
    await paired(again);
    await standby.stop();
    await again.stop();

    const alone = await nodes.standBy("again", both, standby.dataDir);
    await eventually(async () => {
      expect(await readiness(alone)).toMatchObject({ role: "standby", active: null });
    });
    await alone.stop();
    const { code, errors } = await TestServer.refuse({ dataDir: standby.dataDir });
    expect([code, errors]).toEqual([1, expect.stringContaining("this box was a standby")]);
    const env = nodes.settings("again", { ...both, STANDBY_BOX: "b", NETWORK: "off" });
    const off = await TestServer.refuse({ dataDir: standby.dataDir, env });
    expect([off.code, off.errors]).toEqual([1, expect.stringContaining("run the command on the active one")]);
    // A question starts no box: it would lead.
    const asked = await admin(active.dataDir, "standby", "status");
    const why = `no exchange responds in "${active.dataDir}": start it, or name the data folder with DATA_DIR\n`;
    expect([asked.code, asked.errors]).toEqual([1, why]);
  });

  test("a standby gets the keys of the active box, and each new one", { timeout: 60_000 }, async () => {
    const { active, standby } = await pair("keys");
    const keysOf = (dataDir: string): Record<string, string> => {
      const names = readdirSync(keyFolder(dataDir)).sort();
      return Object.fromEntries(names.map((name) => [name, readFileSync(join(keyFolder(dataDir), name), "utf8")]));
    };
    const expectEqualKeys = (): Promise<void> =>
      eventually(async () => expect(keysOf(standby.dataDir)).toEqual(keysOf(active.dataDir)));
    await expectEqualKeys();
    const [before] = Object.keys(keysOf(active.dataDir));
    expect(statSync(join(keyFolder(standby.dataDir), before!)).mode & 0o777).toBe(0o600);
    for (const command of ["rotate", "rotate-second-factors"]) {
      const rotated = await admin(active.dataDir, "keys", command);
      expect([rotated.code, JSON.parse(rotated.out)]).toMatchObject([0, { standby: "has the new key" }]);
      expect(keysOf(standby.dataDir)).toEqual(keysOf(active.dataDir));
    }
    expect(Object.keys(keysOf(standby.dataDir)).length).toBe(3);
    const { out } = await admin(active.dataDir, "standby", "status");
    await eventually(async () => {
      expect(JSON.parse(out)).toMatchObject({ boxes: [{ box: "b", role: "standby" }] });
      expect((await scrape(active)).series.get("exchange_standby_keys_equal")).toBe(1);
      expect((await scrape(standby)).series.get("exchange_standby_keys_equal")).toBe(1);
    });
    const own = await admin(standby.dataDir, "standby", "status");
    expect(JSON.parse(own.out)).toMatchObject({
      keys_equal: true,
      boxes: [{ box: "a", role: "active", keys_equal: true }],
    });
    await standby.stop();
    await active.stop();
  });

  test("with another secret a standby follows, and isn't promoted with other keys", { timeout: 60_000 }, async () => {
    const { active, standby: first, both } = await pair("secrets");
    await first.stop();
    const standby = await nodes.standBy("secrets", { ...both, STANDBY_BOX: "c", STANDBY_SECRET: "x".repeat(40) });
    const line = await standby.logged(({ level }) => level === 50);
    expect(line.msg).toBe(
      "the box a has other keys, and they can't be fetched: the boxes have different STANDBY_SECRETs",
    );
    expect(existsSync(keyFolder(standby.dataDir))).toBe(false);
    await standby.logged(({ msg }) => msg.endsWith("aren't those of the box a: STANDBY_SECRET"));
    await paired(active);
    const takeovers = [active, standby].map(async ({ dataDir }) => {
      const { out } = await admin(dataDir, "standby", "status");
      return JSON.parse(out).takeover as string;
    });
    expect(await Promise.all(takeovers)).toEqual([
      "the box c has other keys",
      "this box has other keys than the box that it followed: copy that one's keys/ here first",
    ]);
    await active.kill();
    await eventually(async () => {
      const { code, errors } = await admin(standby.dataDir, "standby", "promote");
      expect([code, errors]).toEqual([
        1,
        expect.stringContaining("this box has other keys than the box that it followed"),
      ]);
    });
    await standby.stop();
  });

  test("boxes that don't fit are refused in words", { timeout: 60_000 }, async () => {
    const { active, standby, both } = await pair("fit");
    const named = { ...nodes.settings("fit", both), STANDBY_BOX: "b" };
    const twin = await TestServer.refuse({ dataDir: temporaryFolder(), env: named });
    expect([twin.code, twin.errors]).toEqual([1, expect.stringContaining("another box runs under the name b")]);
    await standby.stop();

    const foreign = await TestServer.start();
    await foreign.stop();
    const other = await TestServer.refuse({ dataDir: foreign.dataDir, env: named });
    expect([other.code, other.errors]).toEqual([1, expect.stringContaining("the log of another exchange")]);
    await active.stop();
  });

  test("a standby killed while its log is empty, and before its tables exist, begins where it was", {
    timeout: 60_000,
  }, async () => {
    const { active, both } = await pair("early");
    const reader = join(temporaryFolder(), "b");
    for (let i = 0; i < 5; i++) {
      const env = nodes.settings("early", { ...both, STANDBY_BOX: "c" });
      const box = TestServer.spawn({ dataDir: reader, env });
      onTestFinished(() => box.kill());
      await box.logged(({ msg }) => msg.startsWith("connected to the node"));
      await new Promise((resolve) => setTimeout(resolve, 20 * i));
      await box.kill();
    }
    const box = await nodes.standBy("early", { ...both, STANDBY_BOX: "c" }, reader);
    await eventually(async () =>
      expect(hashesOf(journalBodies(reader))).toEqual(hashesOf(journalBodies(active.dataDir))),
    );
    await stopBoth(active, box);
    expect(tableHashes(reader)).toEqual(tableHashes(active.dataDir));
  });
});
