/**
 * Sends load over several connections and records everything the server sends: responses, order updates, book and trade
 * sequences. After a crash or a stop, `expectKept` checks a restarted server against the whole record.
 * Each order carries a unique client order id, so the test recognises an order that no client received word of.
 */
import assert from "node:assert/strict";
import { type Answer, Client, type OrderJson, type OwnFillJson, type PositionJson } from "../support/client.ts";
import type { Random } from "../support/random.ts";
import { notional } from "../support/reference.ts";
import type { TestServer } from "../support/server.ts";
import { type Frame, Socket } from "../support/socket.ts";
import { seedOf, type TestMarket, tokenOf } from "../support/world.ts";

/** The message for requests that were pending when the log or an engine failed. */
export const UNKNOWN = "trading has stopped: no response in time, check before you retry";

const BUY = 1;
const SELL = 2;
const SETS_AT_START = 200;
/** Further than any clock of a test is set. */
const FAR_MS = 10 * 86_400_000;
const READS = ["/me/fills", "/orders?status=all", "/wallet/transactions", "/wallet/balance", "/markets/1/trades"];
/** The fields of an order that only amends and decrements change. */
const FIXED = [
  ...["id", "client_order_id", "market_id", "outcome_id", "side", "price", "quantity", "type", "time_in_force"],
  ...["post_only", "self_trade_prevention", "expires_at", "created_at"],
] as const;
const IN_FORCE = ["gtc", "gtc", "ioc", "fok"].map((time_in_force) => ({ time_in_force }));
const isLive = ({ status }: OrderJson): boolean => status === "open" || status === "partially_filled";
const pickFixed = (order: object): object =>
  Object.fromEntries(FIXED.map((name) => [name, (order as Record<string, unknown>)[name]]));

/** Everything the server sent to one user. */
class Memory {
  readonly sent = new Set<string>();
  /** Orders as the 202 response described them. */
  readonly placed = new Map<number, OrderJson>();
  /** Cancels that the server accepted with 202. */
  readonly canceled = new Set<number>();
  readonly lastUpdates = new Map<number, OrderJson>();
  readonly fills = new Map<number, OrderJson["trades"][number]>();
  /** Placements that received 50300 or 50000; `undone` has the client order ids of the former, which had no effect. */
  readonly overloaded: { client_order_id: string }[] = [];
  readonly undone = new Set<string>();
  /** Placements that ended without a response, by client order id. */
  readonly open = new Map<string, object>();
  /** Orders that the server reported since the last check that it kept them. */
  readonly told = new Set<number>();
  splits = 0;
  sequence = 0;
}

interface TrafficOptions {
  readonly random: Random;
  readonly markets: readonly TestMarket[];
  readonly users: number;
  readonly connections: number;
}

export const TRAFFIC_MARKETS: readonly number[] = [2, 3, 2];
export const TRAFFIC_USERS = 4;
export const TRAFFIC_SEED = seedOf({ users: TRAFFIC_USERS, markets: TRAFFIC_MARKETS });

/** Traffic for a server that loaded TRAFFIC_SEED, or a seed that begins with it, into a new database. */
export function seededTraffic(random: Random): Traffic {
  let outcome = 0;
  const markets = TRAFFIC_MARKETS.map((count, i) => {
    const outcomes = Array.from({ length: count }, () => ++outcome);
    return { id: i + 1, slug: `market-${i}`, outcomes };
  });
  return new Traffic({ random, markets, users: TRAFFIC_USERS, connections: 2 });
}

export class Traffic {
  /** Requests that received a response, over all lives of the server. */
  answered = 0;
  /** Requests that `retry` resent after a restart. */
  retried = 0;
  /** Placements that ended without a response, by client order id. */
  readonly unanswered = new Set<string>();
  /** Responses other than success, by code. */
  readonly rejections = new Map<number, number>();
  /** Responses with 50000, by message. */
  readonly unknown = new Map<string, number>();
  private readonly options: TrafficOptions;
  private readonly memories: Memory[];
  private readonly bookSequences = new Map<number, number>();
  private readonly tradeSequences = new Map<number, number>();
  private sockets: Socket[] = [];
  private clients: Client[] = [];
  private loops: Promise<void>[] = [];
  private running = false;
  private life = 0;

  constructor(options: TrafficOptions) {
    this.options = options;
    this.memories = Array.from({ length: options.users }, () => new Memory());
  }

  /** Connects to `server` and starts the loops. The listening sockets connect first. */
  async start(server: TestServer): Promise<void> {
    const { users, connections, markets } = this.options;
    this.life++;
    this.running = true;
    const watcher = await Socket.open(server, null);
    this.sockets = [watcher];
    for (const market of markets) {
      await watcher.subscribe("book", market.id);
      await watcher.subscribe("trades", market.id);
    }
    for (let user = 0; user < users; user++) {
      this.sockets.push(await Socket.open(server, tokenOf(`user${user}`)));
      const client = new Client(server, tokenOf(`user${user}`), connections);
      this.clients.push(client);
      if (this.life === 1) await this.splitAll(client, user);
      for (let n = 0; n < connections; n++) this.loops.push(this.loop(client, user, n));
    }
  }

  /**
   * Resends the placements that received no response, one at a time. If the server had executed one, it repeats the
   * original response; otherwise it executes the placement now.
   */
  async retry(server: TestServer): Promise<void> {
    for (const [user, memory] of this.memories.entries()) {
      const client = new Client(server, tokenOf(`user${user}`));
      for (const [name, body] of memory.open) {
        const order = await placeAgain(client, name, body);
        if (order !== null) this.remember(memory, order);
        memory.open.delete(name);
        this.unanswered.delete(name);
        this.retried++;
      }
      client.close();
    }
  }

  /** Resolves when `answers` more requests have received a response. */
  async more(answers: number): Promise<void> {
    const enough = this.answered + answers;
    while (this.answered < enough && this.running) await new Promise((resolve) => setImmediate(resolve));
    if (!this.running) throw new Error("the loops ended");
  }

  /** Ends the loops, waits for pending requests, and records the frames that the sockets received. */
  async end(): Promise<void> {
    this.running = false;
    await Promise.all(this.loops);
    for (const client of this.clients) client.close();
    for (const socket of this.sockets) socket.socket.terminate();
    await Promise.all(this.sockets.map((socket) => socket.closed));
    this.hear();
    this.loops = [];
    this.clients = [];
    this.sockets = [];
  }

  /** Placements that received 50300 or 50000, by user. */
  overloaded(): readonly (readonly { client_order_id: string }[])[] {
    return this.memories.map(({ overloaded }) => overloaded);
  }

  /** Client order ids that the server accepted with 202. */
  answeredIds(): Set<string> {
    return new Set(this.memories.flatMap(({ placed }) => [...placed.values()].map((order) => order.client_order_id!)));
  }

  /** Checks the server against everything that earlier lives sent. Leaves nothing behind. */
  expectKept(server: TestServer): Promise<void> {
    return this.expectAllKept(server, (client, memory) => this.expectUserKept(client, memory));
  }

  /** Like `expectKept`, but checks only the orders reported since the last check. */
  expectRecentKept(server: TestServer): Promise<void> {
    return this.expectAllKept(server, (client, memory) => expectToldKept(client, memory));
  }

  private async expectAllKept(
    server: TestServer,
    expectUser: (client: Client, memory: Memory) => Promise<OrderJson[]>,
  ): Promise<void> {
    const live: OrderJson[] = [];
    for (const [user, memory] of this.memories.entries()) {
      const client = new Client(server, tokenOf(`user${user}`), 4);
      live.push(...(await expectUser(client, memory)));
      memory.told.clear();
      client.close();
    }
    const client = new Client(server, null);
    for (const { id, outcomes } of this.options.markets) {
      for (const outcome of outcomes) {
        const { sequence, bids, asks } = await client.book(id, outcome);
        assert(sequence >= (this.bookSequences.get(outcome) ?? 0));
        const resting = live.filter((order) => order.outcome_id === outcome);
        assert.deepEqual(bids, levelsOf(resting, BUY));
        assert.deepEqual(asks, levelsOf(resting, SELL));
      }
    }
    client.close();
  }

  private async splitAll(client: Client, user: number): Promise<void> {
    for (const market of this.options.markets) {
      await client.data("POST", "/wallet/split", { market_id: market.id, quantity: SETS_AT_START });
      this.memories[user]!.splits++;
    }
  }

  /** Sends one connection's requests, one at a time, until `end` or until the connection fails. */
  private async loop(client: Client, user: number, connection: number): Promise<void> {
    const name = `${this.life}.${user}.${connection}`;
    for (let n = 0; this.running; n++) {
      try {
        await this.step(client, user, `${name}.${n}`);
        this.answered++;
      } catch (error) {
        // Connections fail once the process is gone. The test reports any earlier error.
        if ((error as NodeJS.ErrnoException).code === undefined) throw error;
        return;
      }
    }
  }

  private async step(client: Client, user: number, clientOrderId: string): Promise<void> {
    const { random, markets } = this.options;
    const memory = this.memories[user]!;
    const market = random.pick(markets);
    const kind = random.next();
    if (kind < 0.2 && memory.placed.size > 0) return this.cancel(client, memory);
    if (kind < 0.25) {
      const body = { market_id: market.id, quantity: random.integer(1, 3) };
      const answer = await client.request("POST", "/wallet/split", { body });
      if (answer.status === 200) memory.splits++;
      else this.count(answer);
      return;
    }
    if (kind < 0.35) {
      this.count(await client.request("GET", random.pick(READS)));
      return;
    }
    const even = Math.floor(10_000 / market.outcomes.length);
    const body = {
      market_id: market.id,
      outcome_id: random.pick(market.outcomes),
      side: random.pick([BUY, SELL]),
      price: even + random.integer(-5, 5) * 10,
      quantity: random.integer(1, 6),
      client_order_id: clientOrderId,
      ...random.pick([...IN_FORCE, { time_in_force: "gtd", expires_at: Date.now() + FAR_MS }]),
      self_trade_prevention: random.pick(["cancel_taker", "cancel_maker", "cancel_both"]),
    };
    memory.sent.add(clientOrderId);
    memory.open.set(clientOrderId, body);
    this.unanswered.add(clientOrderId);
    const answer = await client.request<OrderJson>("POST", "/orders", { body });
    memory.open.delete(clientOrderId);
    this.unanswered.delete(clientOrderId);
    if (answer.status === 202) this.remember(memory, answer.data);
    else this.count(answer);
    if (answer.code === 50300 || answer.code === 50000) memory.overloaded.push(body);
    if (answer.code === 50300) memory.undone.add(clientOrderId);
  }

  private async cancel(client: Client, memory: Memory): Promise<void> {
    const id = this.options.random.pick([...memory.placed.keys()].slice(-40));
    const answer = await client.request("DELETE", `/orders/${id}`);
    if (answer.status === 202) {
      memory.canceled.add(id);
      memory.told.add(id);
    } else this.count(answer);
  }

  private remember(memory: Memory, order: OrderJson): void {
    memory.placed.set(order.id, order);
    memory.told.add(order.id);
  }

  private count({ code, msg }: Answer): void {
    if (code !== 0) this.rejections.set(code, (this.rejections.get(code) ?? 0) + 1);
    if (code === 50000) this.unknown.set(msg, (this.unknown.get(msg) ?? 0) + 1);
  }

  /** Records the frames of this life. Sequences have no gap within it and never fall behind earlier lives. */
  private hear(): void {
    const [watcher, ...users] = this.sockets;
    for (const { event, sequence, data } of watcher!.frames as Frame<{ outcome_id: number; market_id: number }>[]) {
      if (event === "book.snapshot") this.follow(this.bookSequences, data.outcome_id, sequence, true);
      else if (event === "book.updated") this.follow(this.bookSequences, data.outcome_id, sequence, false);
      else if (event === "trade.created") this.follow(this.tradeSequences, data.market_id, sequence, null);
    }
    this.heardTrades.clear();
    for (const [user, socket] of users.entries()) {
      const memory = this.memories[user]!;
      for (const [i, { sequence, data }] of socket.of<OrderJson>("order.updated").entries()) {
        if (i === 0) assert(sequence > memory.sequence);
        else assert.equal(sequence, memory.sequence + 1);
        memory.sequence = sequence;
        memory.lastUpdates.set(data.id, data);
        memory.told.add(data.id);
        for (const fill of data.trades) memory.fills.set(fill.id, fill);
      }
    }
  }

  private readonly heardTrades = new Set<number>();

  /** @param first whether a life starts here; null if only the channel's first message of this life shows it */
  private follow(sequences: Map<number, number>, key: number, sequence: number, first: boolean | null): void {
    const last = sequences.get(key) ?? 0;
    const starts = first ?? !this.heardTrades.has(key);
    if (first === null) this.heardTrades.add(key);
    if (!starts) assert.equal(sequence, last + 1);
    else if (first === null) assert(sequence > last);
    else assert(sequence >= last);
    sequences.set(key, sequence);
  }

  /** Returns the user's live orders. */
  private async expectUserKept(client: Client, memory: Memory): Promise<OrderJson[]> {
    const orders = new Map<number, OrderJson>();
    for (const order of await client.all<OrderJson>("/orders?status=all")) orders.set(order.id, order);
    for (const { client_order_id } of orders.values()) {
      assert(memory.sent.has(client_order_id!));
      assert(!memory.undone.has(client_order_id!), `${client_order_id}: what was answered with 50300 had no effect`);
    }
    for (const id of [...memory.placed.keys(), ...memory.lastUpdates.keys()])
      expectOrderKept(memory, id, orders.get(id));
    const fills = await client.all<OwnFillJson>("/me/fills");
    const byId = new Map(fills.map((fill) => [fill.id, fill]));
    for (const [id, seen] of memory.fills) assert.deepEqual({ ...byId.get(id), ...seen }, byId.get(id), `fill ${id}`);
    await this.expectOrdersOneByOne(client, orders, fills);
    const split = await client.all("/wallet/transactions?type=split");
    assert(split.length >= memory.splits);
    const live = [...orders.values()].filter(isLive);
    assert.deepEqual(await client.all("/orders"), live);
    await expectHolds(client, live);
    return live;
  }

  /** Reads some of the orders by GET /orders/:id and expects the same as in the list, with their fills. */
  private async expectOrdersOneByOne(
    client: Client,
    orders: ReadonlyMap<number, OrderJson>,
    fills: readonly OwnFillJson[],
  ): Promise<void> {
    const ids = [...orders.keys()];
    for (let n = 0; n < 15 && ids.length > 0; n++) {
      const id = this.options.random.pick(ids);
      const order = await client.order(id);
      assert.deepEqual(order, { ...orders.get(id), trades: order.trades });
      const own = fills.filter((fill) => fill.order_id === id).reverse();
      assert.deepEqual(
        order.trades.map((fill) => fill.id),
        own.map((fill) => fill.id),
      );
      assert.equal(
        order.trades.reduce((sum, { quantity }) => sum + quantity, 0),
        order.filled,
      );
    }
  }
}

/** Checks that every response and update about an order is, or was, true. */
function expectOrderKept(memory: Memory, id: number, order: OrderJson | undefined): void {
  assert(order !== undefined, `order ${id} is there`);
  const answered = memory.placed.get(id);
  if (answered !== undefined) assert.deepEqual(pickFixed(order), pickFixed(answered));
  const seen = memory.lastUpdates.get(id);
  if (seen !== undefined) {
    assert(order.filled >= seen.filled, `order ${id}: what was filled stays filled`);
    if (!isLive(seen)) assert.deepEqual({ ...order, trades: [] }, { ...seen, trades: [] });
  }
  if (memory.canceled.has(id)) assert.deepEqual([order.status, order.reason], ["canceled", "user"], `order ${id}`);
}

/** Returns the user's live orders. */
async function expectToldKept(client: Client, memory: Memory): Promise<OrderJson[]> {
  await Promise.all(
    [...memory.told].map(async (id) => {
      const order = await client.order(id);
      expectOrderKept(memory, id, order);
      const fills = new Map(order.trades.map((fill) => [fill.id, fill]));
      for (const fill of memory.lastUpdates.get(id)?.trades ?? []) assert.deepEqual(fills.get(fill.id), fill);
      assert.equal(
        order.trades.reduce((sum, { quantity }) => sum + quantity, 0),
        order.filled,
      );
    }),
  );
  const live = await client.all<OrderJson>("/orders");
  for (const { client_order_id } of live) assert(memory.sent.has(client_order_id!));
  await expectHolds(client, live);
  return live;
}

/** Resends a placement that received no response. Returns null if the server rejects it: it had no effect before. */
export async function placeAgain(client: Client, name: string, body: object): Promise<OrderJson | null> {
  const path = `/orders?status=all&client_order_id=${name}`;
  const before = await client.all<OrderJson>(path);
  const { status, code, msg, data } = await client.request<OrderJson>("POST", "/orders", { body });
  const after = await client.all<OrderJson>(path);
  assert(before.length <= 1 && after.length <= 1, `${name}: nothing twice`);
  if (before.length === 1) assert.equal(status, 202, `${name} is there, and its repeat: ${code} ${msg}`);
  const ids = status === 202 ? [data.id] : [];
  assert.deepEqual(
    after.map(({ id }) => id),
    ids,
    name,
  );
  return status === 202 ? data : null;
}

/** Checks that holds derive from live orders and match the balance and positions. */
export async function expectHolds(client: Client, live: readonly OrderJson[]): Promise<void> {
  const buys = live.filter(({ side }) => side === BUY);
  const { available, held, total } = await client.balance();
  assert.equal(
    held,
    buys.reduce((sum, { price, remaining }) => sum + notional(price, remaining), 0),
  );
  assert.equal(available + held, total);
  assert(available >= 0);
  for (const { outcome_id, quantity, held: shares } of await client.all<PositionJson>("/me/positions")) {
    const sells = live.filter((order) => order.side === SELL && order.outcome_id === outcome_id);
    assert.equal(
      shares,
      sells.reduce((sum, { remaining }) => sum + remaining, 0),
    );
    assert(shares <= quantity);
  }
}

/** Returns price levels as [price, shares], best first. */
export function levelsOf(live: readonly OrderJson[], side: number): [number, number][] {
  const levels = new Map<number, number>();
  for (const order of live) {
    if (order.side === side) levels.set(order.price, (levels.get(order.price) ?? 0) + order.remaining);
  }
  return [...levels].sort(([a], [b]) => (side === BUY ? b - a : a - b));
}
