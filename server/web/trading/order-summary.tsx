/** The summary of an order before it is sent: what fills now, what rests, cost, fee and profit. Renders only. */
import { MICRO_PER_BPS } from "../../../engine/limits.ts";
import { cents, money, shares, signedMoney } from "../format.ts";
import type { Outcome } from "../types.ts";
import type { Draft, PreviewSummary } from "./order-preview.ts";

interface SummaryProps {
  draft: Draft;
  summary: PreviewSummary;
  outcome: Outcome;
}

export function OrderSummary({ draft, summary, outcome }: SummaryProps) {
  const { fills, resting, profit, quantity } = summary;
  const isBuy = draft.side === "buy";
  const counted = fills.quantity + resting;
  const average = fills.quantity === 0 ? null : Math.round(fills.notional / fills.quantity / MICRO_PER_BPS);
  return (
    <dl class="order-summary" translate={false}>
      {fills.quantity > 0 && (
        <>
          <dt>Fills now</dt>
          <dd>
            {fills.quantity === quantity ? "all" : `${shares(fills.quantity)} of ${shares(quantity)}`} at about{" "}
            {cents(average)}
          </dd>
        </>
      )}
      {resting > 0 && (
        <>
          <dt>Rests</dt>
          <dd>{resting === quantity ? "all" : `${shares(resting)} shares`}</dd>
        </>
      )}
      {isBuy ? <BuyLines summary={summary} outcome={outcome} /> : <SellLines summary={summary} />}
      {profit !== null && counted > 0 && (
        <>
          <dt>{isBuy ? `Profit if ${outcome.name}` : "Profit"}</dt>
          <dd>
            <b class={profit >= 0 ? "up" : "down"}>{signedMoney(profit)} USDC</b>
          </dd>
        </>
      )}
      {fills.isImplied && (
        <>
          <dt class="wide">
            Partly filled by {isBuy ? "minting" : "merging"} complete sets with orders on other outcomes.
          </dt>
          <dd />
        </>
      )}
    </dl>
  );
}

function BuyLines({
  summary: { fills, resting, notional, hold, payout },
  outcome,
}: Pick<SummaryProps, "summary" | "outcome">) {
  return (
    <>
      <dt>Cost</dt>
      <dd>{money(notional)} USDC</dd>
      <dt>Trading fee</dt>
      <dd>none for buyers</dd>
      {hold > notional && (
        <>
          <dt>On hold</dt>
          <dd>{money(hold)} USDC</dd>
        </>
      )}
      {fills.quantity + resting > 0 && (
        <>
          <dt>Payout if {outcome.name}</dt>
          <dd>{money(payout)} USDC</dd>
        </>
      )}
    </>
  );
}

function SellLines({ summary: { notional, fee } }: Pick<SummaryProps, "summary">) {
  return (
    <>
      <dt>Proceeds</dt>
      <dd>{money(notional)} USDC</dd>
      <dt>Trading fee</dt>
      <dd>−{money(fee)} USDC</dd>
      <dt>You receive</dt>
      <dd>
        <b>{money(notional - fee)} USDC</b>
      </dd>
    </>
  );
}
