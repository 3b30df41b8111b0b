/** What a server's clients and its operator see of batches that the upkeep moved from journal.db to archives. */
import { existsSync, readdirSync, rmSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { expect, test } from "vitest";
import { FLAG_STARTED, readHeader } from "../../engine/log/batch-format.ts";
import { openReadOnly } from "../../engine/util/wal-database.ts";
import { admin } from "../support/admin.ts";
import { eventually, expectQuiet } from "../support/checks.ts";
import { Client } from "../support/client.ts";
import { rowsOfFile } from "../support/data-dir.ts";
import { resume, updatesAfter } from "../support/resume.ts";
import { TestServer } from "../support/server.ts";
import { Socket } from "../support/socket.ts";
import { BUY, terms } from "../support/terms.ts";
import { PUBLIC_URL, tokenOf, World } from "../support/world.ts";

const DAY_MS = 86_400_000;
const CLOCK = fileURLToPath(new URL("../support/stepped-clock.mjs", import.meta.url));

test("resume, log and verify read batches that have left a server's journal", { timeout: 60_000 }, async () => {
  const clock = (offset: number): Record<string, string> => {
    return { PUBLIC_URL, NODE_OPTIONS: `--import ${CLOCK}`, CLOCK_OFFSET_MS: String(offset) };
  };
  const world = await World.start({ users: 1, markets: [2], env: clock(-2 * DAY_MS) });
  const { dataDir } = world.server;
  const [user, market] = [world.user(), world.market()];
  const orders: number[] = [];
  for (let i = 1; i <= 5; i++) orders.push((await user.place(terms(market, 0, BUY, 100, i))).id);
  await world.stop();
  const sequences: number[][] = [];
  for (const offset of [-DAY_MS, -DAY_MS, 0]) {
    const server = await TestServer.start({ dataDir, env: clock(offset) });
    const client = new Client(server, tokenOf("user0"));
    await client.place(terms(market, 0, BUY, 100, 1));
    const socket = await Socket.open(server, client.token);
    sequences.push(updatesAfter(socket, await resume(socket, 0)).map(({ data }) => data.id));
    socket.close();
    client.close();
    if (sequences.length === 2) {
      await server.logged(({ msg }) => msg.includes("archived"));
      // The log deletes them while it is idle.
      const first = "SELECT min(number) > 1 AS is_later FROM batches";
      await eventually(async () => expect(rowsOfFile(join(dataDir, "journal.db"), first)).toEqual([{ is_later: 1 }]));
    }
    await server.stop();
    expectQuiet(server);
  }
  // The second start of each day sees that the one before is over.
  const names = readdirSync(join(dataDir, "log"));
  expect(names.length).toBe(2);
  expect(sequences.map((ids) => ids.slice(0, 5))).toEqual([orders, orders, orders]);
  const journal = openReadOnly(join(dataDir, "journal.db"));
  const first = readHeader(journal.prepare("SELECT body FROM batches ORDER BY number LIMIT 1").pluck().get() as Buffer);
  journal.close();
  expect(first.number).toBeGreaterThan(1);
  expect(first.flags & FLAG_STARTED).toBe(FLAG_STARTED);
  const { out } = await admin(dataDir, "log", "--json", "--kind", "orderPlaced");
  const placed = out
    .trim()
    .split("\n")
    .map((line) => (JSON.parse(line) as { order: number }).order);
  expect(placed.slice(0, 5)).toEqual(orders);
  expect(placed.length).toBe(8);
  expect((await admin(dataDir, "verify")).out).toContain("tables as of batch");
  for (const name of ["exchange.db", "exchange.db-wal", "exchange.db-shm"])
    rmSync(join(dataDir, name), { force: true });
  const server = await TestServer.start({ dataDir, env: clock(0) });
  await server.stop();
  expect(existsSync(join(dataDir, "exchange.db"))).toBe(true);
  expect((await admin(dataDir, "verify")).out).toContain("tables as of batch");
});
