/** The clock that threads share: a reading handed from thread to thread and back never falls. */
import { Worker } from "node:worker_threads";
import { expect, test } from "vitest";
import { createMicroClock, readClockEpoch } from "../../../engine/util/micro-clock.ts";
import type { ClockJob } from "./clock-worker.ts";

const ROUNDS = 2_000;
/** The allowed difference of two threads' readings of one moment, µs. */
const SKEW = 1;

test("it shows the wall clock's time and never falls", () => {
  const clock = createMicroClock(readClockEpoch());
  const before = Date.now();
  let last = clock();
  for (let i = 0; i < 100_000; i++) {
    const next = clock();
    if (next < last) expect.fail(`${next} after ${last}`);
    last = next;
  }
  // `Date.now` truncates to milliseconds, and the wall clock may be slewed meanwhile.
  expect(last / 1_000).toBeGreaterThan(before - 5);
  expect(last / 1_000).toBeLessThan(Date.now() + 6);
});

test("threads started at different times read the same time", async () => {
  const epoch = readClockEpoch();
  const clock = createMicroClock(epoch);
  for (let thread = 0; thread < 3; thread++) {
    const shared = new SharedArrayBuffer(16);
    const [turn, reading] = [new Int32Array(shared), new Float64Array(shared)];
    const job: ClockJob = { epoch, shared, rounds: ROUNDS };
    const worker = new Worker(new URL("../../../dist/test/engine/util/clock-worker.js", import.meta.url), {
      workerData: job,
    });
    let closest = Number.POSITIVE_INFINITY;
    for (let round = 0; round < ROUNDS; round++) {
      const before = clock();
      Atomics.store(turn, 0, 2 * round + 1);
      Atomics.notify(turn, 0);
      while (Atomics.load(turn, 0) === 2 * round + 1) {
        if (Atomics.wait(turn, 0, 2 * round + 1, 10_000) === "timed-out")
          expect.fail("the other thread doesn't answer");
      }
      const after = clock();
      const there = reading[1]!;
      if (there < before - SKEW || there > after + SKEW) expect.fail(`${before}, then ${there} there, then ${after}`);
      closest = Math.min(closest, after - before);
    }
    // Otherwise the check would prove nothing.
    expect(closest).toBeLessThan(1_000);
    await worker.terminate();
  }
});
