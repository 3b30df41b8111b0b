/**
 * Lets answers leave at a bounded pace, so that whoever provokes a flood of them can't take the thread from others.
 * Knows nothing of what it lets leave, and drops none of it.
 */
import assert from "node:assert";

const TICK_MS = 5;
/** What may leave at once after a quiet time: a 20th of a second's worth, and so ten late ticks of the timer. */
const BURSTS_PER_SECOND = 20;

/** Releases callbacks at most `perSecond` a second, in order, with no delay while there are few. */
export class ResponseThrottle {
  private readonly perMs: number;
  private readonly burst: number;
  /** How many may leave now, with the fraction of the next one; at most `burst`. */
  private allowed: number;
  private filledAt = performance.now();
  /** A ring of those that wait. */
  private readonly queue: ((() => void) | undefined)[];
  private first = 0;
  private waiting = 0;
  /** Runs while something waits, and so keeps the process alive no longer than that. */
  private timer: NodeJS.Timeout | null = null;
  private closed = false;

  /** @param maxWaiting how many wait at most */
  constructor(perSecond: number, maxWaiting: number) {
    assert(perSecond > 0 && Number.isFinite(perSecond));
    assert(Number.isSafeInteger(maxWaiting) && maxWaiting > 0);
    this.perMs = perSecond / 1_000;
    this.burst = Math.max(1, perSecond / BURSTS_PER_SECOND);
    this.allowed = this.burst;
    this.queue = new Array<undefined>(maxWaiting).fill(undefined);
  }

  /**
   * Runs `give` now where the pace allows, else later, in order of arrival. Where too many wait, the oldest is given at
   * once, past the pace: a bound on the memory, and not on the work. After `close` all are.
   * @param give must not throw
   */
  pass(give: () => void): void {
    if (this.closed) return run(give);
    if (this.waiting === 0) {
      this.refill();
      if (this.allowed >= 1) {
        this.allowed--;
        return run(give);
      }
    }
    const oldest = this.waiting === this.queue.length ? this.next() : null;
    this.queue[(this.first + this.waiting) % this.queue.length] = give;
    this.waiting++;
    this.timer ??= setInterval(() => this.tick(), TICK_MS);
    if (oldest !== null) run(oldest);
  }

  /** Gives all that wait, in order. */
  close(): void {
    this.closed = true;
    while (this.waiting > 0) run(this.next());
    this.stopTimer();
  }

  /** Refills once, so that where giving is slower than the pace it stops all the same. */
  private tick(): void {
    this.refill();
    while (this.waiting > 0 && this.allowed >= 1) {
      this.allowed--;
      run(this.next());
    }
    if (this.waiting === 0) this.stopTimer();
  }

  private refill(): void {
    const now = performance.now();
    this.allowed = Math.min(this.burst, this.allowed + (now - this.filledAt) * this.perMs);
    this.filledAt = now;
  }

  /** Something must wait. */
  private next(): () => void {
    const give = this.queue[this.first];
    assert(give !== undefined);
    this.queue[this.first] = undefined;
    this.first = (this.first + 1) % this.queue.length;
    this.waiting--;
    return give;
  }

  private stopTimer(): void {
    if (this.timer !== null) clearInterval(this.timer);
    this.timer = null;
  }
}

/** One that throws, against its contract, ends the process, but neither in its neighbour's name nor before the others. */
function run(give: () => void): void {
  try {
    give();
  } catch (error) {
    queueMicrotask(() => {
      throw error;
    });
  }
}
