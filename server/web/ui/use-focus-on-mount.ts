/** Moves the focus to an element when it appears, so that screen readers announce the new content. */
import type { RefObject } from "preact";
import { useEffect, useRef } from "preact/hooks";

export function useFocusOnMount<T extends HTMLElement>(): RefObject<T | null> {
  const ref = useRef<T>(null);
  useEffect(() => ref.current?.focus(), []);
  return ref;
}
