/** Keys of one letter, which act where no field has the focus, unless the user has turned them off. */
import { useEffect, useRef } from "preact/hooks";
import { settings } from "../settings.ts";

/** By `event.key`; a handler returns false if the key means nothing now. */
export type Keys = Readonly<Record<string, () => unknown>>;

const INTERACTIVE = "button, a, summary, input, select, textarea";

/** No key of one letter acts while the user types. */
export const isTyping = (target: EventTarget | null): boolean =>
  target instanceof HTMLElement &&
  target.closest("input:not([type=radio]):not([type=checkbox]), textarea, select, [contenteditable]") !== null;

/** Handles keys pressed anywhere on the page, except in fields and behind an open dialog. */
export function useKeys(keys: Keys): void {
  const latest = useRef(keys);
  latest.current = keys;
  useEffect(() => {
    const pressed = (event: KeyboardEvent): void => {
      if (event.defaultPrevented || event.ctrlKey || event.metaKey || event.altKey || event.repeat) return;
      if (!settings.hasKeys.peek() || isTyping(event.target) || document.querySelector("dialog[open]") !== null) return;
      // Enter also presses what has the focus.
      if (event.key === "Enter" && (event.target as HTMLElement).closest(INTERACTIVE) !== null) return;
      const act = Object.hasOwn(latest.current, event.key) ? latest.current[event.key] : undefined;
      if (act === undefined || act() === false) return;
      event.preventDefault();
    };
    document.addEventListener("keydown", pressed);
    return () => document.removeEventListener("keydown", pressed);
  }, []);
}
