/**
 * Personal access tokens, as owners and thieves use them: shown once, bound to scopes, a lifetime and addresses. The
 * server stands behind a trusted proxy. For revocation and use, see pat-ends.test.ts; for restarts, restarts.test.ts.
 */
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { CLOSE_DEADLINE_MS, expectBalanced, expectEndsWell, expectUnlogged } from "../support/checks.ts";
import type { Answer, Client, OrderJson } from "../support/client.ts";
import { expectUnkept } from "../support/data-dir.ts";
import { type CreatedPatJson, Guests, PASSWORD } from "../support/identity.ts";
import { refusedUpgrade, Socket } from "../support/socket.ts";
import { BUY, expectRefused, terms } from "../support/trading.ts";
import { ALL_SCOPES, PUBLIC_URL, type UserSpec, World } from "../support/world.ts";
import { askMe, enter as enterAs, list, make as makeFor, PATH, recordOf, revoke, tryMake } from "./pat-holder.ts";

const DAY_MS = 86_400_000;
const TRADING = ["orders:write", "portfolio:read"];

const NAMES = ["making", "refused", "scoped", "doubling", "expiring", "bound"];

let world: World;
const guests = new Guests();
const { secrets } = guests;

beforeAll(async () => {
  const named = Object.fromEntries(NAMES.map((name): [string, UserSpec] => [name, { password: PASSWORD, scopes: [] }]));
  world = await World.start({
    named,
    users: 1,
    markets: [2, 2, 2],
    env: { PUBLIC_URL, TRUSTED_PROXIES: "127.0.0.1" },
  });
});

afterAll(async () => {
  guests.close();
  await expectBalanced(world.anonymous());
  await expectEndsWell(world);
  expectUnlogged(secrets, world.server);
  expectUnkept(secrets, world.server.dataDir);
});

const clientOf = (token: string, sockets = 1): Client => guests.client(world.server, token, sockets);
const enter = (name: string): Promise<Client> => enterAs(guests, world, name);
const make = (session: Client, more?: object): Promise<CreatedPatJson> => makeFor(guests, session, more);
const isGone = (client: Client): Promise<Answer> => expectRefused(askMe(client), 401, 40100);

describe("a token", () => {
  test("a token is shown once, with 256 bits, and its record shows how it begins", async () => {
    const session = await enter("making");
    const before = Date.now();
    const expiresAt = before + DAY_MS;
    const answer = await tryMake(session, { name: "CI {pipeline} №1", scopes: TRADING, expires_at: expiresAt });
    const { token, ...record } = answer.data;
    secrets.add(token);
    expect([answer.status, answer.headers["cache-control"]]).toEqual([201, "no-store"]);
    expect(token).toMatch(/^pm_pat_[A-Za-z0-9_-]{43}$/);
    const { id, prefix, created_at, ...rest } = record;
    expect(rest).toEqual({
      name: "CI {pipeline} №1",
      scopes: TRADING,
      allowed_ips: null,
      last_used_at: null,
      expires_at: expiresAt,
    });
    expect([token.startsWith(prefix), prefix.startsWith("pm_pat_"), prefix.length <= 16]).toEqual([true, true, true]);
    expect(created_at).toBeGreaterThanOrEqual(before);
    expect(created_at).toBeLessThanOrEqual(Date.now());
    const later = [await make(session, { name: "second", expires_at: null, allowed_ips: null }), await make(session)];
    expect(new Set([token, ...later.map((each) => each.token)]).size).toBe(3);

    const all = await list(session);
    expect(all).toEqual([...later.toReversed().map(({ token: _, ...each }) => each), record]);
    expect(all.at(-1)!.id).toBe(id);
    for (const limit of [1, 2, 3]) expect(await list(session, limit)).toEqual(all);
    expect(JSON.stringify(all)).not.toContain(token);
    for (const query of ["limit=0", "limit=201", "cursor=x", "page=1"]) {
      const asked = session.request("GET", `${PATH}?${query}`);
      await expectRefused(asked, 400, 40000, new RegExp(`^${query.split("=")[0]}`));
    }
    expect((await askMe(clientOf(token))).data).toMatchObject({ email: "making@example.com" });
    for (const wrong of [`${token}A`, token.slice(0, -1), token.toUpperCase(), token.slice(7), prefix, "pm_pat_"]) {
      expect((await session.request("GET", "/me", { headers: { Authorization: `Bearer ${wrong}` } })).code).toBe(40100);
      expect(await refusedUpgrade(world.server, wrong)).toEqual([401, 40100]);
    }
  });

  test("an invalid request for a token names the wrong field, and creates none", async () => {
    const session = await enter("refused");
    const now = Date.now();
    const wrong: [body: object, field: string][] = [
      [{ name: "" }, "name"],
      [{ name: "x".repeat(101) }, "name"],
      [{ name: "line\nbreak" }, "name"],
      [{ name: 7 }, "name"],
      [{ name: undefined }, "name"],
      [{ scopes: [] }, "scopes"],
      [{ scopes: undefined }, "scopes"],
      [{ scopes: "orders:write" }, "scopes"],
      [{ scopes: ["orders:write", "admin"] }, "scopes"],
      [{ scopes: ["Orders:Write"] }, "scopes"],
      [{ scopes: ["orders:write portfolio:read"] }, "scopes"],
      [{ scopes: [null] }, "scopes"],
      [{ expires_at: now - 1 }, "expires_at"],
      [{ expires_at: 0 }, "expires_at"],
      [{ expires_at: -1 }, "expires_at"],
      // A time in seconds instead of milliseconds is in the past.
      [{ expires_at: Math.floor(now / 1_000) + 3_600 }, "expires_at"],
      [{ expires_at: now + DAY_MS + 0.5 }, "expires_at"],
      [{ expires_at: new Date(now + DAY_MS).toISOString() }, "expires_at"],
      [{ expires_at: 1e300 }, "expires_at"],
      [{ allowed_ips: [] }, "allowed_ips"],
      [{ allowed_ips: "127.0.0.1" }, "allowed_ips"],
      [{ allowed_ips: Array.from({ length: 1_000 }, (_, i) => `10.0.${i >> 8}.${i & 255}`) }, "allowed_ips"],
      [{ token: "pm_pat_chosen" }, "token"],
      [{ id: 1 }, "id"],
      [{ last_used_at: null }, "last_used_at"],
      [{ user_id: 1 }, "user_id"],
    ];
    const ranges = ["", "localhost", "300.1.1.1", "10.0.0", "10.0.0.0/33", "10.0.0.0/-1", "10.0.0.0/", "10.0.0.0/8/8"];
    const others = ["::1/129", "fe80::1%eth0", "1.2.3.4 ", "10.0.0.1,10.0.0.2", "*", "0x7f.1", "10.0.0.0/0x8", "[::1]"];
    for (const range of [...ranges, ...others]) wrong.push([{ allowed_ips: ["127.0.0.1", range] }, "allowed_ips"]);
    for (const [body, field] of wrong) await expectRefused(tryMake(session, body), 400, 40000, new RegExp(`^${field}`));
    expect(await list(session)).toEqual([]);
  });

  test("a token keeps each scope once", async () => {
    const session = await enter("doubling");
    const scopes = ["portfolio:read", "orders:write", "portfolio:read"];
    const made = await make(session, { scopes });
    expect(made.scopes.toSorted()).toEqual(TRADING);
    expect((await recordOf(session, made.id)).scopes).toEqual(made.scopes);
  });

  test("a token with one scope may do what that scope allows, and nothing more", async () => {
    const session = await enter("scoped");
    const { server } = world;
    const market = world.market();
    const order = terms(market, 0, BUY, 100, 1);
    const writes: [method: string, path: string, body?: object][] = [
      ["POST", "/orders", order],
      ["POST", "/orders/batch", { operations: [{ op: "place", ...order }] }],
      ["PUT", `/quotes/${market.id}`, { quotes: [] }],
      ["PATCH", "/orders/999999999", { price: 5 }],
      ["DELETE", "/orders/999999999"],
      ["DELETE", "/orders"],
    ];
    const reads: [method: string, path: string][] = [
      ["GET", "/orders"],
      ["GET", "/orders/999999999"],
      ["GET", "/me/fills"],
      ["GET", "/me/positions"],
      ["GET", "/wallet/balance"],
      ["GET", "/me/balance"],
      ["GET", "/users/me/balance"],
      ["GET", "/wallet/transactions"],
    ];
    const operations: [op: string, data: object][] = [
      ["order.place", order],
      ["order.cancel", { id: 999_999_999 }],
      ["order.cancel_all", {}],
      ["order.amend", { id: 999_999_999, price: 5 }],
      ["order.batch", { operations: [{ op: "place", ...order }] }],
      ["quotes.replace", { market_id: market.id, quotes: [] }],
    ];
    for (const scope of ALL_SCOPES) {
      const client = clientOf((await make(session, { scopes: [scope] })).token);
      const socket = await Socket.open(server, client.token);
      const expectAllowed = (what: string, code: number, isAllowed: boolean): void => {
        expect([scope, what, isAllowed ? code === 0 || code === 4040 : code === 40300]).toEqual([scope, what, true]);
      };
      for (const [method, path, body] of writes) {
        const { code } = await client.request(method, path, body === undefined ? {} : { body });
        expectAllowed(`${method} ${path}`, code, scope === "orders:write");
      }
      for (const [method, path] of reads) {
        expectAllowed(`${method} ${path}`, (await client.request(method, path)).code, scope === "portfolio:read");
      }
      for (const [op, data] of operations) {
        expectAllowed(op, (await socket.ask({ op, data })).code, scope === "orders:write");
      }
      const { code } = await socket.ask({ op: "cancel_on_disconnect", enabled: true });
      expectAllowed("cancel_on_disconnect", code, scope === "orders:write");
      // Any token may read its owner's identity, and market data is public.
      expect((await askMe(client)).code).toBe(0);
      expect((await client.request("GET", `/markets/${market.id}`)).code).toBe(0);
      await socket.subscribe("book", market.id);
      await socket.close();
    }
  });

  test("a token on a socket gets the updates of orders and money that its scopes allow", async () => {
    const session = await enter("scoped");
    const market = world.market();
    const sockets: [scope: string, socket: Socket][] = [];
    for (const scope of ALL_SCOPES) {
      sockets.push([scope, await Socket.open(world.server, (await make(session, { scopes: [scope] })).token)]);
    }
    const { id } = await session.place(terms(market, 0, BUY, 100, 1));
    await session.cancel(id);
    const reader = sockets.find(([scope]) => scope === "portfolio:read")![1];
    await reader.frame<OrderJson>("order.updated", (data) => data.id === id && data.status === "canceled");
    await reader.frame<{ held: number }>("balance.updated", ({ held }) => held === 0);
    for (const [scope, socket] of sockets) {
      await socket.fence();
      const heard = [...new Set(socket.frames.map(({ event }) => event))].sort();
      const orders = ["orders:write", "portfolio:read"].includes(scope) ? ["order.updated"] : [];
      expect([scope, heard]).toEqual([scope, scope === "portfolio:read" ? ["balance.updated", ...orders] : orders]);
      await socket.close();
    }
  });

  test("a token expires, with its sockets", async () => {
    const session = await enter("expiring");
    const expiresAt = Date.now() + 1_500;
    const made = await make(session, { expires_at: expiresAt });
    const lasting = await make(session, { expires_at: Date.now() + DAY_MS });
    const [client, other] = [clientOf(made.token), clientOf(lasting.token)];
    expect((await askMe(client)).code).toBe(0);
    const [socket, otherSocket] = [
      await Socket.open(world.server, made.token),
      await Socket.open(world.server, lasting.token),
    ];
    const [code, at] = await socket.closed.then((each) => [each, Date.now()] as const);
    expect([code, at >= expiresAt]).toEqual([4401, true]);
    expect(at).toBeLessThanOrEqual(expiresAt + CLOSE_DEADLINE_MS);
    await expectRefused(askMe(client), 401, 2002);
    await expectRefused(client.request("POST", "/orders", { body: {} }), 401, 2002);
    expect(await refusedUpgrade(world.server, made.token)).toEqual([401, 2002]);
    await otherSocket.fence();
    expect((await askMe(other)).code).toBe(0);
    // The owner can still see and revoke it.
    expect(await recordOf(session, made.id)).toMatchObject({ expires_at: expiresAt });
    expect((await revoke(session, made.id)).code).toBe(0);
    await isGone(client);
    await otherSocket.close();
  });
});

describe("allowed addresses", () => {
  const allowed = [
    "192.0.2.7",
    "198.51.100.0/24",
    "203.0.113.77/28",
    "2001:db8::7",
    "2001:DB8:1:0::/48",
    "::ffff:192.0.2.99",
  ];
  const good = [
    "192.0.2.7",
    "::ffff:192.0.2.7",
    "198.51.100.0",
    "198.51.100.255",
    "203.0.113.64",
    "203.0.113.79",
    "2001:db8::7",
    "2001:0DB8:0:0:0:0:0:7",
    "2001:db8:1:ffff::1",
    "192.0.2.99",
    // The rightmost entry counts; the client can forge the entries to its left.
    "10.1.1.1, 192.0.2.7",
    "junk, 192.0.2.7",
  ];
  const bad = [
    "192.0.2.8",
    "198.51.101.0",
    "203.0.113.80",
    "203.0.113.63",
    "2001:db8::8",
    "2001:db8:2::1",
    "::1",
    "::192.0.2.7",
    "192.0.2.7, 192.0.2.8",
    "192.0.2.7, 127.0.0.2",
    // No usable entry: the proxy's own address counts.
    "192.0.2.7, junk",
    "",
  ];

  test("allowed addresses bind a token, over HTTP and on a socket, by the address that a trusted proxy saw", async () => {
    const session = await enter("bound");
    const { server } = world;
    const made = await make(session, { allowed_ips: allowed });
    expect((await recordOf(session, made.id)).allowed_ips).toEqual(made.allowed_ips);
    expect(made.allowed_ips).toHaveLength(allowed.length);
    const client = clientOf(made.token);
    const order = { body: terms(world.markets[0]!, 0, BUY, 100, 1) };
    for (const address of bad) {
      const headers = { "X-Forwarded-For": address };
      const answers = [askMe(client, headers), client.request("POST", "/orders", { ...order, headers })];
      expect([address, (await Promise.all(answers)).map(({ status, code }) => [status, code])]).toEqual([
        address,
        [
          [403, 40300],
          [403, 40300],
        ],
      ]);
      expect([address, await refusedUpgrade(server, made.token, headers)]).toEqual([address, [403, 40300]]);
    }
    await expectRefused(askMe(client), 403, 40300);
    // A rejected request does not update the last use.
    expect((await recordOf(session, made.id)).last_used_at).toBeNull();
    for (const address of good) {
      const headers = { "X-Forwarded-For": address };
      expect([address, (await askMe(client, headers)).code]).toEqual([address, 0]);
      const socket = await Socket.open(server, made.token, { headers });
      await socket.fence();
      await socket.close();
    }
    const { data, code } = await client.request<{ id: number }>("POST", "/orders", {
      ...order,
      headers: { "X-Forwarded-For": "192.0.2.7" },
    });
    expect(code).toBe(0);
    await session.cancel(data.id);
    expect((await recordOf(session, made.id)).last_used_at).not.toBeNull();
    // The owner's session works from any address.
    expect((await askMe(session, { "X-Forwarded-For": "192.0.2.8" })).code).toBe(0);
    // A revoked token is invalid from every address.
    await revoke(session, made.id);
    await expectRefused(askMe(client, { "X-Forwarded-For": "192.0.2.8" }), 401, 40100);
  });
});
