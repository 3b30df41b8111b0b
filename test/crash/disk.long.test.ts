/**
 * A disk that takes no more, for real: the kernel refuses the server's files to grow (RLIMIT_FSIZE, set from outside on
 * the running process). Who waits is answered 50000, for what it asked may be durable or not. Trading stops with 50300 and
 * a fatal log line, reads go on, nothing that was acknowledged is lost, and a restart with room trades on.
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
  const disks = variants<[file: FullFile, threads: number]>(
    [
      ["journal.db", 1],
      ["exchange.db", 1],
    ],
    [
      ["journal.db", 2],
      ["exchange.db", 2],
    ],
  );
  for (const [file, threads] of disks) {
    test(`under ${file} stops trading and loses nothing, with ENGINE_THREADS=${threads}`, async ({ expect }) => {
      let server = await start({ ENGINE_THREADS: String(threads) });
      const traffic = seededTraffic(Random.printed(`full disk under ${file}, ${threads} engine threads`));
      await traffic.start(server);
      await traffic.more(150);
      const fatal = await fillDisk(server, file);
      expect(fatal["thread"]).toMatch(file === "exchange.db" ? /^projector$/ : /^engine \d$|^log$/);
      expect(fatal.msg).toMatch(/trading has stopped/);
      // Some more, so that every connection meets the refusal.
      await traffic.more(50);
      await traffic.end();
      expect(traffic.refusals.get(50300)).toBeGreaterThan(0);
      for (const said of traffic.unknown.keys()) expect(said).toBe(UNKNOWN);
      expect(traffic.unanswered.size).toBe(0);
      await expectStopped(server, traffic.overloaded(), file);

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

  test("ends the process in a while, with an exit code that asks for a restart", async ({ expect }) => {
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
type FullFile = "journal.db" | "exchange.db";

/** Lets no file of the server grow until writes to this one fail; returns the fatal log line. */
async function fillDisk(server: TestServer, file: FullFile): Promise<LogLine> {
  const bytesOf = (name: string): number => statSync(join(server.dataDir, `${name}-wal`)).size;
  if (file === "exchange.db") {
    // Whole pages make its WAL the longer one.
    expect(bytesOf("exchange.db")).toBeGreaterThan(bytesOf("journal.db") + ROOM);
    limitFiles(server, bytesOf("exchange.db") + ROOM);
    return await server.logged(({ level }) => level === FATAL, 30_000);
  }
  // The projector waits for the lock, and so meets no full disk.
  const lock = openSqlite(join(server.dataDir, "exchange.db"));
  lock.exec("BEGIN IMMEDIATE");
  try {
    limitFiles(server, bytesOf("journal.db") + ROOM);
    return await server.logged(({ level }) => level === FATAL, 30_000);
  } finally {
    // The tables have room, and follow the log to its end.
    limitFiles(server, Number.MAX_SAFE_INTEGER);
    lock.exec("ROLLBACK");
    lock.close();
  }
}

/**
 * Every way to trade is 50300; reads go on from memory, and from the tables where these follow the log to its end. A repeated placement is 50300 too, unless the log, which has failed
 * only if it is what was full, has the order.
 */
async function expectStopped(
  stopped: TestServer,
  overloaded: readonly (readonly { client_order_id: string }[])[],
  file: FullFile,
): Promise<void> {
  for (const [user, bodies] of overloaded.entries()) {
    const client = new Client(stopped, tokenOf(`user${user}`));
    for (const body of bodies) {
      const answer = await client.request<OrderJson>("POST", "/orders", { body });
      if (answer.status === 202 && file === "exchange.db") expect(answer.data).toMatchObject(body);
      else expect(answer).toMatchObject({ status: 503, code: 50300 });
    }
    expect(await split(client)).toMatchObject({ status: 503, code: 50300 });
    const [order] = await client.all<OrderJson>("/orders");
    if (order !== undefined) {
      expect(await client.request("DELETE", `/orders/${order.id}`)).toMatchObject({ status: 503, code: 50300 });
      const found = await client.request("GET", `/orders/${order.id}`);
      const { id, status } = order;
      // Memory or the tables have its fills.
      const isBehind = file === "exchange.db" && found.status !== 200;
      expect(found).toMatchObject(isBehind ? BEHIND : { status: 200, data: { id, status } });
    }
    // Reads never leave out what was committed.
    expect(await client.request("GET", "/me/fills")).toMatchObject(file === "journal.db" ? { status: 200 } : BEHIND);
    client.close();
  }
  const client = new Client(stopped, null);
  await expectBalanced(client);
  expect(await client.requestRoot("GET", "/readyz")).toMatchObject({ status: 503 });
  expect(await client.requestRoot("GET", "/livez")).toMatchObject({ status: 200 });
  client.close();
}
