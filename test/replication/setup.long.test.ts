/** What a start refuses: nodes and streams that would keep less than was promised. And what ends trading. */
import { join } from "node:path";
import { describe, expect, onTestFinished, test } from "vitest";
import { NatsCluster } from "../../bench/support/nats-cluster.ts";
import { packBatches } from "../../engine/replication/message-format.ts";
import { FENCED_EXIT } from "../../server/errors.ts";
import { makeCertificate, NO_OPENSSL } from "../support/certificate.ts";
import { eventually } from "../support/checks.ts";
import { writeInto } from "../support/journal.ts";
import { TestServer, temporaryFolder } from "../support/server.ts";
import { expectRefused, post, terms } from "../support/trading.ts";
import { World } from "../support/world.ts";
import { SECRET, TestNodes } from "./cluster.ts";
import { folderOf, journalBodies, NO_NATS, Nodes } from "./streamed-log.ts";

const SECURE = { STANDBY_SECRET: SECRET };

describe.skipIf(NO_NATS)("with nodes", () => {
  const nodes = TestNodes.use();
  const settings = (name: string) => nodes.settings(name);

  /** A stopped exchange whose log is in a stream of its name. */
  async function shipped(name: string) {
    const world = await World.start({ users: 1, markets: [2], env: settings(name) });
    onTestFinished(() => world.server.kill());
    await post(world.user(), terms(world.market(), 0, 1, 4_000, 1));
    await world.stop();
    return { dataDir: world.server.dataDir, stream: await Nodes.connect(nodes.cluster, name) };
  }

  async function expectRefusedStart(dataDir: string, env: Record<string, string>, message: string): Promise<void> {
    const { code, errors } = await TestServer.refuse({ dataDir, env });
    expect([code, errors]).toEqual([1, expect.stringContaining(`cannot start: STANDBY_NATS: ${message}`)]);
  }

  test("a stream that someone made weaker is refused by name", async () => {
    const { dataDir, stream } = await shipped("weak");
    await stream.manager.streams.update(stream.stream, { num_replicas: 1 });
    const weakness = "the stream PX_weak is kept by 1 of the nodes: STANDBY_REPLICAS asks for 3";
    await expectRefusedStart(dataDir, settings("weak"), weakness);
    await stream.manager.streams.update(stream.stream, { num_replicas: 3, max_age: 3_600e9 });
    await expectRefusedStart(dataDir, settings("weak"), "the stream PX_weak keeps messages for less than 1 day");
    await eventually(() => stream.manager.streams.update(stream.stream, { max_age: 86_400e9 }));
    const server = await TestServer.start({ dataDir, env: settings("weak") });
    onTestFinished(() => server.kill());
    await server.stop();
  });

  test("the stream of another exchange, or of a log that went on elsewhere, is refused", async () => {
    const { dataDir } = await shipped("first");
    const other = await shipped("second");
    await expectRefusedStart(other.dataDir, settings("first"), "the stream has the log of another exchange");

    // A copy of the folder that lacks the last batches, as an old backup does: trading goes on there without the stream.
    const bodies = journalBodies(dataDir);
    const older = temporaryFolder();
    folderOf(bodies.slice(0, -2), older);
    await TestServer.start({ dataDir: older }).then((single) => single.stop());
    for (const kycTier of [0, 1, 2]) writeInto(older, { kind: "update", table: "users", id: 1, set: { kycTier } });
    const apart = `batch ${bodies.length} of the stream isn't the one in this box's log: they went on separately`;
    await expectRefusedStart(older, settings("first"), apart);
  });

  test("a message of another writer ends trading: it may have taken over", async () => {
    const world = await World.start({ users: 1, markets: [2], env: settings("fenced") });
    onTestFinished(() => world.server.kill());
    const stream = await Nodes.connect(nodes.cluster, "fenced");
    const { state } = await stream.manager.streams.info(stream.stream);
    const [last] = (await stream.bodies()).slice(-1);
    await stream.publish(packBatches(2, state.messages, [last!]), state.last_seq);
    const [user, market] = [world.user(), world.market()];
    await expectRefused(post(user, terms(market, 0, 1, 4_000, 1)), 500, 50_000, /trading has stopped/);
    const line = await world.server.logged(({ level }) => level === 60);
    expect(line).toMatchObject({
      thread: "replication",
      error: expect.stringMatching(/^another box wrote message \d+ of the stream: batch \d+ of epoch 2$/),
    });
    expect(await world.server.exit(15_000)).toBe(FENCED_EXIT);
  });

  test("a stream that is deleted under a running exchange ends trading", async () => {
    const world = await World.start({ users: 1, markets: [2], env: settings("gone") });
    onTestFinished(() => world.server.kill());
    const stream = await Nodes.connect(nodes.cluster, "gone");
    await stream.manager.streams.delete(stream.stream);
    const [user, market] = [world.user(), world.market()];
    await expectRefused(post(user, terms(market, 0, 1, 4_000, 1)), 500, 50_000);
    expect(await world.server.logged(({ level }) => level === 60, 15_000)).toMatchObject({
      error: "the stream PX_gone is gone",
    });
  });

  test("single nodes: without sync, without a cluster, with a password", async () => {
    const lax = await NatsCluster.start({
      nodes: 1,
      sync: null,
      config: ["authorization { user: me, password: secret }"],
    });
    onTestFinished(() => lax.end());
    const dataDir = temporaryFolder();
    await TestServer.start({ dataDir }).then((single) => single.stop());
    const [url] = lax.urls().split(",");
    const authorized = url!.replace("nats://", "nats://me:secret@");
    await expectRefusedStart(dataDir, { STANDBY_NATS: url!, ...SECURE }, "the nodes refuse us");
    const checked = { STANDBY_NATS: authorized, ...SECURE, STANDBY_MONITOR: lax.monitors };
    await expectRefusedStart(dataDir, checked, "the node n1 at ");
    await expectRefusedStart(
      dataDir,
      { STANDBY_NATS: authorized, ...SECURE },
      "the nodes can't keep 3 copies of the stream PX_exchange",
    );
    const server = await TestServer.start({
      dataDir,
      env: { STANDBY_NATS: authorized, ...SECURE, STANDBY_REPLICAS: "1" },
    });
    onTestFinished(() => server.kill());
    expect(server.log.find(({ msg }) => msg.startsWith("STANDBY_MONITOR isn't set"))).toMatchObject({ level: 40 });
    await server.stop();
    expect(JSON.stringify(server.log)).not.toContain("secret");
  });

  test("a node that isn't there is passed over", async () => {
    const env = { ...settings("passed"), STANDBY_NATS: `nats://127.0.0.1:1,${nodes.cluster.urls()}` };
    const server = await TestServer.start({ env });
    onTestFinished(() => server.kill());
    await server.stop();
  });

  test.skipIf(NO_OPENSSL)("over TLS, with certificates on both sides", async () => {
    const folder = temporaryFolder();
    const [cert, key, other] = ["cert.pem", "key.pem", "other.pem"].map((name) => join(folder, name)) as [
      string,
      string,
      string,
    ];
    makeCertificate(cert, key);
    makeCertificate(other, join(folder, "other-key.pem"));
    const tls = `tls { cert_file: "${cert}", key_file: "${key}", ca_file: "${cert}", verify: true }`;
    const secured = await NatsCluster.start({ nodes: 1, config: [tls] });
    onTestFinished(() => secured.end());
    const url = secured.urls().replace("nats://", "tls://");
    const own = { ...SECURE, STANDBY_NATS_CERT: cert, STANDBY_NATS_KEY: key, STANDBY_REPLICAS: "1" };
    const server = await TestServer.start({ env: { STANDBY_NATS: url, STANDBY_NATS_CA: cert, ...own } });
    onTestFinished(() => server.kill());
    await server.stop();

    const distrusting = TestServer.spawn({ env: { STANDBY_NATS: url, STANDBY_NATS_CA: other, ...own } });
    onTestFinished(() => distrusting.kill());
    await distrusting.logged(({ msg }) => /^waiting for a NATS node: .*certificate/.test(msg));
  });

  test("a public address is refused without TLS", async () => {
    const env = { STANDBY_NATS: "nats://192.0.2.1:4222", ...SECURE };
    await expectRefusedStart(temporaryFolder(), env, "192.0.2.1 is the public address 192.0.2.1: use tls:// there");
  });

  test("nodes that aren't there yet are waited for, and a stop meanwhile ends at once", async () => {
    const server = TestServer.spawn({ env: { STANDBY_NATS: "nats://127.0.0.1:1", ...SECURE } });
    onTestFinished(() => server.kill());
    await server.logged(({ msg }) => msg.startsWith("waiting for a NATS node: "));
    server.signal("SIGTERM");
    expect(await server.exit(5_000)).toBe(0);
  });
});
