/**
 * A disk that takes no more, for real: the kernel refuses to let the server's files grow (RLIMIT_FSIZE, set from outside
 * on the running process). Under the log, pending requests get 50000: their outcome is unknown. Trading stops with
 * 50300 and a fatal log line, reads go on, nothing that was acknowledged is lost, and a restart with room trades on. Under the
 * tables alone, trading goes on.
 */
import { execFileSync, spawnSync } from "node:child_process";
import { statSync } from "node:fs";
import { join } from "node:path";
import { afterAll, describe, expect, test } from "vitest";
import { openSqlite } from "../../engine/util/sqlite.ts";
import { expectBalanced, expectSoundDatabase } from "../support/checks.ts";
import { type Answer, Client, type OrderJson } from "../support/client.ts";
import { variants } from "../support/projects.ts";
import { Random } from "../support/random.ts";
import { type LogLine, TestServer } from "../support/server.ts";
import { tokenOf } from "../support/world.ts";
import { seededTraffic, TRAFFIC_SEED, UNKNOWN } from "./traffic.ts";

const FATAL = 60;
/** What a file can still grow, in bytes. */
const ROOM = 65_536;
const hasPrlimit = spawnSync("prlimit", ["--version"]).status === 0;
if (!hasPrlimit) process.stdout.write("skipped: a full disk needs the prlimit command (util-linux)\n");

/** Files of the process may not grow beyond `bytes` from now on. */
function limitFiles(server: TestServer, bytes: number): void {
  execFileSync("prlimit", ["--pid", String(server.pid), `--fsize=${bytes}:`]);
}

const started: TestServer[] = [];
afterAll(async () => {
  for (const server of started) await server.kill();
});

async function start(env: Record<string, string> = {}): Promise<TestServer> {
  const server = await TestServer.start({ seed: TRAFFIC_SEED, env });
  started.push(server);
  return server;
}

// Side by side: the last one waits most of its time.
describe.skipIf(!hasPrlimit).concurrent("a full disk", () => {
  for (const threads of variants<number>([1], [2])) {
    test(`a full disk under journal.db stops trading and loses nothing, with ENGINE_THREADS=${threads}`, async ({
      expect,
    }) => {
      let server = await start({ ENGINE_THREADS: String(threads) });
      const traffic = seededTraffic(Random.printed(`full disk under journal.db, ${threads} engine threads`));
      await traffic.start(server);
      await traffic.more(150);
      const fatal = await fillDisk(server);
      expect(fatal["thread"]).toMatch(/^engine \d$|^log$/);
      expect(fatal.msg).toMatch(/trading has stopped/);
      // Some more, so that every connection meets the rejection.
      await traffic.more(50);
      await traffic.end();
      expect(traffic.rejections.get(50300)).toBeGreaterThan(0);
      for (const said of traffic.unknown.keys()) expect(said).toBe(UNKNOWN);
      expect(traffic.unanswered.size).toBe(0);
      await expectStopped(server, traffic.overloaded());

      await server.kill();
      expectSoundDatabase(server.dataDir);
      server = await server.restart();
      started.push(server);
      await traffic.expectKept(server);
      await traffic.start(server);
      await traffic.more(100);
      await traffic.end();
      await traffic.expectKept(server);
      const client = new Client(server, null);
      await expectBalanced(client);
      client.close();
      await server.stop();
      expectSoundDatabase(server.dataDir);
    });
  }

  test("a full disk under exchange.db alone lets trading go on; with room, or at a start, the tables catch up", async ({
    expect,
  }) => {
    let server = await start();
    const traffic = seededTraffic(Random.printed("full disk under exchange.db"));
    await traffic.start(server);
    await traffic.more(150);
    // From here on only this client fills the log, whose room below the limit is bounded.
    await traffic.end();
    const client = new Client(server, tokenOf("user0"));
    // Each read makes the tables follow with a transaction of its own: their WAL becomes the longer one, so that the log has
    // room below the limit, for a while.
    while (bytesOf(server, "exchange.db") < bytesOf(server, "journal.db") + 6 * ROOM) {
      expect(await split(client)).toMatchObject({ code: 0 });
      expect((await client.request("GET", "/wallet/transactions")).code).toBe(0);
    }
    limitFiles(server, bytesOf(server, "exchange.db"));
    const isBlocked = ({ msg }: LogLine): boolean => msg.startsWith("exchange.db can't be written");
    // A read of the tables waits for the projector, and tells that they are behind.
    expect(await split(client)).toMatchObject({ code: 0 });
    expect(await client.request("GET", "/wallet/transactions")).toMatchObject(BEHIND);
    expect(server.log.find(isBlocked)).toMatchObject({
      level: 50,
      reason: expect.stringMatching(/^the disk of exchange.db/),
    });
    for (let i = 0; i < 10; i++) expect(await split(client)).toMatchObject({ code: 0 });
    limitFiles(server, Number.MAX_SAFE_INTEGER);
    await server.logged(({ msg }) => msg === "exchange.db can be written again", 30_000);
    expect((await client.request("GET", "/wallet/transactions")).code).toBe(0);
    await traffic.expectKept(server);
    // Killed while it is blocked: the start projects the rest of the log.
    limitFiles(server, bytesOf(server, "exchange.db"));
    expect(await split(client)).toMatchObject({ code: 0 });
    expect(await client.request("GET", "/wallet/transactions")).toMatchObject(BEHIND);
    expect(server.log.filter(isBlocked)).toHaveLength(2);
    await server.kill();
    expect(server.log.filter(({ level }) => level === FATAL)).toEqual([]);
    server = await server.restart();
    started.push(server);
    const again = new Client(server, null);
    await expectBalanced(again);
    for (const each of [client, again]) each.close();
    await server.stop();
    expectSoundDatabase(server.dataDir);
  });

  test("a full disk ends the process in a while, with an exit code that asks for a restart", async ({ expect }) => {
    const [left, stopped] = [await start(), await start()];
    for (const server of [left, stopped]) {
      limitFiles(server, 1_024);
      const client = new Client(server, tokenOf("user0"));
      expect(await split(client)).toMatchObject({ status: 500, code: 50000, msg: UNKNOWN });
      expect(await split(client)).toMatchObject({ status: 503, code: 50300 });
      client.close();
    }
    stopped.signal("SIGTERM");
    await stopped.exit(10_000);
    expect(await left.exit(20_000)).toBe(1);
  });
});

const split = (client: Client): Promise<Answer> =>
  client.request("POST", "/wallet/split", { body: { market_id: 1, quantity: 1 } });

const BEHIND = { status: 503, code: 50300 };

const bytesOf = (server: TestServer, name: string): number => statSync(join(server.dataDir, `${name}-wal`)).size;

/** Lets no file of the server grow until writes to journal.db fail; returns the fatal log line. */
async function fillDisk(server: TestServer): Promise<LogLine> {
  // The projector waits for the lock, and so meets no full disk.
  const lock = openSqlite(join(server.dataDir, "exchange.db"));
  lock.exec("BEGIN IMMEDIATE");
  try {
    limitFiles(server, bytesOf(server, "journal.db") + ROOM);
    return await server.logged(({ level }) => level === FATAL, 30_000);
  } finally {
    // The tables have room, and follow the log to its end.
    limitFiles(server, Number.MAX_SAFE_INTEGER);
    lock.exec("ROLLBACK");
    lock.close();
  }
}

/**
 * Every way to trade is 50300, a repeated placement too; reads go on from memory, and from the tables, which follow the log
 * to its end.
 */
async function expectStopped(
  stopped: TestServer,
  overloaded: readonly (readonly { client_order_id: string }[])[],
): Promise<void> {
  for (const [user, bodies] of overloaded.entries()) {
    const client = new Client(stopped, tokenOf(`user${user}`));
    for (const body of bodies) {
      expect(await client.request("POST", "/orders", { body })).toMatchObject({ status: 503, code: 50300 });
    }
    expect(await split(client)).toMatchObject({ status: 503, code: 50300 });
    const [order] = await client.all<OrderJson>("/orders");
    if (order !== undefined) {
      expect(await client.request("DELETE", `/orders/${order.id}`)).toMatchObject({ status: 503, code: 50300 });
      const found = await client.request("GET", `/orders/${order.id}`);
      const { id, status } = order;
      expect(found).toMatchObject({ status: 200, data: { id, status } });
    }
    // Reads never leave out what was committed.
    expect(await client.request("GET", "/me/fills")).toMatchObject({ status: 200 });
    client.close();
  }
  const client = new Client(stopped, null);
  await expectBalanced(client);
  expect(await client.requestRoot("GET", "/readyz")).toMatchObject({ status: 503 });
  expect(await client.requestRoot("GET", "/livez")).toMatchObject({ status: 200 });
  client.close();
}
