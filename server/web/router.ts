/** Where the page is: the path as a signal, links that don't load the page anew, and titles. */
import { computed, signal } from "@preact/signals";
import { type FoundPath, findPage } from "./paths.ts";

/** The path that the page is below, with a slash at its end. */
export const base = new URL(document.baseURI).pathname;

const currentUrl = (): URL => new URL(window.location.href);
const url = signal(currentUrl());

/** The page that is shown; null where there is none at this path. */
export const location = computed<FoundPath | null>(() => findPage(belowBase(url.value.pathname)));
export const search = computed(() => url.value.searchParams);

function belowBase(pathname: string): string {
  return pathname.startsWith(base) ? `/${pathname.slice(base.length)}` : pathname;
}

/** The path below the base, with its query: what `navigate` takes. */
export function here(): string {
  const { pathname, search: query } = url.value;
  return belowBase(pathname) + query;
}

/** The address of a path of the page. @param path begins with a slash */
export const href = (path: string): string => base + path.slice(1);

const SITE_PATH = /^\/(?![/\\])/;

/** The path that a parameter names; "/" where the page has none such, or it names another site. */
export function sitePath(text: string | null): string {
  if (text === null || !SITE_PATH.test(text)) return "/";
  const { origin, pathname, search: query, hash: fragment } = new URL(href(text), window.location.href);
  const path = belowBase(pathname) + query + fragment;
  return origin === window.location.origin && SITE_PATH.test(path) && findPage(belowBase(pathname)) !== null
    ? path
    : "/";
}

/** @param path below the base @param replace the present entry of the history */
export function navigate(path: string, replace = false): void {
  const target = href(path);
  if (replace) history.replaceState(null, "", target);
  else history.pushState(null, "", target);
  const isOther = currentUrl().pathname !== url.peek().pathname;
  url.value = currentUrl();
  if (!isOther) return;
  window.scrollTo(0, 0);
  // Who reads with their ears hears the new page's beginning.
  requestAnimationFrame(() => document.querySelector<HTMLElement>("main")?.focus({ preventScroll: true }));
}

/** Sets parameters of the query, null removes. */
export function setSearch(changes: Readonly<Record<string, string | null>>): void {
  const params = new URLSearchParams(url.peek().searchParams);
  for (const [name, value] of Object.entries(changes)) {
    if (value === null || value === "") params.delete(name);
    else params.set(name, value);
  }
  const query = params.toString();
  navigate(belowBase(url.peek().pathname) + (query === "" ? "" : `?${query}`), true);
}

/** Takes over clicks on links within the page. */
export function startRouter(): void {
  window.addEventListener("popstate", () => {
    url.value = currentUrl();
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
