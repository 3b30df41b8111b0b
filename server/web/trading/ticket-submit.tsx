/** The ticket's submit button, or what the user must do before they can trade. */
import { shares } from "../format.ts";
import { here, href } from "../router.ts";
import { sessionState, user } from "../session.ts";
import type { Outcome, PlaceOrder } from "../types.ts";
import { Notice } from "../ui/notices.tsx";
import type { Draft, OrderPreview } from "./order-preview.ts";

export function SubmitButton({
  draft,
  plan,
  outcome,
  isBusy,
  isShut,
  unanswered,
}: {
  draft: Draft;
  plan: OrderPreview;
  outcome: Outcome;
  isBusy: boolean;
  isShut: boolean;
  unanswered: PlaceOrder | null;
}) {
  if (sessionState.value === "out") {
    return (
      <p class="row gate">
        <a class="button primary" href={href(`/sign-in?to=${encodeURIComponent(here())}`)}>
          Sign in to trade
        </a>
        <a class="button" href={href("/sign-up")}>
          Create an account
        </a>
      </p>
    );
  }
  if (user.value !== null && user.value.kyc_tier === 0) {
    return (
      <Notice>
        To trade, verify your phone number first. <a href={href("/account")}>Verify it</a>
      </Notice>
    );
  }
  const isBuy = draft.side === "buy";
  const quantity = plan.summary === null ? "" : ` ${shares(plan.summary.quantity)}`;
  const text =
    unanswered !== null
      ? isBusy
        ? "Asking again…"
        : "Ask again"
      : isBusy
        ? "Placing…"
        : `${isBuy ? "Buy" : "Sell"}${quantity} ${outcome.name}`;
  return (
    <button type="submit" class={isBuy ? "buy send" : "sell send"} disabled={isBusy || isShut || user.value === null}>
      {text}
    </button>
  );
}
