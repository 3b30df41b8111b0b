/** Keeps the account that is shown up to date: what is done in other tabs, in mails and by operators comes by no message. */
import { useEffect } from "preact/hooks";
import { loadUser } from "../session.ts";

/** Reads it when the page opens and whenever it is looked at again. */
export function useFreshUser(): void {
  useEffect(() => {
    const read = (): void => {
      // What is shown stays where it fails: whatever is done next meets the same trouble and says so.
      if (document.visibilityState === "visible") loadUser().catch(() => {});
    };
    read();
    document.addEventListener("visibilitychange", read);
    return () => document.removeEventListener("visibilitychange", read);
  }, []);
}
