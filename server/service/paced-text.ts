/**
 * A text that is read at most once per METRICS_INTERVAL_MS, because its route is public and a read takes milliseconds: requests
 * in between wait together for the next one. No response is older than its request.
 */
import { setTimeout as delay } from "node:timers/promises";
import { systemClock } from "../../engine/util/clock.ts";
import { METRICS_INTERVAL_MS } from "./limits.ts";

/** Ticks in which the event loop's delay is measured first: without a measurement its mean is no number. */
const FIRST_TICKS = 3;
const TICK_MS = 15;

/** What `load` makes at the first call, once it has figures of the process. */
export function loadedAtFirst<T>(load: () => Promise<T>): () => Promise<T> {
  let loaded: Promise<T> | null = null;
  const loadWithFigures = async (): Promise<T> => {
    const made = await load();
    for (let tick = 0; tick < FIRST_TICKS; tick++) await delay(TICK_MS);
    return made;
  };
  return () => (loaded ??= loadWithFigures());
}

export class PacedText {
  private readonly read: () => Promise<string>;
  private next: Promise<string> | null = null;
  private readAt = Number.NEGATIVE_INFINITY;

  constructor(read: () => Promise<string>) {
    this.read = read;
  }

  text(): Promise<string> {
    this.next ??= this.readNext();
    return this.next;
  }

  private async readNext(): Promise<string> {
    // Even a delay of 0 ends the turn, so that all requests of the turn share the result.
    await delay(Math.max(0, this.readAt + METRICS_INTERVAL_MS - systemClock.elapsed()));
    this.next = null;
    this.readAt = systemClock.elapsed();
    return this.read();
  }
}
