/**
 * Lets callbacks run at a bounded rate, in order, so that a flood of error responses can't take the gateway's thread. It
 * drops none of them and knows nothing of what they do.
 */
import assert from "node:assert";
import { systemClock } from "../../engine/util/clock.ts";

const TICK_MS = 5;
/** After a quiet time a 20th of a second's worth runs at once: as much as ten late ticks of the timer. */
const BURSTS_PER_SECOND = 20;

export class ResponseThrottle {
  private readonly perMs: number;
  private readonly burst: number;
  /** How many may run now, with the fraction of the next one; at most `burst`. */
  private allowance: number;
  private refilledAt = systemClock.elapsed();
  /** A ring of waiting callbacks. */
  private readonly queue: ((() => void) | undefined)[];
  private first = 0;
  private waiting = 0;
  /** Runs only while callbacks wait: it keeps the process alive no longer. */
  private timer: NodeJS.Timeout | null = null;
  private isClosed = false;

  /** @param perSecond the rate @param maxWaiting bounds the queue */
  constructor(perSecond: number, maxWaiting: number) {
    assert(perSecond > 0 && Number.isFinite(perSecond));
    assert(Number.isSafeInteger(maxWaiting) && maxWaiting > 0);
    this.perMs = perSecond / 1_000;
    this.burst = Math.max(1, perSecond / BURSTS_PER_SECOND);
    this.allowance = this.burst;
    this.queue = new Array<undefined>(maxWaiting).fill(undefined);
  }

  /**
   * Runs `callback` now where the rate allows it, else later, in order of arrival. With a full queue the oldest callback
   * runs at once, past the rate: the queue bounds memory, not work. After `close` every callback runs at once.
   * @param callback must not throw
   */
  pass(callback: () => void): void {
    if (this.isClosed) return run(callback);
    if (this.waiting === 0) {
      this.refill();
      if (this.allowance >= 1) {
        this.allowance--;
        return run(callback);
      }
    }
    const oldest = this.waiting === this.queue.length ? this.shift() : null;
    this.queue[(this.first + this.waiting) % this.queue.length] = callback;
    this.waiting++;
    this.timer ??= setInterval(() => this.tick(), TICK_MS);
    if (oldest !== null) run(oldest);
  }

  /** Runs all waiting callbacks, in order. */
  close(): void {
    this.isClosed = true;
    while (this.waiting > 0) run(this.shift());
    this.stopTimer();
  }

  /** Refills once, so that it ends even where the callbacks are slower than the rate. */
  private tick(): void {
    this.refill();
    while (this.waiting > 0 && this.allowance >= 1) {
      this.allowance--;
      run(this.shift());
    }
    if (this.waiting === 0) this.stopTimer();
  }

  private refill(): void {
    const now = systemClock.elapsed();
    this.allowance = Math.min(this.burst, this.allowance + (now - this.refilledAt) * this.perMs);
    this.refilledAt = now;
  }

  /** The queue must not be empty. */
  private shift(): () => void {
    const callback = this.queue[this.first];
    assert(callback !== undefined);
    this.queue[this.first] = undefined;
    this.first = (this.first + 1) % this.queue.length;
    this.waiting--;
    return callback;
  }

  private stopTimer(): void {
    if (this.timer !== null) clearInterval(this.timer);
    this.timer = null;
  }
}

/** A callback that throws, against its contract, ends the process, but only after the callbacks behind it ran. */
function run(callback: () => void): void {
  try {
    callback();
  } catch (error) {
    queueMicrotask(() => {
      throw error;
    });
  }
}
