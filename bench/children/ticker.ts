/** Wakes the thread that started it, four thousand times a second: timers of an event loop come a millisecond late or more. */
import { parentPort } from "node:worker_threads";
import { comeFirst } from "../support/priority.ts";

const TICK_MS = 0.25;
const never = new Int32Array(new SharedArrayBuffer(4));

comeFirst();
for (;;) {
  Atomics.wait(never, 0, 0, TICK_MS);
  parentPort!.postMessage(null);
}
