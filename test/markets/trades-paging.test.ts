/**
 * A market's trades page by page, out of memory and out of the database: the pages together are all its trades, each
 * once, whatever their size, while it trades and over a restart; and the bytes don't tell where a page came from.
 */
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { Listing } from "../../server/http/paging.ts";
import { MAX_TRADES_WALKED } from "../../server/markets/limits.ts";
import { expectBalanced, expectEndsWell } from "../support/checks.ts";
import { API_BASE, type Client, type TradeJson } from "../support/client.ts";
import { rowsOf } from "../support/data-dir.ts";
import { Random } from "../support/random.ts";
import { BUY, batch, SELL, terms } from "../support/trading.ts";
import { type TestMarket, USDC, World } from "../support/world.ts";

const MAX_LIMIT = 200;
const OPERATIONS = 50;
const BURSTS = 25;

let world: World;
let random: Random;
let maker: Client;
let taker: Client;
let reader: Client;
let bursts = 0;

function signIn(): void {
  [maker, taker, reader] = [world.client("maker"), world.client("taker"), world.anonymous()];
}

beforeAll(async () => {
  random = Random.printed("pages of trades");
  const rich = { deposit: 50_000 * USDC, terms: { daily_limit: 50_000 * USDC } };
  world = await World.start({ users: 0, named: { maker: rich, taker: rich }, markets: [2, 2, 3, 2, 2] });
  signIn();
});
afterAll(async () => {
  await expectBalanced(world.anonymous());
  await expectEndsWell(world);
});

/** Makes this many trades of one share each: direct ones, mints and merges in turn. */
async function trade(market: TestMarket, count: number): Promise<void> {
  const { length } = market.outcomes;
  const even = Math.floor(10_000 / length);
  for (let left = count; left > 0; ) {
    const now = Math.min(left, Math.floor(OPERATIONS / length));
    const side = random.pick([BUY, SELL]);
    const isDirect = bursts++ % 2 === 0;
    const resting: object[] = [];
    for (let n = 0; n < now; n++) {
      if (isDirect) resting.push(terms(market, 0, side === BUY ? SELL : BUY, even, 1));
      else for (let other = 1; other < length; other++) resting.push(terms(market, other, side, even, 1));
    }
    const place = (order: object): object => ({ op: "place", ...order });
    for (const { code } of await batch(maker, resting.map(place))) expect(code).toBe(0);
    const taking = terms(market, 0, side, side === BUY ? 9_999 : 1, now, { time_in_force: "ioc" });
    for (const { code } of await batch(taker, [place(taking)])) expect(code).toBe(0);
    left -= now;
  }
}

interface Page {
  readonly items: TradeJson[];
  readonly next_cursor: string | null;
}

const pathOf = (market: TestMarket, limit: number, cursor: string | null): string =>
  `/markets/${market.id}/trades?limit=${limit}${cursor === null ? "" : `&cursor=${cursor}`}`;

/** Pages of random sizes, from the newest trade to the oldest. `between` runs before each page but the first. */
async function walk(market: TestMarket, largest: number, between?: () => Promise<void>): Promise<TradeJson[]> {
  const found: TradeJson[] = [];
  for (let cursor: string | null = null; ; ) {
    const limit = random.integer(1, largest);
    const page: Page = await reader.get(pathOf(market, limit, cursor));
    expect(page.items.length).toBeLessThanOrEqual(limit);
    if (page.next_cursor !== null) expect(page.items).toHaveLength(limit);
    found.push(...page.items);
    cursor = page.next_cursor;
    if (cursor === null) return found;
    await between?.();
  }
}

/** The market's trades as the database has them, newest first. */
function stored(market: TestMarket): Omit<TradeJson, "market_id" | "match_type">[] {
  return rowsOf(
    world.server.dataDir,
    `SELECT match_id AS id, outcome_id, side, price, quantity, created_at FROM fills
     WHERE role = 1 AND outcome_id BETWEEN ? AND ? ORDER BY fills.id DESC`,
    market.outcomes[0]!,
    market.outcomes.at(-1)!,
  );
}

function expectAll(market: TestMarket, found: readonly TradeJson[]): void {
  expect(found.map(({ market_id, match_type, ...rest }) => rest)).toEqual(stored(market));
  expect(found.every(({ market_id }) => market_id === market.id)).toBe(true);
}

/** The bytes of the responses to a walk with these limits, in turn. */
async function bytesOf(market: TestMarket, limits: readonly number[]): Promise<string[]> {
  const texts: string[] = [];
  for (let cursor: string | null = null, n = 0; ; n++) {
    const path = API_BASE + pathOf(market, limits[n % limits.length]!, cursor);
    const { status, body } = await reader.send("GET", path, {}, null);
    expect(status).toBe(200);
    texts.push(body.toString());
    cursor = (JSON.parse(body.toString()) as { data: Page }).data.next_cursor;
    if (cursor === null) return texts;
  }
}

async function restart(): Promise<void> {
  await world.server.stop();
  world.server = await world.server.restart();
  signIn();
}

test("a market that never traded has one empty page", async () => {
  const market = world.market();
  expect(await reader.get<Page>(pathOf(market, 1, null))).toEqual({ items: [], next_cursor: null });
  // A cursor of another list's length is rejected; one between this market's trades finds those below it.
  const cursor = new Listing("/markets/:id/trades", { marketId: market.id }).cursor(5);
  expect(await reader.get<Page>(pathOf(market, 1, cursor))).toEqual({ items: [], next_cursor: null });
  expect(await reader.request("GET", pathOf(market, 1, "x"))).toMatchObject({ status: 400, code: 40000 });
});

describe("markets that trade", () => {
  let markets: TestMarket[];
  beforeAll(async () => {
    markets = [world.market(), world.market(), world.market(3)];
    for (const market of markets) for (const user of [maker, taker]) await world.split(user, market, 3_000);
  });

  test("the pages of trades contain every trade once, whatever their size", async () => {
    for (const market of markets) await trade(market, 60);
    for (const market of markets) {
      for (const largest of [3, 20, MAX_LIMIT]) expectAll(market, await walk(market, largest));
      const all = await walk(market, 20);
      expect(all.length).toBeGreaterThanOrEqual(60);
      expect(new Set(all.map(({ match_type }) => match_type)).size).toBeGreaterThan(1);
      for (const limit of [all.length - 1, all.length, all.length + 1]) {
        const { items, next_cursor } = await reader.get<Page>(pathOf(market, limit, null));
        expect(items).toEqual(all.slice(0, limit));
        expect(next_cursor === null).toBe(limit >= all.length);
      }
    }
  });

  test("new trades don't appear in later pages of a walk, and none is lost", async () => {
    const [market] = markets as [TestMarket];
    for (const largest of [2, 30]) {
      const before = stored(market).length;
      const found = await walk(market, largest, () => trade(market, random.integer(1, 3)));
      const all = stored(market);
      expect(all.length).toBeGreaterThan(before);
      expect(found.map(({ id }) => id)).toEqual(all.slice(all.length - before).map(({ id }) => id));
    }
  });

  test("pages of trades are byte for byte the same after a restart, when memory is empty", async () => {
    const limits = [[1, 7, 30], [MAX_LIMIT]];
    const read = async (): Promise<string[][][]> => {
      const texts: string[][][] = [];
      for (const market of markets) {
        const walks: string[][] = [];
        for (const each of limits) walks.push(await bytesOf(market, each));
        texts.push(walks);
      }
      return texts;
    };
    const before = await read();
    await restart();
    expect(await read()).toEqual(before);
  });

  test("pages of trades go from memory into the database without a seam", async () => {
    for (const market of markets) await trade(market, 30);
    for (const market of markets) {
      for (const limit of [29, 30, 31])
        expectAll(market, await reader.all<TradeJson>(`/markets/${market.id}/trades`, limit));
      for (const largest of [3, 12, MAX_LIMIT]) expectAll(market, await walk(market, largest));
    }
  });

  test("while several markets trade, a walk through trades is gapless and no later first page is older", async () => {
    let isOver = false;
    const trading = (async () => {
      for (let n = 0; n < BURSTS; n++) await trade(random.pick(markets), random.integer(1, 20));
      isOver = true;
    })();
    const walks: [TestMarket, TradeJson[]][] = [];
    while (!isOver) {
      const market = random.pick(markets);
      walks.push([market, await walk(market, random.pick([5, 50, MAX_LIMIT]))]);
      // A large page comes from the database, a small one from memory.
      const newest: number[] = [];
      for (const limit of [MAX_LIMIT, 1, MAX_LIMIT, 1]) {
        newest.push((await reader.get<Page>(pathOf(market, limit, null))).items[0]!.id);
      }
      expect(newest).toEqual(newest.toSorted((a, b) => a - b));
    }
    await trading;
    expect(walks.length).toBeGreaterThan(0);
    for (const [market, found] of walks) {
      const ids = stored(market).map(({ id }) => id);
      expect(found.map(({ id }) => id)).toEqual(ids.slice(ids.indexOf(found[0]!.id)));
    }
    for (const market of markets) expectAll(market, await walk(market, MAX_LIMIT));
  });
});

test("far pages come from the database without a walk through memory", async () => {
  const market = world.market();
  const quantity = MAX_TRADES_WALKED + 300;
  await world.split(maker, market, quantity);
  for (let placed = 0; placed < quantity; placed += OPERATIONS) {
    const operations = Array.from({ length: OPERATIONS }, (_, n) => {
      return { op: "place", ...terms(market, 0, SELL, 1 + ((placed + n) % 100), 1) };
    });
    for (const { code } of await batch(maker, operations)) expect(code).toBe(0);
  }
  await taker.place(terms(market, 0, BUY, 100, quantity));
  const found = await walk(market, MAX_LIMIT);
  expect(found).toHaveLength(quantity);
  expectAll(market, found);
});
