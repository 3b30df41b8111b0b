/** Polls the signed-in user: no stream event announces changes made in other tabs, by emailed links or by operators. */
import { useEffect } from "preact/hooks";
import { loadUser } from "../session.ts";

const INTERVAL_MS = 15_000;

/** Refreshes on mount, when the page becomes visible, and at intervals while it is visible. */
export function useUserRefresh(): void {
  useEffect(() => {
    const read = (): void => {
      // A failed refresh keeps the old data: the user's next action reports the same failure.
      if (document.visibilityState === "visible") loadUser().catch(() => {});
    };
    read();
    document.addEventListener("visibilitychange", read);
    const timer = setInterval(read, INTERVAL_MS);
    return () => {
      clearInterval(timer);
      document.removeEventListener("visibilitychange", read);
    };
  }, []);
}
