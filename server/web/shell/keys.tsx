/** Keys that work on every page. */
import { useRef } from "preact/hooks";
import { navigate } from "../router.ts";
import { useKeys } from "../ui/keys.ts";
import { showDialog } from "./lazy-dialog.tsx";

/** How long "g" waits for the second key. */
const SECOND_KEY_MS = 1_500;

export function Keys() {
  const wentAt = useRef(Number.NEGATIVE_INFINITY);
  const go = (path: string): boolean => {
    if (performance.now() - wentAt.current >= SECOND_KEY_MS) return false;
    wentAt.current = Number.NEGATIVE_INFINITY;
    navigate(path);
    return true;
  };
  useKeys({
    "?": () => showDialog("keys"),
    g: () => {
      wentAt.current = performance.now();
    },
    m: () => go("/"),
    p: () => go("/portfolio"),
  });
  return null;
}
