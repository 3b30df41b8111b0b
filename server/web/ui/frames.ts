/** What changes many times a second is shown ten times a second at most, in the browser's frames, and not while hidden. */
import { useEffect, useRef, useState } from "preact/hooks";

const PAUSE_MS = 100;

/** Answers what asks for a run soon; however often it is asked for, it runs once. */
export function useSoon(run: () => void): () => void {
  const latest = useRef(run);
  latest.current = run;
  const [timer] = useState(() => {
    let frame = 0;
    let last = 0;
    const turn = (now: number): void => {
      frame = 0;
      if (now - last < PAUSE_MS) ask();
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
