/** The star of a market or an event: whether the user watches it. */
import { isWatched, MAX_WATCHED, toggleWatched, type WatchedKind } from "../watchlist.ts";
import { Icon } from "./icon.tsx";
import { toast } from "./toast.tsx";

export function WatchButton({ kind, id, name }: { kind: WatchedKind; id: number; name: string }) {
  const isOn = isWatched(kind, id);
  const toggle = (): void => {
    if (!toggleWatched(kind, id)) toast(`The watchlist is full: it has ${MAX_WATCHED} entries.`, true);
  };
  return (
    <button type="button" class="star" aria-pressed={isOn} aria-label={`Watch ${name}`} onClick={toggle}>
      <Icon name="star" />
    </button>
  );
}
