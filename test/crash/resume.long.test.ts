/**
 * The test kills a client twenty times, and its server in between. The resuming client ends up with the same fills as
 * the database, each once. Between its lives it keeps only its last sequence and its fills.
 */
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { fileURLToPath } from "node:url";
import { afterEach, expect, test } from "vitest";
import { ORDER_STATUSES } from "../../engine/constants.ts";
import { expectSoundDatabase } from "../support/checks.ts";
import { API_BASE } from "../support/client.ts";
import { rowsOf } from "../support/data-dir.ts";
import { Random } from "../support/random.ts";
import { RandomTrading } from "../support/random-trading.ts";
import { TestServer, within } from "../support/server.ts";
import { seedOf, tokenOf } from "../support/world.ts";
import type { FollowedUpdate } from "./follower-worker.ts";

const FOLLOWER = fileURLToPath(new URL("../../dist/test/crash/follower-worker.js", import.meta.url));
const LIVES = 20;
/** Once every this many client lives, the test kills the server too. */
const LIVES_PER_CRASH = 5;
const DEADLINE_MS = 20_000;

let server: TestServer | null = null;
let child: ChildProcess | null = null;
afterEach(async () => {
  child?.kill("SIGKILL");
  await server?.kill();
});

/** The state that the client keeps. */
class Follower {
  sequence = 0;
  readonly fills: number[] = [];
  /** The last status received, by order. */
  readonly statuses = new Map<number, string>();
  private waiting: { sequence: number; resolve: () => void } | null = null;
  private errors = "";

  /** Lives until the test kills it or its server. */
  live(on: TestServer, token: string): { child: ChildProcess; ended: Promise<unknown> } {
    const url = `${on.root.replace("http", "ws")}${API_BASE}/ws?token=${token}`;
    const child = spawn(process.execPath, [FOLLOWER, url, String(this.sequence)], {
      stdio: ["ignore", "pipe", "pipe"],
    });
    let text = "";
    child.stdout.on("data", (chunk: Buffer) => {
      const lines = (text + chunk.toString()).split("\n");
      text = lines.pop()!;
      for (const line of lines) this.take(JSON.parse(line) as FollowedUpdate);
    });
    child.stderr.on("data", (chunk: Buffer) => {
      this.errors += chunk.toString();
    });
    return { child, ended: once(child, "close") };
  }

  /** Resolves when it has received the given number of further updates. */
  async reaches(sequence: number): Promise<void> {
    if (this.sequence >= sequence) return;
    const reached = new Promise<true>((resolve) => {
      this.waiting = { sequence, resolve: () => resolve(true) };
    });
    if ((await within(reached, DEADLINE_MS)) === undefined) {
      throw new Error(`the client has ${this.sequence} of ${sequence}: ${this.errors}`);
    }
  }

  expectQuiet(): void {
    expect(this.errors).toBe("");
  }

  private take({ sequence, order, status, fills }: FollowedUpdate): void {
    expect(sequence).toBe(this.sequence + 1);
    this.sequence = sequence;
    this.fills.push(...fills);
    this.statuses.set(order, status);
    if (this.waiting !== null && sequence >= this.waiting.sequence) this.waiting.resolve();
  }
}

test("a client that is killed and resumes twenty times holds the same fills as the database", async () => {
  const random = Random.printed("resume");
  const tokens = [0, 1, 2].map((i) => tokenOf(`user${i}`));
  const env = { ENGINE_THREADS: String(random.integer(1, 3)) };
  server = await TestServer.start({ seed: seedOf({ users: 3, markets: [2, 3] }), env });
  const markets = [
    { id: 1, slug: "market-0", outcomes: [1, 2] },
    { id: 2, slug: "market-1", outcomes: [3, 4, 5] },
  ];
  const trading = new RandomTrading(random, markets, tokens);
  await trading.prepare(server);
  trading.start(server);
  const follower = new Follower();
  for (let life = 1; life <= LIVES; life++) {
    const { child: own, ended } = follower.live(server, tokens[0]!);
    child = own;
    await follower.reaches(follower.sequence + random.integer(1, 30));
    if (life % LIVES_PER_CRASH === 0) {
      await server.kill();
      await trading.stop();
      expectSoundDatabase(server.dataDir);
      server = await server.restart();
      trading.start(server);
    } else own.kill("SIGKILL");
    await ended;
    // The client stays offline for a while.
    await trading.more(random.integer(0, 20));
  }
  await trading.stop();
  await server.stop();
  server = await server.restart();
  const { dataDir } = server;
  const last = (): number =>
    rowsOf<{ last: number }>(dataDir, "SELECT update_sequence AS last FROM newest_of_user WHERE user_id = 1")[0]!.last;
  const { child: own, ended } = follower.live(server, tokens[0]!);
  child = own;
  let fills: { id: number }[];
  let orders: { id: number; status: number }[];
  // No one trades any more, but orders expire: a read is consistent if no update arrived meanwhile.
  do {
    await follower.reaches(last());
    fills = rowsOf(dataDir, "SELECT id FROM fills WHERE user_id = 1 ORDER BY id");
    orders = rowsOf(dataDir, "SELECT id, status FROM orders WHERE user_id = 1");
  } while (last() !== follower.sequence);
  own.kill("SIGKILL");
  await ended;
  follower.expectQuiet();

  expect(follower.fills.length).toBeGreaterThan(50);
  expect(follower.fills.toSorted((a, b) => a - b)).toEqual(fills.map(({ id }) => id));
  expect(new Map(orders.map(({ id, status }) => [id, ORDER_STATUSES[status]]))).toEqual(follower.statuses);
  await server.stop();
  expectSoundDatabase(server.dataDir);
});
