/** What changes many times a second is shown ten times a second at most, in the browser's frames, and not while hidden. */
import { useEffect, useRef, useState } from "preact/hooks";

const INTERVAL_MS = 100;

/** Answers what asks for a run soon; however often it is asked for, it runs once. */
export function useThrottled(run: () => void): () => void {
  const latest = useRef(run);
  latest.current = run;
  const [timer] = useState(() => {
    let frame = 0;
    let last = 0;
    const turn = (now: number): void => {
      frame = 0;
      if (now - last < INTERVAL_MS) ask();
      else {
        last = now;
        latest.current();
      }
    };
    const ask = (): void => {
      if (frame === 0) frame = requestAnimationFrame(turn);
    };
    const stop = (): void => {
      cancelAnimationFrame(frame);
      frame = 0;
    };
    return { ask, stop };
  });
  useEffect(() => timer.stop, [timer]);
  return timer.ask;
}

/** So many are handed over at once although nobody sees it. */
const MAX_BATCH = 1_000;

/** Answers what takes one thing at a time, and soon hands over what came together. */
export function useBatched<T>(take: (all: readonly T[]) => void): (one: T) => void {
  const kept = useRef<T[]>([]);
  const latest = useRef(take);
  latest.current = take;
  const handOver = (): void => {
    const all = kept.current;
    kept.current = [];
    latest.current(all);
  };
  const soon = useThrottled(handOver);
  return (one) => {
    kept.current.push(one);
    if (kept.current.length >= MAX_BATCH) handOver();
    else soon();
  };
}
