/** One thread of the clock's test: replies to each reading that it receives with one of its own. */
import { workerData } from "node:worker_threads";
import { createMicroClock } from "../../../engine/util/micro-clock.ts";

export interface ClockJob {
  readonly epoch: number;
  /** Word 0: the turn, counted up by both sides. Double 1: this thread's reading. */
  readonly shared: SharedArrayBuffer;
  readonly rounds: number;
}

const job = workerData as ClockJob;
const turn = new Int32Array(job.shared);
const reading = new Float64Array(job.shared);
const clock = createMicroClock(job.epoch);
for (let round = 0; round < job.rounds; round++) {
  // The notice of the turn before may come only now.
  while (Atomics.load(turn, 0) === 2 * round) Atomics.wait(turn, 0, 2 * round);
  reading[1] = clock();
  Atomics.store(turn, 0, 2 * round + 2);
  Atomics.notify(turn, 0);
}
