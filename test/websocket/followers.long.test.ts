/**
 * Independent clients follow the public channels: `ws`, `websocket` and Python's `websockets`. A snapshot with its updates
 * must equal the REST book at the same sequence, at random moments of a flow and at its end, and the trades must equal
 * those of REST. One flow is recorded (../shared/data/betfair, if present), one is random; TEST_SEED repeats the choices,
 * not the timing.
 */
import { afterEach, expect, test } from "vitest";
import { eventually, expectBalanced, expectEndsWell } from "../support/checks.ts";
import type { BookJson, Client, OrderJson, TradeJson } from "../support/client.ts";
import { Random } from "../support/random.ts";
import type { TestServer } from "../support/server.ts";
import type { Socket } from "../support/socket.ts";
import { BUY, SELL } from "../support/terms.ts";
import { type TestMarket, World } from "../support/world.ts";
import { type Dial, dialWebsocket, dialWs, Follower } from "./follower.ts";
import { PythonFollower, pythonMissing } from "./python-follower.ts";
import { RandomTrader } from "./random-flow.ts";
import { RecordedFlow, readRecording, tradersFor } from "./recorded-flow.ts";

const recording = readRecording();
const python = pythonMissing();
/** Commits don't wait for the disk: no test here crashes the server. */
const ENVIRONMENT = { ENGINE_THREADS: "2", DURABILITY: "off" };
/** The number of messages that another process may lag: a fraction of the sockets' buffers. */
const MAX_BEHIND = 5_000;

/** A maker's request gets it when the order has been filled in the meantime. */
const ORDER_FINISHED = 40900;
/** For a busy machine; a run without faults never waits for it. */
const TIMEOUT_MS = 240_000;

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

/** Compares followers with REST: a random book, or all of a market, one request at a time. */
class Comparisons {
  readonly followers: Set<Follower>;
  private readonly on: World;
  private readonly random: Random;
  private readonly reader: Client;
  private running: Promise<void> | null = null;
  private fault: unknown = null;

  constructor(on: World, followers: readonly Follower[], random: Random) {
    this.on = on;
    this.followers = new Set(followers);
    this.random = random;
    this.reader = on.anonymous();
  }

  /** Compares, unless a comparison is in progress. The flow calls it, so that every machine makes many comparisons. */
  start(): void {
    this.running ??= this.compare()
      .catch((error) => {
        this.fault ??= error;
      })
      .finally(() => {
        this.running = null;
      });
  }

  /** Waits for the last comparison. @throws Error the first failure of any */
  async end(): Promise<void> {
    await this.running;
    if (this.fault !== null) throw this.fault;
  }

  private async compare(): Promise<void> {
    const { random, reader } = this;
    const { id, outcomes } = random.pick(this.on.markets);
    const books = random.chance(0.2) ? await marketBook(reader, id) : [await reader.book(id, random.pick(outcomes))];
    for (const follower of this.followers) follower.compare(books);
  }
}

const differencesOf = (followers: readonly Follower[]): string[] => followers.flatMap(({ differences }) => differences);

/** The books must equal the remaining quantities of the traders' orders. */
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

test.skipIf(recording === null)(
  "independent clients follow the recorded flow without a difference from REST",
  async () => {
    const random = Random.printed("comparisons of the recorded flow");
    const { markets, rows, hours, busiestHour } = recording!;
    world = await World.start({ users: 0, named: tradersFor(recording!), markets, env: ENVIRONMENT });
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
      comparisons.start();
      await pythonFollower?.had(followers[0]!.messages - MAX_BEHIND);
    });
    await flow.run();
    const seconds = (Date.now() - started) / 1_000;
    await comparisons.end();
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
    expect([...flow.refused.keys()].filter((code) => code !== ORDER_FINISHED)).toEqual([]);
    expect(flow.operations).toBeGreaterThan(rows.length);
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
  },
  TIMEOUT_MS,
);

const TRADERS = 10;
const STEPS = 250;
const SETS = 300;
const VISITORS = 3;
const DIALS: readonly Dial[] = [dialWs("json"), dialWs("msgpack"), dialWebsocket];

test(
  "followers of a random flow that stay, resubscribe, leave and return never differ from REST",
  async () => {
    const random = Random.printed("random flow");
    world = await World.start({ users: TRADERS, markets: [2, 3, 5], env: ENVIRONMENT });
    const { server, markets } = world;
    const ids = markets.map(({ id }) => id);
    const followers = [
      await Follower.open(server, "json", dialWs("json")),
      await Follower.open(server, "msgpack", dialWs("msgpack")),
    ];
    for (const follower of followers) {
      await follower.subscribe("trades", ...ids);
      await follower.subscribe("book", ...ids);
    }
    const comparisons = new Comparisons(world, followers, random);
    const users = Array.from({ length: TRADERS }, () => world!.user());
    for (const user of users) for (const market of markets) await world.split(user, market, SETS);
    const sockets = await Promise.all(users.map((user) => world!.socket(user)));
    let trading = TRADERS;
    const trade = async (socket: Socket): Promise<void> => {
      const trader = new RandomTrader(socket, markets, random);
      for (let step = 0; step < STEPS; step++) {
        await trader.step();
        comparisons.start();
      }
      trading--;
    };
    const visitors: Follower[] = [];
    const visit = async (): Promise<void> => {
      while (trading > 0) visitors.push(await visitOnce(server, comparisons, random, markets));
    };
    await Promise.all([...sockets.map(trade), ...Array.from({ length: VISITORS }, visit)]);
    await comparisons.end();
    await eventually(async () => {
      for (const user of users)
        expect((await user.all<OrderJson>("/orders")).map(expiryOf)).not.toContainEqual(expect.any(Number));
    });
    const reader = world.anonymous();
    for (const follower of followers) await follower.finish(reader);
    say(`${visitors.length} visitors: ${JSON.stringify(sumOf(visitors.map(countsOf)))}`);
    for (const follower of followers) say(`${follower.name}: ${JSON.stringify(countsOf(follower))}`);

    expect(differencesOf([...followers, ...visitors])).toEqual([]);
    for (const follower of followers) {
      expect(countsOf(follower).updates).toBeGreaterThan(1_000);
      expect(countsOf(follower).states).toBeGreaterThan(200);
      for (const { id } of markets) expectAllMatchTypes(follower.trades.get(id)!.trades);
    }
    const visited = sumOf(visitors.map(countsOf));
    expect(visited.updates).toBeGreaterThan(500);
    expect(visited.states).toBeGreaterThan(50);
    expect(visitors.reduce((sum, { repeatedSnapshots }) => sum + repeatedSnapshots, 0)).toBeGreaterThan(50);
    await expectBooksOfOrders(world, users);
    for (const each of [...sockets, ...followers]) await each.close();
    await expectBalanced(reader);
    await expectEndsWell(world);
  },
  TIMEOUT_MS,
);

const expiryOf = ({ expires_at }: OrderJson): number | null => expires_at;

/** Connects during the flow, repeats some subscriptions, leaves a book, returns to it, and disconnects. */
async function visitOnce(
  server: TestServer,
  comparisons: Comparisons,
  random: Random,
  markets: readonly TestMarket[],
): Promise<Follower> {
  const visitor = await Follower.open(server, "visitor", random.pick(DIALS));
  const chosen = markets.filter(() => random.chance(0.6));
  const market = random.pick(chosen.length === 0 ? markets : chosen);
  const ids = [market, ...chosen.filter((each) => each !== market)].map(({ id }) => id);
  comparisons.followers.add(visitor);
  await visitor.subscribe("book", ...ids);
  if (random.chance(0.5)) await visitor.subscribe("trades", ...ids);
  for (let n = random.integer(1, 10); n > 0; n--) {
    await visitor.subscribe("book", random.pick(ids));
    if (!random.chance(0.3)) continue;
    const outcome = random.pick([undefined, ...market.outcomes]);
    await visitor.unsubscribe(market.id, outcome);
    await visitor.fence();
    await visitor.subscribe("book", market.id);
  }
  await visitor.fence();
  comparisons.followers.delete(visitor);
  await visitor.close();
  return visitor;
}

function expectAllMatchTypes(trades: readonly TradeJson[]): void {
  expect(new Set(trades.map(({ match_type }) => match_type))).toEqual(new Set(["direct", "mint", "merge"]));
}

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

function sumOf(counts: readonly Counts[]): Counts {
  const sum = { updates: 0, trades: 0, compared: 0, states: 0, heartbeats: 0 };
  for (const each of counts) for (const name of Object.keys(sum) as (keyof Counts)[]) sum[name] += each[name];
  return sum;
}

/** The flow had many changes, and many comparisons happened during it. */
function expectFollowed({ updates, trades, states }: Counts): void {
  expect(updates).toBeGreaterThan(5_000);
  expect(trades).toBeGreaterThan(2_000);
  expect(states).toBeGreaterThan(200);
}
