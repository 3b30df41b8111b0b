/**
 * cancel_on_disconnect: the orders of a tied connection end with it, whatever closed it, and no others do. That includes
 * orders in flight and orders that wait for money. For stops and kills of the server, see
 * cancel-on-disconnect-restarts.test.ts.
 */
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import type { Socket as TcpSocket } from "node:net";
import { fileURLToPath } from "node:url";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { eventually, expectBalanced, expectSoundDatabase } from "../support/checks.ts";
import { API_BASE, type Client, type OrderJson } from "../support/client.ts";
import { variants } from "../support/projects.ts";
import { Random } from "../support/random.ts";
import type { Frame, Socket } from "../support/socket.ts";
import { BUY, quote, SELL, terms } from "../support/terms.ts";
import { USDC, World } from "../support/world.ts";
import { expectLive, placeAll, REASON, type Results } from "./tied-orders.ts";

/** A silent peer is pinged after 12 s and dead 8 s later; uWebSockets.js checks every 4 s, and a busy machine is slow. */
const DEAD_PEER_MS = 12_000 + 8_000 + 4_000 + 4_000;

const tcpOf = (socket: Socket): TcpSocket => (socket.socket as unknown as { _socket: TcpSocket })._socket;
const statesOf = (orders: readonly OrderJson[]): unknown[] =>
  orders.map(({ status, reason }) => [status, reason]).filter(([status]) => status !== "open");

/** `listener` receives each end, with its reason. */
async function expectEnds(listener: Socket, ids: readonly number[]): Promise<void> {
  for (const id of ids) {
    const end = await listener.frame<OrderJson>("order.updated", (order) => order.id === id && order.reason !== null);
    expect(end.data).toMatchObject({ id, status: "canceled", reason: REASON });
  }
}

/** A process that ties a connection, places orders over it and prints "placed"; afterwards it only answers pings. */
const PEER = `
  const { WebSocket } = require("ws");
  const [url, ...orders] = process.argv.slice(1);
  const socket = new WebSocket(url);
  socket.on("open", () => {
    socket.send(JSON.stringify({ op: "cancel_on_disconnect", enabled: true }));
    for (const order of orders) socket.send(JSON.stringify({ op: "order.place", data: JSON.parse(order) }));
  });
  let answers = 0;
  socket.on("message", (text) => {
    if ("code" in JSON.parse(text) && ++answers === orders.length + 1) console.log("placed");
  });
`;

function startPeer(world: World, user: Client, orders: readonly object[]): ChildProcess {
  const url = `${world.server.root.replace("http", "ws")}${API_BASE}/ws?token=${user.token}`;
  const root = fileURLToPath(new URL("../..", import.meta.url));
  const texts = orders.map((order) => JSON.stringify(order));
  return spawn(process.execPath, ["-e", PEER, url, ...texts], { cwd: root, stdio: ["ignore", "pipe", "inherit"] });
}

/** A peer that was frozen when the tests began: the last test expects the ends of its orders. */
interface Frozen {
  readonly peer: ChildProcess;
  readonly user: Client;
  readonly listener: Socket;
  readonly since: number;
}

async function freezePeer(world: World): Promise<Frozen> {
  const [user, market] = [world.user(), world.market()];
  const listener = await world.socket(user);
  const peer = startPeer(world, user, [terms(market, 0, BUY, 100, 1), terms(market, 1, BUY, 200, 2)]);
  await once(peer.stdout!, "data");
  peer.kill("SIGSTOP");
  const since = Date.now();
  // Equally silent, but this peer lives and answers pings.
  await listener.tie();
  await listener.data("order.place", terms(market, 0, BUY, 50, 1, { client_order_id: "living" }));
  return { peer, user, listener, since };
}

describe.each(variants([1], [3]))("ENGINE_THREADS=%i", (threads) => {
  let world: World;
  let frozen: Frozen;
  beforeAll(async () => {
    world = await World.start({
      users: 50,
      named: { poor: { deposit: 10 * USDC } },
      markets: Array<number>(30).fill(2),
      env: { ENGINE_THREADS: String(threads) },
    });
    frozen = await freezePeer(world);
  });
  afterAll(async () => {
    frozen.peer.kill("SIGKILL");
    await expectBalanced(world.anonymous());
    expect(world.server.log.filter(({ level }) => level >= 50)).toEqual([]);
    await world.stop();
    expectSoundDatabase(world.server.dataDir);
  });

  test.each<[string, (socket: Socket) => void]>([
    ["a clean close", (socket) => socket.socket.close()],
    ["a close with a code of its own", (socket) => socket.socket.close(4000, "bye")],
    ["a destroyed socket", (socket) => socket.socket.terminate()],
    ["a TCP reset", (socket) => tcpOf(socket).resetAndDestroy()],
    ["a FIN without a close frame", (socket) => tcpOf(socket).end()],
    ["an invalid frame", (socket) => tcpOf(socket).write(Buffer.alloc(32, 0xff))],
    ["a message above the limit", (socket) => socket.socket.send("x".repeat(70_000))],
  ])("%s ends the connection's orders, and no others", async (_, end) => {
    const [user, market] = [world.user(), world.market()];
    await world.split(user, market, 20);
    const [tied, listener, loose] = [await world.socket(user), await world.socket(user), await world.socket(user)];
    const before = await placeAll(tied, market, 100);
    const byRest = await user.place(terms(market, 0, BUY, 90, 1));
    const byLoose = await loose.data<OrderJson>("order.place", terms(market, 0, BUY, 91, 1));
    await listener.tie();
    const byListener = await listener.data<OrderJson>("order.place", terms(market, 0, BUY, 92, 1));
    await tied.tie();
    const after = await tied.data<OrderJson>("order.place", terms(market, 1, BUY, 300, 1));
    const since = Date.now();
    end(tied);
    await expectEnds(listener, [...before, after.id]);
    // There is no grace period: only the commit and this machine take time.
    expect(Date.now() - since).toBeLessThan(2_000);
    await expectLive(user, [byRest.id, byLoose.id, byListener.id]);
    await loose.close();
    await expectLive(user, [byRest.id, byLoose.id, byListener.id]);
    for (const id of before) expect(await user.order(id)).toMatchObject({ status: "canceled", reason: REASON });
    await listener.close();
    await eventually(() => expectLive(user, [byRest.id, byLoose.id]));
    await tied.closed;
  });

  test("an untied connection ends no orders; tied again, it ends all that it placed", async () => {
    const [user, market] = [world.user(), world.market()];
    const listener = await world.socket(user);
    const untied = await world.socket(user);
    const first = await untied.data<OrderJson>("order.place", terms(market, 0, BUY, 10, 1));
    await untied.tie();
    const second = await untied.data<OrderJson>("order.place", terms(market, 0, BUY, 11, 1));
    await untied.tie(false);
    const third = await untied.data<OrderJson>("order.place", terms(market, 0, BUY, 12, 1));
    await untied.close();
    await listener.fence();
    await expectLive(user, [first.id, second.id, third.id]);

    const again = await world.socket(user);
    await again.tie();
    await again.tie(false);
    const fourth = await again.data<OrderJson>("order.place", terms(market, 0, BUY, 13, 1));
    await again.tie();
    await again.close();
    await expectEnds(listener, [fourth.id]);
    await expectLive(user, [first.id, second.id, third.id]);
    await listener.close();
  });

  test("orders that ended before keep their end, and a partly filled order keeps its fills", async () => {
    const [user, taker, market] = [world.user(), world.user(), world.market()];
    await world.split(taker, market, 10);
    const [tied, listener] = [await world.socket(user), await world.socket(user)];
    await tied.tie();
    const place = (price: number): Promise<OrderJson> => tied.data("order.place", terms(market, 0, BUY, price, 4));
    const [filled, part, canceled] = [await place(500), await place(400), await place(300)];
    await taker.place(terms(market, 0, SELL, 400, 6));
    await tied.data("order.cancel", { id: canceled.id });
    await tied.close();
    await expectEnds(listener, [part.id]);
    expect(await user.order(filled.id)).toMatchObject({ status: "filled", reason: null });
    expect(await user.order(part.id)).toMatchObject({ status: "canceled", reason: REASON, filled: 2, remaining: 2 });
    expect(await user.order(canceled.id)).toMatchObject({ status: "canceled", reason: "user" });
    await expectLive(user, []);
    await listener.close();
  });

  test("a repeat of a placement leaves the order with the connection that placed it", async () => {
    const [user, market] = [world.user(), world.market()];
    const [tied, other] = [await world.socket(user), await world.socket(user)];
    for (const socket of [tied, other]) await socket.tie();
    const body = terms(market, 0, BUY, 100, 1, { client_order_id: "repeated" });
    const placed = await tied.data<OrderJson>("order.place", body);
    expect(await other.data("order.place", body)).toEqual(placed);
    await other.close();
    await tied.fence();
    await expectLive(user, [placed.id]);
    await tied.close();
    await eventually(() => expectLive(user, []));
  });

  test("orders in flight at the close end too", async () => {
    const user = world.user();
    const markets = [world.market(), world.market(), world.market()];
    const place = (n: number): object => terms(markets[n % 3]!, n % 2, BUY, 1 + (n % 50), 1);
    const listener = await world.socket(user);
    for (const way of ["close", "batches", "terminate"] as const) {
      const tied = await world.socket(user);
      await tied.tie();
      const before = (await user.all("/orders?status=all")).length;
      if (way === "batches") {
        for (let n = 0; n < 8; n++) {
          const operations = Array.from({ length: 25 }, (_, i) => ({ op: "place", ...place(n + i) }));
          tied.post({ op: "order.batch", data: { operations } });
        }
      } else for (let n = 0; n < 200; n++) tied.post({ op: "order.place", data: place(n) });
      // A destroyed connection loses unsent bytes: wait until some have arrived.
      if (way === "terminate") await tied.until(() => tied.acknowledgements[5], "some acknowledgements");
      if (way === "terminate") tied.socket.terminate();
      else tied.socket.close();
      await tied.closed;
      // The gateway holds money as soon as it accepts an order: nothing held means nothing live.
      await eventually(() => expectLive(user, []));
      const all = await user.all<OrderJson>("/orders?status=all");
      // A closing handshake follows everything sent before it.
      if (way === "terminate") expect(all.length).toBeGreaterThan(before + 5);
      else expect(all.length).toBe(before + 200);
      expect(statesOf(all)).toEqual(all.map(() => ["canceled", REASON]));
    }
    await listener.fence();
    const open = new Set<number>();
    for (const { data } of listener.of<OrderJson>("order.updated")) {
      if (data.status === "open") open.add(data.id);
      else open.delete(data.id);
    }
    expect([...open]).toEqual([]);
    await listener.close();
  });

  test("a batch that waits for money at the close leaves no live order", async () => {
    const random = Random.printed(`a batch that waits, ${threads} engine threads`);
    const user = world.client("poor");
    const market = world.market();
    let [refused, placed] = [0, 0];
    for (let round = 0; round < 40; round++) {
      const tied = await world.socket(user);
      await tied.tie();
      const all = (name: string): object => terms(market, 0, BUY, 5_000, 20, { client_order_id: `${round}-${name}` });
      const operations: object[] = [{ op: "place", ...all("0") }];
      for (let n = 1; n < 20; n++) {
        operations.push({ op: "cancel", client_order_id: `${round}-${n - 1}` }, { op: "place", ...all(String(n)) });
      }
      tied.post({ op: "order.batch", data: { operations } });
      if (random.chance(0.5)) await tied.frame("order.updated").catch(() => null);
      for (let turns = random.integer(0, 60); turns > 0; turns--) await new Promise((resolve) => setImmediate(resolve));
      if (random.chance(0.5)) tied.socket.close();
      else tied.socket.terminate();
      await tied.closed;
      await eventually(async () => expect(await user.balance()).toMatchObject({ held: 0, available: 10 * USDC }));
      const orders = await user.all<OrderJson>("/orders?status=all");
      const own = orders.filter((order) => order.client_order_id!.startsWith(`${round}-`));
      placed += own.length;
      if (own.length < 20) refused++;
      for (const { status, reason } of own)
        expect([status, ["user", REASON].includes(reason!)]).toEqual(["canceled", true]);
    }
    expect([placed > 0, refused > 0]).toEqual([true, true]);
    await expectLive(user, []);
  });

  test("an unchanged quote is tied to the connection that sent it last", async () => {
    const [user, market] = [world.user(), world.market()];
    const [tied, other, listener] = [await world.socket(user), await world.socket(user), await world.socket(user)];
    await tied.tie();
    const [a, b, c] = [1, 2, 3].map((n) => quote(market, 0, BUY, 100 * n, 1));
    const ids = (data: Results): number[] => data.results.map((result) => result.data!.id);
    const send = async (socket: Socket, quotes: readonly unknown[]): Promise<number[]> =>
      ids(await socket.data<Results>("quotes.replace", { market_id: market.id, quotes }));
    const first = await send(tied, [a, b]);
    const second = await send(other, [a, c]);
    expect(second[0]).toBe(first[0]);
    await tied.close();
    await listener.fence();
    await expectLive(user, second);

    // From an untied connection to a tied one, and to REST.
    const last = await world.socket(user);
    await last.tie();
    const third = await send(last, [a, c]);
    expect(third).toEqual(second);
    const byRest = ids(await user.data<Results>("PUT", `/quotes/${market.id}`, { quotes: [a] }));
    expect(byRest).toEqual([second[0]]);
    const fourth = await send(last, [a, b]);
    expect(fourth[0]).toBe(second[0]);
    await other.close();
    await expectLive(user, fourth);
    await last.close();
    await expectEnds(listener, fourth);
    await expectLive(user, []);
    await listener.close();
  });

  test("thousands of tied orders end with one connection, while others trade on", async () => {
    const [user, other, market] = [world.user(), world.user(), world.market()];
    const [tied, listener] = [await world.socket(user), await world.socket(user)];
    await tied.tie();
    const operations = Array.from({ length: 50 }, (_, n) => ({ op: "place", ...terms(market, 0, BUY, 1 + n, 1) }));
    const posted = Array.from({ length: 80 }, () => tied.post({ op: "order.batch", data: { operations } }));
    for (const id of posted) await tied.answer(id);
    tied.socket.terminate();
    const served = await other.place(terms(market, 1, BUY, 100, 1));
    await other.cancel(served.id);
    const ends = await listener.until(() => {
      const canceled = listener.of<OrderJson>("order.updated").filter(({ data }) => data.reason === REASON);
      return canceled.length === 4_000 ? canceled : undefined;
    }, "4,000 ends");
    expect(new Set(ends.map(({ data }: Frame<OrderJson>) => data.id)).size).toBe(4_000);
    await expectLive(user, []);
    await listener.close();
  });

  test("a silent peer counts as dead; one that is only idle does not", async () => {
    const { user, listener, since } = frozen;
    const ends = await listener.until(
      () => {
        const found = listener.of<OrderJson>("order.updated").filter(({ data }) => data.reason === REASON);
        return found.length === 2 ? found : undefined;
      },
      "the ends of a dead peer's orders",
      DEAD_PEER_MS,
    );
    expect(Math.max(...ends.map(({ ts }) => ts)) - since).toBeLessThan(DEAD_PEER_MS);
    expect(ends.map(({ data }) => data.status)).toEqual(["canceled", "canceled"]);
    const [living] = await user.all<OrderJson>("/orders?client_order_id=living");
    expect(living).toMatchObject({ status: "open" });
    await expectLive(user, [living!.id]);
    await listener.close();
    await eventually(() => expectLive(user, []));
  });
});
