/**
 * The clock that all threads share, for timestamps that one thread takes and another compares: microseconds since the Unix
 * epoch, never falling. It runs on the system's monotonic clock from the wall clock's time at the start of the process, and
 * so ignores later steps of the wall clock. Never used by the matcher, which reads no clock.
 */

/** Microseconds since the epoch, not rounded. A call costs as much as `performance.now()`, about 50 ns. */
export type MicroClock = () => number;

const SAMPLES = 1_000;

/**
 * Microseconds from this thread's zero of `performance.now()` to the system's zero of `process.hrtime`. Each sample bounds
 * it by two readings; the intersection of all samples is a fraction of a microsecond wide, even if some were interrupted.
 */
function ownZero(): number {
  let low = Number.NEGATIVE_INFINITY;
  let high = Number.POSITIVE_INFINITY;
  for (let i = 0; i < SAMPLES; i++) {
    const before = performance.now() * 1_000;
    const system = Number(process.hrtime.bigint()) / 1_000;
    const after = performance.now() * 1_000;
    low = Math.max(low, system - after);
    high = Math.min(high, system - before);
  }
  return (low + high) / 2;
}

/** The epoch that the main thread passes to the others: µs since the Unix epoch at the monotonic clock's zero. */
export function readClockEpoch(): number {
  return performance.timeOrigin * 1_000 - ownZero();
}

/** The calling thread's view of the shared clock; two threads' views differ by less than a microsecond. */
export function createMicroClock(epoch: number): MicroClock {
  const zero = epoch + ownZero();
  return () => zero + performance.now() * 1_000;
}
