/**
 * Public reads: the list of markets with filters, search and sorts, a market by id and slug, books with depth and implied
 * depth and their cached texts, the feed, the clock and the probes.
 */
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { Seed } from "../../server/bootstrap/seed.ts";
import { expectBalanced } from "../support/checks.ts";
import { API_BASE, type BookJson, Client, type MarketJson, type OrderJson } from "../support/client.ts";
import { requestPacked } from "../support/packed.ts";
import { Random } from "../support/random.ts";
import { TestServer } from "../support/server.ts";
import { seedOf, tokenOf } from "../support/world.ts";

const BUY = 1;
const SELL = 2;
const LISTED = 60;

let server: TestServer;
let client: Client;
let users: Client[];

beforeAll(async () => {
  const { users: seeded } = seedOf({ users: 6 });
  const listed = Array.from({ length: LISTED }, (_, i) => ({
    slug: `market-${i}`,
    question: `Will number ${i} come ${i % 2 === 0 ? "EVEN" : "odd"}?`,
    description: i % 5 === 0 ? `A multiple of five: ${i}` : null,
    category: ["sports", "science", null][i % 3] ?? null,
    event_slug: i % 10 === 0 ? "tens" : null,
    outcomes: ["Yes", "No"],
    closes_at: i % 4 === 0 ? null : 1_900_000_000_000 - i * 1_000,
  }));
  const books = [2, 3, 5].map((count) => ({
    slug: `book.of_${count}`,
    question: "?",
    outcomes: Array.from({ length: count }, (_, n) => `No. ${n}`),
  }));
  const events = [
    { slug: "tens", title: "Tens", category: "sports" },
    { slug: "none", title: "Nothing yet" },
  ];
  server = await TestServer.start({ seed: { users: seeded, events, markets: [...listed, ...books] } as Seed });
  client = new Client(server, null);
  users = Array.from({ length: 6 }, (_, i) => new Client(server, tokenOf(`user${i}`)));
});
afterAll(async () => {
  await expectBalanced(client);
  for (const each of [client, ...users]) each.close();
  await server.stop();
});

const slugs = (markets: readonly MarketJson[]): string[] => markets.map(({ slug }) => slug);
const bySlug = (slug: string): Promise<MarketJson> => client.get(`/markets/${slug}`);

describe("the list of markets", () => {
  let all: MarketJson[];
  beforeAll(async () => {
    all = await client.all<MarketJson>("/markets");
  });
  const number = ({ slug }: MarketJson): number => Number(slug.split("-")[1]);

  test("the list of markets shows the open ones, newest first, in pages of any size", async () => {
    expect(all).toHaveLength(LISTED + 3);
    const ids = all.map(({ id }) => id);
    expect(ids).toEqual([...new Set(ids)].sort((a, b) => b - a));
    for (const limit of [1, 7, 50]) expect(slugs(await client.all("/markets", limit))).toEqual(slugs(all));
    expect((await client.get<{ items: unknown[] }>("/markets")).items).toHaveLength(50);
    const outcomes = all.flatMap((market) => market.outcomes.map(({ id }) => id));
    expect(new Set(outcomes).size).toBe(outcomes.length);
  });

  test("a fresh market has every field and no figure", () => {
    const { created_at, opens_at, ...market } = all.find(({ slug }) => slug === "market-10")!;
    expect(Math.abs(created_at - Date.now())).toBeLessThan(300_000);
    expect(opens_at).toBe(created_at);
    const none = { best_bid: null, best_ask: null, implied_bid: null, implied_ask: null };
    const outcome = { last_price: null, price_24h_ago: null, ...none, volume: 0 };
    expect(market).toEqual({
      id: expect.any(Number),
      slug: "market-10",
      question: "Will number 10 come EVEN?",
      description: "A multiple of five: 10",
      category: "science",
      status: "open",
      outcomes: ["Yes", "No"].map((name, index) => ({ id: market.outcomes[index]!.id, name, index, ...outcome })),
      event_id: expect.any(Number),
      closes_at: 1_899_999_990_000,
      picture: null,
      resolution: null,
      volume: 0,
      volume_24h: 0,
      open_interest: 0,
    });
  });

  test("the list of markets filters by category, event, status and words, alone and together", async () => {
    const eventId = all.find(({ slug }) => slug === "market-0")!.event_id!;
    const queries: [string, (market: MarketJson) => boolean][] = [
      ["category=sports", ({ category }) => category === "sports"],
      ["category=Sports", () => false],
      [`event_id=${eventId}`, ({ event_id }) => event_id === eventId],
      [`event_id=${eventId}&category=sports`, (m) => m.event_id === eventId && m.category === "sports"],
      ["event_id=999", () => false],
      ["status=open", () => true],
      ["status=halted", () => false],
      ["status=resolved", () => false],
      ["q=even", ({ question }) => question.includes("EVEN")],
      ["q=multiple+FIVE", ({ description }) => description !== null],
      ["q=number%2042", (market) => number(market) === 42],
      ["q=market-1", ({ slug }) => slug.includes("market-1")],
      ["q=nothing+of+this", () => false],
      ["q=%25", () => false],
      ["q=even&category=science", (m) => m.question.includes("EVEN") && m.category === "science"],
    ];
    for (const [query, fits] of queries) {
      for (const limit of [3, 200]) {
        expect(slugs(await client.all(`/markets?${query}`, limit)), query).toEqual(slugs(all.filter(fits)));
      }
    }
  });

  test("the list of markets is sorted by volume and by the end, in pages", async () => {
    const traded = [3, 17, 31];
    for (const [i, n] of traded.entries()) {
      const { id: market_id, outcomes } = await bySlug(`market-${n}`);
      await users[0]!.data("POST", "/wallet/split", { market_id, quantity: 10 });
      const terms = { market_id, outcome_id: outcomes[0]!.id, price: 5_000, quantity: i + 1 };
      await users[0]!.place({ ...terms, side: SELL });
      await users[1]!.place({ ...terms, side: BUY });
    }
    const markets = await client.all<MarketJson>("/markets");
    const end = ({ closes_at }: MarketJson): number => closes_at ?? Number.MAX_SAFE_INTEGER;
    const byVolume = markets.toSorted((a, b) => b.volume - a.volume || b.id - a.id);
    const byEnd = markets.toSorted((a, b) => end(a) - end(b) || b.id - a.id);
    expect(byVolume.slice(0, 4).map(({ volume }) => volume)).toEqual([3, 2, 1, 0]);
    for (const limit of [2, 25, 200]) {
      expect(slugs(await client.all("/markets?sort=volume", limit))).toEqual(slugs(byVolume));
      expect(slugs(await client.all("/markets?sort=closes_at", limit))).toEqual(slugs(byEnd));
      expect(slugs(await client.all("/markets?sort=created_at", limit))).toEqual(slugs(markets));
    }
    const market = await bySlug("market-31");
    expect(market).toMatchObject({ volume: 3, open_interest: 10 });
    expect(market.outcomes.map(({ last_price, volume }) => [last_price, volume])).toEqual([
      [5_000, 3],
      [null, 0],
    ]);
  });
});

describe("the feed", () => {
  interface Feed {
    items: { kind: string; slug: string; markets?: MarketJson[] }[];
    page: number;
    size: number;
    total: number;
  }
  test("the feed is one list of markets and events, in numbered pages", async () => {
    const first = await client.get<Feed>("/feed");
    expect(first).toMatchObject({ page: 1, size: 20, total: LISTED + 3 + 1 });
    expect(first.items).toHaveLength(20);
    const seen: string[] = [];
    for (let page = 1; seen.length < first.total; page++) {
      const { items, ...rest } = await client.get<Feed>(`/feed?page=${page}&size=30`);
      expect(rest).toEqual({ page, size: 30, total: first.total });
      seen.push(...items.map(({ kind, slug }) => `${kind} ${slug}`));
    }
    expect(new Set(seen).size).toBe(first.total);
    expect(await client.get<Feed>("/feed?page=1000000&size=100")).toMatchObject({ items: [], total: first.total });
    // An event without an open market isn't shown.
    expect(seen).not.toContain("event none");
    // Markets traded today come first; an event sums the volume of its markets.
    expect(seen.slice(0, 3)).toEqual(["market market-31", "market market-17", "market market-3"]);
    const event = (await client.get<Feed>("/feed?size=100")).items.find(({ slug }) => slug === "tens");
    expect(event!.markets).toHaveLength(LISTED / 10);
  });
});

describe("books", () => {
  test("books are found by id and slug, cut by depth, and one market's together", async () => {
    const market = await bySlug("market-50");
    const [yes, no] = market.outcomes.map(({ id }) => id) as [number, number];
    await users[2]!.data("POST", "/wallet/split", { market_id: market.id, quantity: 10 });
    for (const [side, price] of [[BUY, 4_000], [BUY, 3_900], [BUY, 4_000], [SELL, 7_000], [SELL, 7_100]]) {
      await users[2]!.place({ market_id: market.id, outcome_id: yes, side, price, quantity: 2 });
    } // biome-ignore format: one order each
    const book = await client.book(market.id, yes);
    expect(book).toMatchObject({ market_id: market.id, outcome_id: yes });
    expect([book.bids, book.asks]).toEqual([[[4_000, 4], [3_900, 2]], [[7_000, 2], [7_100, 2]]]); // biome-ignore format: levels
    for (const path of [`/orderbook/${market.id}/${yes}`, `/orderbook/${market.slug}/${yes}`]) {
      const { bids, asks, sequence } = await client.get<BookJson>(`${path}?depth=1`);
      expect([bids, asks, sequence]).toEqual([[[4_000, 4]], [[7_000, 2]], book.sequence]);
    }
    for (const key of [market.id, market.slug]) {
      const { outcomes } = await client.get<{ outcomes: BookJson[] }>(`/markets/${key}/orderbook`);
      expect(outcomes.map(({ outcome_id, bids }) => [outcome_id, bids])).toEqual([[yes, book.bids], [no, []]]); // biome-ignore format: books
      expect(await client.get<MarketJson>(`/markets/${key}`)).toMatchObject({
        outcomes: [{ best_bid: 4_000, best_ask: 7_000 }, { best_bid: null, best_ask: null }], // biome-ignore format: outcomes
      });
    }
    // A bid of 4000 here is an ask of 6000 there, and an ask of 7000 a bid of 3000.
    const other = await client.get<BookJson>(`/orderbook/${market.id}/${no}?implied=true`);
    const offered = { bids: [[3_000, 2], [2_900, 2]], asks: [[6_000, 4], [6_100, 2]] }; // biome-ignore format: levels
    expect(other).toMatchObject({ ...offered, implied: offered });
    expect(await client.get<BookJson>(`/orderbook/${market.id}/${no}?implied=false`)).toMatchObject({
      bids: [],
      asks: [],
    });
  });

  test("books are the same text until they change, in every view, in JSON and MessagePack", async () => {
    const market = await bySlug("market-51");
    const [yes, no] = market.outcomes.map(({ id }) => id) as [number, number];
    const bid = (outcome_id: number, price: number): Promise<OrderJson> =>
      users[3]!.place({ market_id: market.id, outcome_id, side: BUY, price, quantity: 1 });
    for (const price of [1_000, 1_100, 1_200]) for (const outcome of [yes, no]) await bid(outcome, price);
    const views = ["", "?depth=1", "?depth=2", "?depth=9999", "?implied=true", "?depth=2&implied=true"];
    const ofYes = views.map((view) => `/orderbook/${market.id}/${yes}${view}`);
    const ofNo = `/orderbook/${market.id}/${no}`;
    const ofBoth = views.map((view) => `/markets/${market.id}/orderbook${view}`);
    const texts = async (paths: readonly string[]): Promise<string[]> => {
      const found: string[] = [];
      for (const path of paths) found.push((await client.send("GET", API_BASE + path, {}, null)).body.toString());
      return found;
    };
    const [before, both] = [await texts(ofYes), await texts(ofBoth)];
    const { ts, sequence } = await client.get<BookJson>(ofYes[0]!);
    // A later read shows the same time.
    await expect.poll(async () => (await client.get<{ now: number }>("/time")).now).toBeGreaterThan(ts + 1);
    expect([await texts(ofYes), await texts(ofBoth)]).toEqual([before, both]);
    for (const path of [...ofYes, ...ofBoth]) {
      expect((await requestPacked(client, "GET", path)).data).toEqual(await client.get(path));
    }
    // A change of the other book shows where it adds implied depth.
    await bid(no, 1_300);
    expect((await texts(ofYes)).map((text, i) => text === before[i])).toEqual([true, true, true, true, false, false]);
    expect((await texts(ofBoth)).some((text, i) => text === both[i])).toBe(false);
    expect((await client.get<BookJson>(`${ofYes[0]}?implied=true`)).implied!.asks[0]).toEqual([8_700, 1]);
    await bid(yes, 1_300);
    const changed = await client.get<BookJson>(ofYes[0]!);
    expect(changed).toMatchObject({ sequence: sequence + 1, bids: [[1_300, 1], [1_200, 1], [1_100, 1], [1_000, 1]] }); // biome-ignore format: levels
    expect(changed.ts).toBeGreaterThan(ts);
    expect(await client.get<BookJson>(ofYes[2]!)).toEqual({ ...changed, bids: changed.bids.slice(0, 2) });
    expect((await client.get<BookJson>(ofNo)).bids).toHaveLength(4);
  });

  test.for([2, 3, 5])("books with implied=true promise what a taker gets: %i outcomes", async (count) => {
    const random = Random.printed(`implied depth of ${count} outcomes`);
    const market = await bySlug(`book.of_${count}`);
    const outcomes = market.outcomes.map(({ id }) => id);
    const even = Math.floor(10_000 / count);
    for (const user of users) await user.data("POST", "/wallet/split", { market_id: market.id, quantity: 300 });
    const [taker, ...makers] = users as [Client, ...Client[]];
    for (let round = 0; round < 6; round++) {
      for (let n = 0; n < 30; n++) {
        const side = random.pick([BUY, SELL]);
        // Bids a little low and asks a little high, so that most rest.
        const price = even + (side === BUY ? -1 : 1) * random.integer(-5, 40) * 10;
        const terms = { market_id: market.id, outcome_id: random.pick(outcomes), side, price, post_only: true };
        await random.pick(makers).place({ ...terms, quantity: random.integer(1, 5) });
      }
      const outcome = random.pick(outcomes);
      const side = random.pick([BUY, SELL]);
      const book = await client.get<BookJson>(`/orderbook/${market.id}/${outcome}?implied=true`);
      const ladder = side === BUY ? book.asks : book.bids;
      const most = ladder.reduce((sum, level) => sum + level[1]!, 0);
      if (most === 0) continue;
      const quantity = random.integer(1, Math.min(most, 250));
      const { id } = await taker.place({ market_id: market.id, outcome_id: outcome, side, quantity, type: "market" });
      const { trades, filled } = await taker.order(id);
      expect(filled).toBe(quantity);
      expect(levelsOf(trades)).toEqual(firstOf(ladder, quantity));
    }
  });

  /** Neighbouring trades of one price joined. */
  function levelsOf(trades: OrderJson["trades"]): number[][] {
    const levels: number[][] = [];
    for (const { price, quantity } of trades) {
      const last = levels.at(-1);
      if (last?.[0] === price) last[1]! += quantity;
      else levels.push([price, quantity]);
    }
    return levels;
  }

  function firstOf(ladder: readonly number[][], quantity: number): number[][] {
    const levels: number[][] = [];
    let left = quantity;
    for (const [price, offered] of ladder) {
      if (left === 0) break;
      levels.push([price!, Math.min(left, offered!)]);
      left -= levels.at(-1)![1]!;
    }
    return levels;
  }
});

test("the clock, and the probes outside the API's prefix", async () => {
  const { now } = await client.get<{ now: number }>("/time");
  expect(Math.abs(now - Date.now())).toBeLessThan(5_000);
  for (const path of ["/livez", "/readyz"]) {
    expect(await client.requestRoot("GET", path)).toMatchObject({ status: 200, data: { status: "ok" } });
  }
});
