/**
 * What sticks to the top or the bottom of the window covers a part of the page. Its height is kept in a CSS variable, so
 * that the style sheets can scroll the focus, and headings that are linked to, beside it instead of behind it.
 */
import type { RefObject } from "preact";
import { useEffect, useRef } from "preact/hooks";

export type Edge = "--head" | "--bar" | "--tabs";

/** Returns a ref for the element that sticks there. Its variable is removed with it. */
export function useEdge<T extends HTMLElement>(edge: Edge): RefObject<T | null> {
  const ref = useRef<T>(null);
  useEffect(() => {
    const element = ref.current;
    if (element === null) return;
    const { style } = document.documentElement;
    const observer = new ResizeObserver(() => style.setProperty(edge, `${element.offsetHeight}px`));
    observer.observe(element);
    return () => {
      observer.disconnect();
      style.removeProperty(edge);
    };
  }, [edge]);
  return ref;
}
