/**
 * `npm run demo` as a newcomer runs it: the line with address and token, trades in many markets, a trade with the
 * token, Ctrl-C, and a second run that continues the first one.
 */
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";
import { afterAll, expect, test } from "vitest";
import WebSocket from "ws";
import { BOTS } from "../../bench/demo/crowd.ts";
import { openFolder } from "../../bench/demo/folder.ts";
import { eventually, expectSoundDatabase } from "../support/checks.ts";
import type { MarketJson, OrderJson, TradeJson } from "../support/client.ts";
import { PAST_PROGRESS } from "../support/past.ts";
import { temporaryFolder } from "../support/server.ts";

const PROGRAM = fileURLToPath(new URL("../../dist/bench/demo.js", import.meta.url));
const LINE = /^The exchange is at (http:\/\/127\.0\.0\.1:(\d+))\/ — token (pm_pat_\S+) — sign in as (\S+) \/ (\S+)$/;
const DESK = /sign in as (\S+) \/ (\S+)$/;
const NOW = Date.now();
/** On a busy machine a past takes a minute. */
const LONG = { timeout: 240_000 };

const running = new Set<ChildProcess>();
afterAll(() => {
  for (const child of running) child.kill("SIGTERM");
});

class Demo {
  readonly process: ChildProcess;
  readonly exited: Promise<number | null>;
  readonly lines: string[] = [];
  errors = "";
  root = "";
  token = "";

  constructor(dataDir: string, port: string, args: readonly string[]) {
    const env = { PATH: process.env["PATH"], DATA_DIR: dataDir, PORT: port, ENGINE_THREADS: "1" };
    this.process = spawn(process.execPath, [PROGRAM, ...args], { env, stdio: ["ignore", "pipe", "pipe"] });
    running.add(this.process);
    this.process.stderr!.on("data", (chunk: Buffer) => {
      this.errors = (this.errors + chunk.toString()).replaceAll(PAST_PROGRESS, "");
    });
    this.exited = once(this.process, "close").then(([code]) => {
      running.delete(this.process);
      return code as number | null;
    });
  }

  /** Resolves once the demo has printed its address. */
  static async start(dataDir: string, port = "0", ...args: string[]): Promise<Demo> {
    const demo = new Demo(dataDir, port, args);
    const reader = createInterface({ input: demo.process.stdout! });
    const told = new Promise<void>((resolve) => {
      reader.on("line", (line) => {
        demo.lines.push(line);
        if (demo.lines.length === 3) resolve();
      });
    });
    await Promise.race([
      told,
      demo.exited.then((code) => Promise.reject(new Error(`exit code ${code}: ${demo.errors}`))),
    ]);
    const [, root, , token] = LINE.exec(demo.lines[0]!)!;
    demo.root = root!;
    demo.token = token!;
    return demo;
  }

  async get<T>(path: string): Promise<T> {
    return dataOf<T>(await fetch(`${this.root}/api/v1${path}`, { headers: { Authorization: `Bearer ${this.token}` } }));
  }

  async post<T>(path: string, body: object): Promise<T> {
    return dataOf<T>(
      await fetch(`${this.root}/api/v1${path}`, {
        method: "POST",
        headers: { Authorization: `Bearer ${this.token}`, "Content-Type": "application/json" },
        body: JSON.stringify(body),
      }),
    );
  }

  async stop(): Promise<void> {
    this.process.kill("SIGINT");
    expect(await this.exited).toBe(0);
    expect(this.errors).toBe("");
  }

  /** Its child, as the system knows it. */
  get exchangePid(): number {
    return Number(readFileSync(`/proc/${this.process.pid}/task/${this.process.pid}/children`, "utf8"));
  }
}

async function dataOf<T>(answer: Response): Promise<T> {
  const { code, msg, data } = (await answer.json()) as { code: number; msg: string; data: T };
  if (code !== 0) throw new Error(`${answer.url}: ${code} ${msg}`);
  return data;
}

/** Resolves once trades have happened in this many markets. */
async function heardTrades(demo: Demo, marketIds: readonly number[], markets: number): Promise<void> {
  const socket = new WebSocket(`${demo.root.replace("http", "ws")}/api/v1/ws`);
  await once(socket, "open");
  socket.send(JSON.stringify({ op: "subscribe", id: 1, channel: "trades", market_ids: marketIds }));
  const heard = new Set<number>();
  await new Promise<void>((resolve) => {
    socket.on("message", (text: Buffer) => {
      const { event, data } = JSON.parse(text.toString());
      if (event === "trade.created") heard.add(data.market_id);
      if (heard.size >= markets) resolve();
    });
  });
  socket.close();
}

test("bots trade, the token trades with them, Ctrl-C stops everything, a second run continues", LONG, async () => {
  const dataDir = temporaryFolder();
  // 1. The first lines name the accounts and the bots.
  const first = await Demo.start(dataDir, "0", "--seed", "7");
  const [, , , , email, password] = LINE.exec(first.lines[0]!)!;
  const [, operator, operatorPassword] = DESK.exec(first.lines[1]!)!;
  expect(first.lines[2]).toContain(`${BOTS.length} bots trade, seed 7`);

  // 2. The bots trade every market in every way, and quote consistently.
  const { items: markets } = await first.get<{ items: MarketJson[] }>("/markets?limit=200");
  expect(markets.length).toBeGreaterThanOrEqual(8);
  expect(new Set(markets.map(({ category }) => category)).size).toBeGreaterThanOrEqual(5);
  expect(markets.some(({ outcomes }) => outcomes.length > 2)).toBe(true);
  const types = new Set<string>();
  for (const { id, outcomes } of markets) {
    const { items: trades } = await first.get<{ items: TradeJson[] }>(`/markets/${id}/trades?limit=200`);
    expect(trades.length).toBeGreaterThan(10);
    for (const { match_type } of trades) types.add(match_type);
    // Quotes of all outcomes are about one set of chances.
    const middle = outcomes.map(({ best_bid, best_ask }) => (best_bid! + best_ask!) / 2);
    expect(Math.abs(middle.reduce((sum, price) => sum + price, 0) - 10_000)).toBeLessThan(1_000);
  }
  expect([...types].sort()).toEqual(["direct", "merge", "mint"]);

  // 3. The token trades with them; its trades are heard.
  const [market] = markets;
  const order = await first.post<OrderJson>("/orders", {
    market_id: market!.id,
    outcome_id: market!.outcomes[0]!.id,
    side: 1,
    type: "market",
    quantity: 5,
  });
  const filled = await eventually(async () => {
    const found = await first.get<OrderJson>(`/orders/${order.id}`);
    expect(found.status).toBe("filled");
    return found;
  });
  await heardTrades(
    first,
    markets.map(({ id }) => id),
    3,
  );
  // 4. The person and the operator sign in.
  const user = await first.post<{ user: { kyc_tier: number } }>("/auth/login", { email, password });
  expect(user.user.kyc_tier).toBe(2);
  const atDesk = { email: operator, password: operatorPassword };
  expect(await first.post<object>("/auth/login", atDesk)).toMatchObject({ user: { role: "operator" } });

  // 5. A second demo on the port ends.
  const taken = new Demo(temporaryFolder(), new URL(first.root).port, []);
  expect(await taken.exited).toBe(1);
  expect(taken.errors.trim().split("\n")).toHaveLength(1);
  expect(taken.errors).toContain("cannot listen on 127.0.0.1");

  // 6. Ctrl-C stops everything.
  await first.stop();
  await expect(fetch(`${first.root}/livez`)).rejects.toThrow();
  expectSoundDatabase(dataDir);

  // 7. A second run continues.
  const second = await Demo.start(dataDir);
  expect(second.token).toBe(first.token);
  const kept = await second.get<OrderJson>(`/orders/${order.id}`);
  expect(kept).toEqual(filled);
  // The past is still there.
  expect((await second.get<{ items: object[] }>("/wallet/settlements")).items.length).toBeGreaterThan(3);
  await heardTrades(
    second,
    markets.map(({ id }) => id),
    2,
  );
  // 8. The demo ends with its exchange.
  process.kill(second.exchangePid, "SIGKILL");
  expect(await second.exited).toBe(1);
  expect(second.errors).toBe("demo: the exchange ended (SIGKILL)\n");
  expectSoundDatabase(dataDir);
});

test("another exchange's folder is left untouched", async () => {
  const dataDir = temporaryFolder();
  writeFileSync(join(dataDir, "exchange.db"), "somebody else's");
  for (const args of [[], ["--fresh"]]) {
    const demo = new Demo(dataDir, "0", args);
    expect(await demo.exited).toBe(1);
    expect(demo.errors).toMatch(/^demo: DATA_DIR: .* holds another exchange; the demo takes a folder of its own\n$/);
  }
  expect(readFileSync(join(dataDir, "exchange.db"), "utf8")).toBe("somebody else's");
});

test("--fresh starts over, and a later run continues", () => {
  const dataDir = temporaryFolder();
  const first = openFolder(dataDir, false, BOTS, NOW);
  writeFileSync(join(dataDir, "exchange.db"), "a database");
  expect(openFolder(dataDir, false, BOTS, NOW)).toEqual({ ...first, isEmpty: false });
  expect(readFileSync(join(dataDir, "exchange.db"), "utf8")).toBe("a database");
  const fresh = openFolder(dataDir, true, BOTS, NOW);
  expect(fresh.password).not.toBe(first.password);
  expect(fresh.tokens["demo"]).not.toBe(first.tokens["demo"]);
  expect(() => readFileSync(join(dataDir, "exchange.db"))).toThrow("ENOENT");
  writeFileSync(join(dataDir, "demo.json"), "{");
  expect(() => openFolder(dataDir, false, BOTS, NOW)).toThrow("is damaged: --fresh starts over");
  openFolder(dataDir, true, BOTS, NOW);
});

test("a folder that isn't a demo's keeps its files, with --fresh or without", () => {
  const dataDir = temporaryFolder();
  for (const name of ["keys", "outbox"]) {
    mkdirSync(join(dataDir, name));
    writeFileSync(join(dataDir, name, "mine"), "somebody else's");
  }
  openFolder(dataDir, true, BOTS, NOW);
  for (const name of ["keys", "outbox"])
    expect(readFileSync(join(dataDir, name, "mine"), "utf8")).toBe("somebody else's");
});
