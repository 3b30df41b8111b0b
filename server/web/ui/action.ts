/** Actions of forms and buttons. Renders nothing. */
import { useRef, useState } from "preact/hooks";
import { ApiError } from "../api.ts";

/** Runs a form's or button's action, one run at a time, and keeps its error. */
export function useAction<A extends readonly unknown[]>(
  act: (...args: A) => Promise<void>,
): { run: (...args: A) => Promise<void>; isBusy: boolean; error: unknown; clear: () => void } {
  const [isBusy, setBusy] = useState(false);
  const [error, setError] = useState<unknown>(null);
  const busy = useRef(false);
  const run = async (...args: A): Promise<void> => {
    if (busy.current) return;
    busy.current = true;
    setBusy(true);
    setError(null);
    try {
      await act(...args);
    } catch (thrown) {
      setError(thrown);
      if (!(thrown instanceof ApiError)) console.error(thrown);
    } finally {
      busy.current = false;
      setBusy(false);
    }
  };
  return { run, isBusy, error, clear: () => setError(null) };
}
