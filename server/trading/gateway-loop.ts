/**
 * The gateway's event loop as the exchange uses it: the clocks, callbacks in a later turn, and sleep until events arrive.
 * Passed in, so that a simulation controls all of it. Knows no orders.
 */
import type { Waker } from "../../engine/ring/waker.ts";

/** The gateway sleeps at most this long before it checks for events itself. */
const SLEEP_MS = 1_000;

export interface GatewayLoop {
  /** Milliseconds since the epoch. */
  now(): number;
  /** Milliseconds of a monotonic clock. */
  elapsed(): number;
  /** Calls back in a later turn. */
  soon(callback: () => void): void;
  /** Calls back when `hasEvents` holds (at once if it does already) or the timeout expires. One call at a time. */
  sleep(hasEvents: () => boolean, callback: () => void): void;
}

/** Node's own event loop, woken through `waker`. */
export function nodeLoop(waker: Waker): GatewayLoop {
  return {
    now: Date.now,
    elapsed: () => performance.now(),
    soon: setImmediate,
    sleep: (hasEvents, callback) => void waker.sleepAsync(hasEvents, SLEEP_MS).then(callback),
  };
}
