/** Follows a media query. */
import { useEffect, useState } from "preact/hooks";

/** Narrower than this, pages are those of a phone. */
export const PHONE = "(max-width: 47.99em)";
/** From this width on, a column stands beside what a page is about. */
export const WIDE = "(min-width: 64em)";

export function useMedia(query: string): boolean {
  const [matches, setMatches] = useState(() => matchMedia(query).matches);
  useEffect(() => {
    const list = matchMedia(query);
    const changed = (): void => setMatches(list.matches);
    list.addEventListener("change", changed);
    return () => list.removeEventListener("change", changed);
  }, [query]);
  return matches;
}
