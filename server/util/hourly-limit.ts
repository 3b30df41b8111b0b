/** So many times an hour for each key: messages that cost money or patience. Knows no clock; lost with the process. */
import { BoundedMap } from "./bounded-map.ts";

const HOUR_MS = 3_600_000;
/** Keys beyond it make the oldest forgotten. */
const MAX_KEYS = 100_000;

export class HourlyLimit {
  private readonly limit: number;
  /** By key: when, in ms, oldest first. */
  private readonly times = new BoundedMap<string, number[]>(MAX_KEYS);

  constructor(limit: number) {
    this.limit = limit;
  }

  /** Counts one where the limit allows; false, and counts nothing, where it doesn't. */
  consume(key: string, now: number): boolean {
    if (this.waitMs(key, now) > 0) return false;
    const times = this.recent(key, now);
    this.times.renew(key, [...times, now]);
    return true;
  }

  /** ms until one more is allowed, 0 for now. */
  waitMs(key: string, now: number): number {
    const times = this.recent(key, now);
    return times.length < this.limit ? 0 : times[times.length - this.limit]! + HOUR_MS - now;
  }

  forgetExpired(now: number): void {
    for (const [key, times] of this.times) {
      if (times.at(-1)! > now - HOUR_MS) return;
      this.times.delete(key);
    }
  }

  private recent(key: string, now: number): number[] {
    return (this.times.get(key) ?? []).filter((at) => at > now - HOUR_MS);
  }
}
