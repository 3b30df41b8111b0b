/**
 * GET /markets/:id/candles over real sockets: its candles are those of the trades, also over stops, kill -9 and the close
 * of the market, and a request for a bad range is rejected. The last test kills and restarts the server.
 */
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { MAX_INTERVALS } from "../../server/http/limits.ts";
import {
  type CandleJson,
  INTERVALS,
  type Interval,
  type PlainTrade,
  plainCandles,
  STEPS_MS,
} from "../support/candles.ts";
import { expectBalanced, expectEndsWell, expectSoundDatabase } from "../support/checks.ts";
import type { Client, TradeJson } from "../support/client.ts";
import { RECOUNT_ACTIVITY, RECOUNT_CANDLES, RECOUNT_HOURS, withDatabase } from "../support/data-dir.ts";
import { Random } from "../support/random.ts";
import { BUY, expectRefused, SELL } from "../support/trading.ts";
import { type TestMarket, World } from "../support/world.ts";

const MINUTE_MS = STEPS_MS["1m"];
const DAY_MS = STEPS_MS["1d"];

interface CandlesJson {
  readonly market_id: number;
  readonly outcome_id: number;
  readonly interval: Interval;
  readonly items: readonly CandleJson[];
}

const candles = async (client: Client, market: number | string, query = ""): Promise<readonly CandleJson[]> =>
  (await client.get<CandlesJson>(`/markets/${market}/candles${query}`)).items;

/** The trades of each outcome by the list of trades, oldest first. */
async function tradesOf(client: Client, market: TestMarket): Promise<ReadonlyMap<number, PlainTrade[]>> {
  const listed = await client.all<TradeJson>(`/markets/${market.id}/trades`);
  const trades = new Map<number, PlainTrade[]>(market.outcomes.map((outcome) => [outcome, []]));
  for (const { outcome_id, price, quantity, created_at } of listed.reverse()) {
    trades.get(outcome_id)!.push({ price, quantity, at: created_at });
  }
  return trades;
}

/** The candles of every outcome and interval over the last day are those of its trades; returns the number of trades. */
async function expectCandlesOfTrades(client: Client, market: TestMarket): Promise<number> {
  const trades = await tradesOf(client, market);
  for (const [outcome, own] of trades) {
    for (const interval of INTERVALS) {
      const to = Date.now();
      const from = to - (interval === "1m" ? MAX_INTERVALS - 1 : 30) * STEPS_MS[interval];
      const found = await candles(
        client,
        market.id,
        `?outcome_id=${outcome}&interval=${interval}&from=${from}&to=${to}`,
      );
      expect(found).toEqual(plainCandles(own, STEPS_MS[interval], from, to));
    }
  }
  return [...trades.values()].flat().length;
}

/** The maker's order rests, and the taker's order fills it. */
async function trade(maker: Client, taker: Client, market: TestMarket, price: number, quantity: number): Promise<void> {
  const terms = { market_id: market.id, outcome_id: market.outcomes[0], price, quantity };
  await maker.place({ ...terms, side: SELL });
  await taker.place({ ...terms, side: BUY });
}

let world: World;
beforeAll(async () => {
  world = await World.start({ users: 4, markets: [3, 2, 2, 2] });
});
afterAll(async () => {
  await expectBalanced(world.anonymous());
  await expectEndsWell(world);
});

describe("candles of one market", () => {
  let client: Client;
  let market: TestMarket;
  let other: TestMarket;
  beforeAll(async () => {
    [market, other] = [world.market(3), world.market(2)];
    const [maker, taker] = [world.user(), world.user()];
    await world.split(maker, market, 100);
    for (const [price, quantity] of [[5_000, 3], [5_100, 1], [4_900, 2], [5_050, 4]] as const) {
      await trade(maker, taker, market, price, quantity);
    } // biome-ignore format: one trade each
    // A mint counts for the taker's outcome, at the taker's price.
    for (const outcome of [0, 1]) {
      const terms = {
        market_id: market.id,
        outcome_id: market.outcomes[outcome],
        side: BUY,
        price: 3_000,
        quantity: 5,
      };
      await maker.place(terms);
    }
    const last = { market_id: market.id, outcome_id: market.outcomes[2], side: BUY, price: 4_500, quantity: 5 };
    await taker.place(last);
    client = world.anonymous();
  });

  test("candles are each outcome's own, at the takers' prices", async () => {
    expect(await expectCandlesOfTrades(client, market)).toBe(5);
    const [first, second, third] = market.outcomes as [number, number, number];
    const sum = async (outcome: number): Promise<readonly number[] | undefined> =>
      (await candles(client, market.id, `?outcome_id=${outcome}&interval=1d`)).at(-1)?.slice(1);
    expect(await sum(first)).toEqual([5_000, 5_100, 4_900, 5_050, 10]);
    expect(await sum(second)).toBeUndefined();
    expect(await sum(third)).toEqual([4_000, 4_000, 4_000, 4_000, 5]);
    expect(await candles(client, other.id)).toEqual([]);
  });

  test("candles are found by id and slug; by default, of the first outcome, by minutes, up to now", async () => {
    const { items, ...rest } = await client.get<CandlesJson>(`/markets/${market.slug}/candles`);
    expect(rest).toEqual({ market_id: market.id, outcome_id: market.outcomes[0], interval: "1m" });
    expect(items.at(-1)![0] + MINUTE_MS).toBeGreaterThan(Date.now() - 5_000);
    expect(items.reduce((sum, candle) => sum + candle[5], 0)).toBe(10);
  });

  test("candles end now, and a range in the future is empty", async () => {
    const future = Date.now() + 365 * DAY_MS;
    const found = await candles(client, market.id, `?interval=1h&to=${future}`);
    expect(found.at(-1)![0]).toBeLessThanOrEqual(Date.now());
    expect(found.at(-1)![0] + STEPS_MS["1h"]).toBeGreaterThan(Date.now() - 5_000);
    expect(await candles(client, market.id, `?from=${future}&to=${future + 1}`)).toEqual([]);
    expect(await candles(client, market.id, "?to=0")).toEqual([]);
  });

  test("candles are rejected for a bad query, with the field's name", async () => {
    const now = Date.now();
    const first = Math.floor(now / MINUTE_MS) * MINUTE_MS - (MAX_INTERVALS - 1) * MINUTE_MS;
    await candles(client, market.id, `?from=${first}&to=${now}`);
    const refused = async (query: string, message: RegExp): Promise<unknown> =>
      expectRefused(client.request("GET", `/markets/${market.id}/candles?${query}`), 400, 40000, message);
    await refused(`from=${first - 1}&to=${now}`, /^from: .*1500 intervals of 1m/);
    await refused("from=0&interval=1d", /^from: .*1500 intervals of 1d/);
    await refused("from=5&to=4", /^from: /);
    await refused(`from=${now + DAY_MS}`, /^from: /);
    await refused("from=-1", /^from: /);
    await refused("to=1.5", /^to: /);
    await refused("to=99999999999999999999", /^to: /);
    await refused("interval=2m", /^interval: .*1m, 5m, 1h, 1d/);
    await refused("interval=", /^interval: /);
    await refused("outcome_id=x", /^outcome_id: /);
    await refused("limit=5", /^limit: unknown field/);
    await refused("from=1&from=2", /^from: given twice/);
    const missing = (path: string, message: RegExp): Promise<unknown> =>
      expectRefused(client.request("GET", path), 404, 4040, message);
    await missing(`/markets/${market.id}/candles?outcome_id=${other.outcomes[0]}`, /outcome/);
    await missing(`/markets/${market.id}/candles?outcome_id=${market.outcomes[2]! + 1_000}`, /outcome/);
    await missing("/markets/999/candles", /market/);
    await missing("/markets/nothing/candles", /market/);
  });
});

test("candles survive kill -9 under trade, count no trade twice, and outlive the close of the market", async () => {
  const random = Random.printed("candles over kill -9");
  const [busy, quiet] = [world.market(), world.market()];
  const open = (): [Client, Client] => [world.client("user2", 0, 4), world.client("user3", 0, 4)];
  let [maker, taker] = open();
  for (const market of [busy, quiet]) await world.split(maker, market, 2_000);
  let trades = 0;
  for (let life = 0; life < 2; life++) {
    for (const market of [busy, quiet]) {
      for (let i = random.integer(1, 15); i > 0; i--) {
        await trade(maker, taker, market, random.integer(1, 9_999), random.integer(1, 20));
      }
    }
    const orders = Array.from({ length: 8 }, () =>
      trade(maker, taker, busy, random.integer(1, 9_999), 2).catch(() => {}),
    );
    await orders[random.integer(0, 7)];
    await world.server.kill();
    await Promise.all(orders);
    expectSoundDatabase(world.server.dataDir);
    world.server = await world.server.restart();
    [maker, taker] = open();
    const counted = await expectCandlesOfTrades(taker, busy);
    expect(counted).toBeGreaterThan(trades);
    trades = counted;
    await expectCandlesOfTrades(taker, quiet);
  }
  // Move the trades to the past, a third each by three days, two and one, and delete all candles.
  await world.server.stop();
  withDatabase(world.server.dataDir, (db) => {
    db.exec(`UPDATE fills SET created_at = created_at - ${DAY_MS} * (4 - (SELECT third FROM
          (SELECT id AS at, ntile(3) OVER (ORDER BY id) AS third FROM fills) WHERE at = id));
        UPDATE entries SET created_at = coalesce(
          (SELECT max(created_at) FROM fills WHERE fills.id < entries.id), created_at - ${4 * DAY_MS});
        ${RECOUNT_ACTIVITY};
        ${RECOUNT_HOURS};
        ${RECOUNT_CANDLES}`);
    db.prepare("UPDATE markets SET status = 3 WHERE id = ?").run(quiet.id);
  });
  world.server = await world.server.restart();
  const reader = world.anonymous();
  await expectCandlesOfTrades(reader, quiet);
  await expectCandlesOfTrades(reader, busy);
  // Between those days, candles have the last price.
  const found = await candles(reader, quiet.id, `?interval=1h&from=${Date.now() - 4 * DAY_MS}`);
  expect(found.length).toBeGreaterThan(48);
  expect(found.filter(([, , , , , volume]) => volume === 0).length).toBeGreaterThan(40);
});
