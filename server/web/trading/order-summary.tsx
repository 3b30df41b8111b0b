/** The order summary in the ticket: what fills now, what rests, cost, fee and profit. */
import { MICRO_PER_BPS } from "../../../engine/limits.ts";
import { money, percent, shares, signedMoney } from "../format.ts";
import type { Outcome } from "../types.ts";
import type { Draft, PreviewSummary } from "./order-preview.ts";

/** What it comes to. */
export function OrderSummary({ draft, summary, outcome }: { draft: Draft; summary: PreviewSummary; outcome: Outcome }) {
  const { traded, resting, notional, fee, hold, payout, profit, quantity } = summary;
  const isBuy = draft.side === "buy";
  const average = traded.quantity === 0 ? null : Math.round(traded.notional / traded.quantity / MICRO_PER_BPS);
  const counted = traded.quantity + resting;
  return (
    <dl class="outlook">
      {traded.quantity > 0 && (
        <>
          <dt>Trades at once</dt>
          <dd>
            {traded.quantity === quantity ? "all" : `${shares(traded.quantity)} of ${shares(quantity)}`}, about{" "}
            {percent(average)} each
          </dd>
        </>
      )}
      {resting > 0 && (
        <>
          <dt>Waits in the book</dt>
          <dd>{resting === quantity ? "all" : `${shares(resting)} shares`}</dd>
        </>
      )}
      <dt>{isBuy ? "Cost" : "Proceeds"}</dt>
      <dd>{money(notional)} USDC</dd>
      {!isBuy && (
        <>
          <dt>Trading fee</dt>
          <dd>−{money(fee)} USDC</dd>
          <dt>You receive</dt>
          <dd>
            <b>{money(notional - fee)} USDC</b>
          </dd>
        </>
      )}
      {isBuy && (
        <>
          <dt>Trading fee</dt>
          <dd>none for buyers</dd>
          {hold > notional && (
            <>
              <dt>Set aside meanwhile</dt>
              <dd>{money(hold)} USDC</dd>
            </>
          )}
          {counted > 0 && (
            <>
              <dt>Pays if {outcome.name}</dt>
              <dd>{money(payout)} USDC</dd>
            </>
          )}
        </>
      )}
      {profit !== null && counted > 0 && (
        <>
          <dt>{isBuy ? "Profit then" : "Profit against what you paid"}</dt>
          <dd>
            <b class={profit >= 0 ? "up" : "down"}>{signedMoney(profit)} USDC</b>
          </dd>
        </>
      )}
      {traded.isImplied && (
        <>
          <dt class="wide">
            Part of it comes from orders for the other outcomes, by {isBuy ? "minting" : "merging"} sets.
          </dt>
          <dd />
        </>
      )}
    </dl>
  );
}
