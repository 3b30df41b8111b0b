/** Throttles rendering to ten updates a second, on animation frames: a hidden page renders nothing. */
import { useEffect, useRef, useState } from "preact/hooks";

const INTERVAL_MS = 100;

/** Returns a function that schedules one run, however often it is called. */
export function useThrottled(run: () => void): () => void {
  const latest = useRef(run);
  latest.current = run;
  const [timer] = useState(() => {
    let frame = 0;
    let last = 0;
    const onFrame = (now: number): void => {
      frame = 0;
      if (now - last < INTERVAL_MS) schedule();
      else {
        last = now;
        latest.current();
      }
    };
    const schedule = (): void => {
      if (frame === 0) frame = requestAnimationFrame(onFrame);
    };
    const cancel = (): void => {
      cancelAnimationFrame(frame);
      frame = 0;
    };
    return { schedule, cancel };
  });
  useEffect(() => timer.cancel, [timer]);
  return timer.schedule;
}

/** A hidden page delivers a batch once it has this many items. */
const MAX_BATCH = 1_000;

/** Returns a function that collects items and delivers them in batches. */
export function useBatched<T>(deliver: (items: readonly T[]) => void): (item: T) => void {
  const batch = useRef<T[]>([]);
  const latest = useRef(deliver);
  latest.current = deliver;
  const flush = (): void => {
    const all = batch.current;
    batch.current = [];
    latest.current(all);
  };
  const soon = useThrottled(flush);
  return (item) => {
    batch.current.push(item);
    if (batch.current.length >= MAX_BATCH) flush();
    else soon();
  };
}
