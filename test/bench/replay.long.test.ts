/**
 * The replay command: a small folder with matches derived by hand, the same folder against a running exchange, its
 * error messages, and the real folder if it is available.
 */
import { spawn } from "node:child_process";
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { gzipSync } from "node:zlib";
import { afterAll, describe, expect, test } from "vitest";
import { planAccounts } from "../../bench/replay/accounts.ts";
import { readRecording } from "../../bench/replay/folder.ts";
import { TestServer } from "../support/server.ts";

const ROOT = new URL("../..", import.meta.url).pathname;
const REAL = new URL("../../../shared/data/gjp/", import.meta.url).pathname;
const BUY = 1;
const SELL = 2;

const folders: string[] = [];
afterAll(() => {
  for (const folder of folders) rmSync(folder, { recursive: true });
});

function makeFolder(files: Readonly<Record<string, string | Buffer>>, name = "small"): string {
  const parent = mkdtempSync(join(tmpdir(), "replay-test-"));
  folders.push(parent);
  const folder = join(parent, name);
  mkdirSync(folder);
  for (const [file, content] of Object.entries(files)) writeFileSync(join(folder, file), content);
  return folder;
}

interface Run {
  readonly status: number | null;
  readonly stdout: string;
  readonly stderr: string;
  readonly result: Readonly<Record<string, unknown>>;
}

function replay(args: readonly string[], started?: (text: string) => void, durability = "full"): Promise<Run> {
  return new Promise((resolve) => {
    const env = { ...process.env, DURABILITY: durability };
    const child = spawn(process.execPath, ["dist/bench/replay.js", ...args], { cwd: ROOT, env });
    let [stdout, stderr] = ["", ""];
    child.stdout.on("data", (chunk: Buffer) => {
      stdout += chunk.toString();
      started?.(stdout);
    });
    child.stderr.on("data", (chunk: Buffer) => {
      stderr += chunk.toString();
    });
    child.on("close", (status) => {
      const last = stdout.trim().split("\n").at(-1)!;
      resolve({ status, stdout, stderr, result: last.startsWith("{") ? JSON.parse(last) : {} });
    });
  });
}

const MARKETS = [
  { market: 7, question: "Two?", outcomes: ["Yes", "No"] },
  { market: "three", question: "Three? <b>\u{1f3af}</b>", outcomes: ["A", "B", "C"] },
];

type Line = [
  market: number | string,
  outcome: number,
  side: number,
  price: number,
  quantity: number,
  user: string | number,
];

const lines = (orders: readonly Line[]): string =>
  orders
    .map(([market, outcome, side, price, quantity, user], at) =>
      JSON.stringify({ at, market, outcome, side, price, quantity, user }),
    )
    .join("\n");

const ORDERS: readonly Line[] = [
  [7, 0, BUY, 6_000, 10, "ann"], // filled: 4 by the direct match, 6 by the mint
  [7, 0, SELL, 5_500, 4, "bob"], // direct with ann at 6000; bob needs 6 sets (see below)
  [7, 1, BUY, 4_500, 8, "cyd"], // mint with ann's 6; 2 stay open
  [7, 0, SELL, 9_000, 2, "bob"], // rests
  [7, 1, SELL, 1_000, 5, "bob"], // direct with cyd's 2 at 4500, merge with his own 2 at 9000 is a self-trade: the rest ends
  ["three", 0, BUY, 5_000, 3, 42], // rests
  ["three", 1, BUY, 3_000, 3, 42], // rests
  ["three", 2, BUY, 2_500, 2, "ann"], // mint with both at 2000; 1 of each stays
  ["three", 0, SELL, 9_998, 1, "cyd"], // rests
  [7, 0, BUY, 5_000, 0, "ann"], // quantity 0
  [7, 0, BUY, 10_000, 1, "ann"], // price out of range
  [7, 0, 3, 5_000, 1, "ann"], // no such side
  [7, 1, BUY, 1, 100_000_000, "dan"], // 10,000 USDC: all that a day allows at tier 2
  [7, 1, BUY, 1, 1, "dan"], // beyond it: a recording is no day, and its users have their own terms
];

const small = (): string =>
  makeFolder({ "markets.json": JSON.stringify(MARKETS), "orders.jsonl.gz": gzipSync(lines(ORDERS)) });

const EXPECTED = {
  orders: 14,
  accepted: 11,
  refused: { 40000: 3 },
  states: { open: 4, filled: 4, partially_filled: 2, "canceled self_trade": 1 },
  matches: { direct: 2, mint: 2 },
  fills: 9,
  balanced: true,
  faults: [],
};

describe("a small folder", () => {
  test("a small folder's orders and fills are all counted, and a second run over one connection makes the same fills", async () => {
    const folder = small();
    const first = await replay([folder]);
    expect(first.stderr).not.toContain("    at ");
    expect(first.result).toMatchObject({ ...EXPECTED, connections: 1 });
    expect(first.status).toBe(0);
    expect(first.result["latency_ms"]).toEqual({
      p50: expect.any(Number),
      p99: expect.any(Number),
      p999: expect.any(Number),
    });
    expect(first.stdout).toContain("nothing lost: 9 fills over WebSockets, the same over REST");
    const second = await replay([folder, "--connections", "1"]);
    expect(second.result["fills_sha256"]).toBe(first.result["fills_sha256"]);
    expect(first.result["fills_sha256"]).toMatch(/^[0-9a-f]{64}$/);
    // The data folder of its exchange is gone again.
    const dataDir = /data in (.*)$/m.exec(first.stdout)![1]!;
    expect(existsSync(dataDir)).toBe(false);
  });

  test("a different order of the lines gives different fills", async () => {
    const swapped = ORDERS.with(0, ORDERS[1]!).with(1, ORDERS[0]!);
    const folder = makeFolder({ "markets.json": JSON.stringify(MARKETS), "orders.jsonl": lines(swapped) });
    const [one, other] = [await replay([folder]), await replay([small()])];
    expect([one.status, other.status]).toEqual([0, 0]);
    expect(one.result["fills_sha256"]).not.toBe(other.result["fills_sha256"]);
  });

  test("a folder replayed over several connections loses nothing", async () => {
    const orders = Array.from({ length: 600 }, (_, i): Line => {
      const market = i % 3 === 0 ? "three" : 7;
      return [market, i % 2, i % 5 < 3 ? BUY : SELL, 3_000 + 500 * (i % 9), 1 + (i % 4), `user ${i % 23}`];
    });
    const folder = makeFolder({ "markets.json": JSON.stringify(MARKETS), "orders.jsonl": lines(orders) });
    const { status, result } = await replay([folder, "--connections", "8"]);
    expect(result).toMatchObject({ orders: 600, accepted: 600, connections: 8, refused: {}, faults: [] });
    const states = Object.values(result["states"] as Record<string, number>);
    expect(states.reduce((sum, count) => sum + count)).toBe(600);
    expect(result["fills"]).toBeGreaterThan(100);
    expect(status).toBe(0);
  });
});

describe("the users' accounts", () => {
  const plan = planAccounts(readRecording(small()));
  const { users, markets } = plan.seed as {
    users: { email: string; deposit: number; kyc_tier: number; pats: { token: string }[] }[];
    markets: { slug: string; outcomes: string[] }[];
  };

  test("the users have complete sets for the most-sold outcome, and money for these and all buys", () => {
    expect(plan.sets).toEqual([
      { user: 1, market: 0, quantity: 6 },
      { user: 2, market: 1, quantity: 1 },
    ]);
    const usdc = users.map(({ deposit }) => deposit / 1_000_000);
    expect(usdc).toEqual([6 + 0.5, 6, 3.6 + 1, 1.5 + 0.9, 10_000.0001]);
  });

  test("the replay's markets and tokens are deterministic and distinct", () => {
    expect(markets.map(({ slug, outcomes }) => [slug, outcomes.length])).toEqual([
      ["small-7", 2],
      ["small-three", 3],
    ]);
    expect(users.every(({ kyc_tier }) => kyc_tier === 2)).toBe(true);
    expect(new Set(plan.tokens).size).toBe(5);
    expect(users.map(({ pats }) => pats[0]!.token)).toEqual(plan.tokens);
    expect(planAccounts(readRecording(small()))).toEqual(plan);
  });
});

describe("a running exchange", () => {
  test("a running exchange with the seed written for the folder: the same fills as on the replay's own exchange, twice", async () => {
    const folder = small();
    const seedFile = join(folder, "seed.json");
    expect((await replay([folder, "--write-seed", seedFile])).status).toBe(0);
    expect(statSync(seedFile).mode & 0o777).toBe(0o600);
    const server = await TestServer.start({ seed: JSON.parse(readFileSync(seedFile, "utf8")) });
    const own = await replay([folder]);
    const running = await replay([folder, "--url", server.root]);
    expect(running.result).toMatchObject(EXPECTED);
    expect(running.result["fills_sha256"]).toBe(own.result["fills_sha256"]);
    const again = await replay([folder, "--url", `${server.root}/api/v1/`]);
    expect(again.stdout).toContain("the accounts have traded before");
    expect(again.result).toMatchObject({ orders: 14, balanced: true, faults: [] });
    expect(again.status).toBe(0);
    await server.stop();
  });

  test("a running exchange without that seed, or with another folder's market under the same name", async () => {
    const server = await TestServer.start({
      seed: { markets: [{ slug: "small-7", question: "?", outcomes: ["a", "b", "c"] }] },
    });
    const one = makeFolder({
      "markets.json": JSON.stringify(MARKETS.slice(0, 1)),
      "orders.jsonl": lines([ORDERS[0]!]),
    });
    const wrong = await replay([one, "--url", server.root]);
    expect(wrong.stderr).toContain("market small-7 of the exchange has other outcomes");
    const none = await replay([
      makeFolder({ "markets.json": JSON.stringify(MARKETS.slice(1)), "orders.jsonl": lines([ORDERS[5]!]) }),
      "--url",
      server.root,
    ]);
    expect(none.stderr).toContain("the exchange has no market small-three: start it with SEED_FILE");
    expect([wrong.status, none.status]).toEqual([1, 1]);
    await server.stop();
  });

  test("a running exchange with the markets but not the accounts", async () => {
    const folder = small();
    const seedFile = join(folder, "seed.json");
    await replay([folder, "--write-seed", seedFile]);
    const { markets } = JSON.parse(readFileSync(seedFile, "utf8"));
    const server = await TestServer.start({ seed: { markets } });
    const { status, stderr } = await replay([folder, "--url", server.root]);
    expect(stderr).toMatch(/40100 .*start it with SEED_FILE/);
    expect(status).toBe(1);
    await server.stop();
  });

  test("a running exchange that dies meanwhile: one line and exit code 1", async () => {
    const orders = Array.from({ length: 20_000 }, (_, i): Line => [7, 0, BUY, 1 + (i % 99), 1, `user ${i % 5}`]);
    const folder = makeFolder({ "markets.json": JSON.stringify(MARKETS), "orders.jsonl": lines(orders) });
    const seedFile = join(folder, "seed.json");
    await replay([folder, "--write-seed", seedFile]);
    const server = await TestServer.start({ seed: JSON.parse(readFileSync(seedFile, "utf8")) });
    const running = replay([folder, "--url", server.root, "--connections", "4"]);
    // Once it has written enough to be in the middle of the orders.
    while (statSync(join(server.dataDir, "exchange.db-wal")).size < 2 ** 20)
      await new Promise((r) => setTimeout(r, 20));
    await server.kill();
    const { status, stderr } = await running;
    expect(stderr).toMatch(/^replay: .*(closed|ECONNRESET|nothing listens)/m);
    expect(stderr).not.toContain("    at ");
    expect(status).toBe(1);
  });
});

describe("mistakes end with one line that names the place, and exit code 1", () => {
  const market = JSON.stringify(MARKETS.slice(0, 1));
  const order = lines([[7, 0, BUY, 5_000, 1, "ann"]]);
  test.each([
    ["no markets.json", { "orders.jsonl": order }, /markets\.json: no such file/],
    ["no orders", { "markets.json": market }, /orders\.jsonl\.gz: no such file/],
    ["empty orders", { "markets.json": market, "orders.jsonl": "\n" }, /orders\.jsonl: holds no orders/],
    ["markets that are no list", { "markets.json": "{}" }, /must be a list of markets/],
    [
      "one outcome",
      { "markets.json": '[{"market":1,"question":"q","outcomes":["a"]}]' },
      /market 1 \(1\): "outcomes" must/,
    ],
    ["no question", { "markets.json": '[{"market":1,"outcomes":["a","b"]}]' }, /"question" must be a text/],
    ["a market twice", { "markets.json": JSON.stringify([MARKETS[0], MARKETS[0]]) }, /market 2: 7 is listed twice/],
    ["half a line", { "markets.json": market, "orders.jsonl": `${order}\n{"mar` }, /orders\.jsonl line 2: /],
    ["a line that is no object", { "markets.json": market, "orders.jsonl": "null" }, /line 1: must be an object/],
    [
      "a text for a number",
      { "markets.json": market, "orders.jsonl": order.replace("5000", '"5000"') },
      /line 1: "price" must be a number/,
    ],
    [
      "an unknown market",
      { "markets.json": market, "orders.jsonl": lines([[8, 0, BUY, 1, 1, "a"]]) },
      /line 1: market 8 is not in markets\.json/,
    ],
    [
      "an unknown outcome",
      { "markets.json": market, "orders.jsonl": lines([[7, 2, BUY, 1, 1, "a"]]) },
      /line 1: market 7 has no outcome 2/,
    ],
    [
      "half a gzip file",
      { "markets.json": market, "orders.jsonl.gz": gzipSync(order).subarray(0, 40) },
      /not a complete gzip file/,
    ],
  ] as [string, Record<string, string | Buffer>, RegExp][])(
    "a mistake ends with one line that names the place, and exit code 1: %s",
    (_, files, message) => {
      expect(() => readRecording(makeFolder(files))).toThrow(message);
    },
  );

  test("a mistake on the command line ends with one line and exit code 1", async () => {
    const folder = small();
    const wrong: [string[], string][] = [
      [["/nowhere"], "replay: /nowhere: no such folder"],
      [[folder, "--url", "http://127.0.0.1:1"], "replay: http://127.0.0.1:1/api/v1: nothing listens there"],
    ];
    for (const [args, message] of wrong) {
      const { status, stderr } = await replay(args);
      expect(stderr).toContain(message);
      expect(stderr).not.toContain("    at ");
      expect(status).toBe(1);
    }
  });
});

test.skipIf(!existsSync(REAL))("the real orders of gjp (skipped without ../shared)", { timeout: 300_000 }, async () => {
  // Nothing crashes here: waiting for the disk after each order would only take time.
  const over = (connections: number): Promise<Run> => {
    return replay([REAL, "--connections", `${connections}`], undefined, "off");
  };
  const runs = [...(await Promise.all([over(1), over(1)])), await over(32)];
  for (const { status, result } of runs) {
    // One line has quantity 0.
    const refused = result["refused"] as Record<string, number>;
    expect(Object.keys(refused)).toEqual(["40000"]);
    expect(refused["40000"]).toBe(1);
    expect(result).toMatchObject({ orders: 12_767, balanced: true, faults: [] });
    expect(result["accepted"]).toBe(12_767 - 1);
    expect(result["matches"]).toEqual({
      direct: expect.any(Number),
      mint: expect.any(Number),
      merge: expect.any(Number),
    });
    expect(status).toBe(0);
  }
  expect(runs[1]!.result["fills_sha256"]).toBe(runs[0]!.result["fills_sha256"]);
});
