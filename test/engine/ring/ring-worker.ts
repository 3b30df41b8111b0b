/**
 * One thread of the ring test: producer, gate or consumer of numbered records, parking when idle and pausing at random,
 * so that every order of publish, park and wake occurs. Returns its checksum and how often it slept until the timeout,
 * which only a lost wake-up causes.
 */
import { parentPort, workerData } from "node:worker_threads";
import { RingConsumer, RingGate, type RingMemory, RingProducer } from "../../../engine/ring/ring.ts";
import { Waker } from "../../../engine/ring/waker.ts";
import { randomFrom, readRecord, stampRecord, writeRecord } from "./ring-traffic.ts";

export interface RingJob {
  readonly role: "producer" | "gate" | "consumer";
  readonly memory: RingMemory;
  readonly count: number;
  readonly gated: boolean;
  readonly batch: number;
  /** One batch in this many is followed by a pause of up to 500 microseconds. */
  readonly pauseEvery: number;
  readonly seed: number;
  readonly wakers: {
    readonly producer: SharedArrayBuffer;
    readonly gate: SharedArrayBuffer;
    readonly consumer: SharedArrayBuffer;
  };
}

export interface RingReport {
  readonly role: RingJob["role"];
  readonly sum: number;
  readonly sleeps: number;
  readonly timeOuts: number;
}

/** Far longer than a busy machine delays a thread that was woken. */
const SLEEP_TIMEOUT_MS = 5_000;

const job = workerData as RingJob;
const random = randomFrom(job.seed);
const wakers = {
  producer: new Waker(job.wakers.producer),
  gate: new Waker(job.wakers.gate),
  consumer: new Waker(job.wakers.consumer),
};
const pauseWord = new Int32Array(new SharedArrayBuffer(4));
let sleeps = 0;
let timeOuts = 0;

function sleepUntil(hasWork: () => boolean): void {
  while (!hasWork()) {
    if (!wakers[job.role].sleep(hasWork, SLEEP_TIMEOUT_MS)) timeOuts++;
    sleeps++;
  }
}

function pauseAtRandom(): void {
  if (random(job.pauseEvery) === 0) Atomics.wait(pauseWord, 0, 0, random(500) / 1_000);
}

function produce(): number {
  const ring = new RingProducer(job.memory);
  let sum = 0;
  for (let n = 0; n < job.count; ) {
    const batch = Math.min(1 + random(job.batch), job.count - n);
    sleepUntil(() => ring.hasRoom(batch));
    for (const end = n + batch; n < end; n++) {
      sum = writeRecord(ring, ring.head, n, sum);
      ring.head = (ring.head + 1) | 0;
    }
    ring.publish();
    wakers[job.gated ? "gate" : "consumer"].wake();
    pauseAtRandom();
  }
  return sum;
}

function gate(): number {
  const ring = new RingGate(job.memory);
  for (let n = 0; n < job.count; ) {
    sleepUntil(() => ring.available() > 0);
    const batch = 1 + random(ring.available());
    for (const end = n + batch; n < end; n++) {
      stampRecord(ring, ring.tail, n);
      ring.tail = (ring.tail + 1) | 0;
    }
    pauseAtRandom();
    ring.open();
    wakers.consumer.wake();
  }
  return 0;
}

function consume(): number {
  const ring = new RingConsumer(job.memory, job.gated);
  let sum = 0;
  for (let n = 0; n < job.count; ) {
    sleepUntil(() => ring.available() > 0);
    const batch = 1 + random(ring.available());
    for (const end = n + batch; n < end; n++) {
      sum = readRecord(ring, ring.tail, n, job.gated, sum);
      ring.tail = (ring.tail + 1) | 0;
    }
    ring.release();
    wakers.producer.wake();
    pauseAtRandom();
  }
  return sum;
}

const sum = { producer: produce, gate, consumer: consume }[job.role]();
parentPort!.postMessage({ role: job.role, sum, sleeps, timeOuts } satisfies RingReport);
