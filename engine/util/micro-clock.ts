/**
 * The clock that all threads share, for stamps that one thread takes and another compares: microseconds since the Unix
 * epoch, never falling. It counts with the system's monotonic clock from where the wall clock stood when the process
 * started, and so doesn't follow later steps of the wall clock. Reads a clock, and so is not for the matcher.
 */

/** Microseconds since the epoch, not rounded. A call costs what `performance.now()` does, about 50 ns. */
export type MicroClock = () => number;

const SAMPLES = 1_000;

/**
 * Microseconds from this thread's zero of `performance.now()` to the system's of `process.hrtime`. Each sample shuts it in
 * between two readings, and what all of them allow is a fraction of a microsecond wide, however often one was interrupted.
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

/** What the main thread hands to the others: the epoch's microsecond at which the system's monotonic clock stood at 0. */
export function takeClockEpoch(): number {
  return performance.timeOrigin * 1_000 - ownZero();
}

/** The calling thread's own reading of the common clock; two threads' differ by less than a microsecond. */
export function createMicroClock(epoch: number): MicroClock {
  const zero = epoch + ownZero();
  return () => zero + performance.now() * 1_000;
}
