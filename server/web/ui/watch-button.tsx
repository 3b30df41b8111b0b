/** The star of a market or an event: whether the user watches it. */
import { MAX_WATCHED } from "../../markets/limits.ts";
import { errorMessage } from "../error-messages.ts";
import { isWatched, toggleWatched, type WatchedKind, watchlist } from "../watchlist.ts";
import { Icon } from "./icon.tsx";
import { toast } from "./toast.tsx";

export function WatchButton({ kind, id, name }: { kind: WatchedKind; id: number; name: string }) {
  const isOn = isWatched(kind, id);
  const toggle = (): void => {
    if (!isOn && watchlist.value.length >= MAX_WATCHED)
      toast(`You already watch ${MAX_WATCHED}: remove one first.`, true);
    else toggleWatched({ kind, id }).catch((error) => toast(errorMessage(error), true));
  };
  return (
    <button type="button" class="star" aria-pressed={isOn} aria-label={`Watch ${name}`} onClick={toggle}>
      <Icon name="star" />
    </button>
  );
}
