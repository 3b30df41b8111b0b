/** The colours and the density that the user chose in this browser. `theme.js` applies them before the first paint. */
import { signal } from "@preact/signals";
import { kept } from "../browser.ts";

const { dataset } = document.documentElement;

const systemIsDark = (): boolean => matchMedia("(prefers-color-scheme: dark)").matches;
const isDark = signal(dataset["theme"] === undefined ? systemIsDark() : dataset["theme"] === "dark");
const isCompact = signal(dataset["density"] === "compact");

/** Light or dark; the system's setting is the default. */
export function useTheme(): { isDark: boolean; change: () => void } {
  const change = (): void => {
    isDark.value = !isDark.peek();
    const theme = isDark.peek() ? "dark" : "light";
    dataset["theme"] = theme;
    const ground = getComputedStyle(document.body).backgroundColor;
    for (const color of document.querySelectorAll<HTMLMetaElement>("meta[name=theme-color]")) color.content = ground;
    kept.set("theme", theme);
  };
  return { isDark: isDark.value, change };
}

/** Compact rows fit more on a screen; comfortable ones are the default. */
export function useDensity(): { isCompact: boolean; change: () => void } {
  const change = (): void => {
    isCompact.value = !isCompact.peek();
    if (isCompact.peek()) dataset["density"] = "compact";
    else delete dataset["density"];
    kept.set("density", isCompact.peek() ? "compact" : null);
  };
  return { isCompact: isCompact.value, change };
}
