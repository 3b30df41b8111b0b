/**
 * A thread of the real server dies under load. Where trading can't do without it: pending requests get 50000, new ones
 * 50300, a fatal line, exit code 1 for the supervisor, and nothing lost that was answered. Where it can: another takes its place.
 */
import { existsSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, describe, test } from "vitest";
import { eventually, expectSoundDatabase } from "../support/checks.ts";
import { Client } from "../support/client.ts";
import { login, PASSWORD } from "../support/identity.ts";
import { variants } from "../support/projects.ts";
import { Random } from "../support/random.ts";
import { TestServer, temporaryFolder } from "../support/server.ts";
import { seedOf, tokenOf } from "../support/world.ts";
import { seededTraffic, TRAFFIC_SEED, UNKNOWN } from "./traffic.ts";

const DYING = new URL("./dying-thread.mjs", import.meta.url).href;
/** How much faster than the clock the server's timers go. */
const FAST = 20;
const EXIT_DEADLINE_MS = 20_000;

const started: TestServer[] = [];
afterAll(async () => {
  for (const server of started) await server.kill();
});

async function start(env: Record<string, string>, seed = TRAFFIC_SEED): Promise<[TestServer, death: string]> {
  const dataDir = temporaryFolder();
  const DEATH = join(dataDir, "death");
  const server = await TestServer.start({ seed, dataDir, env: { NODE_OPTIONS: `--import ${DYING}`, DEATH, ...env } });
  started.push(server);
  return [server, DEATH];
}

// Side by side: each waits for most of its time.
describe.concurrent("a thread that trading can't do without", () => {
  const deaths = variants<[name: string, how: string, threads: number]>(
    [
      ["engine-with-log", "throw", 1],
      ["engine-with-log", "loop", 1],
    ],
    [
      ["engine", "exit", 2],
      ["log", "throw", 2],
      ["log", "loop", 2],
    ],
  );
  for (const [name, how, threads] of deaths) {
    test(`a thread that trading can't do without: ${name}: ${how}`, async ({ expect }) => {
      const fast: Record<string, string> = how === "loop" ? { FAST: String(FAST) } : {};
      const [server, death] = await start({ ENGINE_THREADS: String(threads), ...fast });
      const traffic = seededTraffic(Random.printed(`${name}: ${how}`));
      await traffic.start(server);
      await traffic.more(40);
      writeFileSync(death, `${name} waiting ${how}`);
      const fatal = await server.logged(({ level }) => level === 60, 30_000);
      expect(fatal.msg).toMatch(/trading has stopped/);
      expect(fatal["thread"]).toMatch(name === "log" ? /^log$/ : /^engine \d$|^log$/);
      const client = new Client(server, tokenOf("user0"));
      const order = { market_id: 1, outcome_id: 1, side: 1, price: 4_000, quantity: 1 };
      expect(await client.request("POST", "/orders", { body: order })).toMatchObject({ status: 503, code: 50300 });
      expect(await client.requestRoot("GET", "/readyz")).toMatchObject({ status: 503 });
      client.close();
      expect(await server.exit(EXIT_DEADLINE_MS)).toBe(1);
      await traffic.end();
      // The only errors are the replies to clients that were waiting.
      expect(server.log.filter(({ level, msg }) => level === 50 && msg !== UNKNOWN)).toEqual([]);
      for (const said of traffic.unknown.keys()) expect(said).toBe(UNKNOWN);
      expectSoundDatabase(server.dataDir);
      const next = await server.restart();
      started.push(next);
      await traffic.expectKept(next);
      await next.stop();
    });
  }
});

describe.concurrent("a thread of a pool is replaced, and trading goes on", () => {
  for (const [when, how] of [
    ["waiting", "throw"],
    ["waiting", "exit"],
    ["woken", "throw"],
    ["working", "exit"],
  ] as const) {
    test(`a thread of a pool is replaced, and trading goes on: ${when}: ${how}`, async ({ expect }) => {
      const seed = seedOf({ users: 1, named: { person: { password: PASSWORD } } });
      const [server, death] = await start({}, seed);
      const client = new Client(server, tokenOf("user0"));
      const signIn = async (): Promise<number> => (await login(server, "person@example.com")).code;
      const read = async (): Promise<number> => (await client.request("GET", "/me/fills")).code;
      const ways = [
        ["history", read],
        ["password", signIn],
      ] as const;
      for (const [name, ask] of ways) {
        expect(await ask()).toBe(0);
        writeFileSync(death, `${name} ${when} ${how}`);
        // Meanwhile, another thread serves requests, or the response asks for a retry.
        expect([0, 50300]).toContain(await ask());
        await eventually(async () => expect(existsSync(death)).toBe(false));
        await eventually(async () => expect(await ask()).toBe(0));
      }
      const split = { body: { market_id: 1, quantity: 1 } };
      expect(await client.request("POST", "/wallet/split", split)).toMatchObject({ status: 200 });
      client.close();
      expect(server.log.filter(({ level, thread }) => level >= 50 && thread === undefined)).toEqual([]);
      expect(server.alive).toBe(true);
      await server.stop();
    });
  }
});
