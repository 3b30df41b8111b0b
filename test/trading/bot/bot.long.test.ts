/**
 * A stranger's market-making bot, written from the contract alone, runs in a market where others trade at random while
 * its line breaks and the server is killed: after every step its own books are the venue's REST state. A step stands
 * for 100 ms; BOT_STEPS=36000 is an hour in each encoding. TEST_SEED repeats the choices, not the timing.
 */
import { afterEach, expect, test } from "vitest";
import { expectBalanced, expectSoundDatabase } from "../../support/checks.ts";
import { Client, type OrderJson } from "../../support/client.ts";
import { Random } from "../../support/random.ts";
import type { TestServer } from "../../support/server.ts";
import { type TestMarket, tokenOf, USDC, World } from "../../support/world.ts";
import { Bot, type Fault } from "./bot.ts";
import { Trader } from "./flow.ts";
import type { Encoding } from "./link.ts";

const STEPS = Number(process.env["BOT_STEPS"] ?? 300);
const MS_PER_STEP = 1_000;
const TRADERS = 4;
const DEPOSIT = 10_000 * USDC;
/** The bot moves on to a fresh account, long before the day's limit of 10,000 USDC can reject anything. */
const STEPS_PER_ACCOUNT = Math.min(2_500, Math.max(150, Math.floor(STEPS / 10)));
const ACCOUNTS = Math.ceil(STEPS / STEPS_PER_ACCOUNT) + 1;
const STEPS_BETWEEN_KILLS = Math.max(100, Math.floor(STEPS / 10));
const USERS = Object.fromEntries(
  ["bot", ...Array.from({ length: TRADERS }, (_, i) => `trader${i}-`)].flatMap((name) =>
    Array.from({ length: ACCOUNTS }, (_, i) => [`${name}${i}`, { deposit: DEPOSIT }]),
  ),
);

let session: Session | null = null;
afterEach(async () => {
  await session?.end();
  session = null;
});

const VARIANTS: readonly (readonly [Encoding, boolean])[] = [
  ["json", false],
  ["msgpack", true],
];
for (const [encoding, cancelOnDisconnect] of VARIANTS) {
  const name = `over ${encoding}${cancelOnDisconnect ? " with cancel_on_disconnect" : ""}`;
  test(
    `a stranger's bot ${name} has the venue's own books after each of ${STEPS} steps`,
    async () => {
      const random = Random.printed(`bot ${name}`);
      const world = await World.start({ users: 0, named: USERS, markets: [3] });
      session = new Session(world, encoding, cancelOnDisconnect, random);
      try {
        await session.run();
      } catch (error) {
        (error as Error).message += `\nTEST_SEED=${random.seed}, step ${session.steps}\n${session.story()}`;
        throw error;
      }
      session.expectEverythingHappened();
    },
    60_000 + STEPS * MS_PER_STEP,
  );
}

/** One bot, its market, the other users, and what goes wrong with them. */
class Session {
  steps = 0;
  private readonly world: World;
  private readonly market: TestMarket;
  private readonly random: Random;
  private readonly encoding: Encoding;
  private readonly cancelOnDisconnect: boolean;
  private readonly fair: number[];
  private readonly traders: readonly Trader[];
  private readonly counts = new Map<string, number>();
  private bot: Bot;
  private accounts = 0;
  /** The running server, or the one that comes next. */
  private running: Promise<TestServer>;
  private takenDown: Promise<unknown> = Promise.resolve();

  constructor(world: World, encoding: Encoding, cancelOnDisconnect: boolean, random: Random) {
    this.world = world;
    this.market = world.market(3);
    this.random = random;
    this.encoding = encoding;
    this.cancelOnDisconnect = cancelOnDisconnect;
    this.fair = this.market.outcomes.map(() => 3_330);
    this.running = Promise.resolve(world.server);
    this.traders = Array.from({ length: TRADERS }, (_, i) => {
      const tokens = Array.from({ length: ACCOUNTS }, (_, account) => tokenOf(`trader${i}-${account}`));
      const options = { market: this.market, tokens, random: new Random(random.seed + 1 + i), fair: this.fair };
      return new Trader({ ...options, server: () => this.running });
    });
    this.bot = this.newBot();
  }

  async run(): Promise<void> {
    for (const trader of this.traders) trader.start();
    for (; this.steps < STEPS; this.steps++) {
      this.moveFair();
      if (this.steps % STEPS_BETWEEN_KILLS === STEPS_BETWEEN_KILLS >> 1) this.takeDown();
      await this.bot.step(this.fair, this.fault());
      if (this.steps > 0 && this.steps % STEPS_PER_ACCOUNT === 0) {
        await this.bot.retire();
        this.bot = this.newBot();
      }
    }
    await this.takenDown;
    await this.bot.retire();
    await this.close();
  }

  /** A run that nothing happened in proves nothing. */
  expectEverythingHappened(): void {
    const counts = [...this.counts].sort().map(([what, times]) => `  ${times} ${what}`);
    process.stdout.write(`${this.steps} steps, ${this.accounts} accounts:\n${counts.join("\n")}\n`);
    const happened = ["direct", "mint", "merge"].map((type) => `fill: ${type} as maker`);
    happened.push("fill: direct as taker", "quote kept", "ended: canceled user", "SIGKILL", "SIGTERM");
    happened.push("lost: quotes", "lost quotes were taken", "resync: met", "repeated: place");
    expect(happened.filter((what) => !this.counts.has(what))).toEqual([]);
    expect(this.counts.has("ended: canceled cancel_on_disconnect")).toBe(this.cancelOnDisconnect);
  }

  story(): string {
    return this.bot.log.join("\n");
  }

  async end(): Promise<void> {
    this.bot.leave();
    for (const trader of this.traders) trader.stop();
    await this.takenDown.catch(() => {});
    await this.world.server.kill();
  }

  /** A random walk that is drawn back to where the prices come to 10000. */
  private moveFair(): void {
    const { fair, random } = this;
    const pull = Math.round((fair.reduce((sum, price) => sum + price, 0) - 10_000) / 30);
    fair.forEach((price, i) => {
      fair[i] = Math.min(6_000, Math.max(1_000, price + random.integer(-25, 25) - pull));
    });
  }

  private fault(): Fault | null {
    const { random } = this;
    if (!random.chance(0.2)) return null;
    const part = random.pick(["socket", "socket", "requests", "both"] as const);
    return { part, afterMs: random.chance(0.4) ? null : random.integer(0, 25) };
  }

  /** At a random moment of the steps to come: kill -9, and once, halfway, SIGTERM. Then it starts again. */
  private takeDown(): void {
    const { random, world } = this;
    const kills = Math.floor(this.steps / STEPS_BETWEEN_KILLS);
    const gently = kills === Math.floor(STEPS / STEPS_BETWEEN_KILLS / 2);
    this.takenDown = new Promise((resolve) => {
      setTimeout(
        () => {
          this.count(gently ? "SIGTERM" : "SIGKILL");
          this.running = restarted(world, gently);
          resolve(this.running);
        },
        random.integer(0, 30),
      );
    });
    this.takenDown.catch(() => {});
  }

  /** Of the running server, or of the next one. @throws Error where it has ended by itself */
  private async port(): Promise<number> {
    const server = await this.running;
    if (!server.alive) throw new Error(`the server ended: ${server.errors}`);
    return server.port;
  }

  private newBot(): Bot {
    const name = `bot${this.accounts++}`;
    const { market, random, encoding, cancelOnDisconnect } = this;
    return new Bot({
      ...{ market, random, encoding, cancelOnDisconnect, name, token: tokenOf(name), deposit: DEPOSIT },
      port: () => this.port(),
      pause: async (still) => {
        await Promise.all(this.traders.map((trader) => trader.pause(still)));
      },
      count: (what) => this.count(what),
    });
  }

  /** Nothing is left: no order, no hold; all money is where it should be. */
  private async close(): Promise<void> {
    const { world } = this;
    const clients = (await Promise.all(this.traders.map((trader) => trader.finish()))).flat();
    for (let i = 0; i < this.accounts; i++) clients.push(new Client(world.server, tokenOf(`bot${i}`)));
    for (const client of clients) {
      expect(await client.all<OrderJson>("/orders")).toEqual([]);
      expect((await client.balance()).held).toBe(0);
      const positions = await client.all<{ held: number }>("/me/positions");
      expect(positions.filter(({ held }) => held !== 0)).toEqual([]);
      client.close();
    }
    await expectBalanced(world.anonymous());
    await world.stop();
    expectSoundDatabase(world.server.dataDir);
  }

  private count(what: string): void {
    this.counts.set(what, (this.counts.get(what) ?? 0) + 1);
  }
}

async function restarted(world: World, gently: boolean): Promise<TestServer> {
  await (gently ? world.server.stop() : world.server.kill());
  world.server = await world.server.restart();
  return world.server;
}
