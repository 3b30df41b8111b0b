/** What became of the order that the ticket sent: filled, partly filled, or resting in the book. */
import { useEffect } from "preact/hooks";
import { notionalMicro } from "../../../engine/money.ts";
import { cents, money, SHARE_MICRO, shares } from "../../util/format.ts";
import { positions } from "../account-state.ts";
import { reasonText } from "../error-messages.ts";
import { href } from "../router.ts";
import type { Market, Order } from "../types.ts";
import { useAction } from "../ui/action.ts";
import { Icon } from "../ui/icon.tsx";
import { Pairs } from "../ui/pairs.tsx";
import { toast } from "../ui/toast.tsx";
import type { Children } from "../ui/use-data.ts";
import { useFocusOnMount } from "../ui/use-focus-on-mount.ts";
import { cancelOrder } from "./cancel-orders.tsx";
import { averageBps, type Totals, totalsOf } from "./fills.ts";
import { loadFills, type Placed } from "./send-order.ts";

const LIVE: ReadonlySet<string> = new Set(["queued", "open", "partially_filled"]);

/** The order has ended without a fill. */
export const isUnfilled = ({ status, filled }: Order): boolean => !LIVE.has(status) && filled === 0;

interface ResultProps {
  placed: Placed;
  market: Market;
  onDone: () => void;
  /** At the corner, such as a button that closes the sheet. */
  corner: Children;
}

export function OrderResult({ placed, market, onDone, corner }: ResultProps) {
  const { order } = placed;
  const heading = useFocusOnMount<HTMLHeadingElement>();
  const totals = totalsOf(placed.fills);
  // Events can be missed: the exchange knows all fills.
  useEffect(() => {
    if (totals.quantity < order.filled) void loadFills(placed);
  }, [order.id, order.filled, totals.quantity]);
  const isLive = LIVE.has(order.status);
  const { run, isBusy } = useAction(async () => {
    if (await cancelOrder(order)) toast(order.filled > 0 ? "The rest is canceled." : "Order canceled.");
  });
  return (
    <section class="result" aria-labelledby="result-title" translate={false}>
      {corner !== undefined && <p class="corner">{corner}</p>}
      <div class="result-head">
        <span class="result-icon">
          {isLive && !isResting(order) ? <span class="spinner" aria-hidden="true" /> : <Icon name="check" size={24} />}
        </span>
        <h3 id="result-title" ref={heading} tabIndex={-1}>
          {titleOf(order, market)}
        </h3>
        <p aria-live="polite">{subtitleOf(order, market)}</p>
      </div>
      <Pairs pairs={linesOf(placed, totals, market)} />
      <div class="ticket-foot row halves">
        {isLive ? (
          <button type="button" disabled={isBusy} onClick={() => void run()}>
            {order.filled > 0 ? "Cancel the rest" : "Cancel it"}
          </button>
        ) : (
          <a class="button" href={href("/portfolio?show=history")}>
            View order
          </a>
        )}
        <button type="button" class="ink" onClick={onDone}>
          Done
        </button>
      </div>
    </section>
  );
}

const isResting = ({ type, status, time_in_force }: Order): boolean =>
  type === "limit" && status !== "queued" && (time_in_force === "gtc" || time_in_force === "gtd");

const nameOf = (order: Order, market: Market): string =>
  market.outcomes.find(({ id }) => id === order.outcome_id)?.name ?? "";

function titleOf(order: Order, market: Market): string {
  const { side, status, filled, quantity } = order;
  const name = nameOf(order, market);
  if (status === "filled" || !LIVE.has(status)) return `${side === 1 ? "Bought" : "Sold"} ${shares(filled)} ${name}`;
  if (filled > 0) return `${shares(filled)} of ${shares(quantity)} filled`;
  return status === "queued" ? "Order placed" : side === 1 ? "Bid placed" : "Offer placed";
}

function subtitleOf(order: Order, market: Market): string {
  const { status, filled, quantity, price } = order;
  if (status === "filled") return market.question;
  if (!LIVE.has(status)) return `The other ${shares(quantity - filled)}: ${reasonText(order.reason)}.`;
  if (filled > 0) return isResting(order) ? `The rest waits at ${cents(price)}.` : "The rest is on its way.";
  return `${shares(quantity)} ${nameOf(order, market)} at ${cents(price)}`;
}

function linesOf({ order }: Placed, totals: Totals, market: Market): readonly (readonly [string, string])[] {
  const isBuy = order.side === 1;
  const isLive = LIVE.has(order.status);
  const isWhole = totals.quantity === order.filled;
  const net = isBuy ? totals.notional - totals.rebate : totals.notional - totals.fee + totals.rebate;
  const lines: (readonly [string, string])[] = [];
  if (order.filled > 0) {
    const average = isWhole ? cents(averageBps(totals)) : "–";
    lines.push([isLive ? "Filled at" : "Average price", average]);
    lines.push([
      isBuy ? (isLive ? "Spent so far" : "Cost") : isLive ? "Received so far" : "You get",
      isWhole ? `${money(net)} USDC` : "–",
    ]);
    if (!isLive) lines.push(["Fee", isWhole ? money(totals.fee) : "–"]);
  }
  if (isLive) {
    lines.push([
      "Still open",
      `${shares(order.remaining)} shares, at ${isBuy ? "most" : "least"} ${cents(order.price)}`,
    ]);
    if (isBuy && order.price !== null)
      lines.push(["On hold", `${money(notionalMicro(order.price, order.remaining))} USDC`]);
  } else {
    const name = nameOf(order, market);
    if (isBuy) lines.push([`Pays if ${name}`, `${money(order.filled * SHARE_MICRO)} USDC`]);
    const owned = positions.value?.get(order.outcome_id)?.quantity ?? 0;
    lines.push(["Your position", `${shares(owned)} ${name}`]);
  }
  return lines;
}
