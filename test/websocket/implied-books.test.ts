/**
 * Implied books over the WebSocket: their sequence has no gap, each state equals REST at the same sequence, and markets,
 * the feed and tickers show their best prices.
 */
import type { Static } from "typebox";
import { afterAll, beforeAll, expect, test } from "vitest";
import type { Ticker } from "../../server/websocket/schemas.ts";
import { expectEndsWell } from "../support/checks.ts";
import type { MarketJson } from "../support/client.ts";
import { FollowedBook, type Levels } from "../support/followed-book.ts";
import { SPEAKS_SBE } from "../support/projects.ts";
import { Random } from "../support/random.ts";
import { RandomTrading } from "../support/random-trading.ts";
import { type Frame, Socket } from "../support/socket.ts";
import { BUY, terms } from "../support/terms.ts";
import { type TestMarket, tokenOf, World } from "../support/world.ts";

type TickerJson = Static<typeof Ticker>;

interface ImpliedBook {
  readonly market_id: number;
  readonly outcome_id: number;
  readonly sequence: number;
  readonly bids: Levels;
  readonly asks: Levels;
  readonly implied?: { readonly bids: Levels; readonly asks: Levels };
}

let world: World;
beforeAll(async () => {
  world = await World.start({ users: 3, markets: [2, 3, 5] });
});
afterAll(() => expectEndsWell(world));

/** A book's levels by kind: those of a plain book, or those of an implied one and its implied part. */
function partsOf(book: ImpliedBook): [part: string, bids: Levels, asks: Levels][] {
  if (book.implied === undefined) return [["plain", book.bids, book.asks]];
  return [["implied", book.bids, book.asks], ["part", book.implied.bids, book.implied.asks]]; // biome-ignore format: pairs
}

/** The books that a connection's frames build, by kind and outcome. */
class FollowedBooks {
  private readonly books = new Map<string, FollowedBook>();

  /** @param report receives each difference */
  constructor(frames: readonly Frame<ImpliedBook>[], report: (difference: string) => void) {
    for (const { event, sequence, data } of frames) {
      for (const [part, bids, asks] of partsOf(data)) {
        const key = `${part} of ${data.outcome_id}`;
        if (event === "book.snapshot") this.books.set(key, new FollowedBook(key, { sequence, bids, asks }, report));
        else this.books.get(key)!.update(sequence, bids, asks);
      }
    }
  }

  /** @param how `compare` with a REST book, or `finish` with the last one */
  check(how: "compare" | "finish", book: ImpliedBook, wanted: (part: string) => boolean): void {
    for (const [part, bids, asks] of partsOf(book)) {
      if (wanted(part)) this.books.get(`${part} of ${book.outcome_id}`)![how]({ sequence: book.sequence, bids, asks });
    }
  }

  sum(count: "compared" | "changes"): number {
    return [...this.books.values()].reduce((sum, book) => sum + book[count], 0);
  }
}

test("implied books follow random trading without a gap, and equal REST's at the same sequence, in either part", async () => {
  const random = Random.printed("implied books");
  const tokens = [0, 1, 2].map((i) => tokenOf(`user${i}`));
  const trading = new RandomTrading(random, world.markets, tokens);
  await trading.prepare(world.server);
  trading.start(world.server);
  const sockets = await Promise.all(
    [{}, { protocols: ["msgpack"] }].map((options) => Socket.open(world.server, null, options)),
  );
  // The first subscribes to both variants, the second only to the implied one.
  for (const [i, socket] of sockets.entries()) {
    for (const { id } of world.markets) {
      await socket.subscribe("book", id, undefined, { implied: true });
      if (i === 0) await socket.subscribe("book", id);
    }
  }
  const reader = world.anonymous();
  const rest: ImpliedBook[] = [];
  for (let n = 0; n < 40; n++) {
    await trading.more(10);
    const market = random.pick(world.markets);
    const outcome = random.pick(market.outcomes);
    rest.push(await reader.get<ImpliedBook>(`/orderbook/${market.id}/${outcome}?implied=true`));
    rest.push(await reader.get<ImpliedBook>(`/orderbook/${market.id}/${outcome}`));
  }
  await trading.stop();
  await trading.expired(world.server);
  const last: ImpliedBook[] = [];
  for (const { id, outcomes } of world.markets) {
    for (const outcome of outcomes) last.push(await reader.get(`/orderbook/${id}/${outcome}?implied=true`));
  }
  const faults: string[] = [];
  for (const [i, socket] of sockets.entries()) {
    await socket.fence();
    const books = new FollowedBooks(socket.frames as Frame<ImpliedBook>[], (fault) => faults.push(fault));
    for (const book of rest) books.check("compare", book, (part) => i === 0 || part !== "plain");
    for (const book of last) books.check("finish", book, () => true);
    expect(books.sum("compared")).toBeGreaterThanOrEqual(80);
    expect(books.sum("changes")).toBeGreaterThan(200);
  }
  expect(faults).toEqual([]);
  for (const socket of sockets) await socket.close();
});

test("markets, the feed and tickers show the best tradable prices, which are those of the implied books", async () => {
  const reader = world.anonymous();
  const socket = await Socket.open(world.server, null);
  for (const market of world.markets) {
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

test("a bid for one outcome updates the other's ticker with the implied price", async () => {
  const [market] = world.markets as [TestMarket];
  const [maker] = [world.client("user0")];
  for (const i of [0, 1, 2]) await world.client(`user${i}`).request("DELETE", `/orders?market_id=${market.id}`);
  const socket = await Socket.open(world.server, null);
  await socket.subscribe("ticker", market.id, market.outcomes[1]);
  await socket.frame<TickerJson>("ticker.updated", ({ implied_ask }) => implied_ask === null);
  await maker.place(terms(market, 0, BUY, 4_321, 1));
  const { data } = await socket.frame<TickerJson>("ticker.updated", ({ implied_ask }) => implied_ask === 5_679);
  expect(data).toMatchObject({ best_ask: null, implied_bid: null });
  await socket.close();
});

test.skipIf(SPEAKS_SBE)(
  "only the book channel takes implied, and each variant is unsubscribed separately",
  async () => {
    const [market] = world.markets as [TestMarket];
    const socket = await Socket.open(world.server, null);
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
    await world.client("user1").place(terms(market, 0, BUY, 17, 1));
    const next = await socket.frame<ImpliedBook>("book.updated", () => true, from);
    expect(next.data).not.toHaveProperty("implied");
    expect((await socket.ask(of(false))).data).toMatchObject({ subscriptions: [{ implied: false, outcome_id }] });
    await socket.close();
  },
);
