/**
 * How long a read of the public lists occupies the gateway's thread: 100,000 markets in 10,000 events, of which 32,000
 * are open, the maximum. In memory and without a server. Measures processor time, so that other processes don't count.
 */

import { MarketStatus, MatchType, Side } from "../../engine/constants.ts";
import { Ledger } from "../../engine/ledger.ts";
import { UNDECIDED } from "../../engine/projection/load/markets.ts";
import { systemClock } from "../../engine/util/clock.ts";
import { MarketFeed } from "../../server/markets/feed.ts";
import { MarketLists } from "../../server/markets/lists.ts";
import { MarketRegistry } from "../../server/markets/registry.ts";
import { MarketSearch } from "../../server/markets/search.ts";
import { TimeSlicer } from "../../server/util/time-slicer.ts";
import { randomFrom } from "../support/random.ts";
import { grouped, median, printHead, printResult } from "../support/report.ts";

const smoke = process.argv.includes("--smoke");
const MARKETS = smoke ? 2_000 : 100_000;
const OPEN = Math.min(MARKETS, 32_000);
const EVENTS = MARKETS / 10;
const ROUNDS = smoke ? 5 : 200;
const NOW = 1_800_000_000_000;

const random = randomFrom(7);
const below = (count: number): number => Math.floor(random() * count);
const registry = new MarketRegistry(1, 0, systemClock);
const ledger = new Ledger();
for (let id = 1; id <= EVENTS; id++) {
  const texts = { slug: `event-${id}`, title: `The ${id}th group of questions`, category: `category ${below(20)}` };
  registry.addEvent({ id, ...texts, closesAt: null, createdAt: NOW - MARKETS + id });
}
for (let id = 1; id <= MARKETS; id++) {
  const isOpen = id > MARKETS - OPEN;
  const outcomes = ["Yes", "No"].map((name, position) => {
    return {
      id: 2 * id + position,
      marketId: id,
      position,
      name,
      lastPrice: null,
      volume: below(1_000_000),
      payout: null,
    };
  });
  const market = registry.add(
    {
      id,
      slug: `market-${id}`,
      question: `Will the ${id}th of the things that might happen this year happen?`,
      description: "Pays on Yes if it does, on No if it doesn't. ".repeat(10),
      category: `category ${below(20)}`,
      eventId: 1 + below(EVENTS),
      status: isOpen ? MarketStatus.open : MarketStatus.resolved,
      sets: 0,
      opensAt: NOW,
      closesAt: NOW + below(1_000_000_000),
      createdAt: NOW - MARKETS + id,
      firstOutcomeId: 2 * id,
      outcomes: 2,
      proposedBy: null,
      ...UNDECIDED,
    },
    outcomes,
  );
  if (isOpen) registry.addHourlyVolume(market, NOW, below(100_000));
}
const everyThousandth = new Uint32Array((MARKETS >>> 5) + 1);
for (let id = 1_000; id <= MARKETS; id += 1_000) everyThousandth[id >>> 5]! |= 1 << (id & 31);
const search = new MarketSearch({ search: () => Promise.resolve(everyThousandth) }, registry);
const timeSlicer = new TimeSlicer();
const lists = new MarketLists(registry, ledger, search, timeSlicer);
const feed = new MarketFeed(registry, ledger, search, timeSlicer);

printHead("lists", `${grouped(MARKETS)} markets, ${grouped(OPEN)} of them open, in ${grouped(EVENTS)} events`);
const startedAt = performance.now();
lists.warmUp();
feed.warmUp(NOW);
const sorted = performance.now() - startedAt;
console.log(`  sorted at the start: ${sorted.toFixed(0)} ms`);

const figures: Record<string, number> = {};
async function measure(name: string, read: () => unknown, before: () => void = () => {}): Promise<void> {
  const times: number[] = [];
  for (let round = 0; round < ROUNDS; round++) {
    before();
    const from = process.cpuUsage();
    const answer = read();
    const { user, system } = process.cpuUsage(from);
    times.push(user + system);
    await answer;
  }
  figures[name] = Math.round(median(times));
  console.log(`  ${name}: ${grouped(figures[name])} µs`);
}
let matches = 0;
const trade = (count: number) => () => {
  for (let n = 0; n < count; n++) {
    const outcome = 2 * (MARKETS - below(OPEN));
    matches++;
    const fill = { matchId: matches, fillId: matches, matchType: MatchType.direct, at: NOW };
    registry.recordTrade({ outcomeId: outcome, side: Side.buy, price: 5_000, quantity: 1 + below(1_000), ...fill });
  }
};
type MarketsQuery = Parameters<MarketLists["markets"]>[0];
const markets = (query: object) => () => lists.markets({ sort: "volume", ...query } as MarketsQuery, NOW);

await measure("50 markets by volume", markets({}));
await measure("50 markets of a category", markets({ category: "category 7" }));
await measure("50 markets, 10 traded since the last read", markets({}), trade(10));
await measure("50 markets, 1,000 traded since the last read", markets({}), trade(1_000));
await measure("none of all: a status that no market has", markets({ status: "voided" }));
await measure("none of all: a category that no market has", markets({ category: "none", status: "resolved" }));
await measure("200 markets, the largest page", markets({ limit: 200 }));
await measure("20 places of the feed", () => feed.read({}, NOW));
await measure("20 places of the feed of a category", () => feed.read({ category: "category 7" }, NOW));
await measure("20 places of the feed, 10 traded since the last read", () => feed.read({}, NOW), trade(10));
printResult({ bench: "lists", markets: MARKETS, sorted_ms: Math.round(sorted), microseconds: figures });
