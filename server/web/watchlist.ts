/**
 * The markets and events that the user watches, newest first. A guest's are kept in the browser; those of who signs in go
 * to the account (accounts-watchlist.ts).
 */
import { signal } from "@preact/signals";
import { MAX_WATCHED } from "../markets/limits.ts";
import { kept } from "./browser.ts";
import type { Watchlist } from "./types.ts";

export type Watched = Watchlist["items"][number];
export type WatchedKind = Watched["kind"];

const KEY = "watchlist";

/** Texts that an older page or another program left are not understood, and dropped. */
export function readGuests(): readonly Watched[] {
  const found = (kept.get(KEY) ?? "").matchAll(/\b(market|event) ([1-9]\d{0,14})\b/g);
  return [...found].slice(0, MAX_WATCHED).map(([, kind, id]) => ({ kind: kind as WatchedKind, id: Number(id) }));
}

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
  if (account.change === null)
    kept.set(
      KEY,
      watchlist
        .peek()
        .map(({ kind, id }) => `${kind} ${id}`)
        .join(" "),
    );
  else await account.change(watched, isAdded);
}
