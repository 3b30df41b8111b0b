/** The markets and events that the user watches, newest first. A guest's are kept in the browser. */
import { signal } from "@preact/signals";
import { kept } from "./browser.ts";

export type WatchedKind = "market" | "event";
export interface Watched {
  readonly kind: WatchedKind;
  readonly id: number;
}

const KEY = "watchlist";
/** As the server allows an account. */
export const MAX_WATCHED = 200;

/** "market 12 event 3": texts that an older page or another program left are not understood, and dropped. */
function keptList(): readonly Watched[] {
  const found = (kept.get(KEY) ?? "").matchAll(/\b(market|event) ([1-9]\d{0,14})\b/g);
  return [...found].slice(0, MAX_WATCHED).map(([, kind, id]) => ({ kind: kind as WatchedKind, id: Number(id) }));
}

export const watchlist = signal<readonly Watched[]>(keptList());

export const isWatched = (kind: WatchedKind, id: number): boolean =>
  watchlist.value.some((each) => each.kind === kind && each.id === id);

/** Adds or removes one. Returns false where the list is full. */
export function toggleWatched(kind: WatchedKind, id: number): boolean {
  const others = watchlist.peek().filter((each) => each.kind !== kind || each.id !== id);
  const isAdded = others.length === watchlist.peek().length;
  if (isAdded && others.length >= MAX_WATCHED) return false;
  watchlist.value = isAdded ? [{ kind, id }, ...others] : others;
  kept.set(
    KEY,
    watchlist
      .peek()
      .map((each) => `${each.kind} ${each.id}`)
      .join(" "),
  );
  return true;
}
