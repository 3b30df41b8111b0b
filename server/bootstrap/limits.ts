/** Bounds of startup and shutdown. Imports nothing but other limits. */

/** How long a shutdown may take before the process exits anyway. */
export const SHUTDOWN_DEADLINE_MS = 9_000;
/** How long a shutdown waits for the reader of the log. */
export const LOG_FLUSH_MS = 1_000;

/** How far the tables may be behind the log. */
export interface LagBounds {
  /** Engine events. */
  readonly events: number;
  /** Between the last committed and the last projected batch. */
  readonly ms: number;
}

/** One mark a tick of 200 ms, for more than twice the time at which trading pauses. */
export const MAX_LAG_MARKS = 2 ** 13;
/** 64 M events take the projector about a minute. */
export const MAX_LAG: LagBounds = { events: 2 ** 26, ms: 600_000 };
