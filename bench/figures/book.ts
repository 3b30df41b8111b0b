/**
 * Operations per second in one engine thread's books: in one market, and over 1,024. Each operation is a command record
 * from a ring and leaves its events in another ring; each batch publishes its changed levels and events, and a consumer
 * releases them. The measured time is an engine thread's work on a batch: reading records, matching, writing and
 * publishing events. For comparison, order books from npm run the same operations.
 */

import { createMatcher } from "../../engine/book/matcher.ts";
import { Reason } from "../../engine/constants.ts";
import * as R from "../../engine/ring/records.ts";
import { createRing, RingConsumer, RingProducer } from "../../engine/ring/ring.ts";
import { assert } from "../../engine/util/assert.ts";
import { missingPackages, RIVALS } from "../support/on-demand.ts";
import { goal, grouped, median, millions, printHead, printResult } from "../support/report.ts";
import { runRivals } from "./book/rival.ts";
import { BATCH_COMMANDS, makeWorkload, outcomeOf, type Workload } from "./book/workload.ts";

const smoke = process.argv.includes("--smoke");
const OPERATIONS = smoke ? 20_000 : 2_000_000;
const LIVE = smoke ? 1_000 : 10_000;
const MANY_MARKETS = 1_024;
const WARM_UP_ROUNDS = smoke ? 0 : 2;
const ROUNDS = smoke ? 1 : 9;
const SEED = 20_241_105;
const START_MS = Date.UTC(2024, 10, 5);
/** The fastest books on npm, of one author. */
const PACKAGES = ["nodejs-order-book", "hft-limit-order-book"];
const NEEDED = { one: 20e6, many: 10e6, times: 100 };
/** Just large enough for a batch: memory that isn't reused soon falls out of the cache. */
const COMMAND_RING_RECORDS = 2 * BATCH_COMMANDS;
const EVENT_RING_RECORDS = 4 * BATCH_COMMANDS;

const commandRing = createRing(COMMAND_RING_RECORDS);
const commands = new RingProducer(commandRing);
const commandsIn = new RingConsumer(commandRing, false);
const eventRing = createRing(EVENT_RING_RECORDS);
const eventsIn = new RingConsumer(eventRing, false);
const matcher = createMatcher(new RingProducer(eventRing), {
  capacity: 4 * LIVE,
  activeBooks: 2 * MANY_MARKETS,
  onRingFull: consumeEvents,
});
let matches = 0;

/** An engine thread's work on a batch. */
function runBatch(): void {
  const { words, doubles, mask } = commandsIn;
  let tail = commandsIn.tail;
  for (let left = commandsIn.available(); left > 0; left--) {
    matcher.execute(words, doubles, (tail & mask) * R.RECORD_WORDS);
    tail = (tail + 1) | 0;
  }
  commandsIn.tail = tail;
  commandsIn.release();
  matcher.endBatch();
}

/** The consumer of the events: counts matches and frees the records. */
function consumeEvents(): void {
  const { words, mask } = eventsIn;
  let tail = eventsIn.tail;
  for (let left = eventsIn.available(); left > 0; left--) {
    const packed = words[(tail & mask) * R.RECORD_WORDS]!;
    if (R.kindOf(packed) === R.EventKind.orderFilled && (packed & R.FLAG_MATCH_END) !== 0) matches++;
    tail = (tail + 1) | 0;
  }
  eventsIn.tail = tail;
  eventsIn.release();
}

/** Writes a command record; returns its first word. */
function writeCommand(packed: number, market: number, outcome: number): number {
  const { words, mask } = commands;
  const base = (commands.head & mask) * R.RECORD_WORDS;
  words[base] = packed;
  words[base + R.W_USER] = 0;
  words[base + R.W_OUTCOME] = outcome;
  words[base + R.W_MARKET] = market;
  words[base + R.W_CORRELATION] = 0;
  commands.head = (commands.head + 1) | 0;
  return base;
}

/** The gateway's part: the records of a batch. */
function writeBatch(workload: Workload, from: number, count: number): void {
  const { words, doubles } = commands;
  for (let i = from; i < from + count; i++) {
    const base = writeCommand(workload.packed[i]!, 0, workload.outcomes[i]!);
    words[base + R.W_SLOT] = workload.slots[i]!;
    words[base + R.W_USER] = workload.orderIds[i]!;
    words[base + R.W_PRICE] = workload.prices[i]!;
    words[base + R.W_QUANTITY] = workload.quantities[i]!;
    doubles[base / 2 + R.D_ORDER_ID] = workload.orderIds[i]!;
    doubles[base / 2 + R.D_AT] = START_MS + i;
  }
  commands.publish();
}

/** Executes commands of the workload in batches; returns the engine's time in ms. */
function run(workload: Workload, from: number, count: number): number {
  let ms = 0;
  for (let next = from; next < from + count; next += BATCH_COMMANDS) {
    writeBatch(workload, next, Math.min(BATCH_COMMANDS, from + count - next));
    const start = performance.now();
    runBatch();
    ms += performance.now() - start;
    consumeEvents();
  }
  return ms;
}

function openMarkets(markets: number): void {
  for (let market = 0; market < markets; market++) {
    const base = writeCommand(R.CommandKind.openMarket, market + 1, outcomeOf(market));
    commands.words[base + R.W_QUANTITY] = 2;
    commands.publish();
    runBatch();
    consumeEvents();
  }
}

/**
 * Cancels all resting orders, book by book and by rising price, so that each round finds the memory in the same order.
 */
function emptyBooks({ packed, slots, orderIds, outcomes, prices }: Workload): void {
  const last = new Map<number, number>();
  packed.forEach((command, i) => {
    if (R.kindOf(command) === R.CommandKind.placeOrder) last.set(slots[i]!, i);
  });
  const byPlace = [...last.values()].sort((a, b) => outcomes[a]! - outcomes[b]! || prices[a]! - prices[b]! || a - b);
  for (const i of byPlace) {
    const base = writeCommand(R.packCancel(Reason.operator), 0, 0);
    commands.words[base + R.W_SLOT] = slots[i]!;
    commands.doubles[base / 2 + R.D_ORDER_ID] = orderIds[i]!;
    commands.publish();
    runBatch();
    consumeEvents();
  }
}

/** Operations a second of each round, each from the same full books. */
function measure(workload: Workload): number[] {
  const rates: number[] = [];
  for (let round = -WARM_UP_ROUNDS; round < ROUNDS; round++) {
    run(workload, 0, workload.prefill);
    matches = 0;
    const ms = run(workload, workload.prefill, workload.operations);
    assert(matches === workload.trades, `${matches} matches, the model has ${workload.trades}`);
    if (round >= 0) rates.push(workload.operations / (ms / 1_000));
    emptyBooks(workload);
  }
  return rates;
}

function printRates(where: string, rates: readonly number[]): void {
  const best = Math.max(...rates);
  console.log(`  ${where}: ${millions(median(rates))} (median of ${rates.length} runs; best ${millions(best)})`);
}

printHead(
  "book",
  `${grouped(OPERATIONS)} operations, about ${grouped(LIVE)} live orders, batches of ${grouped(BATCH_COMMANDS)}; ` +
    "half adds within 50 ticks of the mid, 10 % marketable, 40 % cancels",
);
openMarkets(MANY_MARKETS);
const flow = makeWorkload(1, LIVE, OPERATIONS, SEED);
const one = measure(flow);
printRates("one market", one);
const many = measure(makeWorkload(MANY_MARKETS, LIVE, OPERATIONS, SEED));
printRates(`${grouped(MANY_MARKETS)} markets`, many);
const missing = missingPackages(RIVALS, !smoke);
const rivals = missing === null ? runRivals(flow, PACKAGES) : new Map<string, number>();
if (missing !== null) console.log(`  ${PACKAGES.join(", ")}: skipped, ${missing}`);
for (const [name, rate] of rivals) {
  const times = (median(one) / rate).toFixed(0);
  console.log(`  ${name}, one market: ${millions(rate)}; one market here is ${times} times that`);
}
const [ours, overMany] = [median(one), median(many)];
const fastest = rivals.size === 0 ? null : Math.max(...rivals.values());
printResult({
  bench: "book",
  one_market_per_s: Math.round(ours),
  one_market_best: Math.round(Math.max(...one)),
  markets: MANY_MARKETS,
  markets_per_s: Math.round(overMany),
  markets_best: Math.round(Math.max(...many)),
  rivals_per_s: Object.fromEntries([...rivals].map(([name, rate]) => [name, Math.round(rate)])),
  goals: [
    goal("book, one market, operations/s", NEEDED.one, ours),
    goal(`book, ${grouped(MANY_MARKETS)} markets, operations/s`, NEEDED.many, overMany),
    ...(fastest === null ? [] : [goal("book, times the fastest npm package", NEEDED.times, ours / fastest)]),
  ],
});
