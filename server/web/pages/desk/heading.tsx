/** The heading of a desk section, which takes the focus when the focused element disappears. */
import type { Children } from "../../ui/use-data.ts";

const HEADING = "desk-heading";

/** A section's title. */
export function Heading({ children }: { children: Children }) {
  return (
    <h1 id={HEADING} tabIndex={-1}>
      {children}
    </h1>
  );
}

export function focusHeading(): void {
  requestAnimationFrame(() => document.getElementById(HEADING)?.focus());
}
