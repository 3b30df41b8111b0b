/**
 * Clients that are too many or too slow: readers that don't read, slow senders, thousands of idle connections, garbage.
 * Other clients are not affected, and money stays exact. A full command ring is full-ring.long.test.ts; endless bodies
 * and pipelined requests are test/http/request-streams.test.ts.
 */
import { execFileSync, spawnSync } from "node:child_process";
import { randomBytes } from "node:crypto";
import { readdirSync, readFileSync } from "node:fs";
import { connect, type Socket as TcpSocket } from "node:net";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { eventually, expectBalanced, expectSoundDatabase } from "../support/checks.ts";
import type { Client, OrderJson } from "../support/client.ts";
import { Random } from "../support/random.ts";
import type { TestServer } from "../support/server.ts";
import { BUY, terms } from "../support/terms.ts";
import { head, Wire } from "../support/wire.ts";
import { World } from "../support/world.ts";

/** The slowest order of a client beside the load: usually milliseconds, and this much on a busy machine. */
const SLOWEST_ORDER_MS = 2_000;

async function ended(world: World): Promise<void> {
  await expectBalanced(world.anonymous());
  expect(world.server.log.filter(({ level }) => level >= 50)).toEqual([]);
  await world.stop();
  expectSoundDatabase(world.server.dataDir);
}

// ---------------------------------------------------------------- ten thousand connections

const IDLE = 10_000;
const hasPrlimit = spawnSync("prlimit", ["--version"]).status === 0;

/** Raises a process's limit of open files; returns false where that is not allowed. */
function allowFiles(pid: number, count: number): boolean {
  const [, soft, hard] = /^Max open files\s+(\S+)\s+(\S+)/m.exec(readFileSync(`/proc/${pid}/limits`, "utf8"))!;
  if (soft === "unlimited" || Number(soft) >= count) return true;
  if (!hasPrlimit || (hard !== "unlimited" && Number(hard) < count)) return false;
  execFileSync("prlimit", ["--pid", String(pid), `--nofile=${count}:`]);
  return true;
}

const filesOf = ({ pid }: TestServer): number => readdirSync(`/proc/${pid}/fd`).length;
const residentMiB = ({ pid }: TestServer): number =>
  Number(/^VmRSS:\s+(\d+) kB/m.exec(readFileSync(`/proc/${pid}/status`, "utf8"))![1]) / 1_024;

/** Opens connections, two hundred at a time; with a request, each waits for the first bytes of its response. */
async function openMany(port: number, count: number, request: string | null): Promise<TcpSocket[]> {
  const sockets: TcpSocket[] = [];
  const open = (): Promise<void> =>
    new Promise((resolve, reject) => {
      const socket = connect(port, "127.0.0.1", () => {
        if (request === null) resolve();
        else socket.write(request);
      });
      sockets.push(socket);
      socket.on("error", reject);
      let answered = false;
      socket.on("data", (chunk) => {
        // After the upgrade only pings arrive: each gets an empty pong.
        if (answered) socket.write(Buffer.from([0x8a, 0x80, 0, 0, 0, 0]));
        else if (chunk.toString("latin1", 0, 12) === "HTTP/1.1 101") resolve();
        else reject(new Error(chunk.toString("latin1")));
        answered = true;
      });
    });
  for (let n = 0; n < count; n += 200) await Promise.all(Array.from({ length: Math.min(200, count - n) }, open));
  return sockets;
}

const canHaveMany = allowFiles(process.pid, IDLE + 2_000);
if (!canHaveMany) process.stdout.write(`skipped: no process may have ${IDLE} connections here (ulimit -n)\n`);

interface Idle {
  readonly world: World;
  readonly user: Client;
  readonly filesBefore: number;
}

/** Connections without a request, opened before the first test: the last tests check their end. */
let idle: Idle & { readonly measured: Measured; readonly since: number; readonly gone: Promise<unknown> };

interface Measured {
  readonly files: number;
  readonly grownMiB: number;
  readonly slowestMs: number;
}

/** Places and cancels some orders; returns the time of the slowest. */
async function trade({ world, user }: Idle): Promise<number> {
  let slowest = 0;
  for (let n = 0; n < 50; n++) {
    const since = performance.now();
    const { id } = await user.place(terms(world.markets[0]!, 0, BUY, 100, 1));
    await user.cancel(id);
    slowest = Math.max(slowest, performance.now() - since);
  }
  return slowest;
}

/** Measures the cost of that many connections. The server has accepted all of them once it has processed the orders. */
async function openIdle(on: Idle, name: string, request: string | null): Promise<Measured & { sockets: TcpSocket[] }> {
  const { server } = on.world;
  const before = residentMiB(server);
  const since = Date.now();
  const sockets = await openMany(server.port, IDLE, request);
  const slowestMs = await trade(on);
  const [files, grownMiB] = [filesOf(server) - on.filesBefore, residentMiB(server) - before];
  const cost = `${grownMiB.toFixed(1)} MiB, slowest order ${slowestMs.toFixed(1)} ms`;
  process.stdout.write(`${IDLE} idle ${name} connections in ${Date.now() - since} ms: ${cost}\n`);
  return { sockets, files, grownMiB, slowestMs };
}

beforeAll(async () => {
  if (!canHaveMany) return;
  const world = await World.start({ users: 1, markets: [2] });
  expect(allowFiles(world.server.pid, IDLE + 2_000)).toBe(true);
  const user = world.user();
  await trade({ world, user, filesBefore: 0 });
  const on = { world, user, filesBefore: filesOf(world.server) };
  const since = Date.now();
  const { sockets, ...measured } = await openIdle(on, "HTTP", null);
  const gone = Promise.all(sockets.map((socket) => new Promise((resolve) => socket.once("close", resolve))));
  for (const socket of sockets) socket.removeAllListeners("error").on("error", () => {});
  idle = { ...on, since, measured, gone };
});
afterAll(async () => {
  if (canHaveMany) await ended(idle.world);
});

// ---------------------------------------------------------------- one server for the other tests

let world: World;
/** Started first and checked last: each waits until the server cuts it off. */
const slow: { name: string; wire: Wire; timer: NodeJS.Timeout; since: number }[] = [];

/** Sends `text` byte by byte without ever finishing it. */
function sendSlowly(name: string, text: string, ready: number): void {
  const wire = new Wire(world.server.port);
  wire.socket.write(text.slice(0, ready));
  let at = ready;
  const timer = setInterval(() => wire.socket.write(text[at++ % text.length]!), 300);
  void wire.ended.then(() => clearInterval(timer));
  slow.push({ name, wire, timer, since: Date.now() });
}

beforeAll(async () => {
  world = await World.start({ users: 30, named: { slow: {} }, markets: Array<number>(12).fill(2) });
  const user = world.client("slow");
  const body = " ".repeat(1_000) + JSON.stringify(terms(world.market(), 0, BUY, 100, 1));
  const start = head("POST", "/orders", user.token, [`Content-Length: ${body.length}`]);
  sendSlowly("a body", start + body, start.length);
  const chunked = head("POST", "/orders", user.token, ["Transfer-Encoding: chunked"]);
  sendSlowly("a chunked body", `${chunked}3e8\r\n${body}`, chunked.length + 5);
  sendSlowly("a head", `GET /api/v1/time HTTP/1.1\r\nX-Padding: ${"x".repeat(1_000)}`, 40);
});
afterAll(async () => {
  for (const { wire, timer } of slow) {
    clearInterval(timer);
    wire.socket.destroy();
  }
  await ended(world);
});

describe("an unread private stream", () => {
  test("an unread private stream is closed with 4408; its tied orders end, and others trade as fast as before", async () => {
    const [user, other, market] = [world.user(), world.user(), world.market()];
    const [unread, listener, active] = [await world.socket(user), await world.socket(user), await world.socket(other)];
    await unread.tie();
    const tied = await unread.data<OrderJson>("order.place", terms(market, 1, BUY, 10, 1));
    await unread.fence();
    unread.socket.pause();
    const operations = Array.from({ length: 50 }, (_, n) => ({ op: "place", ...terms(market, 0, BUY, 1 + n, 1) }));
    let cut = false;
    const cutOff = listener
      .until(() => listener.of<OrderJson>("order.updated").find(({ data }) => data.id === tied.id && data.reason !== null), "the tied order's end", 30_000) // biome-ignore format: one line
      .finally(() => {
        cut = true;
      });
    const flood = async (): Promise<number> => {
      let batches = 0;
      for (; !cut && batches < 4_000; batches++) await user.data("POST", "/orders/batch", { operations });
      return batches;
    };
    const trade = async (): Promise<number> => {
      let slowest = 0;
      while (!cut) {
        const since = performance.now();
        const { id } = await active.data<OrderJson>("order.place", terms(market, 1, BUY, 20, 1));
        await active.data("order.cancel", { id });
        slowest = Math.max(slowest, performance.now() - since);
      }
      return slowest;
    };
    const [end, batches, slowest] = await Promise.all([cutOff, flood(), trade()]);
    expect(end!.data).toMatchObject({ status: "canceled", reason: "cancel_on_disconnect" });
    process.stdout.write(`cut off after ${batches} batches; slowest order of another: ${slowest.toFixed(1)} ms\n`);
    expect(slowest).toBeLessThan(SLOWEST_ORDER_MS);
    unread.socket.resume();
    expect(await unread.closed).toBe(4408);
    // The frames that it got are a prefix of those of the other connection.
    const [theirs, ours] = [unread.of("order.updated"), listener.of("order.updated")];
    const from = ours.findIndex(({ sequence }) => sequence === theirs[0]!.sequence);
    expect(theirs).toEqual(ours.slice(from, from + theirs.length));
    expect(theirs.length).toBeLessThan(ours.length);
    await listener.data("order.cancel_all", {});
    await eventually(async () => expect((await user.balance()).held).toBe(0));
    for (const socket of [listener, active]) await socket.close();
  });
});

describe("garbage", () => {
  test("garbage from two hundred connections doesn't affect a trading client", async () => {
    const random = Random.printed("garbage");
    const [user, market] = [world.user(), world.market()];
    const key = randomBytes(16).toString("base64");
    const upgrade = head("GET", "/ws", null, [
      ...["Connection: Upgrade", "Upgrade: websocket", "Sec-WebSocket-Version: 13", `Sec-WebSocket-Key: ${key}`],
    ]);
    const noise = Buffer.from(Array.from({ length: 65_536 }, () => random.integer(0, 255)));
    const bytes = (length: number): Buffer => noise.subarray(random.integer(0, 60_000)).subarray(0, length);
    const begin = (): string | Buffer =>
      random.pick<() => string | Buffer>([
        () => bytes(200),
        () => upgrade,
        () => `${head("POST", "/orders", user.token, ["Content-Length: 50"])}{"market_id":`,
        () => `GET ${"/".repeat(5_000)} HTTP/1.1\r\n\r\n`,
        () => `${head("POST", "/orders", user.token, ["Transfer-Encoding: chunked"])}zz\r\n`,
        () => "GET / HTTP/1.1\r\nContent-Length: -1\r\n\r\n",
      ])();
    let over = false;
    let [connections, placed] = [0, 0];
    const spoil = async (): Promise<void> => {
      while (!over) {
        const wire = new Wire(world.server.port);
        connections++;
        wire.socket.write(begin());
        for (let n = random.integer(1, 5); n > 0 && wire.endedAt === null && !over; n--) {
          wire.socket.write(bytes(random.integer(1, 2_000)));
          await new Promise((resolve) => setImmediate(resolve));
        }
        if (random.chance(0.5)) wire.socket.resetAndDestroy();
        else wire.socket.destroy();
        await wire.ended;
      }
    };
    const spoilers = Array.from({ length: 200 }, spoil);
    const socket = await world.socket(user);
    try {
      for (; placed < 50 || connections <= 400; placed++) {
        const { id } = await socket.data<OrderJson>("order.place", terms(market, 0, BUY, 1 + (placed % 90), 1));
        expect(await user.order(id)).toMatchObject({ id, status: "open" });
        if (placed % 2 === 0) await user.cancel(id);
      }
    } finally {
      over = true;
    }
    await Promise.all(spoilers);
    expect(await user.all("/orders")).toHaveLength(Math.floor(placed / 2));
    await socket.close();
  });
});

// ---------------------------------------------------------------- checks of what started first

describe("slow senders", () => {
  test("slow senders are cut off within 17 seconds, and none of their requests is executed", async () => {
    for (const { name, wire, since } of slow) {
      await wire.ended;
      expect([name, wire.endedAt! - since < 17_000]).toEqual([name, true]);
      expect([name, wire.received.toString("latin1")]).toEqual([name, ""]);
    }
    expect(await world.client("slow").all("/orders?status=all")).toEqual([]);
  });
});

describe.skipIf(!canHaveMany)("ten thousand idle connections", () => {
  function expectCheap({ grownMiB, slowestMs }: Measured): void {
    expect(grownMiB).toBeLessThan(150);
    expect(slowestMs).toBeLessThan(SLOWEST_ORDER_MS);
  }

  const expectClosed = (): Promise<void> =>
    eventually(async () => expect(filesOf(idle.world.server)).toBeLessThan(idle.filesBefore + 10));

  test("ten thousand idle connections over HTTP are cut off within a minute and slow nobody down", async () => {
    expectCheap(idle.measured);
    // The server may have cut off the first before the last was open.
    expect(idle.measured.files).toBeGreaterThan(IDLE / 2);
    await idle.gone;
    expect(Date.now() - idle.since).toBeLessThan(60_000);
    await expectClosed();
  });

  test("ten thousand idle connections over WebSocket take little memory and slow nobody down, and all of them close", async () => {
    await expectClosed();
    const upgrade = head("GET", "/ws", null, [
      ...["Connection: Upgrade", "Upgrade: websocket", "Sec-WebSocket-Version: 13"],
      `Sec-WebSocket-Key: ${randomBytes(16).toString("base64")}`,
    ]);
    const { sockets, ...measured } = await openIdle(idle, "WebSocket", upgrade);
    expectCheap(measured);
    expect(measured.files).toBeGreaterThanOrEqual(IDLE);
    for (const socket of sockets) socket.resetAndDestroy();
    await expectClosed();
    expect(await trade(idle)).toBeLessThan(SLOWEST_ORDER_MS);
  });
});
