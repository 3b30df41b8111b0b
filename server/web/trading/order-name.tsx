/** How an order is named: market, side, outcome, and its terms. */
import { dateTime, priceNumber } from "../format.ts";
import { marketName, outcomeName } from "../market-cache.ts";
import { href } from "../router.ts";
import type { Market, Order } from "../types.ts";

const sideName = (side: number) => <span class={side === 1 ? "up" : "down"}>{side === 1 ? "Buy" : "Sell"}</span>;

/** A price in cents as the input field shows it. */
export const priceInput = priceNumber;

/** Names an order: its market unless the list shows a single market, side and outcome. */
export function OrderName({
  order,
  market,
  isSingleMarket,
}: {
  order: Pick<Order, "market_id" | "outcome_id" | "side">;
  market: Market | undefined;
  isSingleMarket: boolean;
}) {
  return (
    <span class="order-name">
      {!isSingleMarket && (
        <a href={href(`/markets/${market?.slug ?? order.market_id}?outcome=${order.outcome_id}`)}>
          {marketName(market, order.market_id)}
        </a>
      )}
      <span translate={false}>
        {sideName(order.side)} {outcomeName(market, order.outcome_id)}
      </span>
    </span>
  );
}

const TIME_IN_FORCE_TEXT: Readonly<Record<string, string>> = {
  gtc: "good till canceled",
  ioc: "immediate or cancel",
  fok: "fill or kill",
};

/** The time in force of an order, and whether it is post-only. */
export function orderTerms({ time_in_force, expires_at, post_only }: Order): string {
  const force =
    time_in_force === "gtd" ? `good till ${dateTime(expires_at)}` : (TIME_IN_FORCE_TEXT[time_in_force as string] ?? "");
  return post_only ? `${force}, post-only` : force;
}
