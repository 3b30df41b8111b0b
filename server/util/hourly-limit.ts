/**
 * A limit per key and hour, for messages that cost money or patience and for wrong codes. Reads no clock; a restart resets it.
 */
import { BoundedMap } from "./bounded-map.ts";

const HOUR_MS = 3_600_000;
/** Requests that arrived before others may be counted after them, but not by more than this. */
const MAX_AHEAD_MS = 60_000;
/** One key more evicts the one that was used longest ago. */
const MAX_KEYS = 100_000;

export class HourlyLimit {
  private readonly limit: number;
  /** By key: the times of the last hour, ms, oldest first. */
  private readonly times = new BoundedMap<string, number[]>(MAX_KEYS);

  constructor(limit: number) {
    this.limit = limit;
  }

  /** Counts one use. Returns false, and counts nothing, where the limit is reached. */
  consume(key: string, now: number): boolean {
    if (this.waitMs(key, now) > 0) return false;
    const times = this.recent(key, now);
    this.times.renew(key, [...times, now]);
    return true;
  }

  /** ms until one more use is allowed; 0 where it is now. */
  waitMs(key: string, now: number): number {
    const oldest = this.recent(key, now).at(-this.limit);
    return oldest === undefined ? 0 : oldest + HOUR_MS - now;
  }

  forgetExpired(now: number): void {
    for (const [key, times] of this.times) {
      if ((times.at(-1) ?? 0) > now - HOUR_MS) return;
      this.times.delete(key);
    }
  }

  /** Times far ahead are of a clock that was set back: they count no more. */
  private recent(key: string, now: number): number[] {
    return (this.times.get(key) ?? []).filter((at) => at > now - HOUR_MS && at <= now + MAX_AHEAD_MS);
  }
}
