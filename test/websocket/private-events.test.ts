/**
 * A user's own events: updates, balances and positions that end equal to REST, sequences without a gap, scopes, and
 * their order beside the responses.
 */
import { execFile, spawnSync } from "node:child_process";
import { connect } from "node:net";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { expectBalanced, expectEndsWell } from "../support/checks.ts";
import type { BalanceJson, Client, OrderJson, PositionJson } from "../support/client.ts";
import { SPEAKS_SBE } from "../support/projects.ts";
import { Random } from "../support/random.ts";
import { Socket } from "../support/socket.ts";
import { BUY, terms } from "../support/terms.ts";
import { type TestMarket, tokenOf, World } from "../support/world.ts";
import { randomFlow, tradersIn } from "./order-flow.ts";
import { expectNoGap } from "./order-frames.ts";

let world: World;
beforeAll(async () => {
  world = await World.start({
    users: 20,
    named: {
      scoped: { scopes: [["orders:write"], ["portfolio:read"], ["markets:read"], ["orders:write", "portfolio:read"]] },
    },
    markets: Array<number>(10).fill(2),
  });
});
afterAll(async () => {
  await expectBalanced(world.anonymous());
  await expectEndsWell(world);
});

describe("private events", () => {
  test("private updates, balance and positions end equal to REST, without a gap, on each of the user's connections", async () => {
    const random = Random.printed("private events");
    const market = world.market();
    const users = await tradersIn(world, market, 3);
    const sockets = await Promise.all([...users, users[0]!].map((user) => world.socket(user)));
    await randomFlow(users, market, random, 60);
    for (const [i, socket] of sockets.entries()) {
      const user = users[i] ?? users[0]!;
      await socket.fence();
      const updates = socket.of<OrderJson>("order.updated");
      expectNoGap(updates);
      const orders = await user.all<OrderJson>("/orders?status=all");
      for (const order of orders)
        await expectUpdatesOf(
          user,
          order,
          updates.map(({ data }) => data),
        );
      expect(new Set(updates.map(({ data }) => data.id))).toEqual(new Set(orders.map(({ id }) => id)));
      const balances = socket.of<BalanceJson>("balance.updated");
      expect(balances.at(-1)).toMatchObject({ data: await user.balance(), sequence: updates.at(-1)!.sequence });
      const positions = await user.all<PositionJson>("/me/positions");
      for (const position of positions) {
        const last = socket
          .of<PositionJson>("position.updated")
          .findLast(({ data }) => data.outcome_id === position.outcome_id);
        // Later trades of others move the last price, but no position.
        const { market_value, unrealized_pnl } = last!.data;
        expect(last!.data).toEqual({ ...position, market_value, unrealized_pnl });
      }
      for (const { data, sequence } of socket.of("balance.updated")) {
        const { available, held, total } = data as BalanceJson;
        expect(available + held).toBe(total);
        expect(Math.min(available, held)).toBeGreaterThanOrEqual(0);
        expect(sequence).toBeLessThanOrEqual(updates.at(-1)!.sequence);
      }
    }
    const [first, , , twin] = sockets;
    const private_ = (socket: Socket) => socket.frames.filter(({ event }) => event === "order.updated");
    expect(private_(twin!)).toEqual(private_(first!));
    for (const socket of sockets) await socket.close();
  });

  /** The order's updates lead, state by state and fill by fill, to the order that REST returns. */
  async function expectUpdatesOf(user: Client, order: OrderJson, updates: readonly OrderJson[]): Promise<void> {
    const own = updates.filter(({ id }) => id === order.id);
    expect(own.at(-1)).toEqual({ ...order, trades: own.at(-1)!.trades });
    const fills = own.flatMap(({ trades }) => trades);
    expect(fills).toEqual((await user.order(order.id)).trades);
    let filled = 0;
    for (const update of own) {
      filled += update.trades.reduce((sum, { quantity }) => sum + quantity, 0);
      expect(update.filled).toBe(filled);
      expect(update.remaining).toBe(update.quantity - update.filled);
      expect(update.status).not.toBe("queued");
    }
    const ends = own.filter(({ status }) => !["open", "partially_filled"].includes(status));
    expect(ends.length).toBe(["open", "partially_filled"].includes(order.status) ? 0 : 1);
  }

  test.skipIf(SPEAKS_SBE)("the 202 leaves before the order's first update", async () => {
    const [market, user] = [world.market(), world.user()];
    const socket = await world.socket(user);
    const received: string[] = [];
    const raw = (socket.socket as unknown as { _socket: NodeJS.ReadableStream })._socket;
    raw.on("data", (chunk: Buffer) => {
      for (const [, id] of chunk.toString("latin1").matchAll(/"order\.updated".{0,60}"id":(\d+)/g))
        received.push(`update ${id}`);
    });
    const http = connect(world.server.port, "127.0.0.1");
    let answered = (): void => {};
    http.on("data", (chunk: Buffer) => {
      const [, id] = /"id":(\d+)/.exec(chunk.toString("latin1"))!;
      received.push(`202 ${id}`);
      answered();
    });
    const [count, expected]: [number, string[]] = [50, []];
    for (let n = 0; n < count; n++) {
      const body = JSON.stringify(terms(market, 0, BUY, 100 + n, 1));
      const next = new Promise<void>((resolve) => {
        answered = resolve;
      });
      const head = `POST /api/v1/orders HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ${user.token}\r\n`;
      http.write(`${head}Content-Length: ${body.length}\r\n\r\n${body}`);
      await next;
      await socket.fence();
      const id = received.at(-1)!.split(" ")[1]!;
      expected.push(`202 ${id}`, `update ${id}`);
      // Drains both sockets, so that the next two messages are seen in order of arrival.
      for (let turn = 0; turn < 3; turn++) await new Promise((resolve) => setImmediate(resolve));
    }
    http.destroy();
    expect(received).toEqual(expected);
    await socket.close();
  });

  test("scopes of private events: orders:write gets its orders, portfolio:read also its money, markets:read neither", async () => {
    const market = world.market();
    const writer = world.client("scoped", 0);
    const sockets = await Promise.all([0, 1, 2, 3].map((i) => Socket.open(world.server, tokenOf("scoped", i))));
    await writer.place(terms(market, 0, BUY, 5_000, 1));
    await world.split(writer, market, 1);
    const kinds = [];
    for (const socket of sockets) {
      await socket.fence();
      kinds.push([...new Set(socket.frames.map(({ event }) => event))].sort());
      await socket.close();
    }
    const all = ["balance.updated", "order.updated", "position.updated"];
    expect(kinds).toEqual([["order.updated"], all, [], all]);
  });

  test("a split updates balance and positions of its user and of nobody else", async () => {
    const [market, user, other] = [world.market(), world.user(), world.user()];
    const [mine, theirs] = [await world.socket(user), await world.socket(other)];
    await world.split(user, market, 3);
    await mine.fence();
    expect(mine.of<BalanceJson>("balance.updated").at(-1)!.data).toEqual(await user.balance());
    expect(mine.of<PositionJson>("position.updated").map(({ data }) => data.quantity)).toEqual([3, 3]);
    await theirs.fence();
    expect(theirs.frames).toEqual([]);
    for (const socket of [mine, theirs]) await socket.close();
  });
});

/** Runs response_order.py, which compares the times of updates with those of the 202s. */
async function answerOrder(user: Client, orders: number, market: TestMarket): Promise<object> {
  const script = fileURLToPath(new URL("../support/response_order.py", import.meta.url));
  const args = [script, world.server.port, user.token, orders, market.id, market.outcomes[0]];
  const { stdout } = await promisify(execFile)("python3", args.map(String));
  return JSON.parse(stdout) as object;
}

const hasPython = spawnSync("python3", ["--version"]).status === 0;
if (!hasPython) process.stdout.write("skipped: the order of responses and updates needs python3\n");

describe.runIf(hasPython)("an order's 202 on one connection", () => {
  test("an order's 202 on one connection always precedes its first order.updated on another", async () => {
    const orders = 1_500;
    expect(await answerOrder(world.user(), orders, world.market())).toEqual({ orders, updates: orders, early: 0 });
  });
});
