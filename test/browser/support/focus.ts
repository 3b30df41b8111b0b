/** Whether the page shows everything: each stop of the keyboard when it has the focus, and what its boxes contain. */
import type { Page } from "playwright-core";

/**
 * Moves the focus through the page, or through its open dialog, forward and backward; returns the stops that are out of
 * sight, or covered, where they have it.
 */
export async function hiddenStops(page: Page): Promise<string[]> {
  return [...new Set(await page.evaluate<string[]>(FIND_HIDDEN_STOPS))];
}

/** Fewer pixels of a stop's height don't show what has the focus. */
const LEAST_HEIGHT = 12;

const FIND_HIDDEN_STOPS = `(() => {
  const scope = document.querySelector("dialog[open]") ?? document;
  const found = scope.querySelectorAll("a[href], button, input, select, textarea, summary, [tabindex='0']");
  const stops = [...found].filter((each) => !each.matches(":disabled, [tabindex='-1']") && each.checkVisibility());
  const hidden = [];
  const nameOf = (stop) => {
    const name = stop.getAttribute("aria-label") ?? (stop.textContent.trim() || stop.name || stop.type);
    return stop.tagName.toLowerCase() + " " + JSON.stringify(name.slice(0, 40));
  };
  const check = (stop, direction) => {
    stop.focus();
    if (document.activeElement !== stop) return;
    // A radio button or checkbox shows its focus on its label.
    const shown = stop.closest("label") ?? stop;
    const { top, bottom, left, right } = shown.getBoundingClientRect();
    const [above, below] = [Math.max(top, 0), Math.min(bottom, innerHeight)];
    const [from, to] = [Math.max(left, 0), Math.min(right, innerWidth)];
    if (below - above < Math.min(${LEAST_HEIGHT}, bottom - top) || to <= from) {
      hidden.push(nameOf(stop) + " is out of sight, going " + direction);
      return;
    }
    for (const part of [0.25, 0.5, 0.75]) {
      const at = document.elementFromPoint((from + to) / 2, above + part * (below - above));
      // A toast goes away by itself.
      if (at === null || shown.contains(at) || at.contains(shown) || at.closest(".toasts") !== null) continue;
      hidden.push(nameOf(stop) + " is behind " + at.tagName.toLowerCase() + "." + at.className + ", going " + direction);
      return;
    }
  };
  for (const stop of stops) check(stop, "forward");
  for (const stop of stops.reverse()) check(stop, "backward");
  return hidden;
})()`;

/** Boxes whose content sticks out at the side, over what is beside them, or is cut off there. */
export function overflows(page: Page): Promise<string[]> {
  return page.evaluate<string[]>(FIND_OVERFLOWS);
}

const FIND_OVERFLOWS = `(() => {
  const scope = document.querySelector("dialog[open]") ?? document.body;
  const isInScroller = (box) => {
    const parent = box.parentElement;
    if (parent === null || parent === document.body) return false;
    return ["auto", "scroll"].includes(getComputedStyle(parent).overflowX) || isInScroller(parent);
  };
  const isWide = (box) => {
    if (box.clientWidth === 0 || box.scrollWidth <= box.clientWidth + 1) return false;
    // The bar of a market fills the page's margins as well. Charts draw themselves.
    if (box.matches(":has(> .ticket-bar)") || box.closest(".hidden, svg, .canvas")) return false;
    const { overflowX, textOverflow } = getComputedStyle(box);
    return (overflowX === "visible" || overflowX === "hidden") && textOverflow !== "ellipsis" && !isInScroller(box);
  };
  const wide = [...scope.querySelectorAll("*")].filter((box) => box.checkVisibility() && isWide(box));
  const innermost = wide.filter((box) => !wide.some((other) => other !== box && box.contains(other)));
  return innermost.map((box) => {
    const name = box.tagName.toLowerCase() + "." + box.className + " " + JSON.stringify(box.textContent.trim().slice(0, 30));
    return (box.scrollWidth - box.clientWidth) + " pixels stick out of " + name;
  });
})()`;
