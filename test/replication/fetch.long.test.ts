/** `admin standby fetch`: a box with an older log, or none, gets the rest from the stream, and keeps all that was acknowledged. */
import { execFile } from "node:child_process";
import { describe, expect, onTestFinished, test } from "vitest";
import { seededTraffic, TRAFFIC_SEED } from "../crash/traffic.ts";
import { ADMIN, type AdminRun, environmentOf } from "../support/admin.ts";
import { writeInto } from "../support/journal.ts";
import { Random } from "../support/random.ts";
import { TestServer, temporaryFolder } from "../support/server.ts";
import { TestNodes } from "./cluster.ts";
import { folderOf, journalBodies, NO_NATS, Nodes } from "./streamed-log.ts";

describe.skipIf(NO_NATS)("admin standby fetch", () => {
  const nodes = TestNodes.use();

  function fetchInto(dataDir: string, env: Record<string, string>): Promise<AdminRun> {
    return new Promise((resolve) => {
      const options = { env: { ...environmentOf(dataDir), ...env } };
      execFile(process.execPath, [ADMIN, "standby", "fetch"], options, (error, out, errors) => {
        resolve({ code: error === null ? 0 : Number(error.code), out, errors });
      });
    });
  }

  /** An exchange that was killed under load. */
  async function killed(name: string) {
    const server = await TestServer.start({ seed: TRAFFIC_SEED, env: nodes.settings(name) });
    onTestFinished(() => server.kill());
    const traffic = seededTraffic(Random.printed(name));
    await traffic.start(server);
    await traffic.more(300);
    await server.kill();
    await traffic.end();
    const stream = await Nodes.connect(nodes.cluster, name);
    return { traffic, dataDir: server.dataDir, bodies: await stream.bodies() };
  }

  test("an older copy of the log gets the rest, byte by byte, and the box goes on with the stream", async () => {
    const { traffic, bodies } = await killed("older");
    const older = temporaryFolder();
    const half = Math.floor(bodies.length / 2);
    folderOf(bodies.slice(0, half), older);
    const { errors } = await TestServer.refuse({ dataDir: older, env: nodes.settings("older") });
    expect(errors).toContain('If no other box runs, "admin standby fetch" gets the rest');

    const { code, out } = await fetchInto(older, nodes.settings("older"));
    expect([code, JSON.parse(out)]).toMatchObject([0, { from: half, to: bodies.length }]);
    expect(journalBodies(older)).toEqual(bodies);
    const again = await fetchInto(older, nodes.settings("older"));
    expect(JSON.parse(again.out)).toEqual({ from: bodies.length, to: bodies.length, bytes: 0 });

    const box = await TestServer.start({ dataDir: older, env: nodes.settings("older") });
    onTestFinished(() => box.kill());
    await traffic.expectKept(box);
    await traffic.retry(box);
    const used = await fetchInto(older, nodes.settings("older"));
    expect([used.code, used.errors]).toEqual([1, expect.stringContaining("is in use by another server")]);
    await box.stop();
  });

  test("an empty folder gets all, batches in parts included", async () => {
    const { traffic, dataDir } = await killed("empty");
    const set = { passwordHash: "x".repeat(40_000) };
    writeInto(dataDir, ...Array.from({ length: 30 }, () => ({ kind: "update", table: "users", id: 1, set }) as const));
    const owner = await TestServer.start({ dataDir, env: nodes.settings("empty") });
    await owner.stop();
    const empty = temporaryFolder();
    expect((await fetchInto(empty, nodes.settings("empty"))).code).toBe(0);
    expect(journalBodies(empty)).toEqual(journalBodies(dataDir));
    const box = await TestServer.start({ dataDir: empty });
    onTestFinished(() => box.kill());
    await traffic.expectKept(box);
    await box.stop();
  });

  test("what doesn't fit is refused in words, and nothing is appended", async () => {
    const { dataDir, bodies } = await killed("other");
    const expectRefused = async (folder: string, env: Record<string, string>, words: string): Promise<void> => {
      const before = journalBodies(folder);
      const { code, errors } = await fetchInto(folder, env);
      expect([code, errors]).toEqual([1, expect.stringContaining(words)]);
      expect(journalBodies(folder)).toEqual(before);
    };
    const separate = temporaryFolder();
    folderOf(bodies.slice(0, -3), separate);
    await TestServer.start({ dataDir: separate }).then((single) => single.stop());
    writeInto(separate, { kind: "update", table: "users", id: 1, set: { kycTier: 2 } });
    await expectRefused(separate, nodes.settings("other"), "they went on separately after batch");
    await expectRefused(dataDir, {}, "STANDBY_NATS isn't set");
    await expectRefused(dataDir, nodes.settings("nothing"), "the nodes have no stream PX_nothing");
    const foreign = await killed("foreign");
    await expectRefused(foreign.dataDir, nodes.settings("other"), "the stream has the log of another exchange");
  });
});
