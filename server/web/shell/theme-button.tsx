/** Switches between light and dark. */
import { Icon } from "../ui/icon.tsx";
import { useTheme } from "./appearance.ts";

export function ThemeButton() {
  const { isDark, change } = useTheme();
  return (
    <button
      type="button"
      class="quiet"
      aria-label={isDark ? "Switch to light mode" : "Switch to dark mode"}
      onClick={change}
    >
      <Icon name={isDark ? "sun" : "moon"} size={18} />
    </button>
  );
}
