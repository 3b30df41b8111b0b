/** Keeps the account that is shown up to date: what is done in other tabs, in mails and by operators comes by no message. */
import { useEffect } from "preact/hooks";
import { loadUser } from "../session.ts";

const EVERY_MS = 15_000;

/** Reads it when the page opens, whenever it is looked at again, and while it is. */
export function useUserRefresh(): void {
  useEffect(() => {
    const read = (): void => {
      // What is shown stays where it fails: whatever is done next meets the same trouble and says so.
      if (document.visibilityState === "visible") loadUser().catch(() => {});
    };
    read();
    document.addEventListener("visibilitychange", read);
    const timer = setInterval(read, EVERY_MS);
    return () => {
      clearInterval(timer);
      document.removeEventListener("visibilitychange", read);
    };
  }, []);
}
