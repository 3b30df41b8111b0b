/**
 * What a connection is beside books, trades and its own orders: tickers, markets, subscriptions by the list, heartbeats,
 * tickets in place of tokens, a fresh token on the open socket, and the last word before a shutdown.
 */

import type * as Uws from "uWebSockets.js";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { Ledger } from "../../engine/ledger.ts";
import { type MarketRow, type OutcomeRow, UNDECIDED } from "../../engine/projection/load/markets.ts";
import type { Principal } from "../../server/accounts/types.ts";
import { NO_ADDRESS } from "../../server/http/client-address.ts";
import { loadUws } from "../../server/http/uws.ts";
import { MarketRegistry } from "../../server/markets/registry.ts";
import { Traffic } from "../../server/util/counters.ts";
import { Timeline } from "../../server/util/timeline.ts";
import { Channels } from "../../server/websocket/channels.ts";
import { SocketConnection, type SocketData } from "../../server/websocket/connection.ts";
import {
  HEARTBEAT_MS,
  MAX_SOCKET_TICKETS,
  MAX_WS_SUBSCRIPTIONS,
  SNAPSHOTS_PER_SECOND,
  SOCKET_TICK_MS,
} from "../../server/websocket/limits.ts";
import { SocketTickets } from "../../server/websocket/tickets.ts";
import { clockAt, expectEnded, expectEndsWell, expectSoundDatabase } from "../support/checks.ts";
import type { Client, MarketJson, OrderJson } from "../support/client.ts";
import { FollowedBook, type Levels } from "../support/followed-book.ts";
import { createPat, Guests, PASSWORD } from "../support/identity.ts";
import { Random } from "../support/random.ts";
import { RandomTrading } from "../support/random-trading.ts";
import { type Acknowledgement, type Frame, refusedUpgrade, Socket } from "../support/socket.ts";
import { BUY, SELL, terms } from "../support/terms.ts";
import { expectRefused } from "../support/trading.ts";
import { type TestMarket, tokenOf, World } from "../support/world.ts";

const TOKEN_TTL_S = 4;
/** Where requests come from, for those tokens that ask. */
const from = (address: string): { headers: Record<string, string> } => ({ headers: { "X-Forwarded-For": address } });

interface TickerJson {
  readonly market_id: number;
  readonly outcome_id: number;
  readonly last_price: number | null;
  readonly best_bid: number | null;
  readonly best_ask: number | null;
  readonly implied_bid: number | null;
  readonly implied_ask: number | null;
  readonly volume: number;
}

let world: World;
const guests = new Guests();
/** Open from the start on, so that their heartbeats come while other tests run. */
let beaten: Socket[];
let beatenMarket: TestMarket;
let beatenUser: Client;
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
  const { id: _, name: __, index: ___, ...shown } = outcomes.find(({ id }) => id === outcome)!;
  return { market_id: market.id, outcome_id: outcome, ...shown };
}

describe("ticker", () => {
  test("begins with what is, then tells what has changed, numbered without a gap, and ends where REST is", async () => {
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
        await socket.settled();
        const told = tickers(socket, outcome);
        expect(told.map(({ sequence }) => sequence)).toEqual(told.map((_, i) => told[0]!.sequence + i));
        expect(told.at(-1)!.data).toEqual(last);
      }
      // But for how each began.
      expect(tickers(sockets[1]!, outcome).slice(1)).toEqual(tickers(sockets[0]!, outcome).slice(1));
    }
    for (const socket of sockets) await socket.close();
  });

  test("is told ten times a second at most, however fast the book moves", async () => {
    const [market, user] = [world.market(), world.user()];
    const socket = await Socket.open(world.server, null);
    await socket.subscribe("ticker", market.id, market.outcomes[0]);
    const start = Date.now();
    for (let n = 1; n <= 150; n++) await user.place(terms(market, 0, BUY, n, 1));
    await socket.frame<TickerJson>("ticker.updated", ({ best_bid }) => best_bid === 150);
    const elapsed = Date.now() - start;
    const told = tickers(socket, market.outcomes[0]!);
    // A tick that came late may be followed by one in time.
    expect(told.length).toBeLessThanOrEqual(3 + elapsed / SOCKET_TICK_MS);
    expect(told.length).toBeLessThan(120);
    expect(tickers(socket, market.outcomes[1]!)).toEqual([]);
    await socket.close();
  });

  test("who comes later goes on from what was told last", async () => {
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
});

describe("subscriptions", () => {
  test("markets: one, several, all; each begins with the market as REST shows it, all of them with nothing", async () => {
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
    await socket.settled();
    const frames = socket.of<MarketJson>("market.updated");
    expect(frames.map(({ data }) => data.id)).toEqual([one.id, two.id, three.id]);
    for (const { data } of frames) expect(data).toEqual(await world.anonymous().get(`/markets/${data.id}`));
    const ended = await socket.ask({ op: "unsubscribe", channel: "markets" });
    expect(ended.data).toMatchObject({ subscriptions: [rows[3]] });
    expect((await socket.ask({ op: "unsubscribe", channel: "markets" })).data).toEqual({ subscriptions: [] });
    await socket.close();
  });

  test("what names no subscription is refused, and then nothing of it is subscribed", async () => {
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
    await socket.settled();
    expect(socket.frames).toEqual([]);
    await socket.close();
  });

  test("twice is once: it begins anew, and each change comes once", async () => {
    const [market, user] = [world.market(), world.user()];
    const socket = await Socket.open(world.server, null);
    for (let n = 0; n < 2; n++) {
      await socket.subscribe("book", market.id, market.outcomes[0]);
      await socket.ask({ op: "subscribe", channel: "ticker", market_ids: [market.id] });
    }
    await user.place(terms(market, 0, BUY, 10, 1));
    await socket.frame<TickerJson>("ticker.updated", ({ best_bid }) => best_bid === 10);
    await socket.settled();
    expect(socket.of("book.snapshot")).toHaveLength(2);
    expect(socket.of("book.updated")).toHaveLength(1);
    await socket.ask({ op: "unsubscribe", channel: "book", market_id: market.id });
    await user.place(terms(market, 0, BUY, 11, 1));
    await socket.frame<TickerJson>("ticker.updated", ({ best_bid }) => best_bid === 11);
    expect(socket.of("book.updated")).toHaveLength(1);
    await socket.close();
  });

  test("market_ids that name one market many times name it once; a flood of them is refused at once", async () => {
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
    // One of them took a second once.
    expect(performance.now() - start).toBeLessThan(5_000);
    await socket.close();
  });

  test("a thousand begin in their order, a second thousand too, and then they are counted by the second", async () => {
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

  test("the bound counts topics: what would pass it is refused as a whole, and what is there already counts once", async () => {
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

describe("a market's state", () => {
  test("is told to its own subscribers and to those of all markets, each in a sequence of its own", async () => {
    const uws = await loadUws();
    const registry = new MarketRegistry(1, 0);
    const markets = [1, 2].map((id) => {
      const row: MarketRow = {
        ...{ id, slug: `m-${id}`, question: "?", description: null, category: null, eventId: null, status: 1, sets: 0 },
        ...{
          opensAt: null,
          closesAt: null,
          createdAt: 1,
          firstOutcomeId: 2 * id - 1,
          outcomes: 2,
          proposedBy: null,
          ...UNDECIDED,
        },
      };
      const outcomes = [0, 1].map((position): OutcomeRow => {
        return {
          id: 2 * id - 1 + position,
          marketId: id,
          position,
          name: "Yes",
          lastPrice: null,
          volume: 0,
          payout: null,
        };
      });
      return registry.add(row, outcomes);
    });
    const app = uws.App();
    const traffic = new Traffic();
    const channels = new Channels(app, registry, new Ledger(), traffic, new Timeline(0), 1_000);
    // Connections by turns: of both channels, of all markets in MessagePack, of the second market.
    const wanted = [{ market_ids: [1, 2] }, {}, { market_id: 2 }];
    const connections: SocketConnection[] = [];
    app.ws<SocketData>("/*", {
      upgrade: (res, req, context) => {
        const packed = req.getHeader("sec-websocket-protocol") === "msgpack";
        const connection = new SocketConnection(null, NO_ADDRESS, packed, 1, traffic);
        const key = req.getHeader("sec-websocket-key");
        res.upgrade({ connection }, key, packed ? "msgpack" : "", "", context);
      },
      open: (socket) => {
        const { connection } = socket.getUserData();
        connection.socket = socket;
        const { topics } = channels.subscribe(connection, { channel: "markets", ...wanted[connections.length] });
        for (const topic of topics) channels.start(connection, topic);
        connections.push(connection);
      },
      close: (socket) => {
        const { connection } = socket.getUserData();
        connection.closed();
        channels.closed(connection);
      },
    });
    const listening = await new Promise<Uws.us_listen_socket>((resolve, reject) => {
      app.listen("127.0.0.1", 0, (socket) => (socket ? resolve(socket) : reject(new Error("cannot listen"))));
    });
    const server = { root: `http://127.0.0.1:${uws.us_socket_local_port(listening)}` } as World["server"];
    const sockets: Socket[] = [];
    for (const protocols of [[], ["msgpack"], []]) sockets.push(await Socket.open(server, null, { protocols }));
    const change = (index: number, status: number): void => {
      registry.setStatus(markets[index]!, status);
      channels.marketChanged(markets[index]!);
    };
    change(0, 2);
    change(1, 3);
    change(1, 1);
    const told = async (socket: Socket, count: number): Promise<unknown[]> => {
      await socket.until(() => (socket.frames.length >= count ? true : undefined), `${count} frames`);
      return socket.of<MarketJson>("market.updated").map(({ sequence, data }) => [data.id, data.status, sequence]);
    };
    const [first, second, third] = [
      [1, "halted"],
      [2, "closed"],
      [2, "open"],
    ] as const;
    expect(await told(sockets[0]!, 3)).toEqual([
      [...first, 1_001],
      [...second, 1_001],
      [...third, 1_002],
    ]);
    expect(await told(sockets[1]!, 3)).toEqual([
      [...first, 1_001],
      [...second, 1_002],
      [...third, 1_003],
    ]);
    expect(await told(sockets[2]!, 2)).toEqual([
      [...second, 1_001],
      [...third, 1_002],
    ]);
    const list = JSON.parse(channels.list(connections[1]!.topics!)) as object[];
    expect(list).toEqual([{ channel: "markets", implied: false, market_id: null, outcome_id: null, sequence: 1_003 }]);
    // One of two subscribers of a topic goes: the other goes on hearing it.
    await sockets[0]!.close();
    change(1, 2);
    expect((await told(sockets[2]!, 3)).at(-1)).toEqual([2, "halted", 1_003]);
    for (const socket of sockets.slice(1)) await socket.close();
    app.close();
  });
});

describe("tickets", () => {
  const ticketFor = async (client: Client, more = {}): Promise<string> => {
    const { data, status } = await client.request<{ ticket: string; expires_at: number }>("POST", "/ws-tickets", more);
    expect(status).toBe(201);
    expect(Math.abs(data.expires_at - Date.now() - 60_000)).toBeLessThan(5_000);
    guests.secrets.add(data.ticket);
    return data.ticket;
  };

  test("opens one connection as its token would, once", async () => {
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

  test("is no better than its token: revoked, bound to addresses, expired", async () => {
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

    const session = await guests.signIn(world.server, "bob@example.com");
    const ticket = await ticketFor(session.client);
    await clockAt(Date.now() + TOKEN_TTL_S * 1_000);
    expect(await refusedUpgrade(world.server, ticket)).toEqual([401, 2002]);
  });

  test("sixty seconds, once each, and no more of them than there is room for", () => {
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
    // The third has expired by now, and makes room for just one.
    tickets.issue(principal, 61_000);
    expect(() => tickets.issue(principal, 61_000)).toThrow(/too many tickets/);
    expect(tickets.redeem(third, 61_000)).toBeNull();
  });
});

describe("a token on the open socket", () => {
  const auth = (socket: Socket, token: unknown): Promise<Acknowledgement> => socket.ask({ op: "auth", token });

  test("a refreshed one keeps it open past the end of the first; without it the socket ends with 4401", async () => {
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

  test("a bad one changes nothing, nor does another user's", async () => {
    const [market, user, other] = [world.market(), world.user(), world.user()];
    const socket = await world.socket(user);
    expect(await refused(auth(socket, other.token))).toBe(40300);
    for (const token of ["x", "pm_pat_x", "pm_wst_x", "eyJ.a.b"])
      expect(await refused(auth(socket, token))).toBe(40100);
    for (const token of ["", null, 1, undefined]) expect(await refused(auth(socket, token))).toBe(40000);
    await other.place(terms(market, 0, BUY, 9, 1));
    const order = await user.place(terms(market, 0, BUY, 10, 1));
    await socket.frame<OrderJson>("order.updated", ({ id }) => id === order.id);
    expect(socket.of("order.updated")).toHaveLength(1);
    await socket.close();
  });

  test("who had none signs in, hears its orders from then on and may trade; its end ends the socket", async () => {
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

  test("one with fewer scopes hears less, one with more hears again", async () => {
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

describe("all the while", () => {
  test("heartbeats come each five seconds, numbered, with the last number of everything", async () => {
    const [json, packed, anonymous] = beaten as [Socket, Socket, Socket];
    await world.split(beatenUser, beatenMarket, 5);
    const order = await beatenUser.place(terms(beatenMarket, 0, BUY, 10, 1));
    const [update] = await Promise.all(
      [json, packed].map((socket) => socket.frame<OrderJson>("order.updated", ({ id }) => id === order.id)),
    );
    const count = json.heartbeats.length;
    for (const socket of beaten) {
      const enough = (): true | undefined => (socket.heartbeats.length >= Math.max(2, count + 1) ? true : undefined);
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

  test("before a shutdown everyone is told, in its own encoding, and closed with 1001", async () => {
    const sockets = [
      await world.socket(beatenUser),
      await Socket.open(world.server, null),
      await Socket.open(world.server, beatenUser.token, { protocols: ["msgpack"] }),
    ];
    await world.server.stop();
    for (const socket of sockets) {
      expect(await socket.closed).toBe(1001);
      expect(socket.frames.at(-1)).toMatchObject({ event: "system.shutdown", data: null });
    }
    expectSoundDatabase(world.server.dataDir);
    world.server = await world.server.restart();
  });
});

interface ImpliedBook {
  readonly market_id: number;
  readonly outcome_id: number;
  readonly sequence: number;
  readonly bids: Levels;
  readonly asks: Levels;
  readonly implied?: { readonly bids: Levels; readonly asks: Levels };
}

describe("implied books", () => {
  let own: World;
  beforeAll(async () => {
    own = await World.start({ users: 3, markets: [2, 3, 5] });
  });
  afterAll(() => expectEndsWell(own));

  test("follow random trading without a gap, and are REST's at the same number, in either part", async () => {
    const random = Random.printed("implied books");
    const trading = new RandomTrading(
      random,
      own.markets,
      [0, 1, 2].map((i) => tokenOf(`user${i}`)),
    );
    await trading.prepare(own.server);
    trading.start(own.server);
    const faults: string[] = [];
    /** By kind and outcome. */
    const books = new Map<string, FollowedBook>();
    const keyOf = (book: ImpliedBook, part: string): string => `${part} of ${book.outcome_id}`;
    const sockets = await Promise.all(
      [{}, { protocols: ["msgpack"] }].map((options) => Socket.open(own.server, null, options)),
    );
    // One hears both variants, the other the implied one alone.
    for (const [i, socket] of sockets.entries()) {
      for (const { id } of own.markets) {
        await socket.subscribe("book", id, undefined, { implied: true });
        if (i === 0) await socket.subscribe("book", id);
      }
    }
    const reader = own.anonymous();
    const rest: ImpliedBook[] = [];
    for (let n = 0; n < 40; n++) {
      await trading.more(10);
      const market = random.pick(own.markets);
      const outcome = random.pick(market.outcomes);
      rest.push(await reader.get<ImpliedBook>(`/orderbook/${market.id}/${outcome}?implied=true`));
      rest.push(await reader.get<ImpliedBook>(`/orderbook/${market.id}/${outcome}`));
    }
    await trading.stop();
    await trading.expired(own.server);
    const last: ImpliedBook[] = [];
    for (const market of own.markets) {
      for (const outcome of market.outcomes) {
        last.push(await reader.get<ImpliedBook>(`/orderbook/${market.id}/${outcome}?implied=true`));
      }
    }
    for (const [i, socket] of sockets.entries()) {
      books.clear();
      const parts = (book: ImpliedBook): [string, Levels, Levels][] => {
        if (book.implied === undefined) return [["plain", book.bids, book.asks]];
        return [["implied", book.bids, book.asks], ["part", book.implied.bids, book.implied.asks]]; // biome-ignore format: pairs
      };
      await socket.settled();
      for (const { event, sequence, data } of socket.frames as Frame<ImpliedBook>[]) {
        for (const [part, bids, asks] of parts(data)) {
          const key = keyOf(data, part);
          if (event === "book.snapshot")
            books.set(key, new FollowedBook(key, { sequence, bids, asks }, (fault) => faults.push(fault)));
          else books.get(key)!.update(sequence, bids, asks);
        }
      }
      for (const book of rest) {
        for (const [part, bids, asks] of parts(book)) {
          if (i === 1 && part === "plain") continue;
          books.get(keyOf(book, part))!.compare({ sequence: book.sequence, bids, asks });
        }
      }
      for (const book of last) {
        for (const [part, bids, asks] of parts(book)) {
          books.get(keyOf(book, part))!.finish({ sequence: book.sequence, bids, asks });
        }
      }
      const compared = [...books.values()].reduce((sum, book) => sum + book.compared, 0);
      const changes = [...books.values()].reduce((sum, book) => sum + book.changes, 0);
      expect(compared).toBeGreaterThanOrEqual(80);
      expect(changes).toBeGreaterThan(200);
    }
    expect(faults).toEqual([]);
    for (const socket of sockets) await socket.close();
  });

  test("markets, the feed and tickers say the best tradable prices, which are the implied books' own", async () => {
    const reader = own.anonymous();
    const socket = await Socket.open(own.server, null);
    for (const market of own.markets) {
      await socket.subscribe("ticker", market.id);
      const shown = await reader.get<MarketJson>(`/markets/${market.id}`);
      const { items } = await reader.get<{ items: (MarketJson & { kind: string })[] }>("/feed");
      expect(items.find(({ id, kind }) => kind === "market" && id === market.id)!.outcomes).toEqual(shown.outcomes);
      for (const { id, best_bid, best_ask, implied_bid, implied_ask } of shown.outcomes) {
        const book = await reader.get<ImpliedBook>(`/orderbook/${market.id}/${id}?implied=true`);
        expect([implied_bid, implied_ask]).toEqual([book.bids[0]?.[0] ?? null, book.asks[0]?.[0] ?? null]);
        if (best_bid !== null) expect(implied_bid).toBeGreaterThanOrEqual(best_bid);
        if (best_ask !== null) expect(implied_ask).toBeLessThanOrEqual(best_ask);
        const ticker = await socket.frame<TickerJson>("ticker.updated", ({ outcome_id }) => outcome_id === id);
        expect(ticker.data).toMatchObject({ best_bid, best_ask, implied_bid, implied_ask });
      }
    }
    await socket.close();
  });

  test("a bid for one outcome moves the other's ticker: what is implied there is news", async () => {
    const [market] = own.markets as [TestMarket];
    const [maker] = [own.client("user0")];
    for (const i of [0, 1, 2]) await own.client(`user${i}`).request("DELETE", `/orders?market_id=${market.id}`);
    const socket = await Socket.open(own.server, null);
    await socket.subscribe("ticker", market.id, market.outcomes[1]);
    await socket.frame<TickerJson>("ticker.updated", ({ implied_ask }) => implied_ask === null);
    await maker.place(terms(market, 0, BUY, 4_321, 1));
    const { data } = await socket.frame<TickerJson>("ticker.updated", ({ implied_ask }) => implied_ask === 5_679);
    expect(data).toMatchObject({ best_ask: null, implied_bid: null });
    await socket.close();
  });

  test("implied belongs to book alone; each variant is ended by itself", async () => {
    const [market] = own.markets as [TestMarket];
    const socket = await Socket.open(own.server, null);
    for (const channel of ["trades", "ticker", "markets"]) {
      const answer = await socket.ask({ op: "subscribe", channel, market_id: market.id, implied: true });
      expect([answer.code, answer.msg]).toEqual([40000, "implied: only for book"]);
    }
    const outcome_id = market.outcomes[0]!;
    for (const implied of [true, false]) await socket.subscribe("book", market.id, outcome_id, { implied });
    const of = (implied: boolean): object => ({ op: "unsubscribe", channel: "book", market_id: market.id, implied });
    const { data } = await socket.ask(of(true));
    expect(data).toMatchObject({
      subscriptions: [{ channel: "book", implied: true, market_id: market.id, outcome_id }],
    });
    const from = socket.frames.length;
    await own.client("user1").place(terms(market, 0, BUY, 17, 1));
    const next = await socket.frame<ImpliedBook>("book.updated", () => true, from);
    expect(next.data).not.toHaveProperty("implied");
    expect((await socket.ask(of(false))).data).toMatchObject({ subscriptions: [{ implied: false, outcome_id }] });
    await socket.close();
  });
});
