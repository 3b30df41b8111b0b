/**
 * Orders in batches through takeovers: two clients place them over WebSockets at whichever box is active, and send again what
 * got no response. In the end both boxes have every order once, with the id that was acknowledged, in the order of sending.
 */
import assert from "node:assert/strict";
import { setTimeout as delay } from "node:timers/promises";
import { describe, expect, onTestFinished, test } from "vitest";
import { WebSocket } from "ws";
import { freePort } from "../../bench/support/free-port.ts";
import { openReadOnly } from "../../engine/util/wal-database.ts";
import { tablesPath } from "../../server/util/data-folder.ts";
import { keyed, paired, SYNC_MS, TestNodes, tableHashes } from "../replication/cluster.ts";
import { hashesOf, journalBodies, NO_NATS } from "../replication/streamed-log.ts";
import { admin } from "../support/admin.ts";
import { eventually } from "../support/checks.ts";
import { API_BASE } from "../support/client.ts";
import { EFFORT } from "../support/projects.ts";
import { TestServer, temporaryFolder } from "../support/server.ts";
import { BUY, SELL } from "../support/trading.ts";
import { PUBLIC_URL, type TestMarket, tokenOf, USDC, World } from "../support/world.ts";

/** EFFORT=50 places a million. */
const ORDERS = 20_000 * EFFORT;
const TAKEOVERS = 1 + Math.ceil(EFFORT / 2);
const BATCH = 50;
const IN_FLIGHT = 4;
const RETRY_MS = 20;
const TAKEOVER_MS = 20_000;

interface Reply {
  readonly id: number;
  readonly code: number;
  readonly data: {
    readonly results: readonly { readonly code: number; readonly data: { readonly id: number } | null }[];
  };
}

/** Places orders with the client order ids 0, 1, 2, ... until it has all of them acknowledged. */
class Placer {
  /** By client order id; 0 before the response. */
  readonly ids: Float64Array;
  readonly sentTwice = new Set<number>();
  acknowledged = 0;
  /** When the last response came, and the longest time without one, ms. */
  private respondedAt = performance.now();
  longestGap = 0;
  private readonly ports: readonly number[];
  private readonly token: string;
  private readonly terms: object;
  private next = 0;
  private again: number[] = [];
  /** It places no orders from this one on. */
  private limit = 0;
  private socket: WebSocket | null = null;
  private send: () => void = () => {};
  private isStopping = false;

  constructor(ports: readonly number[], token: string, orders: number, terms: object) {
    this.ports = ports;
    this.token = token;
    this.ids = new Float64Array(orders);
    this.terms = terms;
  }

  /** Resolves once all are acknowledged. @throws AssertionError where a box contradicts the other or rejects an order */
  async run(): Promise<void> {
    for (let at = 0; this.acknowledged < this.ids.length && !this.isStopping; at++) {
      await this.placeAt(this.ports[at % this.ports.length]!);
      await delay(RETRY_MS);
    }
  }

  /** Lets it place orders below this one. */
  allow(limit: number): void {
    this.limit = limit;
    this.send();
  }

  stop(): void {
    this.isStopping = true;
    this.socket?.terminate();
  }

  /** At one box, for as long as it takes orders. */
  private async placeAt(port: number): Promise<void> {
    const socket = new WebSocket(`ws://127.0.0.1:${port}${API_BASE}/ws?token=${this.token}`, {
      perMessageDeflate: false,
    });
    const open = new Map<number, readonly number[]>();
    let fault: unknown = null;
    const send = (): void => {
      while (socket.readyState === WebSocket.OPEN && open.size < IN_FLIGHT) {
        const names = this.take();
        if (names.length === 0) return;
        open.set(names[0]!, names);
        const operations = names.map((name) => ({ op: "place", ...this.terms, client_order_id: String(name) }));
        socket.send(JSON.stringify({ op: "order.batch", id: names[0], data: { operations } }));
      }
    };
    this.socket = socket;
    this.send = send;
    socket.on("open", send);
    socket.on("error", () => {});
    socket.on("message", (bytes: Buffer) => {
      const reply = JSON.parse(bytes.toString()) as Reply;
      const names = open.get(reply.id);
      if (names === undefined) return;
      open.delete(reply.id);
      try {
        if (!this.record(names, reply)) socket.close();
        else if (this.acknowledged === this.ids.length) socket.close();
        else send();
      } catch (error) {
        fault = error;
        socket.terminate();
      }
    });
    await new Promise<void>((resolve) => socket.once("close", () => resolve()));
    for (const names of open.values()) this.repeat(names);
    if (fault !== null) throw fault;
  }

  private take(): number[] {
    if (this.again.length > 0) return this.again.splice(0, BATCH);
    const count = Math.max(0, Math.min(BATCH, this.limit - this.next));
    const names = Array.from({ length: count }, (_, i) => this.next + i);
    this.next += names.length;
    return names;
  }

  private repeat(names: readonly number[]): void {
    for (const name of names) this.sentTwice.add(name);
    this.again.push(...names);
  }

  /** Returns false where the box takes no orders. */
  private record(names: readonly number[], { code, data }: Reply): boolean {
    if (code !== 0) {
      assert([50300, 50000].includes(code), `a batch is refused with ${code}`);
      this.repeat(names);
      return false;
    }
    const now = performance.now();
    this.longestGap = Math.max(this.longestGap, now - this.respondedAt);
    this.respondedAt = now;
    const open = names.filter((name, i) => {
      const { code, data: order } = data.results[i]!;
      if (code !== 0) assert([50300, 50000].includes(code), `an order is rejected with ${code}`);
      if (order === null) return true;
      this.ids[name] = order.id;
      this.acknowledged++;
      return false;
    });
    this.repeat(open);
    return open.length === 0;
  }

  takeGap(): number {
    const gap = this.longestGap;
    this.longestGap = 0;
    return gap;
  }
}

/** Every order is there once, with the acknowledged id, and those that were sent once in the order of sending. */
function expectAll(dataDir: string, user: number, { ids, sentTwice }: Placer): void {
  const db = openReadOnly(tablesPath(dataDir));
  const rows = db.prepare("SELECT client_order_id, id FROM orders WHERE user_id = ?").raw().all(user) as [
    string,
    number,
  ][];
  db.close();
  expect(rows.length).toBe(ids.length);
  for (const [name, id] of rows) assert.equal(ids[Number(name)], id, `the id of ${name}`);
  let last = 0;
  for (const [name, id] of ids.entries()) {
    if (sentTwice.has(name)) continue;
    assert(id > last, `order ${name} comes behind the one before it`);
    last = id;
  }
}

describe.skipIf(NO_NATS)("a pair under load", () => {
  const nodes = TestNodes.use();
  test("no acknowledged order is lost, doubled or out of sequence", {
    timeout: 120_000 + TAKEOVERS * 60_000 + ORDERS,
  }, async () => {
    const boxes = ["a", "b"].map((name) => ({ name, dataDir: temporaryFolder() }));
    const ports = [await freePort(), await freePort()];
    const settings = (i: number): Record<string, string> =>
      nodes.settings("orders", {
        STANDBY_ACK: "standby",
        STANDBY_TAKEOVER: "auto",
        STANDBY_BOX: boxes[i]!.name,
        STANDBY_NATS: nodes.cluster.urls(i),
        PORT: String(ports[i]),
        PUBLIC_URL,
      });
    const start = (i: number): TestServer => {
      const server = TestServer.spawn({ dataDir: boxes[i]!.dataDir, env: settings(i) });
      server.port = ports[i]!;
      onTestFinished(() => server.kill());
      return server;
    };
    const shares = ORDERS / 2;
    const deposit = (shares + 1) * USDC;
    // One of them may be far ahead of the other.
    const terms = { daily_limit: 2 * deposit, max_live_orders: 200_000 };
    const named = { buyer: { deposit, terms }, seller: { deposit, terms } };
    const world = await World.start({ users: 0, named, markets: [2], dataDir: boxes[0]!.dataDir, env: settings(0) });
    onTestFinished(() => world.server.kill());
    const market: TestMarket = world.market();
    await world.split(world.client("seller"), market, shares);
    const servers = [world.server, start(1)];
    await paired(servers[0]!, SYNC_MS);
    await keyed(servers[1]!);

    const place = (name: string, side: number): Placer => {
      const [outcome_id] = market.outcomes;
      const terms = { market_id: market.id, outcome_id, side, price: 100, quantity: 1 };
      return new Placer(ports, tokenOf(name), shares, terms);
    };
    const placers = [place("buyer", BUY), place("seller", SELL)];
    const running = Promise.all(placers.map((placer) => placer.run()));
    onTestFinished(() => {
      for (const placer of placers) placer.stop();
    });
    running.catch(() => {});
    const until = async (isThere: () => boolean): Promise<void> => {
      while (!isThere()) await Promise.race([delay(RETRY_MS), running]);
    };
    const took: number[] = [];
    let active = 0;
    const part = Math.floor(shares / (TAKEOVERS + 1));
    for (let takeover = 1; takeover <= TAKEOVERS; takeover++) {
      // Some are left for the box that takes over: a client waits for nothing else.
      const limit = Math.min(shares, Math.floor((takeover + 0.5) * part));
      for (const placer of placers) placer.allow(limit);
      await until(() => placers.some((placer) => placer.acknowledged >= takeover * part));
      for (const placer of placers) placer.takeGap();
      await servers[active]!.kill();
      const before = placers.map((placer) => placer.acknowledged);
      for (const count of before) expect(count, "orders are under way at the kill").toBeLessThan(limit);
      await until(() => placers.every((placer, i) => placer.acknowledged > before[i]!));
      took.push(Math.round(Math.max(...placers.map((placer) => placer.takeGap()))));
      servers[active] = start(active);
      active = 1 - active;
      await paired(servers[active]!, SYNC_MS);
      await keyed(servers[1 - active]!);
    }
    for (const placer of placers) placer.allow(shares);
    await running;
    took.sort((a, b) => a - b);
    console.log(
      `${ORDERS} orders through ${TAKEOVERS} takeovers, without a response for ${took[took.length >> 1]} ms at p50, ` +
        `${took.at(-1)} ms at most; ${placers.reduce((sum, { sentTwice }) => sum + sentTwice.size, 0)} sent again`,
    );
    expect(took.at(-1)).toBeLessThan(TAKEOVER_MS);
    const [a, b] = boxes.map(({ dataDir }) => dataDir) as [string, string];
    await eventually(async () => {
      expect(hashesOf(journalBodies(b))).toEqual(hashesOf(journalBodies(a)));
      expect(tableHashes(b)).toEqual(tableHashes(a));
    }, SYNC_MS);
    // What the active box writes as it stops, it has alone.
    await servers[1 - active]!.stop();
    await servers[active]!.stop();
    for (const dataDir of [a, b]) {
      expect((await admin(dataDir, "verify")).code).toBe(0);
      for (const [i, placer] of placers.entries()) expectAll(dataDir, i + 1, placer);
    }
  });
});
