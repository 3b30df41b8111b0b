/** Three nodes for the tests of a file, and exchanges whose log goes there. */
import { afterAll, beforeAll, expect, onTestFinished } from "vitest";
import { type ClusterOptions, NatsCluster } from "../../bench/support/nats-cluster.ts";
import { hashTables } from "../../engine/projection/table-hashes.ts";
import { openReadOnly } from "../../engine/util/wal-database.ts";
import { tablesPath } from "../../server/util/data-folder.ts";
import { admin } from "../support/admin.ts";
import { eventually } from "../support/checks.ts";
import type { Answer, Client, OrderJson } from "../support/client.ts";
import { Line } from "../support/line.ts";
import { scrape } from "../support/metrics.ts";
import { TestServer, temporaryFolder } from "../support/server.ts";
import { BUY, post, terms } from "../support/trading.ts";
import { type TestMarket, World, type WorldOptions } from "../support/world.ts";
import { hashesOf, journalBodies, Nodes, nameOf } from "./streamed-log.ts";

/** A standby catches up within this, ms. */
export const SYNC_MS = 30_000;
export const SECRET = "correct horse battery staple, thirty-two";

export class TestNodes {
  cluster!: NatsCluster;

  /** For the surrounding `describe.skipIf(NO_NATS)`. */
  static use(options?: ClusterOptions): TestNodes {
    const nodes = new TestNodes();
    beforeAll(async () => {
      nodes.cluster = await NatsCluster.start(options);
    });
    afterAll(() => nodes.cluster.end());
    return nodes;
  }

  /** The settings of an exchange. @param name STANDBY_NAME: each test has a stream of its own */
  settings(name: string, more: Record<string, string> = {}): Record<string, string> {
    const { cluster } = this;
    return {
      STANDBY_NATS: cluster.urls(),
      STANDBY_MONITOR: cluster.monitors,
      STANDBY_NAME: nameOf(name),
      STANDBY_SECRET: SECRET,
      STANDBY_ACK: "stream",
      // A test stops one box and looks at the other as it was.
      STANDBY_TAKEOVER: "manual",
      ...more,
    };
  }

  /** A running exchange with two users and a market, and the test's own connection to its stream. */
  async begin(name: string, more: Record<string, string> = {}, named: WorldOptions["named"] = {}) {
    const world = await World.start({ users: 2, named, markets: [2], env: this.settings(name, more) });
    onTestFinished(() => world.server.kill());
    const stream = await Nodes.connect(this.cluster, name);
    return { world, stream, market: world.market(), user: world.user() };
  }

  /** A second box of an exchange, once it says that it stands by. @param name STANDBY_NAME */
  async standBy(name: string, more: Record<string, string> = {}, dataDir = temporaryFolder()): Promise<TestServer> {
    const env = this.settings(name, { STANDBY_BOX: "b", ...more });
    const standby = TestServer.spawn({ dataDir, env });
    onTestFinished(() => standby.kill());
    standby.port = Number((await standby.logged(({ msg }) => msg === "standing by"))["port"]);
    return standby;
  }

  /** Lines to the nodes that can be pulled, and STANDBY_NATS for them. */
  async openLines(): Promise<{ readonly lines: readonly Line[]; readonly urls: string }> {
    const { cluster } = this;
    const lines = await Promise.all(
      Array.from({ length: cluster.size }, (_, i) => Line.open(Number(cluster.address(i).split(":")[1]))),
    );
    onTestFinished(() => {
      for (const line of lines) line.close();
    });
    return { lines, urls: lines.map(({ port }) => `nats://127.0.0.1:${port}`).join(",") };
  }

  /** Stops two of the three nodes until the returned function is called: nothing can be acknowledged. */
  async freeze(): Promise<() => void> {
    const thaw = (): void => {
      for (const i of [1, 2]) this.cluster.resume(i);
    };
    onTestFinished(thaw);
    await Promise.all([1, 2].map((i) => this.cluster.hang(i)));
    return thaw;
  }
}

/** What /readyz says. */
export async function readiness(server: TestServer): Promise<Record<string, unknown>> {
  return (await fetch(`${server.root}/readyz`)).json() as Promise<Record<string, unknown>>;
}

/** Resolves once the active box's acknowledgements wait for a standby. */
export const paired = (active: TestServer, ms?: number): Promise<void> =>
  eventually(async () => expect(await readiness(active)).toMatchObject({ role: "active", alone: false }), ms);

/** Resolves once a standby has the active box's keys. */
export const keyed = (standby: TestServer): Promise<void> =>
  eventually(async () => expect((await scrape(standby)).series.get("exchange_standby_keys_equal")).toBe(1));

/** A hash of each table. */
export const tableHashes = (dataDir: string): Map<string, string> => {
  const db = openReadOnly(tablesPath(dataDir));
  const found = hashTables(db);
  db.close();
  return found;
};

/** Both logs and both tables are the same, and sound. */
export async function expectEqual(a: string, b: string): Promise<void> {
  expect(hashesOf(journalBodies(b))).toEqual(hashesOf(journalBodies(a)));
  expect(tableHashes(b)).toEqual(tableHashes(a));
  for (const dataDir of [a, b]) expect((await admin(dataDir, "verify")).code).toBe(0);
}

/** Stops two boxes that don't take over from each other; then their logs and tables are the same. */
export async function stopBoth(active: TestServer, standby: TestServer): Promise<void> {
  await eventually(async () => {
    expect(await readiness(standby)).toMatchObject({ behind_batches: 0 });
    expect(journalBodies(standby.dataDir).length).toBe(journalBodies(active.dataDir).length);
  }, SYNC_MS);
  await active.stop();
  await eventually(async () => {
    expect(hashesOf(journalBodies(standby.dataDir))).toEqual(hashesOf(journalBodies(active.dataDir)));
    expect(tableHashes(standby.dataDir)).toEqual(tableHashes(active.dataDir));
  });
  await standby.stop();
}

/** An order by its client order id. */
export const bid = (user: Client, market: TestMarket, name: string, price = 4_000): Promise<Answer<OrderJson>> =>
  post(user, terms(market, 0, BUY, price, 1, { client_order_id: name }));
