/**
 * A watchlist as one text, "market 12 event 3": so it stands in the user's row, and in a guest's browser. Imports nothing
 * but types: the web page reads it too.
 */
import type { Static } from "typebox";
import type { Watchlist } from "./schemas.ts";

export type Watched = Static<typeof Watchlist>["items"][number];

export const watchedText = (list: readonly Watched[]): string => list.map(({ kind, id }) => `${kind} ${id}`).join(" ");

/** What is not understood, which an older page or another program left, is dropped. */
export function readWatched(text: string | null): Watched[] {
  const found = (text ?? "").matchAll(/\b(market|event) ([1-9]\d{0,14})\b/g);
  return [...found].map(([, kind, id]) => ({ kind: kind as Watched["kind"], id: Number(id) }));
}
