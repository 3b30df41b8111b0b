/**
 * On SIGTERM the server stops accepting requests, finishes and answers those it accepted, commits, sends system.shutdown
 * and exits with 0 in time. A request that gets no response has no effect.
 */
import { statSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { openSqlite } from "../../engine/util/sqlite.ts";
import { expectSoundDatabase } from "../support/checks.ts";
import { Client } from "../support/client.ts";
import { variants } from "../support/projects.ts";
import { Random } from "../support/random.ts";
import { TestServer } from "../support/server.ts";
import { Socket } from "../support/socket.ts";
import { tokenOf } from "../support/world.ts";
import { seededTraffic, TRAFFIC_SEED, type Traffic } from "./traffic.ts";

let server: TestServer;
afterAll(() => server?.kill());

/** One exchange lives through all of these tests: each continues where the one before it ended. */
describe.each(variants([[1, 2]] as const, [[3, 1]] as const))("with ENGINE_THREADS=%i", (threads, rounds) => {
  let random: Random;
  let traffic: Traffic;
  beforeAll(async () => {
    random = Random.printed(`SIGTERM, ${threads} engine threads`);
    traffic = seededTraffic(random);
    server = await TestServer.start({ seed: TRAFFIC_SEED, env: { ENGINE_THREADS: String(threads) } });
  });

  test("SIGTERM under load: everything accepted is answered and kept", async () => {
    for (let round = 0; round < rounds; round++) {
      await traffic.start(server);
      const listener = await Socket.open(server, tokenOf("user0"));
      await traffic.more(random.integer(200, 500));
      await server.stop();
      expect(await listener.closed).toBe(1001);
      expect(listener.frames.at(-1)).toMatchObject({ event: "system.shutdown" });
      await traffic.end();
      // Not one 500: late requests meet 50300 or a closed socket.
      expect([...traffic.rejections.keys()]).not.toContain(50000);
      expect(placedIds(server.dataDir)).toEqual([...traffic.answeredIds()].sort());
      expectSoundDatabase(server.dataDir);
      server = await server.restart();
      await traffic.expectKept(server);
    }
  });

  test("SIGTERM with nothing to do, with idle connections, and twice", async () => {
    await traffic.start(server);
    await traffic.more(300);
    await traffic.end();
    const client = new Client(server, null);
    await client.get("/markets");
    const socket = await Socket.open(server, null);
    server.signal("SIGTERM");
    await server.stop();
    expect(await socket.closed).toBe(1001);
    client.close();
  });

  test("a stop leaves no WAL behind and writes all that was pending", () => {
    for (const name of ["exchange.db-wal", "journal.db-wal"]) {
      expect(statSync(join(server.dataDir, name), { throwIfNoEntry: false })?.size ?? 0).toBe(0);
    }
    const db = openSqlite(join(server.dataDir, "exchange.db"), { readonly: true });
    const count = (sql: string): unknown => db.prepare(sql).pluck().get();
    const newest = (table: string): string =>
      `SELECT group_concat(id) FROM (SELECT max(id) AS id FROM ${table} GROUP BY user_id)`;
    expect(count("SELECT group_concat(order_id) FROM newest_of_user")).toBe(count(newest("orders")));
    expect(count("SELECT group_concat(fill_id) FROM newest_of_user WHERE fill_id > 0")).toBe(count(newest("fills")));
    expect(count("SELECT batch FROM projection")).toBe(lastBatch(server.dataDir));
    db.close();
  });
});

/** The number of the log's last batch. */
function lastBatch(dataDir: string): unknown {
  const db = openSqlite(join(dataDir, "journal.db"), { readonly: true });
  const last = db.prepare("SELECT max(number) FROM batches").pluck().get();
  db.close();
  return last;
}

/** The client order ids in a stopped server's database. */
function placedIds(dataDir: string): unknown[] {
  const db = openSqlite(join(dataDir, "exchange.db"), { readonly: true });
  const ids = db.prepare("SELECT client_order_id FROM orders ORDER BY client_order_id").pluck().all();
  db.close();
  return ids;
}
