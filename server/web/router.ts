/** Client-side routing: the current path as a signal, and links that don't reload the page. */
import { computed, signal } from "@preact/signals";
import { type FoundPath, findPage } from "../http/page-paths.ts";

/** The base path of the site, with a trailing slash. */
export const base = new URL(document.baseURI).pathname;

const currentUrl = (): URL => new URL(window.location.href);
const url = signal(currentUrl());

/** The current page; null if the path has none. */
export const location = computed<FoundPath | null>(() => findPage(belowBase(url.value.pathname)));
export const search = computed(() => url.value.searchParams);

function belowBase(pathname: string): string {
  return pathname.startsWith(base) ? `/${pathname.slice(base.length)}` : pathname;
}

/** The current path below the base, with its query, as `navigate` accepts it. */
export function here(): string {
  const { pathname, search: query } = url.value;
  return belowBase(pathname) + query;
}

/** The link target for a path of the site. @param path starts with a slash */
export const href = (path: string): string => base + path.slice(1);

const SITE_PATH = /^\/(?![/\\])/;

/** Validates a path from a query parameter; "/" if the site has no such page, or it points to another site. */
export function sitePath(text: string | null): string {
  if (text === null || !SITE_PATH.test(text)) return "/";
  const { origin, pathname, search: query, hash: fragment } = new URL(href(text), window.location.href);
  const path = belowBase(pathname) + query + fragment;
  return origin === window.location.origin && SITE_PATH.test(path) && findPage(belowBase(pathname)) !== null
    ? path
    : "/";
}

/** What ui/cover.ts, loaded with the first dialog, adds to steps in the history. */
export const cover = {
  /** The page is left: true where the history's entry is that of something that covers it. */
  isLeft: (): boolean => false,
  /** True for a step that only closes what covers the page at an address. */
  isStepBack: (_address: string): boolean => false,
};

/**
 * @param path below the base @param replace replace the current history entry
 * @param keepFocus the user goes on typing where they are
 */
export function navigate(path: string, replace = false, keepFocus = false): void {
  const target = href(path);
  if (replace) history.replaceState(history.state, "", target);
  else {
    entry = ++lastEntry;
    // The entry of what covers the page becomes that of the next page: a step back leads to this one.
    if (cover.isLeft()) history.replaceState({ entry }, "", target);
    else history.pushState({ entry }, "", target);
  }
  const isOther = currentUrl().pathname !== url.peek().pathname;
  url.value = currentUrl();
  if (!isOther) return;
  window.scrollTo(0, 0);
  if (keepFocus) return;
  // Screen readers continue at the start of the new page.
  requestAnimationFrame(() => document.querySelector<HTMLElement>("main")?.focus({ preventScroll: true }));
}

/** Sets query parameters; null removes one. */
export function setSearch(changes: Readonly<Record<string, string | null>>): void {
  const params = new URLSearchParams(url.peek().searchParams);
  for (const [name, value] of Object.entries(changes)) {
    if (value === null || value === "") params.delete(name);
    else params.set(name, value);
  }
  const query = params.toString();
  navigate(belowBase(url.peek().pathname) + (query === "" ? "" : `?${query}`), true);
}

/** Where each entry of the history was scrolled to, by the number in its state. */
const scrolled = new Map<number, number>();
let [entry, lastEntry] = [0, 0];
const entryNow = (): number => (history.state as { entry?: number } | null)?.entry ?? 0;
/** A page grows while its data arrives. */
const RESTORE_MS = 3_000;

/** Scrolls to where an entry of the history was left, as soon as the page is long enough; unless the user scrolls first. */
function restoreScroll(top: number): void {
  const stop = new AbortController();
  const options = { signal: stop.signal, passive: true };
  const observer = new ResizeObserver(() => window.scrollTo(0, top));
  observer.observe(document.body);
  stop.signal.addEventListener("abort", () => observer.disconnect());
  for (const type of ["wheel", "touchstart", "keydown", "pointerdown"]) {
    window.addEventListener(type, () => stop.abort(), options);
  }
  // Another step in the history has a position of its own.
  window.addEventListener("popstate", () => stop.abort(), options);
  setTimeout(() => stop.abort(), RESTORE_MS);
}

/** Handles clicks on links within the site, and steps in the history. */
export function startRouter(): void {
  // A reload in the middle of the history.
  entry = lastEntry = entryNow();
  window.addEventListener("scroll", () => scrolled.set(entry, window.scrollY), { passive: true });
  window.addEventListener("popstate", () => {
    if (cover.isStepBack(url.peek().href)) return;
    entry = entryNow();
    const top = scrolled.get(entry) ?? 0;
    const isOther = currentUrl().pathname !== url.peek().pathname;
    url.value = currentUrl();
    if (isOther) restoreScroll(top);
  });
  document.addEventListener("click", (event) => {
    if (event.defaultPrevented || event.button !== 0) return;
    if (event.metaKey || event.ctrlKey || event.shiftKey || event.altKey) return;
    const link = (event.target as Element).closest("a");
    if (link === null || link.target !== "" || link.hasAttribute("download") || link.origin !== window.location.origin)
      return;
    const path = belowBase(link.pathname);
    if (findPage(path) === null || !link.pathname.startsWith(base)) return;
    if (link.hash !== "" && link.pathname === window.location.pathname && link.search === window.location.search)
      return;
    event.preventDefault();
    navigate(path + link.search + link.hash);
  });
}
