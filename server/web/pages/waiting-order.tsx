/** Reminds a guest of the order that waits for them. */
import { keptDraft } from "../trading/kept-draft.ts";

/** @param to the page that the user returns to: an order waits on a market's page only */
export function WaitingOrder({ to, lead }: { to: string; lead: string }) {
  const draft = to.startsWith("/markets/") ? keptDraft() : null;
  if (draft === null) return null;
  return (
    <p class="faint" translate={false}>
      {lead} Your order of {draft.text} waits.
    </p>
  );
}
