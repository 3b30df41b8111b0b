/**
 * A futex-style wait cell: one thread sleeps here while none of its inputs has work, and a producer wakes it.
 *
 * The sleeper sets its flag, checks its inputs once more and waits on a counter, not on a cursor: a cursor can come
 * round to the same value. A producer publishes first and checks the flag second. Both sides use sequentially consistent
 * atomics, so at least one of them sees the other.
 *
 *   word    0            32
 *           wake count   asleep flag
 */
const WAKE_COUNT = 0;
const WAKE_ASLEEP = 32;

export class Waker {
  private readonly words: Int32Array;

  readonly buffer: SharedArrayBuffer;

  constructor(buffer: SharedArrayBuffer = new SharedArrayBuffer(256)) {
    this.buffer = buffer;
    this.words = new Int32Array(buffer);
  }

  /** Called by a producer after it publishes. Costs one atomic load if the thread is awake. */
  wake(): void {
    if (Atomics.load(this.words, WAKE_ASLEEP) === 0) return;
    if (Atomics.exchange(this.words, WAKE_ASLEEP, 0) === 0) return;
    Atomics.add(this.words, WAKE_COUNT, 1);
    Atomics.notify(this.words, WAKE_COUNT);
  }

  /**
   * Blocks the calling worker until it is woken, `hasWork` holds or the timeout expires; returns false on a timeout.
   * Not for the main thread, which must not block.
   */
  sleep(hasWork: () => boolean, timeoutMs: number): boolean {
    const count = Atomics.load(this.words, WAKE_COUNT);
    Atomics.store(this.words, WAKE_ASLEEP, 1);
    const result = hasWork() ? "ok" : Atomics.wait(this.words, WAKE_COUNT, count, timeoutMs);
    Atomics.store(this.words, WAKE_ASLEEP, 0);
    return result !== "timed-out";
  }

  /**
   * `sleep` for a thread with an event loop: resolves when it is woken or the timeout expires, and immediately if
   * `hasWork` holds. One call may be outstanding at a time. A pending wait doesn't keep the event loop alive.
   */
  async sleepAsync(hasWork: () => boolean, timeoutMs: number): Promise<void> {
    const count = Atomics.load(this.words, WAKE_COUNT);
    Atomics.store(this.words, WAKE_ASLEEP, 1);
    if (!hasWork()) {
      const wait = Atomics.waitAsync(this.words, WAKE_COUNT, count, timeoutMs);
      if (wait.async) await wait.value;
    }
    Atomics.store(this.words, WAKE_ASLEEP, 0);
  }
}
