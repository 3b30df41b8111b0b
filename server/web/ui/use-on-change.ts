/** Reacts to changes after a component has appeared. */
import { useEffect, useRef } from "preact/hooks";

/** Runs when one of them changes, not at first. */
export function useOnChange(run: () => void, of: readonly unknown[]): void {
  const isFirst = useRef(true);
  useEffect(() => {
    if (!isFirst.current) run();
    isFirst.current = false;
  }, of);
}
