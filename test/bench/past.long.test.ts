/**
 * The demo's past: what it has, that the log, the tables and the books agree about it, that a seed repeats it relative to its
 * end, and what Ctrl-C leaves.
 */
import { spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import { existsSync, readdirSync, readFileSync, statSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { beforeAll, describe, expect, test } from "vitest";
import { BOTS } from "../../bench/demo/crowd.ts";
import { openFolder, PERSON } from "../../bench/demo/folder.ts";
import { admin } from "../support/admin.ts";
import { eventually } from "../support/checks.ts";
import { rowsOf } from "../support/data-dir.ts";
import { makePast } from "../support/past.ts";
import { temporaryFolder } from "../support/server.ts";

const DIST = new URL("../../dist/", import.meta.url);
const programOf = (name: string): string => fileURLToPath(new URL(name, DIST));
const DAY_MS = 86_400_000;
/** On a busy machine a past takes a minute. */
const LONG = { timeout: 240_000 };
const SEED = 4_711;
/** Two ends, at other hours of the day. */
const END = Date.UTC(2026, 10, 26, 9, 14, 15, 16);
const OTHER_END = END + 10 * DAY_MS + 13_579_246;

/** Every fill and every balance; times relative to the end. */
function contentOf(dataDir: string, end: number): { fills: object[]; balances: object[]; positions: object[] } {
  const fills = rowsOf<object>(
    dataDir,
    `SELECT id, match_id, user_id, order_id, outcome_id, side, price, quantity, role, fee, rebate, created_at - ? AS at FROM fills`,
    end,
  );
  const balances = rowsOf<object>(dataDir, "SELECT user_id, balance FROM accounts ORDER BY user_id");
  const positions = rowsOf<object>(dataDir, "SELECT * FROM positions ORDER BY user_id, outcome_id");
  return { fills, balances, positions };
}

const sizeOf = (folder: string): number =>
  readdirSync(folder, { recursive: true }).reduce((sum, name) => sum + statSync(join(folder, String(name))).size, 0);

describe("the demo's past", () => {
  let dataDir: string;
  beforeAll(() => {
    dataDir = makePast(SEED, END).path;
  }, LONG.timeout);
  const one = <T>(sql: string, ...values: (string | number)[]): T => rowsOf<T>(dataDir, sql, ...values)[0]!;
  const count = (sql: string, ...values: (string | number)[]): number =>
    one<{ n: number }>(`SELECT count(*) AS n FROM ${sql}`, ...values).n;

  test("the demo's past has some 100,000 trades over 90 days, up to its end, in less than 60 MB", () => {
    expect(count("fills WHERE role = 1")).toBeGreaterThan(85_000);
    expect(count("fills WHERE role = 1")).toBeLessThan(125_000);
    const { first, last } = one<{ first: number; last: number }>(
      "SELECT min(created_at) AS first, max(created_at) AS last FROM fills",
    );
    expect(first).toBeLessThan(END - 89 * DAY_MS);
    expect([last > END - DAY_MS / 48, last <= END]).toEqual([true, true]);
    expect(count("fills WHERE created_at > ?", END - DAY_MS)).toBeGreaterThan(500);
    expect(sizeOf(dataDir)).toBeLessThan(60_000_000);
  });

  test("every open market of the demo's past has traded on nearly each day, has deep books, and one has gone from 10 to 90 %", () => {
    const open = rowsOf<{ id: number; slug: string }>(dataDir, "SELECT id, slug FROM markets WHERE status = 1");
    expect(open).toHaveLength(12);
    for (const { id, slug } of open) {
      const [{ days }] = rowsOf<{ days: number }>(
        dataDir,
        `SELECT count(DISTINCT open_time) AS days FROM candles JOIN outcomes ON outcomes.id = outcome_id
         WHERE market_id = ? AND interval = 1440`,
        id,
      ) as [{ days: number }];
      expect([slug, days >= 85]).toEqual([slug, true]);
      const sides = rowsOf<{ levels: number }>(
        dataDir,
        `SELECT count(DISTINCT price) AS levels FROM orders JOIN outcomes ON outcomes.id = outcome_id
         WHERE market_id = ? AND orders.status IN (3, 4) GROUP BY outcome_id, side`,
        id,
      );
      expect(sides).toHaveLength(2 * count("outcomes WHERE market_id = ?", id));
      // Fewer fit below a price near 0.
      expect([slug, sides.filter(({ levels }) => levels < 18)]).toEqual([slug, []]);
    }
    const range = one<{ low: number; high: number; last: number }>(
      `SELECT min(low) AS low, max(high) AS high, last_price AS last FROM candles JOIN outcomes ON outcomes.id = outcome_id
       JOIN markets ON markets.id = market_id WHERE slug = 'central-bank-next-meeting' AND position = 0 AND interval = 60`,
    );
    expect([range.low < 1_200, range.last > 8_700]).toEqual([true, true]);
  });

  test("the demo's past has ended markets, and something to decide at the desk", () => {
    expect(count("events")).toBe(3);
    expect([count("markets WHERE status = 4"), count("markets WHERE status = 5")]).toEqual([5, 1]);
    expect(count("markets WHERE status = 0")).toBe(1);
    expect(count("identity_applications WHERE status = 'pending'")).toBe(1);
  });

  test("the person of the demo's past has orders, fills, positions won and lost, deposits and a withdrawal", () => {
    const { id } = one<{ id: number }>("SELECT id FROM users WHERE email = ?", PERSON);
    const own = (table: string): number => count(`${table} AND user_id = ?`, id);
    expect(own("fills WHERE true")).toBeGreaterThan(25);
    expect(own("orders WHERE status IN (3, 4)")).toBe(3);
    expect([own("entries WHERE type = 'deposit'"), own("entries WHERE type = 'withdrawal'")]).toEqual([2, 1]);
    expect(own("entries WHERE type = 'settlement'")).toBe(6);
    expect(own("entries WHERE type = 'settlement' AND amount > cost")).toBeGreaterThanOrEqual(3);
    expect(own("entries WHERE type = 'settlement' AND amount < cost")).toBeGreaterThanOrEqual(2);
    expect(own("positions WHERE quantity > 0")).toBeGreaterThanOrEqual(6);
  });

  test("the log, the tables and the books of the demo's past agree", LONG, async () => {
    const verified = await admin(dataDir, "verify");
    expect([verified.code, JSON.parse(verified.out).ok]).toEqual([0, true]);
    const rebuilt = await admin(dataDir, "rebuild");
    expect([rebuilt.code, JSON.parse(rebuilt.out).compared.differing]).toEqual([0, []]);
    const replayed = spawnSync(process.execPath, [programOf("bench/replay.js"), "--log", dataDir], {
      encoding: "utf8",
    });
    expect([replayed.status, JSON.parse(replayed.stdout.trim().split("\n").at(-1)!)]).toMatchObject([
      0,
      { equal: true, starts: 1 },
    ]);
  });

  test("a seed repeats the demo's past relative to its end", LONG, () => {
    expect(contentOf(makePast(SEED, OTHER_END).path, OTHER_END)).toEqual(contentOf(dataDir, END));
  });
});

test("Ctrl-C while it is made ends the demo, and the next run starts over", async () => {
  const dataDir = temporaryFolder();
  const env = { PATH: process.env["PATH"], DATA_DIR: dataDir, PORT: "0" };
  const demo = spawn(process.execPath, [programOf("bench/demo.js"), "--seed", String(SEED)], { env, stdio: "ignore" });
  await eventually(async () => expect(existsSync(join(dataDir, "journal.db"))).toBe(true));
  const other = spawnSync(process.execPath, [programOf("bench/demo.js"), "--fresh"], { env, encoding: "utf8" });
  expect([other.status, other.stderr]).toEqual([1, expect.stringContaining("is in use by another server\n")]);
  demo.kill("SIGINT");
  expect(await once(demo, "close")).toEqual([0, null]);
  expect(JSON.parse(readFileSync(join(dataDir, "demo.json"), "utf8"))).toMatchObject({ isUnfinished: true });
  const next = openFolder(dataDir, false, BOTS, END);
  expect([next.isEmpty, existsSync(join(dataDir, "journal.db"))]).toEqual([true, false]);
});
