/**
 * The gateway's event loop as the exchange sees it: the clocks, what happens in a later turn, and how the thread sleeps
 * until events come. Handed in, so that a simulation decides over all of it. Knows no orders.
 */
import type { Waker } from "../../engine/ring/waker.ts";

/** How long the gateway sleeps at most before it looks for events by itself. */
const SLEEP_MS = 1_000;

export interface GatewayLoop {
  /** Milliseconds since the epoch. */
  now(): number;
  /** Milliseconds of a clock that never falls. */
  elapsed(): number;
  /** Calls back in a later turn. */
  soon(callback: () => void): void;
  /** Calls back when `hasEvents` holds, at once where it does already, or when the time is over. One call at a time. */
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
