/**
 * A separate process (node --expose-gc) that runs a mixed flow through the matcher and prints, for several rounds, the
 * heap's growth per command and the number of collections. The flow itself works on typed arrays and doesn't allocate
 * either.
 */
import { PerformanceObserver } from "node:perf_hooks";
import { createMatcher } from "../../../engine/book/matcher.ts";
import { isFinal, Side, TimeInForce } from "../../../engine/constants.ts";
import * as R from "../../../engine/ring/records.ts";
import { createRing, RingConsumer, RingProducer } from "../../../engine/ring/ring.ts";

export interface AllocationRound {
  readonly commands: number;
  readonly events: number;
  readonly bytesPerCommand: number;
  readonly collections: number;
}

const CAPACITY = 4_096;
const BATCH = 32;
const WARM_UP = 1_000_000;
const COMMANDS = 200_000;
const ROUNDS = 5;
/** First outcome and number of outcomes of each market. */
const MARKETS = [
  [1, 2],
  [3, 3],
  [6, 5],
] as const;

const memory = createRing(2 ** 14);
const consumer = new RingConsumer(memory, false);
const matcher = createMatcher(new RingProducer(memory), { capacity: CAPACITY, activeBooks: 16, onRingFull: drain });
const words = new Int32Array(R.RECORD_WORDS);
const doubles = new Float64Array(words.buffer);
/** The live order of each slot; 0 if it is free. */
const live = new Float64Array(CAPACITY + 1);
const userOf = new Int32Array(CAPACITY + 1);
const state = new Int32Array(1);
const counts = new Float64Array(2);
const marketOf = new Int32Array(16);
const outcomesOf = new Int32Array(16);

function random(below: number): number {
  const next = (Math.imul(state[0]!, 1_103_515_245) + 12_345) | 0;
  state[0] = next;
  return (next >>> 8) % below;
}

function drain(): void {
  let left = consumer.available();
  counts[1]! += left;
  for (; left > 0; left--) {
    const base = (consumer.tail & consumer.mask) * R.RECORD_WORDS;
    const packed = consumer.words[base]!;
    const kind = R.kindOf(packed);
    if (kind <= R.EventKind.orderAmended && isFinal(R.statusOf(packed))) live[consumer.words[base + R.W_SLOT]!] = 0;
    consumer.tail = (consumer.tail + 1) | 0;
  }
  consumer.release();
}

/**
 * Prices lie around the point where the market's outcomes have equal prices, so that all types of match are frequent.
 */
function priceIn(outcome: number, side: number): number {
  const even = (10_000 / outcomesOf[outcome]!) | 0;
  const distance = random(200) - 20;
  return side === Side.buy ? even - distance : even + distance;
}

function fillPlacement(slot: number): void {
  const outcome = 1 + random(10);
  const side = 1 + random(2);
  const tif = random(10) === 0 ? TimeInForce.fok : random(10) === 0 ? TimeInForce.ioc : TimeInForce.gtc;
  const flags = random(2) === 0 ? R.FLAG_PAT : tif === TimeInForce.gtc && random(4) === 0 ? R.FLAG_POST_ONLY : 0;
  words[0] = R.packCommand(R.CommandKind.placeOrder, R.packTerms(side, 0, tif, random(4), flags));
  words[R.W_USER] = 1 + random(20);
  words[R.W_OUTCOME] = outcome;
  words[R.W_PRICE] = priceIn(outcome, side);
  words[R.W_QUANTITY] = 1 + random(50);
  words[R.W_MARKET] = marketOf[outcome]!;
  counts[0]! += 1;
  live[slot] = counts[0]!;
  userOf[slot] = words[R.W_USER]!;
}

/** A quote in the place of the order in `replaced`, which was just canceled. */
function replace(replaced: number): void {
  const slot = 1 + random(CAPACITY);
  if (live[slot] !== 0) return;
  fillPlacement(slot);
  const terms = R.packTerms(1 + random(2), 0, 0, 0, R.FLAG_POST_ONLY | R.FLAG_REPLACES);
  words[0] = R.packCommand(R.CommandKind.placeOrder, terms);
  words[R.W_SLOT] = slot;
  words[R.W_USER] = userOf[replaced]!;
  words[R.W_CORRELATION] = replaced;
  userOf[slot] = userOf[replaced]!;
  doubles[R.D_ORDER_ID] = live[slot]!;
  doubles[R.D_EXPECTED] = random(60);
  matcher.execute(words, doubles, 0);
  doubles[R.D_EXPECTED] = 0;
}

function runCommand(): void {
  const slot = 1 + random(CAPACITY);
  words[R.W_SLOT] = slot;
  if (live[slot] === 0) fillPlacement(slot);
  else if (random(3) > 0) words[0] = R.packCancel(1);
  else {
    words[0] = R.CommandKind.amendOrder;
    words[R.W_PRICE] = 1_500 + random(4_000);
    words[R.W_QUANTITY] = 1 + random(60);
  }
  doubles[R.D_ORDER_ID] = live[slot]!;
  doubles[R.D_AT] = 1_700_000_000_000 + counts[0]!;
  matcher.execute(words, doubles, 0);
  if (R.kindOf(words[0]!) === R.CommandKind.cancelOrder && random(3) === 0) replace(slot);
}

function runCommands(count: number): void {
  for (let done = 0; done < count; done += BATCH) {
    for (let i = 0; i < BATCH; i++) runCommand();
    matcher.endBatch();
    drain();
  }
}

MARKETS.forEach(([first, count], i) => {
  for (let outcome = first; outcome < first + count; outcome++) {
    marketOf[outcome] = i + 1;
    outcomesOf[outcome] = count;
  }
  words.fill(0);
  words[0] = R.CommandKind.openMarket;
  words[R.W_OUTCOME] = first;
  words[R.W_QUANTITY] = count;
  words[R.W_MARKET] = i + 1;
  matcher.execute(words, doubles, 0);
});
words.fill(0);
// Ids past 2^31 are doubles to V8: a careless call would put each of them on the heap.
counts[0] = 2 ** 40;
runCommands(WARM_UP);

let collections = 0;
const observer = new PerformanceObserver((list) => {
  collections += list.getEntries().length;
});
observer.observe({ entryTypes: ["gc"] });
const settle = () => new Promise((resolve) => setTimeout(resolve, 20));

for (let round = 0; round < ROUNDS; round++) {
  globalThis.gc!();
  await settle();
  collections = 0;
  const events = counts[1]!;
  const before = process.memoryUsage().heapUsed;
  runCommands(COMMANDS);
  const grown = process.memoryUsage().heapUsed - before;
  await settle();
  const report: AllocationRound = {
    ...{ commands: COMMANDS, events: counts[1]! - events },
    ...{ bytesPerCommand: grown / COMMANDS, collections },
  };
  process.stdout.write(`${JSON.stringify(report)}\n`);
}
