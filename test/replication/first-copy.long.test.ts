/** A copy of the active box's files that is interrupted, has no room, or doesn't fit: it goes on, or says why it doesn't. */
import { spawnSync } from "node:child_process";
import { cpSync, existsSync, mkdirSync, readdirSync, statSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, onTestFinished, test } from "vitest";
import { keepLog } from "../../server/service/log-upkeep-job.ts";
import { appendDeposits, createOldExchange, openTables } from "../engine/projection/old-exchange.ts";
import { admin } from "../support/admin.ts";
import { eventually } from "../support/checks.ts";
import { Client } from "../support/client.ts";
import { TestServer, temporaryFolder } from "../support/server.ts";
import { World } from "../support/world.ts";
import { bid, expectEqual, keyed, paired, SYNC_MS, stopBoth, TestNodes, tableHashes } from "./cluster.ts";
import { hashesOf, journalBodies, NO_NATS } from "./streamed-log.ts";

const COPY_MS = 60_000;
const TEST_MS = 240_000;
/** Each deposit takes so many bytes of the log and of the tables: 60 MB in all. */
const REFERENCE = "r".repeat(100_000);
const DEPOSITS = 300;
const MANY_BYTES = 4e6;

describe.skipIf(NO_NATS)("a copy of the active box's files", () => {
  const nodes = TestNodes.use();
  const settings = (name: string, box: string, more = {}): Record<string, string> =>
    nodes.settings(name, { STANDBY_BOX: box, STANDBY_ACK: "standby", ...more });

  async function largeExchange(name: string, prepare: (dataDir: string) => void = () => {}): Promise<TestServer> {
    const dataDir = temporaryFolder();
    createOldExchange(dataDir);
    appendDeposits(dataDir, DEPOSITS, REFERENCE);
    prepare(dataDir);
    const active = await TestServer.start({ dataDir, env: settings(name, "a") });
    onTestFinished(() => active.kill());
    return active;
  }

  function begin(name: string, dataDir = temporaryFolder(), more = {}): TestServer {
    const standby = TestServer.spawn({ dataDir, env: settings(name, "b", more) });
    onTestFinished(() => standby.kill());
    return standby;
  }

  /** Resolves in the middle of the copy. */
  async function untilMuch(dataDir: string): Promise<void> {
    const path = join(dataDir, "copy", "in", "journal.db");
    while (!existsSync(path) || statSync(path).size < MANY_BYTES)
      await new Promise((resolve) => setTimeout(resolve, 1));
  }

  test(
    "goes on after a kill -9 of either box, and the standby has what arrived before",
    async () => {
      const name = "copy-kills";
      const a = await largeExchange(name);
      const b = begin(name);
      await untilMuch(b.dataDir);
      await b.kill();
      const b2 = begin(name, b.dataDir);
      await b2.logged(
        ({ msg }) => /^copied [\d.]+ MB up to batch \d+ in [\d.]+ s, [\d.]+ MB of them before$/.test(msg),
        COPY_MS,
      );
      await paired(a, COPY_MS);
      await b2.kill();

      const c = begin(name);
      await untilMuch(c.dataDir);
      await a.kill();
      const a2 = await TestServer.start({ dataDir: a.dataDir, env: settings(name, "a") });
      onTestFinished(() => a2.kill());
      expect(existsSync(join(a.dataDir, "copy", "out", "exchange.db"))).toBe(false);
      await c.logged(({ msg }) => msg.startsWith("no copy from the box a: "), COPY_MS);
      c.port = Number((await c.logged(({ msg }) => msg === "standing by"))["port"]);
      await paired(a2, COPY_MS);
      await keyed(c);
      await stopBoth(a2, c);
      await expectEqual(a2.dataDir, c.dataDir);
    },
    TEST_MS,
  );

  test(
    "waits where a disk has no room, or the secret is another, and says so",
    async ({ skip }) => {
      const name = "copy-refused";
      const unmount = (dataDir: string): void => void spawnSync("umount", ["-l", join(dataDir, "copy")]);
      const makeSmall = (dataDir: string): void => {
        const folder = join(dataDir, "copy");
        mkdirSync(folder);
        const isMounted = spawnSync("mount", ["-t", "tmpfs", "-o", "size=8m", "none", folder]).status === 0;
        skip(!isMounted, "a small disk needs the right to mount one");
        onTestFinished(() => unmount(dataDir));
      };
      const a = await largeExchange(name, makeSmall);
      const other = begin(name, temporaryFolder(), { STANDBY_SECRET: "another secret of thirty-two letters" });
      await other.logged(
        ({ msg }) => msg === "no copy from the box a: the boxes have different STANDBY_SECRETs",
        COPY_MS,
      );
      await other.kill();

      const b = begin(name);
      const noRoom = (whose: string) => (line: { readonly msg: string }) =>
        new RegExp(
          `^no copy from the box a: ${whose} disk has no room for a copy: it takes \\d+ MiB, \\d+ MiB are free$`,
        ).test(line.msg);
      await b.logged(noRoom("its"), COPY_MS);
      unmount(a.dataDir);
      const dataDir = temporaryFolder();
      makeSmall(dataDir);
      const full = begin(name, dataDir, { STANDBY_BOX: "c" });
      await full.logged(noRoom("this box's"), COPY_MS);
      await full.kill();
      await b.logged(({ msg }) => msg.startsWith("copied "), COPY_MS);
      await paired(a, COPY_MS);
    },
    TEST_MS,
  );

  test(
    "doesn't replace a log that went on separately",
    async () => {
      const name = "copy-other";
      const single = await World.start({ users: 1, markets: [2] });
      const market = single.market();
      const [first] = [single.user()];
      await bid(first, market, "both", 1);
      await single.server.stop();
      const dataDir = temporaryFolder();
      cpSync(single.server.dataDir, dataDir, { recursive: true, filter: (path) => !path.endsWith(".sock") });
      const change = async (folder: string, names: readonly string[]): Promise<void> => {
        const server = await TestServer.start({ dataDir: folder });
        const user = new Client(server, first.token);
        for (const each of names) await bid(user, market, each, 2);
        user.close();
        await server.stop();
      };
      await change(dataDir, ["b"]);
      await change(single.server.dataDir, ["a-1", "a-2", "a-3", "a-4"]);
      const a = await TestServer.start({ dataDir: single.server.dataDir, env: settings(name, "a") });
      onTestFinished(() => a.kill());
      const { code, errors } = await TestServer.refuse({ dataDir, env: settings(name, "b") });
      expect([code, errors]).toEqual([
        1,
        expect.stringMatching(/the active box's log doesn't have batch \d+, with which this box's ends/),
      ]);
      expect(existsSync(join(dataDir, "journal.db"))).toBe(true);
    },
    TEST_MS,
  );

  test(
    "has the archives and the tables from before the log",
    async () => {
      const [dataDir, name] = [temporaryFolder(), "copy-archives"];
      createOldExchange(dataDir);
      appendDeposits(dataDir, 4);
      const { archives } = openTables(dataDir);
      const files = { journal: join(dataDir, "journal.db"), tables: join(dataDir, "exchange.db"), archives };
      expect(keepLog({ ...files, logDays: 0, history: null })).toMatchObject({ archived: 12 });
      const archived = readdirSync(archives);
      const a = await TestServer.start({
        dataDir,
        env: nodes.settings(name, { STANDBY_BOX: "a", STANDBY_ACK: "standby" }),
      });
      onTestFinished(() => a.kill());
      const b = await nodes.standBy(name, { STANDBY_ACK: "standby" });
      await paired(a, SYNC_MS);
      await keyed(b);
      const newest = (folder: string): unknown => hashesOf(journalBodies(folder)).at(-1);
      await eventually(async () => expect(newest(b.dataDir)).toEqual(newest(dataDir)), SYNC_MS);
      await a.stop();
      await b.stop();
      const copied = readdirSync(join(b.dataDir, "log"));
      expect(copied).toEqual(expect.arrayContaining(["snapshot.db", "2024-11-05.json"]));
      // The active box archives what it found as soon as a standby has it: before or after it is copied.
      expect(copied).toEqual(expect.arrayContaining(archived));
      expect(readdirSync(archives)).toEqual(expect.arrayContaining(copied));
      expect(tableHashes(b.dataDir)).toEqual(tableHashes(dataDir));
      expect((await admin(b.dataDir, "verify")).code).toBe(0);
    },
    TEST_MS,
  );

  test(
    "replaces a log that ends before the stream begins, where the active box's has all of it",
    async () => {
      const name = "copy-late";
      const { world, market, user, stream } = await nodes.begin(name, { STANDBY_BOX: "a", STANDBY_ACK: "standby" });
      const { server: a } = world;
      const b = await nodes.standBy(name, { STANDBY_ACK: "standby" });
      await paired(a, SYNC_MS);
      await keyed(b);
      await bid(user, market, "both", 1_000);
      await b.stop();
      await eventually(async () => expect((await bid(user, market, "a-alone", 1_001)).status).toBe(202));
      await a.stop();
      // As after days: the stream begins where the active box's log ended.
      await stream.manager.streams.delete(stream.stream);
      const a2 = TestServer.spawn({
        dataDir: a.dataDir,
        env: nodes.settings(name, { STANDBY_BOX: "a", STANDBY_ACK: "standby" }),
      });
      onTestFinished(() => a2.kill());
      await a2.logged(({ msg }) => msg === "standing by");
      await eventually(
        async () => expect((await admin(a2.dataDir, "standby", "promote", "--stream-is-lost")).code).toBe(0),
        SYNC_MS,
      );
      await a2.ready();
      const b2 = await nodes.standBy(name, { STANDBY_ACK: "standby" }, b.dataDir);
      await paired(a2, SYNC_MS);
      expect(
        b2.log.some(({ msg }) =>
          /^this box's log ends with batch \d+, the stream begins with \d+: this box needs a copy/.test(msg),
        ),
      ).toBe(true);
      const onA = new Client(a2, user.token);
      onTestFinished(() => onA.close());
      await bid(onA, market, "both-again", 1_002);
      await keyed(b2);
      await stopBoth(a2, b2);
      await expectEqual(a2.dataDir, b2.dataDir);
    },
    TEST_MS,
  );
});
