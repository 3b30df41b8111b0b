/**
 * Records a second between two real threads through one ring: the producer writes and publishes in batches, the
 * consumer reads every word's sum and releases; both park when they find nothing to do. This file is both threads.
 */
import { isMainThread, parentPort, Worker, workerData } from "node:worker_threads";
import { RECORD_WORDS } from "../../engine/ring/records.ts";
import { createRing, RingConsumer, type RingMemory, RingProducer } from "../../engine/ring/ring.ts";
import { Waker } from "../../engine/ring/waker.ts";
import { assert } from "../../engine/util/assert.ts";
import { grouped, median, millions, printHead, printResult } from "../support/report.ts";

interface Setup {
  readonly memory: RingMemory;
  readonly producer: SharedArrayBuffer;
  readonly consumer: SharedArrayBuffer;
  readonly count: number;
}

const RING_RECORDS = 2 ** 14;
const BATCH = 64;
const SLEEP_MS = 1_000;
const ROUNDS = 5;

function consume({ memory, producer, consumer, count }: Setup): number {
  const ring = new RingConsumer(memory, false);
  const waker = new Waker(consumer);
  const other = new Waker(producer);
  const hasWork = (): boolean => ring.available() > 0;
  let sum = 0;
  for (let read = 0; read < count; ) {
    const available = ring.available();
    if (available === 0) {
      waker.sleep(hasWork, SLEEP_MS);
      continue;
    }
    for (let i = 0; i < available; i++) sum = (sum + ring.words[((ring.tail + i) & ring.mask) * RECORD_WORDS]!) | 0;
    ring.tail = (ring.tail + available) | 0;
    ring.release();
    other.wake();
    read += available;
  }
  return sum;
}

function produce({ memory, producer, consumer, count }: Setup): number {
  const ring = new RingProducer(memory);
  const waker = new Waker(producer);
  const other = new Waker(consumer);
  const hasRoom = (): boolean => ring.hasRoom(BATCH);
  let sum = 0;
  for (let written = 0; written < count; written += BATCH) {
    while (!hasRoom()) waker.sleep(hasRoom, SLEEP_MS);
    for (let i = 0; i < BATCH; i++) {
      const base = (ring.head & ring.mask) * RECORD_WORDS;
      const value = written + i;
      // All 16 words, as a command has them.
      for (let word = 0; word < RECORD_WORDS; word++) ring.words[base + word] = value;
      sum = (sum + value) | 0;
      ring.head = (ring.head + 1) | 0;
    }
    ring.publish();
    other.wake();
  }
  return sum;
}

async function round(count: number): Promise<number> {
  const setup: Setup = {
    memory: createRing(RING_RECORDS),
    producer: new Waker().buffer,
    consumer: new Waker().buffer,
    count,
  };
  const worker = new Worker(new URL(import.meta.url), { workerData: setup });
  await new Promise((resolve) => worker.once("message", resolve));
  const answer = new Promise<number>((resolve) => worker.once("message", resolve));
  const start = performance.now();
  const sent = produce(setup);
  const received = await answer;
  const seconds = (performance.now() - start) / 1_000;
  assert(sent === received, "every record came through once");
  await worker.terminate();
  return count / seconds;
}

if (isMainThread) {
  const smoke = process.argv.includes("--smoke");
  const count = (smoke ? 2_000 : 200_000) * BATCH;
  const rates: number[] = [];
  for (let i = 0; i < (smoke ? 1 : ROUNDS); i++) rates.push(await round(count));
  printHead("rings", `${grouped(count)} records of 64 bytes between two threads, published every ${BATCH}`);
  console.log(`  ${millions(median(rates))} (median of ${rates.length}; best ${millions(Math.max(...rates))})`);
  printResult({ bench: "rings", records_per_s: Math.round(median(rates)), best: Math.round(Math.max(...rates)) });
} else {
  parentPort!.postMessage("ready");
  // Node delivers the message before a thread that never yields takes over.
  setImmediate(() => parentPort!.postMessage(consume(workerData as Setup)));
}
