/** Lets slow parts of a page follow once the others are painted. */
import { useEffect, useState } from "preact/hooks";

/** The value, changed only after what else depends on it was painted. */
export function useAfterPaint<T>(value: T): T {
  const [shown, setShown] = useState(value);
  useEffect(() => {
    let timer: number | undefined;
    const frame = requestAnimationFrame(() => {
      timer = window.setTimeout(() => setShown(() => value));
    });
    return () => {
      cancelAnimationFrame(frame);
      window.clearTimeout(timer);
    };
  }, [value]);
  return shown;
}
