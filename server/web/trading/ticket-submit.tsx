/** The ticket's submit button, or what the user must do before they can trade. */
import { shares } from "../format.ts";
import { here, href } from "../router.ts";
import { sessionState, user } from "../session.ts";
import type { Outcome, PlaceOrder } from "../types.ts";
import { Notice } from "../ui/notices.tsx";
import type { Draft, OrderPreview } from "./order-preview.ts";

interface SubmitProps {
  draft: Draft;
  preview: OrderPreview;
  outcome: Outcome;
  isBusy: boolean;
  /** The market isn't open. */
  isClosed: boolean;
  /** An order without a response, which the button retries. */
  unanswered: PlaceOrder | null;
}

export function SubmitButton(props: SubmitProps) {
  if (sessionState.value === "out") {
    return (
      <p class="row gate">
        <a class="button primary" href={href(`/sign-in?to=${encodeURIComponent(here())}`)}>
          Sign in to trade
        </a>
        <a class="button" href={href("/sign-up")}>
          Create account
        </a>
      </p>
    );
  }
  if (user.value !== null && user.value.kyc_tier === 0) {
    return (
      <Notice>
        Verify your phone number to trade. <a href={href("/account")}>Verify now</a>
      </Notice>
    );
  }
  const isBuy = props.draft.side === "buy";
  const isDisabled = props.isBusy || props.isClosed || user.value === null;
  return (
    <button type="submit" translate={false} class={isBuy ? "buy send" : "sell send"} disabled={isDisabled}>
      {labelOf(props)}
    </button>
  );
}

function labelOf({ draft, preview, outcome, isBusy, unanswered }: SubmitProps): string {
  if (unanswered !== null) return isBusy ? "Retrying…" : "Retry";
  if (isBusy) return "Placing order…";
  const quantity = preview.summary === null ? "" : ` ${shares(preview.summary.quantity)}`;
  return `${draft.side === "buy" ? "Buy" : "Sell"}${quantity} ${outcome.name}`;
}
