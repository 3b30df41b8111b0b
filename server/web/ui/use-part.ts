/** Loads a part of the page's code when it is wanted. */
import { useEffect, useState } from "preact/hooks";

interface Part<T> {
  /** Null until it has loaded. */
  readonly part: T | null;
  readonly error: unknown;
}

const NOTHING = { part: null, error: null } as const;

/** @param load the same function each time; null: nothing is wanted yet */
export function usePart<T>(load: (() => Promise<T>) | null): Part<T> {
  const [loaded, setLoaded] = useState<(Part<T> & { load: unknown }) | null>(null);
  useEffect(() => {
    if (load === null) return;
    load().then(
      (part) => setLoaded({ load, part, error: null }),
      (error: unknown) => setLoaded({ load, part: null, error }),
    );
  }, [load]);
  return load !== null && loaded?.load === load ? loaded : NOTHING;
}
