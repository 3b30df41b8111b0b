/**
 * Clients that others wrote follow the public channels: `ws`, `websocket` and Python's `websockets`. A snapshot with its
 * updates must be the REST book at the same sequence, at random moments of a flow and at its end, and trades must be those that REST
 * lists. The flow is recorded (../shared/data/betfair, where it is there), and random (TEST_SEED repeats the choices).
 */
import { afterEach, expect, test } from "vitest";
import { expectBalanced, expectEndsWell } from "./support/checks.ts";
import type { BookJson, Client, OrderJson } from "./support/client.ts";
import { dialWebsocket, dialWs, Follower } from "./support/follower.ts";
import { PythonFollower, pythonMissing } from "./support/python-follower.ts";
import { Random } from "./support/random.ts";
import { accountsFor, RecordedFlow, readRecording } from "./support/recorded-flow.ts";
import { BUY, SELL } from "./support/terms.ts";
import { World } from "./support/world.ts";

const recording = readRecording();
const python = pythonMissing();
const TWO_THREADS = { ENGINE_THREADS: "2" };
/** How far another process may be behind in messages: a fraction of what the sockets between hold. */
const MAX_BEHIND = 5_000;

let world: World | null = null;
let pythonFollower: PythonFollower | null = null;
afterEach(async () => {
  pythonFollower?.kill();
  pythonFollower = null;
  await world?.server.kill();
  world = null;
});

const say = (line: string): void => void process.stdout.write(`${line}\n`);
const marketBook = async (reader: Client, marketId: number): Promise<readonly BookJson[]> =>
  (await reader.get<{ outcomes: BookJson[] }>(`/markets/${marketId}/orderbook`)).outcomes;

/** Compares followers with what REST says of a random book, or all of a market, until it is stopped. */
class Comparisons {
  count = 0;
  private readonly on: World;
  private readonly followers: readonly Follower[];
  private readonly random: Random;
  private isStopped = false;
  private readonly running: Promise<void>;

  constructor(on: World, followers: readonly Follower[], random: Random) {
    this.on = on;
    this.followers = followers;
    this.random = random;
    this.running = this.run();
    // Told where it is awaited, in stop().
    this.running.catch(() => {});
  }

  async stop(): Promise<void> {
    this.isStopped = true;
    await this.running;
  }

  private async run(): Promise<void> {
    const { random } = this;
    const reader = this.on.anonymous();
    while (!this.isStopped) {
      const { id, outcomes } = random.pick(this.on.markets);
      const books = random.chance(0.2)
        ? await marketBook(reader, id)
        : [await reader.book(id, random.pick(outcomes))];
      this.count += books.length;
      for (const follower of this.followers) follower.compare(books);
    }
  }
}

const differencesOf = (followers: readonly Follower[]): string[] => followers.flatMap(({ differences }) => differences);

/** What stands in the books must be what is left of the traders' orders. */
async function expectBooksOfOrders(on: World, traders: readonly Client[]): Promise<void> {
  const levels = new Map<string, number>();
  for (const trader of traders) {
    for (const { outcome_id, side, price, remaining } of await trader.all<OrderJson>("/orders")) {
      const key = `${outcome_id} ${side} ${price}`;
      levels.set(key, (levels.get(key) ?? 0) + remaining);
    }
  }
  const reader = on.anonymous();
  const standing = new Map<string, number>();
  for (const { id } of on.markets) {
    for (const { outcome_id, bids, asks } of await marketBook(reader, id)) {
      for (const [price, quantity] of bids) standing.set(`${outcome_id} ${BUY} ${price}`, quantity!);
      for (const [price, quantity] of asks) standing.set(`${outcome_id} ${SELL} ${price}`, quantity!);
    }
  }
  expect(Object.fromEntries(standing)).toEqual(Object.fromEntries(levels));
}

if (recording === null) say("skipped: the recorded flow, ../shared/data/betfair is missing");
if (recording !== null && python !== null) say(`skipped: the follower in Python, ${python}`);

test.skipIf(recording === null)("clients of others follow the recorded flow without one difference from REST", async () => {
  const random = Random.printed("comparisons of the recorded flow");
  const { markets, rows, hours, busiestHour } = recording!;
  world = await World.start({ users: 0, named: accountsFor(recording!), markets, env: TWO_THREADS });
  const ids = world.markets.map(({ id }) => id);
  const followers = [
    await Follower.open(world.server, "ws", dialWs("json")),
    await Follower.open(world.server, "websocket", dialWebsocket),
  ];
  for (const follower of followers) {
    await follower.subscribe("trades", ...ids);
    await follower.subscribe("book", ...ids);
  }
  if (python === null) pythonFollower = await PythonFollower.start(world.server, ids);
  const started = Date.now();
  const comparisons = new Comparisons(world, followers, random);
  const flow = new RecordedFlow(world, recording!, async () => {
    await pythonFollower?.had(followers[0]!.messages - MAX_BEHIND);
  });
  const timer = setInterval(() => console.error((Date.now()-started)/1000, flow.operations, [...flow.refused], followers.map(f=>f.messages), pythonFollower?.messages, comparisons.count, process.cpuUsage(), differencesOf(followers)[0]), 2000);
  await flow.run();
  clearInterval(timer);
  const seconds = (Date.now() - started) / 1_000;
  await comparisons.stop();
  const reader = world.anonymous();
  for (const follower of followers) await follower.finish(reader);
  const pythonResult = await pythonFollower?.finish();

  const refused = [...flow.refused].map(([code, count]) => `${count} with ${code}`).join(", ");
  say(
    `${rows.length} rows of ${hours.toFixed(0)} h recorded time (${busiestHour} in the busiest) in ${seconds.toFixed(1)} s: ` +
      `${flow.operations} operations, refused ${refused || "none"}`,
  );
  for (const follower of followers) say(`${follower.name}: ${JSON.stringify(countsOf(follower))}`);
  if (pythonResult !== undefined) say(`python: ${JSON.stringify(pythonResult)}`);
  expect(differencesOf(followers)).toEqual([]);
  const [first, second] = followers as [Follower, Follower];
  expect(countsOf(second).updates).toBe(countsOf(first).updates);
  for (const follower of followers) expectFollowed(countsOf(follower));
  if (pythonResult !== undefined) {
    expect(pythonResult.differences).toEqual([]);
    expectFollowed(pythonResult);
    const { updates, trades } = countsOf(first);
    expect(pythonResult).toMatchObject({ updates, trades });
  }
  await expectBooksOfOrders(world, flow.traders());
  flow.close();
  for (const follower of followers) await follower.close();
  await expectBalanced(reader);
  await expectEndsWell(world);
});

interface Counts {
  readonly updates: number;
  readonly trades: number;
  readonly compared: number;
  readonly states: number;
  readonly heartbeats: number;
}

function countsOf(follower: Follower): Counts {
  return {
    updates: follower.count(({ changes }) => changes),
    trades: [...follower.trades.values()].reduce((sum, { trades }) => sum + trades.length, 0),
    compared: follower.count(({ compared }) => compared),
    states: follower.count(({ comparedAt }) => comparedAt.size),
    heartbeats: follower.heartbeats,
  };
}

/** There was much to follow, and much was compared in the middle of it. */
function expectFollowed({ updates, trades, states }: Counts): void {
  expect(updates).toBeGreaterThan(50_000);
  expect(trades).toBeGreaterThan(5_000);
  expect(states).toBeGreaterThan(300);
}
