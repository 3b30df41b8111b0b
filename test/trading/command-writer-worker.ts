/**
 * A process of its own (node --expose-gc) that writes placements, amends, quotes and cancels through the command writer and
 * prints, for each of several rounds, the growth of the heap per command and the collections. The arguments are reused, so
 * that only the writer's own allocations count. A plain consumer empties the ring.
 */
import { PerformanceObserver } from "node:perf_hooks";
import { Reason } from "../../engine/constants.ts";
import { createRing, RingConsumer, RingProducer } from "../../engine/ring/ring.ts";
import { Waker } from "../../engine/ring/waker.ts";
import { CommandWriter } from "../../server/trading/command-writer.ts";
import { OrderStore } from "../../server/trading/order-store.ts";
import { Timeline } from "../../server/util/timeline.ts";

const SLOTS = 1_024;
const WARM_UP = 300_000;
const COMMANDS = 100_000;
const ROUNDS = 5;
const START = 1_800_000_000_000;

const commands = createRing(2 ** 14);
const engine = new RingConsumer(commands, false);
const store = new OrderStore(SLOTS);
const link = {
  commands: new RingProducer(commands),
  events: new RingConsumer(createRing(2 ** 4), true),
  waker: new Waker(),
};
const writer = new CommandWriter([link], store, new Timeline(START));
for (let slot = 1; slot <= SLOTS; slot++) {
  const fields = { user: 1, market: 3, outcome: 7, price: 4_200, quantity: 100, remaining: 100, terms: 0, status: 0 };
  store.allocate({ id: 2 ** 40 + slot, ...fields, connection: 0, expiresAt: 0, createdAt: START, updatedAt: START });
}

const place = { slot: 1, at: START + 0.5, validUntil: START + 0.5 };
const amend = {
  slot: 1,
  at: START + 0.5,
  price: 4_100,
  quantity: 0,
  priority: 2 ** 41 + 0.5,
  validUntil: 0,
  correlationId: 1,
};
const replace = { slot: 1, at: START + 0.5, replaced: 1, expected: 100 };
const cancel = { slot: 1, at: START + 0.5, reason: Reason.user, correlationId: -1 };

/** Writes `count` commands of one kind; one loop a kind, so that the compiler inlines each as it does at its one call site. */
const KINDS: readonly ((count: number) => void)[] = [
  (count) => {
    for (let i = 0; i < count; i++) {
      place.at = START + i;
      place.validUntil = START + i + 5_000;
      writer.placeOrder(place);
      if ((i & 255) === 255) drain();
    }
  },
  (count) => {
    for (let i = 0; i < count; i++) {
      amend.at = START + i;
      amend.priority = 2 ** 41 + i;
      writer.amendOrder(amend);
      if ((i & 255) === 255) drain();
    }
  },
  (count) => {
    for (let i = 0; i < count; i++) {
      replace.at = START + i;
      writer.replaceOrder(replace);
      if ((i & 255) === 255) drain();
    }
  },
  (count) => {
    for (let i = 0; i < count; i++) {
      cancel.at = START + i;
      writer.cancelOrder(cancel);
      if ((i & 255) === 255) drain();
    }
  },
];

function drain(): void {
  writer.publish();
  engine.tail = (engine.tail + engine.available()) | 0;
  engine.release();
}

function run(count: number): void {
  for (const kind of KINDS) kind(count);
}

let collections = 0;
const observer = new PerformanceObserver((list) => {
  collections += list.getEntries().length;
});
observer.observe({ entryTypes: ["gc"] });
const observed = () => new Promise((resolve) => setTimeout(resolve, 20));

run(WARM_UP);
for (let round = 0; round < ROUNDS; round++) {
  globalThis.gc?.();
  await observed();
  collections = 0;
  const before = process.memoryUsage().heapUsed;
  run(COMMANDS);
  const bytes = (process.memoryUsage().heapUsed - before) / (COMMANDS * KINDS.length);
  await observed();
  process.stdout.write(`${JSON.stringify({ bytes, collections })}\n`);
}
