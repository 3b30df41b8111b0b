/**
 * The start: a wrong environment stops it with a line that names the cause, a folder has one server, a seed is loaded once,
 * and markets, sequences and thousands of orders are restored.
 */

import { existsSync, readdirSync, statSync, writeFileSync } from "node:fs";
import { createServer } from "node:net";
import { join } from "node:path";
import { afterEach, describe, expect, test } from "vitest";
import { openSqlite } from "../../engine/util/sqlite.ts";
import { eventually, expectBalanced, expectSoundDatabase } from "../support/checks.ts";
import { Client, type MarketJson, type OrderJson } from "../support/client.ts";
import { PASSWORD } from "../support/identity.ts";
import { operatorOf, setTerms, userNamed } from "../support/operator.ts";
import { Random } from "../support/random.ts";
import { TestServer, temporaryFolder, within } from "../support/server.ts";
import { Socket } from "../support/socket.ts";
import { seedOf, tokenOf, USDC } from "../support/world.ts";
import { expectHolds, levelsOf } from "./traffic.ts";

const started: TestServer[] = [];
afterEach(async () => {
  for (const server of started.splice(0)) await server.kill();
});

async function start(options: Parameters<typeof TestServer.start>[0]): Promise<TestServer> {
  const server = await TestServer.start(options);
  started.push(server);
  return server;
}

describe("a wrong environment variable stops the start with one line that names it", () => {
  test.for(["DATA_DIR", "SEED_FILE", "HOST", "PORT", "TLS_KEY"])(
    "a wrong environment variable stops the start with one line that names it: %s",
    async (name) => {
      const folder = temporaryFolder();
      const other = createServer();
      await new Promise<void>((resolve) => other.listen(0, "127.0.0.1", resolve));
      const { port } = other.address() as { port: number };
      const plain = join(folder, "plain");
      writeFileSync(plain, JSON.stringify({ users: [1, 2].map((n) => ({ email: `a${n}@b.c`, deposit: 8e15 })) }));
      const values: Record<string, string> = { HOST: "256.0.0.1", PORT: String(port) };
      const { code, errors } = await TestServer.refuse({ env: { [name]: values[name] ?? plain } });
      other.close();
      const [line, ...rest] = errors.trim().split("\n");
      expect([line, code]).toEqual([expect.stringMatching(/^cannot start: /), 1]);
      expect(line).toContain(name);
      expect(rest, errors).toEqual([]);
    },
  );
});

test("a seed is loaded once, even if the server is killed repeatedly while it loads", async () => {
  const seed = seedOf({ users: 700, markets: Array(300).fill(3) });
  const dataDir = temporaryFolder();
  const random = Random.printed("kill -9 during the start");
  for (let round = 0; round < 4; round++) {
    const starting = TestServer.spawn({ seed, dataDir });
    started.push(starting);
    const ready = starting.logged(({ msg }) => msg === "ready").catch(() => null);
    await within(ready, random.integer(200, 900));
    await starting.kill();
  }
  const server = await start({ seed, dataDir });
  const client = new Client(server, tokenOf("user699"));
  expect(await client.balance()).toMatchObject({ available: 10_000 * USDC });
  expect(await client.all("/markets")).toHaveLength(300);
  expect(await client.solvency()).toMatchObject({ deposits: 700 * 10_000 * USDC, house: 0, balanced: true });
  client.close();
  await server.stop();
  expectSoundDatabase(dataDir);
});

test("SIGTERM during the start ends it with exit code 0", async () => {
  const starting = TestServer.spawn({ seed: seedOf({ markets: Array(300).fill(2) }) });
  started.push(starting);
  await eventually(async () => expect(existsSync(join(starting.dataDir, "exchange.lock"))).toBe(true));
  await starting.stop();
  expect(starting.log.some(({ level }) => level >= 50)).toBe(false);
});

test("a second server on the same folder refuses to start, the first continues; after a kill -9 the folder is free", async () => {
  const first = await start({ seed: seedOf({ users: 1 }) });
  const { code, errors } = await TestServer.refuse({ dataDir: first.dataDir });
  expect([code, errors.trim()]).toEqual([1, expect.stringMatching(/^cannot start: DATA_DIR: .*in use/)]);
  const client = new Client(first, tokenOf("user0"));
  await client.place({ market_id: 1, outcome_id: 1, side: 1, price: 5_000, quantity: 1 });
  client.close();
  await first.kill();
  await (await start({ dataDir: first.dataDir })).stop();
  await (await start({ dataDir: first.dataDir })).stop();
  expectSoundDatabase(first.dataDir);
});

test("a seed loaded twice changes nothing; new entries are created", async () => {
  const seed = seedOf({ users: 2, markets: [2, 3] });
  let server = await start({ seed });
  const dump = (): unknown => {
    const db = openSqlite(join(server.dataDir, "exchange.db"), { readonly: true });
    const tables = ["users", "accounts", "personal_access_tokens", "events", "markets", "outcomes", "entries"];
    const rows = tables.map((table) => db.prepare(`SELECT * FROM ${table} ORDER BY 1`).all());
    db.close();
    return rows;
  };
  await server.stop();
  const before = dump();
  server = await server.restart();
  started.push(server);
  await server.stop();
  expect(dump()).toEqual(before);
  const larger = seedOf({ users: 3, markets: [2, 3, 4] });
  server = await start({ dataDir: server.dataDir, seed: larger });
  const client = new Client(server, tokenOf("user2"));
  expect(await client.balance()).toMatchObject({ available: 10_000 * USDC });
  expect(await client.all("/markets")).toHaveLength(3);
  const first = new Client(server, tokenOf("user0"));
  expect(await first.balance()).toMatchObject({ available: 10_000 * USDC });
  client.close();
  first.close();
  await server.stop();
});

test("a seed sets a user's terms once: an operator's later changes stay", async () => {
  const terms = { daily_limit: 5 * USDC, trading_fee: 100, maker_rebate: 0, pat_rebate: 3, merge_fee: 20 };
  const named = (more: object): Parameters<typeof seedOf>[0] => ({
    ...{ users: 0, markets: [2] },
    named: { operator: { role: "operator", password: PASSWORD }, maker: { terms: { ...terms, ...more } }, taker: {} },
  });
  let server = await start({ seed: seedOf(named({ rate_limit_factor: 7, max_live_orders: 900 })) });
  const shown = async (): Promise<unknown[]> => {
    const operator = await operatorOf(server);
    const users = [await userNamed(operator, "maker"), await userNamed(operator, "taker")];
    operator.close();
    return users.map((user) => user.terms);
  };
  const all = { ...terms, rate_limit_factor: 7, max_live_orders: 900 };
  const none = Object.fromEntries(Object.keys(all).map((name) => [name, null]));
  expect(await shown()).toEqual([all, none]);
  const maker = new Client(server, tokenOf("maker"));
  expect(await maker.get("/me/limits")).toMatchObject({
    daily_activity: { used: 0, limit: 5 * USDC },
    fees: { trading_fee: 100, maker_rebate: 3, merge_fee: 20 },
  });
  maker.close();
  const operator = await operatorOf(server);
  await setTerms(operator, (await userNamed(operator, "maker")).id, { pat_rebate: null, rate_limit_factor: 9 });
  operator.close();
  const changed = { ...all, pat_rebate: null, rate_limit_factor: 9 };
  await server.kill();
  const other = named({ rate_limit_factor: 8 });
  const later = { ...other, named: { ...other.named, taker: { terms: { merge_fee: 1 } } } };
  for (let round = 0; round < 2; round++) {
    server = await start({ dataDir: server.dataDir, seed: seedOf(later) });
    // The start sets terms that are new in the file, and sets none a second time.
    expect(await shown()).toEqual([changed, { ...none, merge_fee: 1 }]);
    await server.stop();
  }
  const db = openSqlite(join(server.dataDir, "exchange.db"), { readonly: true });
  const logged = db
    .prepare("SELECT actor, details FROM audit_log WHERE action = 'user.set_terms' ORDER BY id")
    .raw()
    .all();
  db.close();
  expect((logged as [string, string][]).map(([actor, details]) => [actor, JSON.parse(details)])).toEqual([
    ["seed", all],
    [expect.stringMatching(/^operator \d+$/), { pat_rebate: null, rate_limit_factor: 9 }],
    ["seed", { ...none, merge_fee: 1 }],
  ]);
});

test("without a seed, a new folder gets sample markets and two tokens that only their owner can read", async () => {
  const server = await start({});
  const client = new Client(server, null);
  expect((await client.all<MarketJson>("/markets")).length).toBeGreaterThan(3);
  client.close();
  const tokens = readdirSync(server.dataDir).filter((name) => name.startsWith("demo-token"));
  expect(tokens).toHaveLength(2);
  for (const name of tokens) expect(statSync(join(server.dataDir, name)).mode & 0o777).toBe(0o600);
  expect(server.log.some((line) => JSON.stringify(line).includes("pm_pat_"))).toBe(false);
  await server.stop();
});

test("a server refuses to start on a database that was tampered with", async () => {
  const server = await start({ seed: seedOf({ users: 1 }) });
  await server.stop();
  const db = openSqlite(join(server.dataDir, "exchange.db"));
  db.prepare("UPDATE accounts SET balance = balance + 1").run();
  db.close();
  const { code, errors } = await TestServer.refuse({ dataDir: server.dataDir });
  expect([code, errors]).toEqual([1, expect.stringMatching(/cannot start: .*balances/)]);
});

test("after a restart, halted and closed markets reject orders and splits, and allow cancels and merges", async () => {
  let server = await start({ seed: seedOf({ users: 1, markets: [2, 2, 2] }) });
  let client = new Client(server, tokenOf("user0"));
  const ids: number[] = [];
  for (const market_id of [1, 2]) {
    await client.data("POST", "/wallet/split", { market_id, quantity: 2 });
    const terms = { market_id, outcome_id: 2 * market_id, side: 1, price: 10, quantity: 1 };
    ids.push((await client.place(terms)).id);
  }
  await client.cancel(ids[1]!);
  client.close();
  await server.stop();
  const db = openSqlite(join(server.dataDir, "exchange.db"));
  db.prepare("UPDATE markets SET status = id + 1 WHERE id <= 2").run();
  db.close();

  server = await server.restart();
  started.push(server);
  client = new Client(server, tokenOf("user0"));
  expect(await client.get("/markets/1")).toMatchObject({ status: "halted" });
  expect(await client.get("/markets/2")).toMatchObject({ status: "closed" });
  const listed = (status: string): Promise<MarketJson[]> => client.all(`/markets?status=${status}`);
  expect((await listed("open")).map(({ id }) => id)).toEqual([3]);
  expect((await listed("halted")).map(({ id }) => id)).toEqual([1]);
  expect((await listed("closed")).map(({ id }) => id)).toEqual([2]);
  for (const market_id of [1, 2]) {
    const body = { market_id, outcome_id: 2 * market_id, side: 1, price: 10, quantity: 1 };
    expect(await client.request("POST", "/orders", { body })).toMatchObject({ status: 422, code: 42203 });
    const merge = { market_id, quantity: 1 };
    expect(await client.request("POST", "/wallet/merge", { body: merge })).toMatchObject({ status: 200 });
  }
  const split = { body: { market_id: 2, quantity: 1 } };
  expect(await client.request("POST", "/wallet/split", split)).toMatchObject({ status: 422, code: 42203 });
  await client.cancel(ids[0]!);
  expect(await client.order(ids[0]!)).toMatchObject({ status: "canceled", reason: "user" });
  await expectBalanced(client);
  client.close();
  await server.stop();
  expectSoundDatabase(server.dataDir);
});

test("restarts keep sequences, client order ids, activity and ended tokens, and cancel what a crash cut short", async () => {
  const tier1 = { tier: 1, deposit: 1_000 * USDC };
  const named = { small: tier1, tokens: { scopes: [["portfolio:read"], ["portfolio:read"], ["portfolio:read"]] } };
  let server = await start({ seed: seedOf({ users: 1, named, markets: [2] }) });
  const clients = (): Record<"user" | "small", Client> => {
    return { user: new Client(server, tokenOf("user0")), small: new Client(server, tokenOf("small")) };
  };
  const restart = async (sql: string): Promise<void> => {
    await server.stop();
    const db = openSqlite(join(server.dataDir, "exchange.db"));
    db.exec(sql);
    db.close();
    // Without a seed: loading one commits, which would hide a sequence that falls back.
    server = await start({ dataDir: server.dataDir });
  };
  const terms = { market_id: 1, outcome_id: 1, side: 1, price: 5_000, quantity: 100, client_order_id: "first" };
  let { user, small } = clients();
  await user.data("POST", "/wallet/split", { market_id: 1, quantity: 50 });
  await small.place({ ...terms, client_order_id: "bought" });
  await user.place({ ...terms, side: 2, quantity: 50, client_order_id: "sold" });
  const placed = await user.place({ ...terms, price: 10 });
  const cut = await user.place({ ...terms, price: 11, client_order_id: "cut" });
  const seen = await user.book(1, 1);

  // As if the process had died between the commits of one long match.
  await restart(`UPDATE orders SET status = 2 WHERE id = ${cut.id};
    UPDATE personal_access_tokens SET expires_at = 1 WHERE name = 'token 1';
    UPDATE personal_access_tokens SET revoked_at = 1 WHERE name = 'token 2';`);
  ({ user, small } = clients());
  expect(await user.order(cut.id)).toMatchObject({ status: "canceled", reason: "operator", remaining: 100 });
  expect(await user.balance()).toMatchObject({ held: placed.price * placed.quantity * 100 });
  expect(await user.place({ ...terms, price: 10 })).toEqual(placed);
  // Half of 100 USDC is used: a quarter by the fill, a quarter by the resting remainder.
  const over = { ...terms, price: 5_001, client_order_id: "over" };
  expect(await small.request("POST", "/orders", { body: over })).toMatchObject({ status: 429, code: 42901 });
  expect(await user.request("POST", "/orders", { body: terms })).toMatchObject({ status: 409, code: 40900 });
  for (const [index, code] of [0, 2002, 40100].entries()) {
    const holder = new Client(server, tokenOf("tokens", index));
    expect(await holder.request("GET", "/me/balance")).toMatchObject({ status: code === 0 ? 200 : 401, code });
    holder.close();
    const opened = Socket.open(server, tokenOf("tokens", index)).then((socket) => socket.close());
    if (code === 0) await opened;
    else await expect(opened).rejects.toThrow("401");
  }

  await restart("");
  ({ user, small } = clients());
  const between = await user.book(1, 1);
  expect(between.sequence).toBeGreaterThanOrEqual(seen.sequence);
  for (const { id } of await user.all<OrderJson>("/orders")) await user.cancel(id);
  for (const { id } of await small.all<OrderJson>("/orders")) await small.cancel(id);
  const emptied = await user.book(1, 1);
  expect(emptied).toMatchObject({ bids: [], asks: [] });
  await restart("");
  ({ user, small } = clients());
  expect((await user.book(1, 1)).sequence).toBeGreaterThanOrEqual(emptied.sequence);
  await server.stop();
  expectSoundDatabase(server.dataDir);
});

test("more live orders than a ring holds are restored in time priority and expire together", async () => {
  const [orders, lasting] = [20_000, 500];
  let server = await start({ seed: seedOf({ users: 2, markets: [2] }) });
  await server.stop();
  const db = openSqlite(join(server.dataDir, "exchange.db"));
  const now = Date.now();
  // One share each at 1..50; the first user's orders expire at the start, the second user's tomorrow.
  db.exec(`WITH RECURSIVE n (id) AS (SELECT 1 UNION ALL SELECT id + 1 FROM n WHERE id < ${orders})
    INSERT INTO orders SELECT id, iif(id <= ${lasting}, 2, 1), 1, 1, 0, 1, 0, 0, 1, 1 + id % 50, 1, 1, 3, 0,
      iif(id <= ${lasting}, ${now} + 86400000, ${now}), NULL, NULL, ${now}, ${now}, iif(id = ${lasting} + 1, 0, id - 1), 0,
      NULL, NULL, 0, 0
      FROM n;
    UPDATE totals SET last_order_id = ${orders};
    INSERT INTO newest_of_user (user_id, order_id, fill_id) VALUES (1, ${orders}, 0), (2, ${lasting}, 0);`);
  db.close();

  server = await server.restart();
  started.push(server);
  const [client, other] = [0, 1].map((i) => new Client(server, tokenOf(`user${i}`))) as [Client, Client];
  expect(server.log.find(({ msg }) => msg === "ready")).toMatchObject({ restored: orders });
  // The oldest order of the best level fills first. More expiries than a ring holds precede the order: until they are
  // processed it is rejected, and it never matches an expired order.
  const accepted = (path: string, body: object): Promise<void> =>
    eventually(async () => expect((await client.request("POST", path, { body })).code).toBe(0));
  await accepted("/wallet/split", { market_id: 1, quantity: 1 });
  await accepted("/orders", { market_id: 1, outcome_id: 1, side: 2, price: 50, quantity: 1 });
  expect(await other.order(49)).toMatchObject({ price: 50, status: "filled" });
  await eventually(async () => expect(await client.all("/orders")).toEqual([]));
  for (const id of [lasting + 1, orders]) {
    expect(await client.order(id)).toMatchObject({ status: "expired", reason: "expired" });
  }
  expect(await client.balance()).toMatchObject({ held: 0 });
  const live = await other.all<OrderJson>("/orders");
  expect(live).toHaveLength(lasting - 1);
  await expectHolds(other, live);
  expect(await other.book(1, 1)).toMatchObject({ bids: levelsOf(live, 1), asks: [] });
  client.close();
  other.close();
  await server.stop();
  expectSoundDatabase(server.dataDir);
});
