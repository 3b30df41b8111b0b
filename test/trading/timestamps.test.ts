/**
 * Orders that request timestamps: their response and their updates carry when they were received, matched, durable and
 * sent, over every entry point and on any number of engine threads; nothing else does.
 */
import type { Static } from "typebox";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { Order } from "../../server/trading/schemas.ts";

import { expectEndsWell } from "../support/checks.ts";
import type { Client, OrderJson } from "../support/client.ts";
import { SPEAKS_SBE, variants } from "../support/projects.ts";
import { Socket } from "../support/socket.ts";
import { amend, BUY, batch, expectRefused, quotesBody, rawPlacement, SELL, terms } from "../support/trading.ts";
import { type TestMarket, World } from "../support/world.ts";

type Times = NonNullable<Static<typeof Order>["timestamps"]>;

/** The tolerance between the monotonic clock and the wall clock, and what `Date.now` truncates, in µs. */
const SLACK = 20_000;
const FIELDS = ["received", "matched", "durable", "sent"];

/** The times of a message; they must be whole, in order and of the time since `since` (ms). */
function timesOf({ timestamps }: OrderJson, since: number): Times {
  expect(Object.keys(timestamps ?? {})).toEqual(FIELDS);
  const values = Object.values(timestamps!);
  expect(values.every(Number.isSafeInteger)).toBe(true);
  expect(values).toEqual(values.toSorted((a, b) => a - b));
  expect(values[0]).toBeGreaterThan(since * 1_000 - SLACK);
  expect(values[3]).toBeLessThan(Date.now() * 1_000 + SLACK);
  return timestamps!;
}

const timed = (client: Client, order: object): Promise<OrderJson> =>
  client.data("POST", "/orders?timestamps=true", order);

/** The owner's update about an order's new status. */
async function update(socket: Socket, id: number, status: string): Promise<OrderJson> {
  return (await socket.frame<OrderJson>("order.updated", (order) => order.id === id && order.status === status)).data;
}

describe.each(variants([1], [3]))("on %i engine threads", (threads) => {
  let world: World;
  let maker: Client;
  let taker: Client;
  let socket: Socket;
  beforeAll(async () => {
    world = await World.start({
      named: { plain: {} },
      markets: [2, 2, 2, 2, 2],
      env: { ENGINE_THREADS: String(threads) },
    });
    maker = world.user();
    taker = world.user();
    socket = await world.socket(maker);
  });
  afterAll(() => expectEndsWell(world));

  test("with timestamps, the response and each update carry the times of their own event", async () => {
    // Each market is on another thread.
    for (const market of world.markets.slice(0, 3)) {
      const since = Date.now();
      const placed = await timed(maker, terms(market, 0, BUY, 4_000, 10));
      const answered = timesOf(placed, since);
      const opened = timesOf(await update(socket, placed.id, "open"), since);
      expect(opened).toEqual({ ...answered, sent: opened.sent });
      expect(opened.sent).toBeGreaterThanOrEqual(answered.sent);
      await world.split(taker, market, 10);
      let last = opened;
      const next = async (status: string, act: () => Promise<unknown>): Promise<void> => {
        const before = Date.now();
        await act();
        const times = timesOf(await update(socket, placed.id, status), since);
        expect(times.received).toBe(answered.received);
        expect(times.matched).toBeGreaterThan(last.sent);
        expect(times.matched).toBeGreaterThan(before * 1_000 - SLACK);
        last = times;
      };
      // A taker that doesn't request timestamps has none.
      await next("partially_filled", async () => {
        const taken = await taker.place(terms(market, 0, SELL, 4_000, 3));
        expect(taken).not.toHaveProperty("timestamps");
      });
      const from = socket.frames.length;
      expect(await amend(maker, placed.id, { quantity: 8 })).not.toHaveProperty("timestamps");
      const amended = await socket.frame<OrderJson>("order.updated", ({ quantity }) => quantity === 8, from);
      expect(timesOf(amended.data, since).matched).toBeGreaterThan(last.sent);
      await next("canceled", async () => expect(await maker.cancel(placed.id)).not.toHaveProperty("timestamps"));
    }
  });

  test("timestamps of an order that fills or ends at once", async () => {
    const market = world.markets[3]!;
    const since = Date.now();
    await world.split(taker, market, 5);
    await taker.place(terms(market, 0, SELL, 5_000, 5));
    const filled = await timed(maker, terms(market, 0, BUY, 5_000, 5));
    const first = timesOf(filled, since);
    expect(timesOf(await update(socket, filled.id, "filled"), since)).toMatchObject({
      received: first.received,
      matched: first.matched,
      durable: first.durable,
    });
    await taker.place(terms(market, 1, SELL, 5_000, 5));
    const crossing = await timed(maker, terms(market, 1, BUY, 5_000, 1, { post_only: true }));
    timesOf(crossing, since);
    timesOf(await update(socket, crossing.id, "rejected"), since);
    await taker.data("DELETE", "/orders");
  });

  test("timestamps over the WebSocket, in JSON and in MessagePack", async () => {
    const market = world.markets[0]!;
    const packed = await Socket.open(world.server, maker.token, { protocols: ["msgpack"] });
    for (const way of [socket, packed]) {
      const since = Date.now();
      const answer = await way.ask({ op: "order.place", timestamps: true, data: terms(market, 0, BUY, 100, 1) });
      const placed = answer.data as OrderJson;
      const { received, durable } = timesOf(placed, since);
      for (const listener of [socket, packed]) {
        expect(timesOf(await update(listener, placed.id, "open"), since)).toMatchObject({ received, durable });
      }
      for (const rest of [{}, { timestamps: false }]) {
        const asked = await way.ask({ op: "order.place", ...rest, data: terms(market, 0, BUY, 100, 1) });
        expect(asked.data).not.toHaveProperty("timestamps");
      }
    }
    await packed.close();
    await maker.data("DELETE", "/orders");
  });

  test("concurrent orders each have their own timestamps", async () => {
    const since = Date.now();
    const client = world.client("user0", 0, 16);
    const orders = await Promise.all(
      Array.from({ length: 64 }, (_, i) => timed(client, terms(world.markets[i % 4]!, i % 2, BUY, 100, 1))),
    );
    const received = orders.map((order) => timesOf(order, since).received);
    // Taken one after the other, in the order of their ids.
    const byId = orders.toSorted((a, b) => a.id - b.id).map(({ timestamps }) => timestamps!.received);
    expect(byId).toEqual(received.toSorted((a, b) => a - b));
    for (const { id, timestamps } of orders) {
      const { matched, durable } = timestamps!;
      expect((await update(socket, id, "open")).timestamps).toMatchObject({ matched, durable });
    }
    await maker.data("DELETE", "/orders");
  });

  describe("nothing else has timestamps", () => {
    let user: Client;
    let market: TestMarket;
    beforeAll(() => {
      user = world.client("plain");
      market = world.market();
    });

    test("a response without timestamps is otherwise the same, byte for byte", async () => {
      const place = async (client_order_id: string, query: string): Promise<string> => {
        const body = JSON.stringify(terms(market, 0, BUY, 100, 1, { client_order_id }));
        const headers = { Authorization: `Bearer ${user.token}`, "Content-Type": "application/json" };
        const { body: bytes } = await user.send("POST", `/api/v1/orders${query}`, headers, body);
        return bytes.toString().replaceAll(/"(id|created_at|updated_at)":\d+/g, '"$1":0');
      };
      const times = /,"timestamps":\{"received":\d{16},"matched":\d{16},"durable":\d{16},"sent":\d{16}\}/;
      const plain = (await place("order-1", "")).replace("order-1", "order-N");
      for (const [id, query] of [
        ["order-2", "?timestamps=false"],
        ["order-3", "?timestamps=true"],
      ] as const) {
        const answer = (await place(id, query)).replace(id, "order-N");
        expect(times.test(answer)).toBe(query.endsWith("true"));
        expect(answer.replace(times, "")).toBe(plain);
      }
      await user.data("DELETE", "/orders");
    });

    test("later reads of an order have no timestamps", async () => {
      const { id } = await timed(user, terms(market, 0, BUY, 100, 1));
      expect(await user.order(id)).not.toHaveProperty("timestamps");
      for (const order of await user.all<OrderJson>("/orders")) expect(order).not.toHaveProperty("timestamps");
      await user.cancel(id);
      expect(await user.order(id)).not.toHaveProperty("timestamps");
    });

    test("a repeated placement has no timestamps, while the first is in flight or later", async () => {
      const crowd = world.client("plain", 0, 12);
      const order = terms(market, 0, BUY, 100, 1, { client_order_id: "again" });
      const answers = await Promise.all(Array.from({ length: 12 }, () => timed(crowd, order)));
      expect(answers.filter(({ timestamps }) => timestamps !== undefined)).toHaveLength(1);
      const plain = answers.map(({ timestamps: _, ...rest }) => rest);
      expect(plain).toEqual(plain.map(() => plain[0]));
      expect(await timed(user, order)).toEqual(plain[0]);
      await user.data("DELETE", "/orders");
      expect(await timed(user, order)).toEqual(plain[0]);
      // A repeat without the parameter changes nothing for the first caller.
      const text = JSON.stringify({ ...order, client_order_id: "mixed" });
      const [first, second] = await Promise.all([
        crowd.data<OrderJson>("POST", "/orders?timestamps=true", JSON.parse(text)),
        rawPlacement(crowd, text),
      ]);
      const both = [first.timestamps !== undefined, second.includes('"timestamps"')];
      // Whichever came first.
      expect(both[1]).toBe(false);
      await user.data("DELETE", "/orders");
    });

    test("HTTP accepts the parameter timestamps on POST /orders only, as true or false", async () => {
      const order = terms(market, 0, BUY, 100, 1);
      const { id } = await user.place(order);
      for (const [method, path, body] of [
        ["GET", "/orders", undefined],
        ["DELETE", "/orders", undefined],
        ["GET", `/orders/${id}`, undefined],
        ["DELETE", `/orders/${id}`, undefined],
        ["PATCH", `/orders/${id}`, { quantity: 1 }],
        ["POST", "/orders/batch", { operations: [{ op: "place", ...order }] }],
        ["PUT", `/quotes/${market.id}`, quotesBody(market, [])],
        ["POST", "/wallet/split", { market_id: market.id, quantity: 1 }],
      ] as const) {
        const options = body === undefined ? {} : { body };
        await expectRefused(user.request(method, `${path}?timestamps=true`, options), 400, 40000, /timestamps/);
      }
      for (const value of ["yes", "1", "", "true&timestamps=true"]) {
        const asked = user.request("POST", `/orders?timestamps=${value}`, { body: order });
        await expectRefused(asked, 400, 40000, /timestamps/);
      }
      const inBody = user.request("POST", "/orders", { body: { ...order, timestamps: true } });
      await expectRefused(inBody, 400, 40000, /timestamps: unknown field/);
      const [result] = await batch(user, [{ op: "place", timestamps: true, ...order }]);
      expect([result!.code, result!.msg]).toEqual([40000, expect.stringMatching(/timestamps: unknown field/)]);
      expect(await user.cancel(id)).toMatchObject({ id });
      expect(await user.all("/orders")).toEqual([]);
    });

    test.skipIf(SPEAKS_SBE)(
      "the WebSocket accepts the field timestamps beside the data of order.place only",
      async () => {
        const socket = await world.socket(user);
        const order = terms(market, 0, BUY, 100, 1);
        const { id } = await user.place(order);
        for (const operation of [
          { op: "order.cancel", data: { id } },
          { op: "order.cancel_all" },
          { op: "order.amend", data: { id, quantity: 1 } },
          { op: "order.batch", data: { operations: [{ op: "place", ...order }] } },
          { op: "quotes.replace", data: { market_id: market.id, quotes: [] } },
          { op: "cancel_on_disconnect", enabled: true },
          { op: "subscribe", channel: "book", market_id: market.id },
          { op: "ping" },
        ]) {
          for (const timestamps of [true, false]) {
            const { code, msg } = await socket.ask({ ...operation, timestamps });
            expect([operation.op, code, msg]).toEqual([operation.op, 40000, expect.stringMatching(/timestamps/)]);
          }
        }
        for (const more of [{ timestamps: "true" }, { timestamps: 1 }, { data: { ...order, timestamps: true } }]) {
          const { code, msg } = await socket.ask({ op: "order.place", data: order, ...more });
          expect([code, msg]).toEqual([40000, expect.stringMatching(/timestamps/)]);
        }
        expect((await user.all<OrderJson>("/orders")).map((live) => live.id)).toEqual([id]);
        await socket.close();
        await user.data("DELETE", "/orders");
      },
    );
  });
});
