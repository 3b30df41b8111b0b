/**
 * More than the server can take, or slower than it can wait: a full command ring, readers that don't read, slow
 * senders, thousands of idle connections, garbage. Nobody else feels it, and money stays exact. Bodies without end and
 * pipelined requests are test/http/request-streams.test.ts.
 */
import { execFileSync, spawnSync } from "node:child_process";
import { randomBytes } from "node:crypto";
import { readdirSync, readFileSync } from "node:fs";
import { connect, type Socket as TcpSocket } from "node:net";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { COMMAND_RING_RECORDS } from "../../engine/limits.ts";
import { openSqlite } from "../../engine/util/sqlite.ts";
import { eventually, expectBalanced, expectSoundDatabase } from "../support/checks.ts";
import type { Client, OrderJson } from "../support/client.ts";
import { Random } from "../support/random.ts";
import type { TestServer } from "../support/server.ts";
import type { Acknowledgement, Socket } from "../support/socket.ts";
import { BUY, quote, terms } from "../support/terms.ts";
import { head, Wire } from "../support/wire.ts";
import { World } from "../support/world.ts";

/** Of one client beside the load: milliseconds as a rule, and this on a machine that does ten other things. */
const SLOWEST_ORDER_MS = 2_000;

interface Result {
  readonly code: number;
  readonly msg: string;
  readonly data: OrderJson | null;
  readonly trace_id?: string;
}

interface Results {
  readonly results: readonly Result[];
}

async function ended(world: World): Promise<void> {
  await expectBalanced(world.anonymous());
  expect(world.server.log.filter(({ level }) => level >= 50)).toEqual([]);
  await world.stop();
  expectSoundDatabase(world.server.dataDir);
}

// ---------------------------------------------------------------- ten thousand connections

const IDLE = 10_000;
const hasPrlimit = spawnSync("prlimit", ["--version"]).status === 0;

/** Lets a process have so many open files; false where it may not. */
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

/** Opens connections, some hundred at a time; with a request each waits for the first bytes of its answer. */
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
        // Whatever comes behind the upgrade is a ping: it is answered with an empty pong.
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

/** Connections without a request, opened when the tests begin: the last tests look what became of them. */
let idle: Idle & { readonly measured: Measured; readonly since: number; readonly gone: Promise<unknown> };

interface Measured {
  readonly files: number;
  readonly grownMiB: number;
  readonly slowestMs: number;
}

/** Some orders, and how long the slowest took. */
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

/** What so many connections cost. The last of them are accepted when the server has turned to the orders behind them. */
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

// ---------------------------------------------------------------- a full command ring

/** The journal waits so long for the database's lock before it gives up. */
const JOURNAL_WAITS_MS = 5_000;
const FLOODERS = 24;

describe.each([1, 2])("a full command ring, ENGINE_THREADS=%i", (threads) => {
  test("is 50300 at once, half does nothing, cancels go through, and what was accepted is done", async () => {
    const world = await World.start({
      users: FLOODERS + 4,
      markets: [2],
      env: { ENGINE_THREADS: String(threads) },
    });
    const market = world.market();
    const users = Array.from({ length: FLOODERS }, () => world.user());
    const [rest, canceler, mixed] = [world.user(), world.user(), world.user()];
    const onlooker = world.anonymous();
    const sockets = await Promise.all(users.map((user) => world.socket(user)));
    const [cancelSocket, mixedSocket] = [await world.socket(canceler), await world.socket(mixed)];
    const standing = (user: Client, price: number): Promise<OrderJson> =>
      user.place(terms(market, 1, BUY, price, 1, { client_order_id: `before-${price}` }));
    const [byRest, byMixed] = [await standing(rest, 10), await standing(mixed, 10)];
    for (const price of [11, 12, 13]) await standing(canceler, price);
    const [quoted] = (await rest.data<Results>("PUT", `/quotes/${market.id}`, { quotes: [quote(market, 1, BUY, 5, 1)] })).results; // biome-ignore format: one answer
    // More orders tied to a connection than there is room for cancels.
    const leaver = world.user();
    const leaving = await world.socket(leaver);
    await leaving.tie();
    const tied = Array.from({ length: 50 }, (_, n) => ({ op: "place", ...terms(market, 1, BUY, 1 + n, 1) }));
    for (let n = 0; n < 25; n++) await leaving.data("order.batch", { operations: tied });
    const heldBefore = (await rest.balance()).held;
    await cancelSocket.settled();
    const told = (): number => mixedSocket.of("order.updated").length + cancelSocket.of("order.updated").length;
    expect(told()).toBe(4);

    const lock = openSqlite(join(world.server.dataDir, "exchange.db"));
    lock.exec("BEGIN IMMEDIATE");
    const since = Date.now();
    // What answers while nothing can be committed was refused.
    const flood: { socket: Socket; id: number }[] = [];
    const refusedBatch = (): Acknowledgement | undefined =>
      sockets.flatMap((socket) => socket.acknowledgements).find(({ data }) => "results" in (data as object));
    for (let n = 0; refusedBatch() === undefined && Date.now() - since < 4_000; n++) {
      for (const [i, socket] of sockets.entries()) {
        const operations = Array.from({ length: 50 }, (_, k) => {
          const client_order_id = `${i}.${n}.${k}`;
          return { op: "place", ...terms(market, 0, BUY, 1 + ((n + k) % 90), 1), client_order_id };
        });
        flood.push({ socket, id: socket.post({ op: "order.batch", data: { operations } }) });
      }
      // The gateway has taken them all: the next wave meets what these have left of the ring.
      await Promise.all(sockets.map((socket) => socket.settled()));
    }
    const fullMs = Date.now() - since;
    const first = refusedBatch();
    expect(first, "a batch that was refused whole").toBeDefined();
    expect((first!.data as Results).results.map(({ code }) => code)).toEqual(Array(50).fill(50300));

    // Every way in is refused, with nothing held; what was there stays.
    const body = terms(market, 0, BUY, 100, 1, { client_order_id: "refused" });
    const refusals = [
      await rest.request("POST", "/orders", { body }),
      await rest.request("PATCH", `/orders/${byRest.id}`, { body: { price: 20 } }),
      await rest.request("PUT", `/quotes/${market.id}`, { body: { quotes: [quote(market, 0, BUY, 6, 1)] } }),
      await rest.request("POST", "/wallet/split", { body: { market_id: market.id, quantity: 1 } }),
    ];
    for (const refusal of refusals) expect(refusal).toMatchObject({ status: 503, code: 50300, data: null });
    expect((await rest.balance()).held).toBe(heldBefore);
    const overSocket = await mixedSocket.ask({ op: "order.place", data: body });
    expect(overSocket).toMatchObject({ code: 50300, data: null, trace_id: expect.stringMatching(/./) });
    const batch = await rest.data<Results>("POST", "/orders/batch", { operations: [{ op: "place", ...body }] });
    expect(batch.results).toEqual([{ code: 50300, msg: expect.any(String), data: null, trace_id: expect.any(String) }]);
    // Cancels are taken, and done once there is a commit again.
    const operations = [
      { op: "place", ...body },
      { op: "cancel", id: byMixed.id },
      { op: "place", ...body, price: 1 },
    ];
    const mixedId = mixedSocket.post({ op: "order.batch", data: { operations } });
    const allId = cancelSocket.post({ op: "order.cancel_all", data: {} });
    const canceled = rest.request<OrderJson>("DELETE", `/orders/${byRest.id}`);
    // It is in before the many cancels of whoever leaves, which take all the room that is kept for cancels.
    for (let n = 0; n < 3; n++) await onlooker.get("/time");
    leaving.socket.terminate();
    await leaving.closed;
    await mixedSocket.settled();
    await cancelSocket.settled();
    expect(told()).toBe(4);
    lock.exec("ROLLBACK");
    lock.close();
    expect(Date.now() - since).toBeLessThan(JOURNAL_WAITS_MS);

    expect(await canceled).toMatchObject({ status: 202, data: { id: byRest.id } });
    const all = (await cancelSocket.answer(allId)).data as { order_ids: number[] };
    expect(all.order_ids).toHaveLength(3);
    const { results } = (await mixedSocket.answer(mixedId)).data as Results;
    expect(results.map(({ code }) => code)).toEqual([50300, 0, 50300]);
    const accepted: OrderJson[] = [];
    let refused = 0;
    const heldBySocket = new Map<Socket, number>();
    for (const { socket, id } of flood) {
      const answer = await socket.answer(id);
      expect(answer).toMatchObject({ code: 0 });
      const found = (answer.data as Results).results;
      expect(found).toHaveLength(50);
      for (const { code, data, trace_id } of found) {
        if (code === 0) {
          accepted.push(data!);
          heldBySocket.set(socket, (heldBySocket.get(socket) ?? 0) + data!.price * 100);
          continue;
        }
        refused++;
        expect([code, data, typeof trace_id]).toEqual([50300, null, "string"]);
      }
    }
    process.stdout.write(
      `${threads} engine threads: ${accepted.length} accepted, ${refused} refused, full after ${fullMs} ms\n`,
    );
    expect(accepted.length).toBeGreaterThan(COMMAND_RING_RECORDS - 1_024 - 100);
    for (const [i, socket] of sockets.entries()) {
      const held = heldBySocket.get(socket)!;
      const { total, ...rest } = await users[i]!.balance();
      expect(rest).toEqual({ held, available: total - held });
    }
    const listed = await users[0]!.all<OrderJson>("/orders");
    expect(listed.reduce((sum, { price, remaining }) => sum + price * 100 * remaining, 0)).toBe(
      heldBySocket.get(sockets[0]!),
    );
    await eventually(async () => expect((await leaver.balance()).held).toBe(0));
    const left = await leaver.all<OrderJson>("/orders?status=all");
    expect(left.map(({ status, reason }) => `${status} ${reason}`)).toEqual(
      Array(1_250).fill("canceled cancel_on_disconnect"),
    );
    expect(await canceler.all("/orders")).toEqual([]);
    for (const user of [canceler, mixed]) expect((await user.balance()).held).toBe(0);
    expect((await rest.all<OrderJson>("/orders")).map(({ id }) => id)).toEqual([quoted!.data!.id]);
    // A refused placement hasn't used its id up.
    expect(await rest.place({ ...body, price: 7 })).toMatchObject({ client_order_id: "refused", price: 7 });
    for (const socket of [...sockets, cancelSocket, mixedSocket]) await socket.close();
    await ended(world);
    // In the database too: every order that was accepted, none that was refused.
    const db = openSqlite(join(world.server.dataDir, "exchange.db"), { readonly: true });
    const flooded = db.prepare("SELECT id, client_order_id FROM orders WHERE client_order_id GLOB '*.*.*' ORDER BY id");
    const named = accepted.map(({ id, client_order_id }) => ({ id, client_order_id })).sort((a, b) => a.id - b.id);
    expect(flooded.all()).toEqual(named);
    db.close();
  });
});

// ---------------------------------------------------------------- one server for the rest

let world: World;
/** Begun first, looked at last: each only waits to be cut off. */
const slow: { name: string; wire: Wire; timer: NodeJS.Timeout; since: number }[] = [];

/** Sends `text` byte by byte, and never all of it. */
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

describe("a private stream that nobody reads", () => {
  test("is closed with 4408; its tied orders end, and others trade as fast as before", async () => {
    const [user, other, market] = [world.user(), world.user(), world.market()];
    const [unread, listener, active] = [await world.socket(user), await world.socket(user), await world.socket(other)];
    await unread.tie();
    const tied = await unread.data<OrderJson>("order.place", terms(market, 1, BUY, 10, 1));
    await unread.settled();
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
    // What it had been sent is a prefix of what the reader heard.
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
  test("from two hundred connections disturbs no trading client", async () => {
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

// ---------------------------------------------------------------- what was begun first

describe("slow senders", () => {
  test("are cut off in a quarter of a minute, and nothing of theirs is done", async () => {
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

  test("over HTTP are cut off after a while, and slow nobody", async () => {
    expectCheap(idle.measured);
    // The first of them may have been cut off before the last was there.
    expect(idle.measured.files).toBeGreaterThan(IDLE / 2);
    await idle.gone;
    expect(Date.now() - idle.since).toBeLessThan(60_000);
    await expectClosed();
  });

  test("over WebSocket take little memory and slow nobody; all are gone in the end", async () => {
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
