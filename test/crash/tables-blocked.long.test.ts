/**
 * Another program holds a lock on exchange.db: nothing that is acknowledged depends on that file, so trading goes on, and the
 * tables follow once the lock is gone. For a full disk under it, see disk.long.test.ts.
 */
import { join } from "node:path";
import type Database from "better-sqlite3";
import { afterEach, expect, test } from "vitest";
import { openSqlite } from "../../engine/util/sqlite.ts";
import { eventually, expectBalanced, expectSoundDatabase } from "../support/checks.ts";
import type { OrderJson } from "../support/client.ts";
import { scrape } from "../support/metrics.ts";
import { TestServer } from "../support/server.ts";
import { BUY, terms } from "../support/terms.ts";
import { World } from "../support/world.ts";

/** Longer than a connection waits for a lock. */
const LOCKED_MS = 7_000;

let world: World;
const locks: Database.Database[] = [];
afterEach(async () => {
  for (const lock of locks.splice(0)) lock.close();
  await world.server.kill();
});

function lockTables(mode: "IMMEDIATE" | "EXCLUSIVE"): Database.Database {
  const lock = openSqlite(join(world.server.dataDir, "exchange.db"), { timeout: 30_000 });
  locks.push(lock);
  lock.exec(`BEGIN ${mode}`);
  return lock;
}

const lines = (msg: RegExp): number => world.server.log.filter((line) => msg.test(line.msg)).length;

test("trading goes on without the tables, says so once, and the tables catch up", async () => {
  world = await World.start({ users: 2, markets: [2] });
  const [user, market] = [world.user(), world.market()];
  const lock = lockTables("EXCLUSIVE");
  const placed: OrderJson[] = [];
  for (const until = performance.now() + LOCKED_MS; performance.now() < until; ) {
    placed.push(await user.place(terms(market, 0, BUY, 100 + placed.length, 1)));
    if (placed.length % 2 === 0) await user.data("DELETE", `/orders/${placed.at(-1)!.id}`);
    await new Promise((resolve) => setTimeout(resolve, 100));
  }
  const line = await world.server.logged(({ msg }) => msg.startsWith("exchange.db can't be written"));
  expect(line).toMatchObject({ level: 50, reason: expect.stringMatching(/another program holds a lock/) });
  expect(await user.request("GET", "/me/events?after=0")).toMatchObject({ status: 503, code: 50300 });
  expect((await user.all<OrderJson>("/orders")).length).toBeGreaterThan(10);
  const during = await scrape(world.server);
  expect(during.value("exchange_projection_blocked")).toBe(1);
  expect(during.value("exchange_projection_lag_seconds")).toBeGreaterThan(LOCKED_MS / 2_000);
  expect(during.value("exchange_ready")).toBe(1);
  lock.exec("ROLLBACK");
  await world.server.logged(({ msg }) => msg === "exchange.db can be written again");
  await eventually(async () => expect((await scrape(world.server)).value("exchange_projection_lag_events")).toBe(0));
  expect((await user.get<OrderJson>(`/orders/${placed[1]!.id}`)).status).toBe("canceled");
  expect(lines(/^exchange.db can't be written/)).toBe(1);
  await user.data("DELETE", "/orders");
  await expectBalanced(world.anonymous());
  await world.server.stop();
  expectSoundDatabase(world.server.dataDir);
}, 60_000);

test("a server stops while the tables are locked, a start waits for the lock, and nothing is lost", async () => {
  world = await World.start({ users: 1, markets: [2] });
  const [user, market] = [world.user(), world.market()];
  const lock = lockTables("IMMEDIATE");
  const order = await user.place(terms(market, 0, BUY, 100, 1));
  await world.server.stop();
  const starting = TestServer.spawn({ dataDir: world.server.dataDir });
  const ready = starting.ready();
  // The other program ends its transaction after the server has met it.
  setTimeout(() => lock.exec("ROLLBACK"), 3_000);
  await ready;
  world.server = starting;
  expect((await world.client("user0").get<OrderJson>(`/orders/${order.id}`)).status).toBe("open");
  await world.server.stop();
  expectSoundDatabase(world.server.dataDir);
}, 60_000);

test("a start gives up after half a minute, with one line that names the lock", async () => {
  world = await World.start({ users: 1, markets: [2] });
  const [user, market] = [world.user(), world.market()];
  lockTables("IMMEDIATE");
  await user.place(terms(market, 0, BUY, 100, 1));
  await world.server.stop();
  const { code, errors } = await TestServer.refuse({ dataDir: world.server.dataDir });
  expect([code, errors]).toEqual([
    1,
    expect.stringMatching(
      /^cannot start: DATA_DIR: exchange\.db is locked by another program: end its transaction [^\n]*\n$/,
    ),
  ]);
}, 90_000);
