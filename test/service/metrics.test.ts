/**
 * GET /metrics on two engine threads: the text has Prometheus' format, and between two scrapes each figure rises by
 * exactly what happened.
 */
import { afterAll, beforeAll, expect, test } from "vitest";
import { METRICS_INTERVAL_MS } from "../../server/service/limits.ts";
import { eventually, expectEndsWell } from "../support/checks.ts";
import { API_BASE, type Client } from "../support/client.ts";
import { type Scrape, scrape } from "../support/metrics.ts";
import { Socket } from "../support/socket.ts";
import { BUY, batch, expectRefused, post, quote, quotesBody, SELL, terms } from "../support/trading.ts";
import { type TestMarket, World } from "../support/world.ts";

const STAGES = ["received_to_matched", "matched_to_durable", "durable_to_sent"];

let world: World;
let maker: Client;
let taker: Client;
beforeAll(async () => {
  const named = { poor: { deposit: 0 } };
  world = await World.start({ named, markets: [2, 2, 2, 2, 3], env: { ENGINE_THREADS: "2" } });
  maker = world.user();
  taker = world.user();
});
afterAll(() => expectEndsWell(world));

/** Scrapes before and after an action. */
async function around(act: () => Promise<void>): Promise<[before: Scrape, after: Scrape]> {
  const before = await scrape(world.server);
  await act();
  return [before, await scrape(world.server)];
}

/** Sends a request with exactly these bytes; returns the number of bytes in the response's body. */
async function counted(client: Client, method: string, path: string, body: string | null): Promise<number> {
  const headers = { Authorization: `Bearer ${client.token}`, "Content-Type": "application/json" };
  return (await client.send(method, API_BASE + path, headers, body)).body.length;
}

/** Some activity in one market: five commands, three of them placements. */
async function trade(market: TestMarket): Promise<void> {
  await world.split(maker, market, 10);
  const { id } = await maker.place(terms(market, 0, SELL, 5_000, 10));
  await taker.place(terms(market, 0, BUY, 5_000, 4));
  await taker.place(terms(market, 0, BUY, 6_000, 4, { post_only: true }));
  await maker.cancel(id);
}

test("anybody may read it, in Prometheus' format, with the process's figures", async () => {
  const { types, series } = await scrape(world.server);
  for (const [name, type] of [
    ["exchange_orders_total", "counter"],
    ["exchange_latency_seconds", "histogram"],
    ["exchange_commit_seconds", "histogram"],
    ["nodejs_eventloop_lag_p99_seconds", "gauge"],
    ["nodejs_gc_duration_seconds", "histogram"],
    ["process_resident_memory_bytes", "gauge"],
  ] as const) {
    expect([name, types.get(name)]).toEqual([name, type]);
  }
  expect(series.get('exchange_database_bytes{file="main"}')).toBeGreaterThan(0);
  // The format is the same for every Accept header.
  await scrape(world.server, { Accept: "application/msgpack" });
  await scrape(world.server, { Authorization: "Bearer nobody's" });
  await expectRefused(world.anonymous().requestRoot("GET", "/metrics?format=json"), 400, 40000, /format/);
  await expectRefused(world.anonymous().requestRoot("POST", "/metrics"), 405, 40500);
  await expectRefused(world.anonymous().request("GET", "/metrics"), 404, 4040);
});

test("orders, their updates, fills and trades", async () => {
  const market = world.market();
  const [before, after] = await around(() => trade(market));
  const figures = after.since(before, /^exchange_(orders|order_updates|fills|trades|refusals)_total|live_orders/);
  expect(figures).toEqual({
    exchange_orders_total: 3,
    'exchange_order_updates_total{status="open"}': 1,
    'exchange_order_updates_total{status="partially_filled"}': 1,
    'exchange_order_updates_total{status="filled"}': 1,
    'exchange_order_updates_total{status="rejected"}': 1,
    'exchange_order_updates_total{status="canceled"}': 1,
    exchange_fills_total: 2,
    exchange_trades_total: 1,
  });
  // A mint of three outcomes is one trade with three sides.
  const three = world.market(3);
  const [, minted] = await around(async () => {
    for (const outcome of [0, 1]) await maker.place(terms(three, outcome, BUY, 3_000, 5));
    await taker.place(terms(three, 2, BUY, 4_000, 5));
    await maker.place(terms(three, 0, BUY, 1, 1));
  });
  const more = minted.since(after, /^exchange_(orders|fills|trades)_total|live_orders/);
  expect(more).toEqual({
    exchange_orders_total: 4,
    exchange_fills_total: 3,
    exchange_trades_total: 1,
    exchange_live_orders: 1,
  });
  await maker.data("DELETE", "/orders");
});

test("every placement is in each stage's histogram, and the stages add up to the total", async () => {
  const market = world.market();
  const started = performance.now();
  const quotes = quotesBody(market, [[0, BUY, 100, 1], [1, BUY, 100, 1]]); // biome-ignore format: one list
  const [before, after] = await around(async () => {
    await trade(market);
    await maker.data("PUT", `/quotes/${market.id}`, quotes);
    await batch(maker, [1, 2, 3].map((price) => ({ op: "place", ...terms(market, 0, BUY, price, 1) })));
  }); // biome-ignore format: what is done
  const seconds = (performance.now() - started) / 1_000;
  const counts = after.since(before, /^exchange_latency_seconds_count/);
  const count = (stage: string): string => `exchange_latency_seconds_count{stage="${stage}"}`;
  expect(counts).toEqual(Object.fromEntries([...STAGES, "total"].map((stage) => [count(stage), 3 + 2 + 3])));
  const sums = after.since(before, /^exchange_latency_seconds_sum/);
  const sum = (stage: string): number => sums[`exchange_latency_seconds_sum{stage="${stage}"}`]!;
  for (const stage of [...STAGES, "total"]) expect(sum(stage)).toBeGreaterThan(0);
  // Threads' clocks may differ by a microsecond each.
  expect(Math.abs(STAGES.reduce((all, stage) => all + sum(stage), 0) - sum("total"))).toBeLessThan(8e-6);
  expect(sum("total")).toBeLessThan(8 * seconds);
  await maker.data("DELETE", "/orders");
});

test("each engine thread's batches, and the log's commits", async () => {
  const markets = [world.market(), world.market()] as const;
  const [first, second] = markets.map(({ id }) => `exchange_batch_commands_sum{engine="${1 + (id % 2)}"}`);
  expect(first).not.toBe(second);
  const [before, after] = await around(async () => {
    await trade(markets[0]);
    for (let i = 0; i < 3; i++) await maker.place(terms(markets[1], 0, BUY, 100 + i, 1));
  });
  expect(after.since(before, /^exchange_batch_commands_sum/)).toEqual({ [first!]: 5, [second!]: 3 });
  // Sequential requests: one commit each.
  const { exchange_commit_orders_sum: placed, ...counts } = after.since(
    before,
    /^exchange_commit_(\w+_count|orders_sum)/,
  );
  expect(placed).toBe(3 + 3);
  expect(counts["exchange_commit_orders_count"]).toBeGreaterThanOrEqual(8);
  expect(counts["exchange_commit_seconds_count"]).toBe(counts["exchange_commit_orders_count"]);
  for (const ring of ["command", "event"]) {
    for (const engine of [1, 2]) expect(after.value(`exchange_${ring}_ring_records{engine="${engine}"}`)).toBe(0);
  }
  await maker.data("DELETE", "/orders");
});

test("refusals by code, over HTTP, over the WebSocket and in a batch", async () => {
  const market = world.markets[0]!;
  const poor = world.client("poor");
  const socket = await world.socket(poor);
  const order = terms(market, 0, BUY, 5_000, 1);
  const [before, after] = await around(async () => {
    await expectRefused(post(maker, { ...order, price: 0 }), 400, 40000);
    await expectRefused(post(poor, order), 422, 42201);
    await expectRefused(post(world.anonymous(), order), 401, 40100);
    await expectRefused(maker.request("GET", "/nothing"), 404, 4040);
    await expectRefused(maker.request("PUT", "/time"), 405, 40500);
    await expect(Socket.open(world.server, "nobody's")).rejects.toThrow("401");
    expect((await socket.ask({ op: "nothing" })).code).toBe(40000);
    expect((await socket.ask({ op: "order.place", data: { ...order, side: SELL } })).code).toBe(42202);
    const results = await batch(maker, [{ op: "nothing" }, { op: "cancel", id: 2 ** 40 }, { op: "place", ...order }]);
    expect(results.map(({ code }) => code)).toEqual([40000, 4040, 0]);
  });
  expect(after.since(before, /^exchange_refusals_total/)).toEqual({
    'exchange_refusals_total{code="40000"}': 3,
    'exchange_refusals_total{code="40100"}': 2,
    'exchange_refusals_total{code="4040"}': 2,
    'exchange_refusals_total{code="40500"}': 1,
    'exchange_refusals_total{code="42201"}': 1,
    'exchange_refusals_total{code="42202"}': 1,
  });
  await socket.close();
  await maker.data("DELETE", "/orders");
});

test("requests and bytes over HTTP", async () => {
  const body = JSON.stringify(terms(world.markets[0]!, 0, BUY, 100, 1, { client_order_id: "counted" }));
  let answers = 0;
  const [before, after] = await around(async () => {
    answers += await counted(maker, "POST", "/orders", body);
    // Invalid, with letters of two bytes each.
    answers += await counted(maker, "POST", "/orders", '{"größe": 1}');
    answers += await counted(maker, "GET", "/markets", null);
    answers += await counted(maker, "DELETE", "/orders?client_order_id=counted", null);
  });
  const packed = { Accept: "application/msgpack", Authorization: `Bearer ${maker.token}` };
  const { body: bytes } = await maker.send("GET", `${API_BASE}/wallet/balance`, packed, null);
  const later = await scrape(world.server);
  const names = /^exchange_(requests|received_bytes|sent_bytes)_total/;
  expect(after.since(before, names)).toEqual({
    'exchange_requests_total{transport="http"}': 5,
    'exchange_received_bytes_total{transport="http"}': Buffer.byteLength(body) + Buffer.byteLength('{"größe": 1}'),
    'exchange_sent_bytes_total{transport="http"}': before.bytes + answers,
  });
  expect(later.since(after, names)).toEqual({
    'exchange_requests_total{transport="http"}': 2,
    'exchange_sent_bytes_total{transport="http"}': after.bytes + bytes.length,
  });
});

test("connections, subscriptions, messages and bytes over the WebSocket", async () => {
  const market = world.markets[0]!;
  const before = await scrape(world.server);
  const sockets = [
    await Socket.open(world.server, maker.token),
    await Socket.open(world.server, null, { protocols: ["msgpack"] }),
  ] as const;
  let [heard, said, messages] = [0, 0, 0];
  for (const { socket } of sockets) {
    socket.on("message", (message: Buffer) => {
      heard += message.length;
    });
    const send = socket.send.bind(socket) as (data: string | Buffer) => void;
    socket.send = (data: string | Buffer) => {
      said += Buffer.byteLength(data);
      messages++;
      send(data);
    };
  }
  for (const socket of sockets) await socket.subscribe("book", market.id);
  await sockets[0].subscribe("trades", market.id);
  await sockets[0].data("order.place", terms(market, 0, BUY, 100, 1));
  await sockets[0].data("order.cancel_all", {});
  for (const socket of sockets) await socket.fence();
  // The server has written all messages of the last commit, and the sockets have those from before the ping's response.
  for (const socket of sockets) await socket.frame("book.updated", (_, { sequence }) => sequence > 0);
  const after = await scrape(world.server);
  await Promise.all(sockets.map((socket) => socket.fence()));
  const last = await scrape(world.server);
  expect(after.since(before, /^exchange_websocket/)).toEqual({
    exchange_websocket_connections: 2,
    exchange_websocket_subscriptions: 2 + 2 + 1,
  });
  expect(last.since(before, /total\{transport="websocket"\}$/)).toEqual({
    'exchange_requests_total{transport="websocket"}': messages,
    'exchange_received_bytes_total{transport="websocket"}': said,
    'exchange_sent_bytes_total{transport="websocket"}': heard,
  });
  for (const socket of sockets) await socket.close();
  await eventually(async () => {
    const closed = await scrape(world.server);
    expect(closed.since(before, /^exchange_websocket/)).toEqual({});
  });
});

test("any number of scrapes reads the figures at a bounded rate, and none gets stale ones", async () => {
  const started = performance.now();
  const rounds = 4;
  for (let round = 0; round < rounds; round++) {
    const quotes = await quote(maker, world.markets[0]!, [[0, BUY, 100 + round, 1]]);
    expect(quotes).toHaveLength(1);
    const orders = (await scrape(world.server)).value("exchange_orders_total");
    const texts = await Promise.all(
      Array.from({ length: 20 }, async () => (await fetch(`${world.server.root}/metrics`)).text()),
    );
    // The scrapes reach the server in two turns at most, and each turn reads once.
    expect(new Set(texts).size).toBeLessThanOrEqual(3);
    for (const text of texts) expect(text).toContain(`\nexchange_orders_total ${orders}\n`);
  }
  // Two reads a round at least, one read an interval at most; timers are up to a millisecond early.
  expect(performance.now() - started).toBeGreaterThan((2 * rounds - 1) * (METRICS_INTERVAL_MS - 2));
  await maker.data("DELETE", "/orders");
});
