/**
 * The rings: bounds and wrap-around in one thread, then two and three real threads with small rings, parking and random
 * pauses, around the wrap of the int32 cursors.
 */
import { Worker } from "node:worker_threads";
import { describe, expect, test } from "vitest";
import { createRing, RingConsumer, RingGate, type RingMemory, RingProducer } from "../../../engine/ring/ring.ts";
import { Waker } from "../../../engine/ring/waker.ts";
import { randomFrom, readRecord, writeRecord } from "./ring-traffic.ts";
import type { RingJob, RingReport } from "./ring-worker.ts";

const WRAP = 2 ** 31;

/** A ring with all cursors at `start`, as after that many records. */
function ringAt(records: number, start: number): RingMemory {
  const memory = createRing(records);
  const header = new Int32Array(memory.buffer, 0, 128);
  for (const cursor of [0, 32, 64]) header[cursor] = start;
  return memory;
}

describe("in one thread", () => {
  test("a ring's capacity is a power of two", () => {
    for (const records of [0, 1, 3, 1_000]) expect(() => createRing(records)).toThrow("power of two");
  });

  for (const start of [0, WRAP - 3, -2]) {
    test(`a ring's room and availability from position ${start}`, () => {
      const memory = ringAt(4, start);
      const producer = new RingProducer(memory);
      const consumer = new RingConsumer(memory, false);
      expect([producer.hasRoom(4), producer.hasRoom(5), producer.depth(), consumer.available()]).toEqual([
        true,
        false,
        0,
        0,
      ]);
      for (let round = 0; round < 3; round++) {
        producer.head = (producer.head + 4) | 0;
        expect(consumer.available()).toBe(0);
        producer.publish();
        expect([producer.hasRoom(1), producer.depth(), consumer.available()]).toEqual([false, 4, 4]);
        consumer.tail = (consumer.tail + 3) | 0;
        expect(producer.hasRoom(1)).toBe(false);
        consumer.release();
        expect([producer.hasRoom(3), producer.hasRoom(4), consumer.available()]).toEqual([true, false, 1]);
        consumer.tail = (consumer.tail + 1) | 0;
        consumer.release();
        expect(producer.depth()).toBe(0);
      }
    });
  }

  test("a ring's gated consumer sees what the gate passed; only the consumer gives the producer room", () => {
    const memory = ringAt(8, WRAP - 2);
    const producer = new RingProducer(memory);
    const gate = new RingGate(memory);
    const consumer = new RingConsumer(memory, true);
    producer.head = (producer.head + 5) | 0;
    producer.publish();
    expect([gate.available(), consumer.available()]).toEqual([5, 0]);
    gate.tail = (gate.tail + 3) | 0;
    expect(consumer.available()).toBe(0);
    gate.open();
    expect([gate.available(), consumer.available(), producer.hasRoom(4)]).toEqual([2, 3, false]);
    consumer.tail = (consumer.tail + 3) | 0;
    consumer.release();
    expect([consumer.available(), producer.hasRoom(6), producer.hasRoom(7)]).toEqual([0, true, false]);
  });

  test("a ring's end opened later continues at the current cursors", () => {
    const memory = ringAt(8, 5);
    const first = new RingProducer(memory);
    first.head += 3;
    first.publish();
    expect(new RingProducer(memory).head).toBe(8);
    const consumer = new RingConsumer(memory, false);
    expect([consumer.tail, consumer.available()]).toEqual([5, 3]);
  });
});

interface Traffic {
  readonly records: number;
  readonly start: number;
  readonly count: number;
  readonly batch: number;
  readonly pauseEvery: number;
  readonly gated?: boolean;
}

function jobOf(traffic: Traffic, role: RingJob["role"], memory: RingMemory, wakers: RingJob["wakers"]): RingJob {
  const { count, batch, pauseEvery, gated = false } = traffic;
  const seed = { producer: 1, gate: 2, consumer: 3 }[role];
  return { role, memory, count, gated, batch, pauseEvery, seed, wakers };
}

function start(job: RingJob): Promise<RingReport> {
  return new Promise((resolve, reject) => {
    const worker = new Worker(new URL("../../../dist/test/engine/ring/ring-worker.js", import.meta.url), {
      workerData: job,
    });
    worker.once("message", resolve);
    worker.once("error", reject);
  });
}

const newWakers = (): RingJob["wakers"] => {
  const [producer, gate, consumer] = [new Waker(), new Waker(), new Waker()];
  return { producer: producer.buffer, gate: gate.buffer, consumer: consumer.buffer };
};

async function runThreads(traffic: Traffic): Promise<RingReport[]> {
  const memory = ringAt(traffic.records, traffic.start);
  const wakers = newWakers();
  const roles = traffic.gated ? (["producer", "gate", "consumer"] as const) : (["producer", "consumer"] as const);
  return Promise.all(roles.map((role) => start(jobOf(traffic, role, memory, wakers))));
}

describe("between threads", () => {
  const noLostWakeUp = (reports: readonly RingReport[]) => {
    for (const { role, timeOuts } of reports) expect(timeOuts, `${role} slept until the time-out`).toBe(0);
  };

  test("two million records through a ring of 1,024, the cursors wrapping on the way", async () => {
    const traffic = { records: 1_024, start: WRAP - 1_000_000, count: 2_000_000, batch: 64, pauseEvery: 200 };
    const [producer, consumer] = await runThreads(traffic);
    expect(consumer!.sum).toBe(producer!.sum);
    expect(consumer!.sleeps).toBeGreaterThan(0);
    noLostWakeUp([producer!, consumer!]);
  });

  test("both ends park nearly every time in a ring of two", async () => {
    const traffic = { records: 2, start: WRAP - 10_000, count: 40_000, batch: 2, pauseEvery: 1_000 };
    const [producer, consumer] = await runThreads(traffic);
    expect(consumer!.sum).toBe(producer!.sum);
    expect(producer!.sleeps + consumer!.sleeps).toBeGreaterThan(1_000);
    noLostWakeUp([producer!, consumer!]);
  });

  test("a ring between three threads: the consumer never reads past the gate", async () => {
    const traffic = { records: 512, start: WRAP - 200_000, count: 500_000, batch: 48, pauseEvery: 200, gated: true };
    const reports = await runThreads(traffic);
    expect(reports[2]!.sum).toBe(reports[0]!.sum);
    noLostWakeUp(reports);
  });

  test("a consumer with an event loop sleeps asynchronously", async () => {
    const traffic = { records: 64, start: WRAP - 1_000, count: 30_000, batch: 40, pauseEvery: 20 };
    const memory = ringAt(traffic.records, traffic.start);
    const wakers = newWakers();
    const own = new Waker(wakers.consumer);
    const producerWaker = new Waker(wakers.producer);
    const ring = new RingConsumer(memory, false);
    const hasWork = () => ring.available() > 0;
    const report = start(jobOf(traffic, "producer", memory, wakers));
    const random = randomFrom(4);
    let [sum, sleeps, timeOuts] = [0, 0, 0];
    for (let n = 0; n < traffic.count; ) {
      while (!hasWork()) {
        const since = performance.now();
        await own.sleepAsync(hasWork, 5_000);
        if (performance.now() - since > 4_900) timeOuts++;
        sleeps++;
      }
      for (const end = n + 1 + random(ring.available()); n < end; n++) {
        sum = readRecord(ring, ring.tail, n, false, sum);
        ring.tail = (ring.tail + 1) | 0;
      }
      ring.release();
      producerWaker.wake();
    }
    const producer = await report;
    expect(sum).toBe(producer.sum);
    expect(sleeps).toBeGreaterThan(10);
    noLostWakeUp([producer, { role: "consumer", sum, sleeps, timeOuts }]);
  });
});

test("the traffic's own check detects a wrong word, a wrong number and a missing stamp", () => {
  const memory = ringAt(4, 0);
  const ring = new RingProducer(memory);
  const sum = writeRecord(ring, 2, 7, 0);
  expect(readRecord(ring, 2, 7, false, 0)).toBe(sum);
  expect(() => readRecord(ring, 2, 8, false, 0)).toThrow("record 8");
  expect(() => readRecord(ring, 2, 7, true, 0)).toThrow("stamp");
  ring.words[2 * 16 + 13]! ^= 1;
  expect(() => readRecord(ring, 2, 7, false, 0)).toThrow("word 13");
});

test("a waker without a sleeper, and a sleep that ends immediately", async () => {
  const waker = new Waker();
  waker.wake();
  await waker.sleepAsync(() => true, 10_000);
  const since = performance.now();
  await waker.sleepAsync(() => false, 20);
  expect(performance.now() - since).toBeGreaterThan(10);
});
