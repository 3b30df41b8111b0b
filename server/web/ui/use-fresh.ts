/** Keeps figures fresh that no event of the stream carries. Renders nothing. */
import { useEffect } from "preact/hooks";
import { balance } from "../account-state.ts";
import { useOnLive } from "./use-data.ts";

/** Polled, because bots change the balance many times a second. */
const INTERVAL_MS = 5_000;

/** Reads again now and then while the page is shown, when it is shown again, and when the connection returns. */
export function usePolled(reload: () => void, intervalMs: number): void {
  useOnLive(reload);
  useEffect(() => {
    const read = (): void => {
      if (!document.hidden) reload();
    };
    const timer = setInterval(read, intervalMs);
    document.addEventListener("visibilitychange", read);
    return () => {
      clearInterval(timer);
      document.removeEventListener("visibilitychange", read);
    };
  }, [reload, intervalMs]);
}

/** Reads again some seconds after a change of the balance, and when the connection returns. */
export function useFresh(reload: () => void): void {
  useOnLive(reload);
  useEffect(() => {
    let seen = balance.peek();
    const timer = setInterval(() => {
      if (balance.peek() !== seen) reload();
      seen = balance.peek();
    }, INTERVAL_MS);
    return () => clearInterval(timer);
  }, [reload]);
}
