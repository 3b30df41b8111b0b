/** Warns when the machine's clock falls behind the times on record: once per occurrence. */
import type { Logger } from "../logger.ts";
import type { Timeline } from "../util/timeline.ts";

/** A smaller step of the clock leaves no line in the log. */
const MIN_LAG_MS = 1_000;

/** Returns the function that checks the clock; `now` is what the clock says, ms. */
export function createClockWatch(timeline: Timeline, logger: Logger): (now: number) => void {
  let isBehind = false;
  return (now) => {
    const behindMs = timeline.lag(now);
    const wasBehind = isBehind;
    isBehind = behindMs >= MIN_LAG_MS;
    if (!isBehind || wasBehind) return;
    logger.warn(
      { behindMs },
      "the machine's clock is behind the last timestamp: timestamps stand still until it has caught up",
    );
  };
}
