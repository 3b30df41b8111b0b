/**
 * A connection beyond books, trades and its own orders: the ticker and markets channels, subscriptions to lists of
 * markets, heartbeats, tickets in place of tokens, a fresh token on the open socket, and the last frame before a
 * shutdown.
 */
import type { Static } from "typebox";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { Principal } from "../../server/accounts/types.ts";
import {
  HEARTBEAT_MS,
  MAX_SOCKET_TICKETS,
  MAX_WS_SUBSCRIPTIONS,
  SNAPSHOTS_PER_SECOND,
  SOCKET_TICK_MS,
} from "../../server/websocket/limits.ts";
import type { Ticker } from "../../server/websocket/schemas.ts";
import { SocketTickets } from "../../server/websocket/tickets.ts";
import { clockAt, expectEnded, expectEndsWell, expectSoundDatabase } from "../support/checks.ts";
import type { Client, MarketJson, OrderJson } from "../support/client.ts";
import { createPat, Guests, PASSWORD } from "../support/identity.ts";
import { SPEAKS_SBE } from "../support/projects.ts";
import { type Acknowledgement, type Frame, refusedUpgrade, Socket } from "../support/socket.ts";
import { BUY, SELL, terms } from "../support/terms.ts";
import { expectRefused } from "../support/trading.ts";
import { type TestMarket, World } from "../support/world.ts";

const TOKEN_TTL_S = 4;
/** The address of a request, for tokens bound to addresses. */
const from = (address: string): { headers: Record<string, string> } => ({ headers: { "X-Forwarded-For": address } });

type TickerJson = Static<typeof Ticker>;

let world: World;
const guests = new Guests();
/** Open from the start, so that their heartbeats arrive while other tests run. */
let beaten: Socket[];
let beatenMarket: TestMarket;
let beatenUser: Client;
let beatenOrder: OrderJson;
/** The session behind it expires while other tests run. */
let expiringTicket: string;
let expiresAt: number;

const ticketFor = async (client: Client, more = {}): Promise<string> => {
  const { data, status } = await client.request<{ ticket: string; expires_at: number }>("POST", "/ws-tickets", more);
  expect(status).toBe(201);
  expect(Math.abs(data.expires_at - Date.now() - 60_000)).toBeLessThan(5_000);
  guests.secrets.add(data.ticket);
  return data.ticket;
};

beforeAll(async () => {
  world = await World.start({
    users: 12,
    named: { alice: { password: PASSWORD }, bob: { password: PASSWORD } },
    markets: [...Array<number>(12).fill(2), ...Array<number>(32).fill(32)],
    env: { ACCESS_TOKEN_TTL: String(TOKEN_TTL_S), TRUSTED_PROXIES: "127.0.0.1" },
  });
  beatenMarket = world.market();
  beatenUser = world.user();
  beaten = [
    await world.socket(beatenUser),
    await Socket.open(world.server, beatenUser.token, { protocols: ["msgpack"] }),
    await Socket.open(world.server, null),
  ];
  for (const channel of ["book", "trades", "ticker", "markets"]) await beaten[0]!.subscribe(channel, beatenMarket.id);
  await beaten[2]!.subscribe("ticker", beatenMarket.id, beatenMarket.outcomes[1]);
  await world.split(beatenUser, beatenMarket, 5);
  beatenOrder = await beatenUser.place(terms(beatenMarket, 0, BUY, 10, 1));
  const { client } = await guests.signIn(world.server, "bob@example.com");
  expiresAt = Date.now() + TOKEN_TTL_S * 1_000;
  expiringTicket = await ticketFor(client);
});
afterAll(async () => {
  guests.close();
  await expectEndsWell(world);
});

const refused = (answer: Promise<Acknowledgement>): Promise<number> => answer.then(({ code }) => code);
const tickers = (socket: Socket, outcome: number): Frame<TickerJson>[] =>
  socket.of<TickerJson>("ticker.updated").filter(({ data }) => data.outcome_id === outcome);

async function tickerOf(market: TestMarket, outcome: number): Promise<TickerJson> {
  const { outcomes } = await world.anonymous().get<MarketJson>(`/markets/${market.id}`);
  const { id: _, name: __, index: ___, price_24h_ago: ____, ...shown } = outcomes.find(({ id }) => id === outcome)!;
  return { market_id: market.id, outcome_id: outcome, ...shown };
}

describe("ticker", () => {
  test("the ticker begins with the current state, then sends changes, numbered without a gap, and ends equal to REST", async () => {
    const [market, maker, taker] = [world.market(), world.user(), world.user()];
    await world.split(maker, market, 50);
    const sockets = [
      await Socket.open(world.server, null),
      await Socket.open(world.server, null, { protocols: ["msgpack"] }),
    ];
    for (const socket of sockets) await socket.subscribe("ticker", market.id);
    for (const outcome of market.outcomes) {
      await sockets[1]!.frame<TickerJson>("ticker.updated", (data) => data.outcome_id === outcome);
      expect(tickers(sockets[1]!, outcome)[0]!.data).toEqual(await tickerOf(market, outcome));
    }
    for (let n = 0; n < 4; n++) {
      await maker.place(terms(market, 0, SELL, 6_000 - n, 2));
      await taker.place(terms(market, 0, BUY, 6_000 - n, 1));
      await taker.place(terms(market, 1, BUY, 100 + n, 1));
      await sockets[0]!.frame<TickerJson>("ticker.updated", ({ last_price }) => last_price === 6_000 - n);
    }
    for (const outcome of market.outcomes) {
      const last = await tickerOf(market, outcome);
      for (const socket of sockets) {
        await socket.frame<TickerJson>("ticker.updated", (data) => JSON.stringify(data) === JSON.stringify(last));
        await socket.fence();
        const sent = tickers(socket, outcome);
        expect(sent.map(({ sequence }) => sequence)).toEqual(sent.map((_, i) => sent[0]!.sequence + i));
        expect(sent.at(-1)!.data).toEqual(last);
      }
      // Apart from the first of each.
      expect(tickers(sockets[1]!, outcome).slice(1)).toEqual(tickers(sockets[0]!, outcome).slice(1));
    }
    for (const socket of sockets) await socket.close();
  });

  test("the ticker is sent ten times a second at most, however fast the book moves", async () => {
    const [market, user] = [world.market(), world.user()];
    const socket = await Socket.open(world.server, null);
    await socket.subscribe("ticker", market.id, market.outcomes[0]);
    const start = Date.now();
    for (let n = 1; n <= 150; n++) await user.place(terms(market, 0, BUY, n, 1));
    await socket.frame<TickerJson>("ticker.updated", ({ best_bid }) => best_bid === 150);
    const elapsed = Date.now() - start;
    const sent = tickers(socket, market.outcomes[0]!);
    // A late tick may be followed by one on time.
    expect(sent.length).toBeLessThanOrEqual(3 + elapsed / SOCKET_TICK_MS);
    expect(sent.length).toBeLessThan(120);
    expect(tickers(socket, market.outcomes[1]!)).toEqual([]);
    await socket.close();
  });

  test("a later subscriber of the ticker continues from the last update sent", async () => {
    const [market, user] = [world.market(), world.user()];
    const [outcome] = market.outcomes as [number];
    const first = await Socket.open(world.server, null);
    await first.subscribe("ticker", market.id, outcome);
    await user.place(terms(market, 0, BUY, 10, 1));
    await first.frame<TickerJson>("ticker.updated", ({ best_bid }) => best_bid === 10);
    const second = await Socket.open(world.server, null);
    await second.subscribe("ticker", market.id, outcome);
    await user.place(terms(market, 0, BUY, 11, 1));
    for (const socket of [first, second]) {
      await socket.frame<TickerJson>("ticker.updated", ({ best_bid }) => best_bid === 11);
    }
    expect(tickers(second, outcome).at(-1)).toEqual(tickers(first, outcome).at(-1));
    expect(tickers(second, outcome)[0]!.sequence).toBe(tickers(second, outcome).at(-1)!.sequence - 1);
    for (const socket of [first, second]) await socket.close();
  });

  test("a ticker state that a subscription begins with is marked, so a repeated subscribe isn't a repeated change", async () => {
    const [market, user] = [world.market(), world.user()];
    const [outcome] = market.outcomes as [number];
    const socket = await Socket.open(world.server, null);
    for (let n = 0; n < 2; n++) {
      for (const channel of ["book", "ticker"]) await socket.subscribe(channel, market.id, outcome);
      await socket.subscribe("markets", market.id);
    }
    await user.place(terms(market, 0, BUY, 10, 1));
    await socket.frame<TickerJson>("ticker.updated", ({ best_bid }) => best_bid === 10);
    await socket.frame("book.updated");
    const marks = (event: string): unknown[] => socket.of(event).map(({ snapshot }) => snapshot);
    expect(marks("book.snapshot")).toEqual([true, true]);
    expect(marks("market.updated")).toEqual([true, true]);
    expect(marks("ticker.updated")).toEqual([true, true, undefined]);
    expect(marks("book.updated")).toEqual([undefined]);
    const [begun, again, next] = tickers(socket, outcome);
    expect([again!.sequence, next!.sequence]).toEqual([begun!.sequence, begun!.sequence + 1]);
    await socket.close();
  });
});

describe("subscriptions", () => {
  test("subscriptions to markets: one, several, all; each named one begins with the market as REST shows it, all of them with nothing", async () => {
    const socket = await Socket.open(world.server, null);
    const [one, two, three] = world.markets as [TestMarket, TestMarket, TestMarket];
    const answers = [
      await socket.ask({ op: "subscribe", channel: "markets", market_id: one.id }),
      await socket.ask({ op: "subscribe", channel: "markets", market_ids: [two.id, three.id] }),
      await socket.ask({ op: "subscribe", channel: "markets" }),
    ];
    const listed = answers.flatMap(({ data }) => (data as { subscriptions: object[] }).subscriptions);
    const rows = [one.id, two.id, three.id, null].map((market_id) => ({
      channel: "markets",
      market_id,
      outcome_id: null,
    }));
    expect(listed).toMatchObject(rows);
    await socket.fence();
    const frames = socket.of<MarketJson>("market.updated");
    expect(frames.map(({ data }) => data.id)).toEqual([one.id, two.id, three.id]);
    for (const { data } of frames) expect(data).toEqual(await world.anonymous().get(`/markets/${data.id}`));
    const ended = await socket.ask({ op: "unsubscribe", channel: "markets" });
    expect(ended.data).toMatchObject({ subscriptions: [rows[3]] });
    expect((await socket.ask({ op: "unsubscribe", channel: "markets" })).data).toEqual({ subscriptions: [] });
    await socket.close();
  });

  test.skipIf(SPEAKS_SBE)("a request that names no subscription is rejected as a whole", async () => {
    const [market, other] = world.markets as [TestMarket, TestMarket];
    const socket = await Socket.open(world.server, null);
    const [id, outcome_id] = [market.id, market.outcomes[0]!];
    const wrong: [object, number][] = [
      [{ channel: "markets", market_id: id, market_ids: [other.id] }, 40000],
      [{ channel: "ticker", market_ids: [] }, 40000],
      [{ channel: "ticker", market_ids: Array(MAX_WS_SUBSCRIPTIONS + 1).fill(id) }, 40000],
      [{ channel: "ticker", market_ids: [String(id)] }, 40000],
      [{ channel: "ticker", market_ids: id }, 40000],
      [{ channel: "ticker" }, 40000],
      [{ channel: "trades" }, 40000],
      [{ channel: "book" }, 40000],
      [{ channel: "ticker", outcome_id }, 40000],
      [{ channel: "ticker", market_ids: [id], outcome_id }, 40000],
      [{ channel: "trades", market_id: id, outcome_id }, 40000],
      [{ channel: "markets", market_id: id, outcome_id }, 40000],
      [{ channel: "markets", outcome_id }, 40000],
      [{ channel: "ticker", market_ids: [id, 999_999] }, 4040],
      [{ channel: "ticker", market_id: id, outcome_id: other.outcomes[0] }, 4040],
      [{ channel: "markets", market_id: 999_999 }, 4040],
    ];
    for (const op of ["subscribe", "unsubscribe"]) {
      for (const [named, code] of wrong) {
        const operation = { op, ...named };
        expect([operation, await refused(socket.ask(operation))]).toEqual([operation, code]);
      }
    }
    await socket.fence();
    expect(socket.frames).toEqual([]);
    await socket.close();
  });

  test("a repeated subscription resets: a new snapshot, and each change once", async () => {
    const [market, user] = [world.market(), world.user()];
    const socket = await Socket.open(world.server, null);
    for (let n = 0; n < 2; n++) {
      await socket.subscribe("book", market.id, market.outcomes[0]);
      await socket.ask({ op: "subscribe", channel: "ticker", market_ids: [market.id] });
    }
    await user.place(terms(market, 0, BUY, 10, 1));
    await socket.frame<TickerJson>("ticker.updated", ({ best_bid }) => best_bid === 10);
    await socket.fence();
    expect(socket.of("book.snapshot")).toHaveLength(2);
    expect(socket.of("book.updated")).toHaveLength(1);
    await socket.ask({ op: "unsubscribe", channel: "book", market_id: market.id });
    await user.place(terms(market, 0, BUY, 11, 1));
    await socket.frame<TickerJson>("ticker.updated", ({ best_bid }) => best_bid === 11);
    expect(socket.of("book.updated")).toHaveLength(1);
    await socket.close();
  });

  test("a subscription's market_ids count a repeated market once; a flood of them is rejected at once", async () => {
    const market = world.market();
    const socket = await Socket.open(world.server, null, { protocols: ["msgpack"] });
    const { data } = await socket.ask({ op: "subscribe", channel: "trades", market_ids: [market.id, market.id] });
    expect((data as { subscriptions: unknown[] }).subscriptions).toHaveLength(1);
    const start = performance.now();
    const flood = { op: "subscribe", channel: "trades", market_ids: Array<number>(60_000).fill(1) };
    for (let n = 0; n < 20; n++) {
      const answer = await socket.ask(flood);
      expect([answer.code, answer.msg]).toEqual([40000, `market_ids: at most ${MAX_WS_SUBSCRIPTIONS} items`]);
    }
    // A single one used to take a second.
    expect(performance.now() - start).toBeLessThan(5_000);
    await socket.close();
  });

  test("a thousand snapshots of subscriptions come in order, a second thousand too, and then the limit per second applies", async () => {
    const large = world.markets.filter(({ outcomes }) => outcomes.length === 32).slice(0, 31);
    const market_ids = large.map(({ id }) => id);
    const socket = await Socket.open(world.server, null);
    const subscribe = { op: "subscribe", channel: "book", market_ids };
    const outcomes = large.flatMap((market) => market.outcomes);
    for (let turn = 1; turn <= 2; turn++) {
      expect(await refused(socket.ask(subscribe))).toBe(0);
      await socket.until(() => (socket.frames.length >= turn * outcomes.length ? true : undefined), "all snapshots");
      const begun = socket.of<{ outcome_id: number }>("book.snapshot").slice((turn - 1) * outcomes.length);
      expect(begun.map(({ data }) => data.outcome_id)).toEqual(outcomes);
    }
    const { code, msg } = await socket.ask(subscribe);
    expect([code, msg]).toEqual([42900, expect.stringContaining(`${SNAPSHOTS_PER_SECOND} a second`)]);
    await socket.close();
  });

  test("the bound of subscriptions counts topics: a request beyond it is rejected as a whole, and an existing topic counts once", async () => {
    const large = world.markets.filter(({ outcomes }) => outcomes.length === 32).map(({ id }) => id);
    const socket = await Socket.open(world.server, null);
    const subscribe = (...market_ids: number[]): Promise<number> =>
      refused(socket.ask({ op: "subscribe", channel: "ticker", market_ids }));
    expect(await subscribe(...large)).toBe(40000);
    expect(await subscribe(...large.slice(0, 31))).toBe(0);
    expect(await subscribe(...large.slice(0, 31))).toBe(0);
    expect(await subscribe(large[31]!)).toBe(40000);
    const small = world.markets.slice(0, 5).map(({ id }) => id);
    expect(await subscribe(...small.slice(0, 4))).toBe(0);
    expect(31 * 32 + 4 * 2).toBe(MAX_WS_SUBSCRIPTIONS);
    expect(await subscribe(small[4]!)).toBe(40000);
    await socket.close();
  });
});

describe("tickets", () => {
  test("a ticket opens one connection as its token would, once", async () => {
    const [market, user] = [world.market(), world.user()];
    const ticket = await ticketFor(user);
    await expectRefused(guests.client(world.server, ticket).request("GET", "/me"), 401, 40100);
    const socket = await Socket.open(world.server, ticket);
    const order = await socket.data<OrderJson>("order.place", terms(market, 0, BUY, 10, 1));
    await socket.frame<OrderJson>("order.updated", ({ id }) => id === order.id);
    expect(await refusedUpgrade(world.server, ticket)).toEqual([401, 40100]);
    expect(await refusedUpgrade(world.server, `${ticket.slice(0, -1)}!`)).toEqual([401, 40100]);
    await expectRefused(world.anonymous().request("POST", "/ws-tickets"), 401, 40100);
    await socket.close();
  });

  test("a ticket has the limits of its token: revoked, bound to addresses, expired", async () => {
    const { client } = await guests.signIn(world.server, "bob@example.com");
    const pat = await createPat(client, { allowed_ips: ["192.0.2.1"] });
    const holder = guests.client(world.server, pat.token);
    await expectRefused(holder.request("POST", "/ws-tickets", from("192.0.2.2")), 403, 40300);
    const [here, elsewhere, late] = [
      await ticketFor(holder, from("192.0.2.1")),
      await ticketFor(holder, from("192.0.2.1")),
      await ticketFor(holder, from("192.0.2.1")),
    ];
    const socket = await Socket.open(world.server, here, from("192.0.2.1"));
    expect(await refusedUpgrade(world.server, elsewhere, from("192.0.2.2").headers)).toEqual([403, 40300]);
    expect(await refusedUpgrade(world.server, elsewhere, from("192.0.2.1").headers)).toEqual([401, 40100]);
    await client.data("DELETE", `/me/personal-access-tokens/${pat.id}`);
    await expectEnded(socket);
    expect(await refusedUpgrade(world.server, late, from("192.0.2.1").headers)).toEqual([401, 40100]);

    await clockAt(expiresAt);
    expect(await refusedUpgrade(world.server, expiringTicket)).toEqual([401, 2002]);
  });

  test("a ticket lasts sixty seconds and works once, and their number is bounded", () => {
    const tickets = new SocketTickets();
    const principal = {} as Principal;
    const issued = [0, 1, 2].map(() => tickets.issue(principal, 1_000));
    for (const { expiresAt } of issued) expect(expiresAt).toBe(61_000);
    const [first, second, third] = issued.map(({ ticket }) => ticket) as [string, string, string];
    expect(new Set([first, second, third]).size).toBe(3);
    expect(tickets.redeem(first, 60_999)).toBe(principal);
    expect(tickets.redeem(first, 60_999)).toBeNull();
    expect(tickets.redeem(second, 61_000)).toBeNull();
    expect(tickets.redeem(second, 1_000)).toBeNull();
    expect(tickets.redeem("pm_wst_", 1_000)).toBeNull();
    for (let n = 1; n < MAX_SOCKET_TICKETS; n++) tickets.issue(principal, 2_000);
    expect(() => tickets.issue(principal, 60_999)).toThrow(/too many tickets/);
    // The third has expired by now, and makes room for one.
    tickets.issue(principal, 61_000);
    expect(() => tickets.issue(principal, 61_000)).toThrow(/too many tickets/);
    expect(tickets.redeem(third, 61_000)).toBeNull();
  });
});

describe("a token on the open socket", () => {
  const auth = (socket: Socket, token: unknown): Promise<Acknowledgement> => socket.ask({ op: "auth", token });

  test("a refreshed token keeps the socket open past the expiry of the first; without it the socket closes with 4401", async () => {
    const { accessToken, refreshToken, user } = await guests.signIn(world.server, "alice@example.com");
    const [kept, left] = [await Socket.open(world.server, accessToken), await Socket.open(world.server, accessToken)];
    await clockAt(Date.now() + 1_000);
    const body = { refresh_token: refreshToken };
    const refreshed = await world.anonymous().data<{ access_token: string }>("POST", "/auth/refresh", body);
    const answer = await auth(kept, refreshed.access_token);
    expect(answer).toMatchObject({ code: 0, data: { user_id: user.id } });
    const { expires_at } = answer.data as { expires_at: number };
    expect(Math.abs(expires_at - Date.now() - TOKEN_TTL_S * 1_000)).toBeLessThan(1_500);
    expect(await left.closed).toBe(4401);
    const client = guests.client(world.server, refreshed.access_token);
    const order = await client.place(terms(world.market(), 0, BUY, 10, 1));
    await kept.frame<OrderJson>("order.updated", ({ id }) => id === order.id);
    const late = await Socket.open(world.server, null);
    expect(await refused(auth(late, accessToken))).toBe(2002);
    await late.close();
    await client.data("POST", "/auth/logout");
    await expectEnded(kept);
  });

  test("an invalid token on the open socket changes nothing, nor does another user's", async () => {
    const [market, user, other] = [world.market(), world.user(), world.user()];
    const socket = await world.socket(user);
    expect(await refused(auth(socket, other.token))).toBe(40300);
    for (const token of ["x", "pm_pat_x", "pm_wst_x", "eyJ.a.b"])
      expect(await refused(auth(socket, token))).toBe(40100);
    for (const token of SPEAKS_SBE ? [""] : ["", null, 1, undefined])
      expect(await refused(auth(socket, token))).toBe(40000);
    await other.place(terms(market, 0, BUY, 9, 1));
    const order = await user.place(terms(market, 0, BUY, 10, 1));
    await socket.frame<OrderJson>("order.updated", ({ id }) => id === order.id);
    expect(socket.of("order.updated")).toHaveLength(1);
    await socket.close();
  });

  test("an anonymous connection signs in, gets its orders from then on and may trade; a revoked token closes it", async () => {
    const market = world.market();
    const { client } = await guests.signIn(world.server, "alice@example.com");
    const pat = await createPat(client);
    const holder = guests.client(world.server, pat.token);
    const socket = await Socket.open(world.server, null);
    await socket.subscribe("book", market.id);
    const before = await holder.place(terms(market, 0, BUY, 10, 1));
    expect(await auth(socket, pat.token)).toMatchObject({ code: 0, data: { expires_at: null } });
    const after = await socket.data<OrderJson>("order.place", terms(market, 0, BUY, 11, 1));
    await socket.frame<OrderJson>("order.updated", ({ id }) => id === after.id);
    expect(socket.of<OrderJson>("order.updated").map(({ data }) => data.id)).toEqual([after.id]);
    const answer = await socket.ask({ op: "resume", sequence: 0 });
    await socket.frame<OrderJson>("order.updated", ({ id }) => id === before.id);
    expect(answer.code).toBe(0);
    await client.data("DELETE", `/me/personal-access-tokens/${pat.id}`);
    await expectEnded(socket);
  });

  test("a token with fewer scopes stops the private events, one with more resumes them", async () => {
    const market = world.market();
    const { client } = await guests.signIn(world.server, "alice@example.com");
    const [all, none] = [await createPat(client), await createPat(client, { scopes: ["markets:read"] })];
    const holder = guests.client(world.server, all.token);
    const socket = await Socket.open(world.server, all.token);
    const place = (price: number): Promise<OrderJson> => holder.place(terms(market, 0, BUY, price, 1));
    const first = await place(1);
    await socket.frame<OrderJson>("order.updated", ({ id }) => id === first.id);
    await auth(socket, none.token);
    expect(await refused(socket.ask({ op: "resume", sequence: 0 }))).toBe(40300);
    await place(2);
    await auth(socket, all.token);
    const third = await place(3);
    await socket.frame<OrderJson>("order.updated", ({ id }) => id === third.id);
    expect(socket.of<OrderJson>("order.updated").map(({ data }) => data.price)).toEqual([1, 3]);
    await socket.close();
  });
});

describe("heartbeats and shutdown", () => {
  test("heartbeats come every five seconds, numbered, with the last sequence of every subscription", async () => {
    const [json, packed, anonymous] = beaten as [Socket, Socket, Socket];
    const [update] = await Promise.all(
      [json, packed].map((socket) => socket.frame<OrderJson>("order.updated", ({ id }) => id === beatenOrder.id)),
    );
    for (const socket of beaten) {
      const enough = (): true | undefined => (socket.heartbeats.length >= 2 ? true : undefined);
      await socket.until(enough, "heartbeats", 3 * HEARTBEAT_MS);
      const { heartbeats } = socket;
      expect(heartbeats.map(({ sequence }) => sequence)).toEqual(heartbeats.map((_, i) => i + 1));
      for (const [i, { ts }] of heartbeats.entries()) {
        if (i > 0) expect(Math.abs(ts - heartbeats[i - 1]!.ts - HEARTBEAT_MS)).toBeLessThan(2_000);
      }
    }
    const { subscriptions, orders } = json.heartbeats.at(-1)!.data;
    expect(orders).toBe(update!.sequence);
    const named = subscriptions.map(({ channel, outcome_id }) => [channel, outcome_id]);
    const [first, second] = beatenMarket.outcomes;
    expect(named).toEqual([
      ["book", first],
      ["book", second],
      ["trades", null],
      ["ticker", first],
      ["ticker", second],
      ["markets", null],
    ]);
    expect(packed.heartbeats.at(-1)!.data).toEqual({ subscriptions: [], orders: update!.sequence });
    expect(anonymous.heartbeats.at(-1)!.data).toMatchObject({ subscriptions: [{ channel: "ticker" }], orders: null });
    for (const socket of beaten) await socket.close();
  });

  // The last test: it stops the server.
  test("a shutdown sends every connection a last frame, in its encoding, and closes it with 1001", async () => {
    const sockets = [
      await world.socket(beatenUser),
      await Socket.open(world.server, null),
      await Socket.open(world.server, beatenUser.token, { protocols: ["msgpack"] }),
    ];
    await world.server.stop();
    for (const socket of sockets) {
      expect(await socket.closed).toBe(1001);
      expect(socket.frames.at(-1)).toMatchObject({
        event: "system.shutdown",
        data: { reason: "restart", url: null },
      });
    }
    expectSoundDatabase(world.server.dataDir);
  });
});
