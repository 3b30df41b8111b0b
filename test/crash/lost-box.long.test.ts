/**
 * A box that is lost under load, with Litestream shipping the WAL beside the exchange: what restores elsewhere is sound and
 * trades on, and only orders of the last moments are missing. Prints how many, and how long those moments were.
 */
import { spawnSync } from "node:child_process";
import { existsSync, mkdirSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { openSqlite } from "../../engine/util/sqlite.ts";
import { codeBlocks, Running } from "../docs/code-blocks.ts";
import { expectSoundDatabase } from "../support/checks.ts";
import type { OrderJson, SolvencyJson } from "../support/client.ts";
import { TestServer, temporaryFolder } from "../support/server.ts";
import { tokenOf, USDC, World } from "../support/world.ts";

const LITESTREAM = process.env["LITESTREAM_PATH"] ?? "litestream";
const ORDERS = Number(process.env["LOST_BOX_ORDERS"] ?? 2_000);
const SYNC_INTERVAL = process.env["LOST_BOX_SYNC_INTERVAL"] ?? "1s";
const CONNECTIONS = 16;
/** Their money lasts for as many orders as there may be until Litestream ships. */
const WEALTHY = { deposit: 1_000_000 * USDC, terms: { daily_limit: 1_000_000 * USDC } };
/** Of Litestream's interval, and what a loaded machine adds. */
const MAX_LOST_MS = 15_000;

const isInstalled = spawnSync(LITESTREAM, ["version"]).error === undefined;
if (!isInstalled) console.log("the lost box is not tried: no litestream (LITESTREAM_PATH names it)");

test.runIf(isInstalled)(
  "a lost box costs what Litestream had not shipped, and nothing else",
  { timeout: 240_000 },
  async () => {
    const world = await World.start({ users: 0, named: { user0: WEALTHY, user1: WEALTHY }, markets: [2] });
    const [market] = world.markets;
    const { dataDir } = world.server;
    const elsewhere = temporaryFolder();
    const replica = join(elsewhere, "replica");
    const config = join(elsewhere, "litestream.yml");
    const database = join(dataDir, "exchange.db");
    const example = codeBlocks("docs/operations.md").find(({ language }) => language === "yaml")!.code;
    const own = example
      .replace("/var/lib/prediction-exchange/exchange.db", database)
      .replace("s3://BUCKET/exchange", `file://${replica}`)
      .replace("sync-interval: 1s", `sync-interval: ${SYNC_INTERVAL}`);
    for (const text of [database, replica, `sync-interval: ${SYNC_INTERVAL}`]) expect(own).toContain(text);
    writeFileSync(config, own);
    const litestream = new Running(LITESTREAM, ["replicate", "-config", config], elsewhere);
    await expect.poll(() => existsSync(join(replica, "generations")), { timeout: 20_000 }).toBe(true);

    const shipped = (): number =>
      readdirSync(replica, { recursive: true }).filter((name) => String(name).endsWith(".wal.lz4")).length;
    const shippedBefore = shipped();

    // Both outcomes are bought at prices that make sets, so that money moves with the orders.
    const acknowledged: { readonly id: number; readonly at: number }[] = [];
    let isLost = false;
    const trade = async (user: number): Promise<void> => {
      const client = world.client(`user${user}`);
      for (let i = 0; !isLost; i++) {
        const order = {
          market_id: market!.id,
          outcome_id: market!.outcomes[user],
          side: 1,
          price: 5000,
          quantity: 1 + (i % 7),
        };
        const { id } = await client.data<OrderJson>("POST", "/orders", order);
        acknowledged.push({ id, at: performance.now() });
      }
    };
    const traders = Array.from({ length: CONNECTIONS }, (_, i) => trade(i % 2).catch(() => {}));
    // What is shipped second has orders in it. So many more are lost with the box, unless it is slow.
    await expect.poll(shipped, { timeout: 120_000 }).toBeGreaterThan(shippedBefore + 1);
    const atShipping = acknowledged.length;
    await expect.poll(() => acknowledged.length, { timeout: 120_000 }).toBeGreaterThan(atShipping + ORDERS);
    isLost = true;
    litestream.child.kill("SIGKILL");
    await Promise.all([world.server.kill(), litestream.exited]);
    const lostAt = performance.now();
    await Promise.all(traders);
    rmSync(dataDir, { recursive: true });

    const restored = join(elsewhere, "restored");
    mkdirSync(restored);
    const copy = join(restored, "exchange.db");
    const { status, stderr } = spawnSync(LITESTREAM, ["restore", "-config", config, "-o", copy, database], {
      encoding: "utf8",
    });
    expect(status, stderr).toBe(0);
    expectSoundDatabase(restored);

    const db = openSqlite(copy, { readonly: true });
    const kept = new Set(db.prepare("SELECT id FROM orders").pluck().all() as number[]);
    db.close();
    const missing = acknowledged.filter(({ id }) => !kept.has(id));
    const last = Math.max(...kept);
    // Whole commits, in their order: a tail is missing and nothing before it.
    expect(missing.filter(({ id }) => id < last)).toEqual([]);
    const lostMs = missing.length === 0 ? 0 : lostAt - Math.min(...missing.map(({ at }) => at));
    const percent = ((100 * missing.length) / acknowledged.length).toFixed(1);
    console.log(
      `lost box, sync interval ${SYNC_INTERVAL}: ${missing.length} of ${acknowledged.length} acknowledged orders (${percent} %), the last ${Math.round(lostMs)} ms`,
    );
    expect(kept.size).toBeGreaterThan(0);
    expect(lostMs).toBeLessThan(MAX_LOST_MS);

    const server = await TestServer.start({ dataDir: restored });
    const trader = await fetch(`${server.root}/api/v1/orders`, {
      method: "POST",
      headers: { Authorization: `Bearer ${tokenOf("user0")}`, "Content-Type": "application/json" },
      body: JSON.stringify({ market_id: market!.id, outcome_id: market!.outcomes[0], side: 1, price: 10, quantity: 1 }),
    });
    expect(trader.status).toBe(202);
    const solvency = (await (await fetch(`${server.root}/api/v1/solvency`)).json()) as { data: SolvencyJson };
    expect(solvency.data.balanced).toBe(true);
    await server.stop();
    expectSoundDatabase(restored);
  },
);
