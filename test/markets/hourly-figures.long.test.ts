/** A market's price of 24 hours ago and its sparkline after a start, beside its candles; and the order of the movers. */
import { afterAll, beforeAll, expect, test } from "vitest";
import { Client, type MarketJson } from "../support/client.ts";
import { makePast } from "../support/past.ts";
import { TestServer } from "../support/server.ts";

const HOUR_MS = 3_600_000;
type Candles = { readonly items: readonly (readonly [openTime: number, ...figures: number[]])[] };
type Place = MarketJson & { readonly kind: string; readonly markets?: MarketJson[] };

let server: TestServer;
let client: Client;
beforeAll(async () => {
  server = await TestServer.start({ dataDir: makePast(29, Date.now()).path });
  client = new Client(server, null);
}, 240_000);
afterAll(async () => {
  client.close();
  await server.stop();
});

/** The closes of an outcome's hours, the latest last. */
async function hoursOf(marketId: number, outcomeId: number, now: number): Promise<Map<number, number>> {
  const query = `outcome_id=${outcomeId}&interval=1h&from=${now - 200 * HOUR_MS}&to=${now}`;
  const { items } = await client.get<Candles>(`/markets/${marketId}/candles?${query}`);
  return new Map(items.map(([at, , , , close]) => [Math.floor(at / HOUR_MS), close!]));
}

const feed = async (query: string): Promise<Place[]> =>
  (await client.get<{ items: Place[] }>(`/feed?size=100&${query}`)).items;

test("prices of 24 hours ago and sparklines are those of the candles", { timeout: 120_000 }, async () => {
  const timeOf = async (): Promise<number> => (await client.get<{ now: number }>("/time")).now;
  let now = 0;
  let places: Place[] = [];
  // The clock may pass an hour meanwhile.
  for (; now === 0 || Math.floor((await timeOf()) / HOUR_MS) !== Math.floor(now / HOUR_MS); ) {
    now = await timeOf();
    places = await feed("sparklines=true&kind=market");
  }
  const hour = Math.floor(now / HOUR_MS);
  expect(places.length).toBeGreaterThan(8);
  let moved = 0;
  for (const { id, outcomes } of places) {
    for (const outcome of outcomes) {
      const closes = await hoursOf(id, outcome.id, now);
      expect(outcome.price_24h_ago).toBe(closes.get(hour - 24));
      if (outcome.price_24h_ago !== outcome.last_price) moved++;
      const expected = Array.from({ length: 42 }, (_, i) => closes.get(hour - 4 * (41 - i)));
      expect(outcome.sparkline).toEqual(expected);
      expect(outcome.sparkline!.at(-1)).toBe(outcome.last_price);
    }
  }
  expect(moved).toBeGreaterThan(8);
});

test("the largest change comes first among the movers", async () => {
  const moveOf = ({ outcomes }: MarketJson): number =>
    Math.max(...outcomes.map((each) => Math.abs(each.last_price! - each.price_24h_ago!)));
  const places = await feed("sort=movers");
  const moves = places.map((place) =>
    place.kind === "market"
      ? moveOf(place)
      : Math.max(...place.markets!.filter(({ status }) => status === "open").map(moveOf)),
  );
  expect(moves[0]).toBeGreaterThan(0);
  expect(moves).toEqual(moves.toSorted((a, b) => b - a));
});

test("a market that has ended has no price of 24 hours ago", async () => {
  const ended = await client.all<MarketJson>("/markets?status=resolved,voided");
  expect(ended.length).toBe(6);
  expect(ended.flatMap(({ outcomes }) => outcomes.map((each) => each.price_24h_ago))).not.toContainEqual(
    expect.any(Number),
  );
});
