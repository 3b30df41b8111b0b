/** The main sections at the bottom of a phone. */
import { href, location, search } from "../router.ts";
import { Icon, type IconName } from "../ui/icon.tsx";
import { useEdge } from "../ui/use-edge.ts";

const WATCHLIST = "/?list=watchlist";

const TABS = [
  ["/", "Markets", "grid"],
  [WATCHLIST, "Watchlist", "star"],
  ["/search", "Search", "search"],
  ["/portfolio", "Portfolio", "pie"],
  ["/account", "Account", "user"],
] as const satisfies readonly (readonly [path: string, text: string, icon: IconName])[];

export function BottomTabs() {
  const path = location.value?.path ?? "";
  const isWatchlist = path === "/" && search.value.get("list") === "watchlist";
  const isCurrent = (to: string): boolean =>
    path === "/" ? to === (isWatchlist ? WATCHLIST : "/") : path === to || path.startsWith(`${to}/`);
  const bar = useEdge<HTMLElement>("--tabs");
  return (
    <nav class="bottom-tabs" aria-label="Main" ref={bar}>
      {TABS.map(([to, text, icon]) => (
        <a key={to} href={href(to)} aria-current={isCurrent(to) ? "page" : undefined}>
          <Icon name={icon} size={20} />
          {text}
        </a>
      ))}
    </nav>
  );
}
