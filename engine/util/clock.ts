/**
 * Where time comes from: whatever decides what is written gets a clock by parameter, so that a past can be made and tests
 * can set it. Nothing else calls Date.now or performance.now, except the clock of the threads' microseconds (micro-clock.ts).
 */

export interface Clock {
  /** ms since the epoch; may be set back. */
  now(): number;
  /** ms from an arbitrary start; never set back. */
  elapsed(): number;
}

/** The machine's clock. */
export const systemClock: Clock = { now: () => Date.now(), elapsed: () => performance.now() };
