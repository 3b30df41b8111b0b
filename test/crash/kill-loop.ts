/**
 * Sends kill -9 to the real server, repeatedly on one folder: under load over HTTP and WebSockets with operators at
 * work, during startup and recovery, shutdown, a checkpoint, and the settlement of a market. SIGTERM comes in between.
 * After each end the database must be sound, and the next life must keep everything the server sent. The clients resend
 * requests without a response, and none takes effect twice. Each life has a clock of its own, up to three days off the one
 * before, which is also set under load. One seed chooses the actions; the moment at which a signal hits depends on the
 * machine.
 */
import assert from "node:assert/strict";
import { copyFileSync, cpSync, existsSync, rmSync, statSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { ROOT } from "../../bench/support/root.ts";
import { openReadOnly } from "../../engine/util/wal-database.ts";
import { verifyFiles } from "../../server/cli/verify.ts";
import { expectBalanced, expectQuiet, expectSoundDatabase } from "../support/checks.ts";
import { Client } from "../support/client.ts";
import { PASSWORD } from "../support/identity.ts";
import type { Random } from "../support/random.ts";
import { TestServer, temporaryFolder, within } from "../support/server.ts";
import { PUBLIC_URL, seedOf, USDC } from "../support/world.ts";
import { Makers } from "./makers.ts";
import { Desk } from "./operator-traffic.ts";
import { seededTraffic, TRAFFIC_MARKETS, TRAFFIC_USERS } from "./traffic.ts";

export interface KillsOptions {
  readonly random: Random;
  readonly kills: number;
  /** If absent, each life has one, two or three. */
  readonly threads?: number | undefined;
  readonly signal: "KILL" | "TERM" | "mixed";
  readonly env?: Readonly<Record<string, string>>;
}

/** How a life ended. */
type End = "load" | "start" | "shutdown" | "checkpoint" | "settlement" | "SIGTERM";
export interface KillsReport {
  readonly ends: ReadonlyMap<End, number>;
  readonly answered: number;
  readonly retried: number;
  readonly settled: number;
  /** How often the clock was set: between two lives, and under load. */
  readonly clockSteps: number;
}

const MAKERS = ["maker0", "maker1"];
const SEED = seedOf({
  users: TRAFFIC_USERS,
  named: {
    [MAKERS[0]!]: {},
    [MAKERS[1]!]: {},
    operator: { role: "operator", password: PASSWORD, deposit: 1_000 * USDC },
    other: { role: "operator", password: PASSWORD, deposit: 0 },
  },
  markets: [...TRAFFIC_MARKETS, 2],
});
const MAKERS_MARKET = TRAFFIC_MARKETS.length + 1;
const OUTCOMES = TRAFFIC_MARKETS.reduce((sum, count) => sum + count, 0);
const HOLDERS = ["user0", "user1", "user2", "user3"];
/** Every this many lives, the test checks the whole record. */
const FULL_CHECK = 10;
/** An idle server restarts the WAL once it has this many pages: one life writes too few to reach it. */
const CHECKPOINT_PAGES = 1_000;
const CHECKPOINT_MS = 5_000;
const CLOCK = fileURLToPath(new URL("test/support/stepped-clock.mjs", ROOT));
const [SECOND, HOUR, DAY] = [1_000, 3_600_000, 86_400_000];
/**
 * What a life's clock is off, ms. Nothing further ahead: a key of Idempotency-Key is forgotten after a day, and its request
 * could rightly have its effect again.
 */
const OFFSETS = [
  0,
  0,
  2 * SECOND,
  10 * SECOND,
  60 * SECOND,
  HOUR,
  -2 * SECOND,
  -10 * SECOND,
  -60 * SECOND,
  -HOUR,
  -3 * DAY,
];
/** Steps under load, ms: sessions outlive them. */
const STEPS = [2 * SECOND, -2 * SECOND, 10 * SECOND, -10 * SECOND, 60 * SECOND, -60 * SECOND, -HOUR, -3 * DAY];
const WHOLE_START_MS = 900;
const WHOLE_SHUTDOWN_MS = 80;

class Kills {
  private readonly options: KillsOptions;
  private readonly traffic;
  private readonly makers: Makers;
  private readonly desk: Desk;
  private readonly ends = new Map<End, number>();
  private server: TestServer | null = null;
  private readonly dataDir = temporaryFolder();
  private lives = 0;
  private sequence = 0;
  private offset = 0;
  private clockSteps = 0;

  constructor(options: KillsOptions) {
    const { random } = options;
    this.options = options;
    this.traffic = seededTraffic(random);
    const market = { id: MAKERS_MARKET, slug: "makers", outcomes: [OUTCOMES + 1, OUTCOMES + 2] };
    this.makers = new Makers(random, market, MAKERS);
    this.desk = new Desk(random, HOLDERS);
  }

  async run(): Promise<KillsReport> {
    try {
      for (let kills = 0; kills < this.options.kills; ) if (await this.live(this.pickEnd())) kills++;
      const server = await this.start();
      await this.expectKept(server, true);
      await this.startLoad(server);
      await this.traffic.more(100);
      await this.endLoad();
      await server.stop();
      this.expectEnded(server);
      const { ends, traffic, makers, desk, clockSteps } = this;
      return {
        ...{ ends, clockSteps },
        answered: traffic.answered + makers.answered + desk.answered,
        retried: traffic.retried + makers.retried + desk.retried,
        settled: desk.settled,
      };
    } finally {
      await this.server?.kill();
    }
  }

  private pickEnd(): End {
    const { random, signal } = this.options;
    if (signal === "TERM") return "SIGTERM";
    const kind = random.next();
    // Run each of these once before chance decides. The load creates the state that the others start from.
    const first = (["load", "start", "shutdown"] as const)[this.lives];
    if (first !== undefined) return first;
    if (kind < 0.38) return "load";
    if (kind < 0.66) return "start";
    if (kind < 0.78) return "settlement";
    if (kind < 0.82) return "checkpoint";
    return signal === "KILL" || kind < 0.92 ? "shutdown" : "SIGTERM";
  }

  /** Runs one life from start to end. Returns whether it counts. */
  private async live(end: End): Promise<boolean> {
    this.ends.set(end, (this.ends.get(end) ?? 0) + 1);
    this.lives++;
    const { random } = this.options;
    if (end === "start") {
      const starting = this.spawn();
      const ready = starting.logged(({ msg }) => msg === "ready").catch(() => null);
      await within(ready, random.integer(50, WHOLE_START_MS));
      await starting.kill();
      this.expectEnded(starting);
      return true;
    }
    const server = await this.start();
    await this.expectKept(server, this.lives % FULL_CHECK === 0);
    await this.startLoad(server);
    await this.traffic.more(random.integer(10, 80));
    if (random.next() < 0.3) {
      server.signal("SIGUSR2");
      this.clockSteps++;
      await this.traffic.more(random.integer(1, 40));
    }
    await this.end(server, end);
    this.expectEnded(server);
    return end !== "SIGTERM" || this.options.signal === "TERM";
  }

  private async end(server: TestServer, end: End): Promise<void> {
    const { random } = this.options;
    if (end === "checkpoint") await this.untilCheckpoint(server);
    else if (end === "settlement") await this.desk.resolving();
    else if (end === "shutdown") server.signal("SIGTERM");
    if (end === "SIGTERM") await server.stop();
    else {
      // Don't kill on a response, which is when this thread would otherwise run.
      const maxMs = end === "shutdown" ? WHOLE_SHUTDOWN_MS : 3;
      await spend(random.next() * maxMs);
      await server.kill();
    }
    if (end !== "checkpoint") await this.endLoad();
  }

  /** Resolves while a checkpoint is moving pages into the database file. */
  private async untilCheckpoint({ dataDir }: TestServer): Promise<void> {
    const path = join(dataDir, "exchange.db");
    const deadline = Date.now() + CHECKPOINT_MS;
    while (statSync(`${path}-wal`).size < CHECKPOINT_PAGES * 4_096 && Date.now() < deadline)
      await this.traffic.more(50);
    const before = statSync(path).mtimeMs;
    await this.endLoad();
    while (statSync(path).mtimeMs === before && Date.now() < deadline)
      await new Promise((resolve) => setImmediate(resolve));
  }

  private spawn(): TestServer {
    const { threads, random } = this.options;
    const offset = random.pick(OFFSETS);
    if (offset !== this.offset) this.clockSteps++;
    this.offset = offset;
    const env = {
      PUBLIC_URL,
      ENGINE_THREADS: String(threads ?? random.pick([1, 1, 2, 2, 3])),
      NODE_OPTIONS: `--import ${CLOCK}`,
      CLOCK_OFFSET_MS: String(offset),
      CLOCK_STEPS_MS: String(random.pick(STEPS)),
      ...this.options.env,
    };
    this.server = TestServer.spawn({ seed: SEED, dataDir: this.dataDir, env });
    return this.server;
  }

  private async start(): Promise<TestServer> {
    const server = this.spawn();
    await server.ready();
    if (this.sequence === 0) await this.makers.prepare(server);
    return server;
  }

  private async startLoad(server: TestServer): Promise<void> {
    await this.traffic.start(server);
    await this.makers.start(server);
    await this.desk.start(server);
  }

  private async endLoad(): Promise<void> {
    await Promise.all([this.traffic.end(), this.makers.end(), this.desk.end()]);
  }

  /** After the process is gone: it reported no error and left a sound database without duplicates. */
  private expectEnded(server: TestServer): void {
    expectQuiet(server);
    if (!existsSync(join(this.dataDir, "exchange.db")) || this.sequence === 0) return;
    // On a copy: the next start must bring the tables up to the log itself.
    const copy = temporaryFolder();
    for (const name of ["exchange.db", "exchange.db-wal", "journal.db", "journal.db-wal"]) {
      if (existsSync(join(this.dataDir, name))) copyFileSync(join(this.dataDir, name), join(copy, name));
    }
    if (existsSync(join(this.dataDir, "log")))
      cpSync(join(this.dataDir, "log"), join(copy, "log"), { recursive: true });
    expectSoundDatabase(copy);
    // The tables are those of a rebuild from the log alone.
    assert.deepEqual(
      verifyFiles(join(copy, "exchange.db")).filter(({ ok }) => !ok),
      [],
    );
    const db = openReadOnly(join(copy, "exchange.db"));
    const halves = db
      .prepare(
        `SELECT match_id FROM fills GROUP BY match_id
         HAVING count(*) < 2 OR count(DISTINCT quantity) > 1 OR sum(role = 1) <> 1`,
      )
      .all();
    const twice = db
      .prepare("SELECT client_order_id FROM orders WHERE client_order_id IS NOT NULL GROUP BY 1 HAVING count(*) > 1")
      .all();
    db.close();
    rmSync(copy, { recursive: true });
    assert.deepEqual({ halves, twice }, { halves: [], twice: [] });
  }

  private async expectKept(server: TestServer, isFull: boolean): Promise<void> {
    const { traffic, makers, desk } = this;
    await (isFull ? traffic.expectKept(server) : traffic.expectRecentKept(server));
    await makers.expectKept(server, isFull);
    await desk.expectKept(server);
    await traffic.retry(server);
    await makers.retry(server);
    await desk.retry(server);
    const client = new Client(server, null);
    await expectBalanced(client);
    const { sequence } = await client.solvency();
    client.close();
    assert(sequence >= this.sequence, "the commit counter doesn't fall back");
    this.sequence = sequence;
  }
}

/** Blocks this thread until then: a timer fires late, by whole milliseconds. */
async function spend(ms: number): Promise<void> {
  const until = performance.now() + ms;
  while (performance.now() < until) await new Promise((resolve) => setImmediate(resolve));
}

/** Kills a server the given number of times. @throws AssertionError if it lost or changed anything it had sent */
export function runKills(options: KillsOptions): Promise<KillsReport> {
  return new Kills(options).run();
}

export function describeKills({ ends, answered, retried, settled, clockSteps }: KillsReport): string {
  const list = [...ends].map(([end, count]) => `${count} ${end === "SIGTERM" ? end : `kill -9 (${end})`}`);
  return `${list.join(", ")}; ${answered} requests answered, ${retried} sent again, ${settled} markets settled, the clock set ${clockSteps} times`;
}
