/**
 * A box is lost under load while Litestream ships the WAL: the backup restores elsewhere, is sound and trades on, and only
 * the last orders are missing. Prints how many, and the time they span.
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
import { type TestMarket, tokenOf, USDC, World } from "../support/world.ts";

const LITESTREAM = process.env["LITESTREAM_PATH"] ?? "litestream";
const ORDERS = Number(process.env["LOST_BOX_ORDERS"] ?? 2_000);
const SYNC_INTERVAL = process.env["LOST_BOX_SYNC_INTERVAL"] ?? "1s";
const CONNECTIONS = 16;
/** Enough money for all orders until Litestream ships. */
const WEALTHY = { deposit: 1_000_000 * USDC, terms: { daily_limit: 1_000_000 * USDC } };
/** Litestream's interval, and a margin for a loaded machine. */
const MAX_LOST_MS = 15_000;

const isInstalled = spawnSync(LITESTREAM, ["version"]).error === undefined;
if (!isInstalled) console.log("the lost box is skipped: there is no litestream (LITESTREAM_PATH names it)");

test.runIf(isInstalled)(
  "a lost box costs what Litestream had not shipped, and nothing else",
  { timeout: 240_000 },
  async () => {
    const world = await World.start({ users: 0, named: { user0: WEALTHY, user1: WEALTHY }, markets: [2] });
    const backup = await Backup.start(world.server.dataDir);
    const { acknowledged, lostAt } = await loseUnderLoad(world, backup);
    rmSync(world.server.dataDir, { recursive: true });

    const restored = backup.restore();
    // The log decides, as the page says.
    const isAhead = batchIn(restored, "exchange.db", "projection") > batchIn(restored, "journal.db", "batches");
    if (isAhead) rmSync(join(restored, "exchange.db"));
    await (await TestServer.start({ dataDir: restored })).stop();
    expectSoundDatabase(restored);
    const db = openSqlite(join(restored, "exchange.db"), { readonly: true });
    const kept = new Set(db.prepare("SELECT id FROM orders ORDER BY id").pluck().all() as number[]);
    db.close();
    const missing = acknowledged.filter(({ id }) => !kept.has(id));
    const last = [...kept].at(-1) ?? 0;
    // Commits are shipped whole and in order: only a tail is missing.
    expect(missing.filter(({ id }) => id < last)).toEqual([]);
    const lostMs = missing.length === 0 ? 0 : lostAt - missing.reduce((first, { at }) => Math.min(first, at), lostAt);
    const percent = ((100 * missing.length) / acknowledged.length).toFixed(1);
    console.log(
      `lost box, sync interval ${SYNC_INTERVAL}: ${missing.length} of ${acknowledged.length} acknowledged orders (${percent} %), the last ${Math.round(lostMs)} ms${isAhead ? "; tables ahead of the log" : ""}`,
    );
    expect(kept.size).toBeGreaterThan(0);
    expect(lostMs).toBeLessThan(MAX_LOST_MS);
    await expectTrades(restored, world.markets[0]!);
  },
);

/** The last batch that a file has, in its column `batch` or `number`. */
function batchIn(folder: string, file: string, table: "projection" | "batches"): number {
  const db = openSqlite(join(folder, file), { readonly: true });
  try {
    return Number(
      db
        .prepare(`SELECT max(${table === "batches" ? "number" : "batch"}) FROM ${table}`)
        .pluck()
        .get(),
    );
  } finally {
    db.close();
  }
}

const FILES = ["journal", "exchange"] as const;

/** Litestream, with the example configuration of the documents. */
class Backup {
  private readonly folder = temporaryFolder();
  private readonly dataDir: string;
  private readonly config = join(this.folder, "litestream.yml");
  private readonly litestream: Running;

  private constructor(dataDir: string) {
    this.dataDir = dataDir;
    let own = codeBlocks("docs/operations.md").find(({ language }) => language === "yaml")!.code;
    for (const file of FILES) {
      const paths = [`/var/lib/prediction-exchange/${file}.db`, `s3://BUCKET/${file}`] as const;
      for (const path of paths) expect(own).toContain(path);
      own = own.replace(paths[0], join(dataDir, `${file}.db`)).replace(paths[1], `file://${this.replica(file)}`);
    }
    expect(own).toContain("sync-interval: 1s");
    writeFileSync(this.config, own.replace("sync-interval: 1s", `sync-interval: ${SYNC_INTERVAL}`));
    this.litestream = new Running(LITESTREAM, ["replicate", "-config", this.config], this.folder);
  }

  /** Resolves once the first snapshots are shipped. */
  static async start(dataDir: string): Promise<Backup> {
    const backup = new Backup(dataDir);
    for (const file of FILES) {
      const generations = join(backup.replica(file), "generations");
      await expect.poll(() => existsSync(generations), { timeout: 20_000 }).toBe(true);
    }
    return backup;
  }

  /** The number of the log's WAL segments shipped so far. */
  shipped(): number {
    const names = readdirSync(this.replica("journal"), { recursive: true });
    return names.filter((name) => String(name).endsWith(".wal.lz4")).length;
  }

  async kill(): Promise<void> {
    this.litestream.child.kill("SIGKILL");
    await this.litestream.exited;
  }

  /** Restores both files into a new folder; returns the folder. */
  restore(): string {
    const restored = join(this.folder, "restored");
    mkdirSync(restored);
    for (const name of FILES.map((file) => `${file}.db`)) {
      const args = ["restore", "-config", this.config, "-o", join(restored, name), join(this.dataDir, name)];
      const { status, stderr } = spawnSync(LITESTREAM, args, { encoding: "utf8" });
      expect(status, stderr).toBe(0);
    }
    return restored;
  }

  private replica(file: (typeof FILES)[number]): string {
    return join(this.folder, "replica", file);
  }
}

interface Loss {
  readonly acknowledged: readonly { readonly id: number; readonly at: number }[];
  readonly lostAt: number;
}

/** Trades until ORDERS orders may be unshipped, then kills the server and Litestream. */
async function loseUnderLoad(world: World, backup: Backup): Promise<Loss> {
  const [market] = world.markets;
  const shippedBefore = backup.shipped();
  const acknowledged: { readonly id: number; readonly at: number }[] = [];
  let isLost = false;
  // Bids on both outcomes at prices that mint sets, so that money moves with the orders.
  const trade = async (user: number): Promise<void> => {
    const client = world.client(`user${user}`);
    const order = { market_id: market!.id, outcome_id: market!.outcomes[user], side: 1, price: 5000 };
    for (let i = 0; !isLost; i++) {
      const { id } = await client.data<OrderJson>("POST", "/orders", { ...order, quantity: 1 + (i % 7) });
      acknowledged.push({ id, at: performance.now() });
    }
  };
  const traders = Array.from({ length: CONNECTIONS }, (_, i) => trade(i % 2).catch(() => {}));
  // The second segment has orders in it. The next ORDERS orders are lost with the box, unless it is slow.
  await expect.poll(() => backup.shipped(), { timeout: 120_000 }).toBeGreaterThan(shippedBefore + 1);
  const atShipping = acknowledged.length;
  await expect.poll(() => acknowledged.length, { timeout: 120_000 }).toBeGreaterThan(atShipping + ORDERS);
  isLost = true;
  await Promise.all([backup.kill(), world.server.kill()]);
  const lostAt = performance.now();
  await Promise.all(traders);
  return { acknowledged, lostAt };
}

/** A server on the restored folder takes an order, balances, and stops. */
async function expectTrades(dataDir: string, { id, outcomes }: TestMarket): Promise<void> {
  const server = await TestServer.start({ dataDir });
  const trader = await fetch(`${server.root}/api/v1/orders`, {
    method: "POST",
    headers: { Authorization: `Bearer ${tokenOf("user0")}`, "Content-Type": "application/json" },
    body: JSON.stringify({ market_id: id, outcome_id: outcomes[0], side: 1, price: 10, quantity: 1 }),
  });
  expect(trader.status).toBe(202);
  const solvency = (await (await fetch(`${server.root}/api/v1/solvency`)).json()) as { data: SolvencyJson };
  expect(solvency.data.balanced).toBe(true);
  await server.stop();
  expectSoundDatabase(dataDir);
}
