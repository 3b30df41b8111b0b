/**
 * The markets and events that the user watches, newest first. A guest's are kept in the browser; those of who signs in go
 * to the account (accounts-watchlist.ts).
 */
import { signal } from "@preact/signals";
import { MAX_WATCHED } from "../markets/limits.ts";
import { readWatched, type Watched, watchedText } from "../markets/watched-text.ts";
import { kept } from "./browser.ts";

export type { Watched } from "../markets/watched-text.ts";
export type WatchedKind = Watched["kind"];

const KEY = "watchlist";

export const readGuests = (): readonly Watched[] => readWatched(kept.get(KEY)).slice(0, MAX_WATCHED);
export const forgetGuests = (): void => kept.set(KEY, null);

export const watchlist = signal<readonly Watched[]>(readGuests());

/** Keeps a change for the account; null: nobody has signed in. @throws ApiError */
export const account: { change: ((watched: Watched, isAdded: boolean) => Promise<void>) | null } = { change: null };

export const isWatched = (kind: WatchedKind, id: number): boolean =>
  watchlist.value.some((each) => each.kind === kind && each.id === id);

/** Adds or removes one. @throws ApiError, and the list is as before */
export async function toggleWatched(watched: Watched): Promise<void> {
  const before = watchlist.peek();
  const others = before.filter(({ kind, id }) => kind !== watched.kind || id !== watched.id);
  const isAdded = others.length === before.length;
  watchlist.value = isAdded ? [watched, ...others] : others;
  if (account.change === null) {
    kept.set(KEY, watchedText(watchlist.peek()));
    return;
  }
  try {
    await account.change(watched, isAdded);
  } catch (error) {
    watchlist.value = before;
    throw error;
  }
}
