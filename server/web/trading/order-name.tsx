/** How an order is named: market, side, outcome, and its terms. */
import { dateTime } from "../format.ts";
import { marketName, outcomeName } from "../market-cache.ts";
import { href } from "../router.ts";
import type { Market, Order } from "../types.ts";

const sideName = (side: number) => <span class={side === 1 ? "up" : "down"}>{side === 1 ? "Buy" : "Sell"}</span>;

/** A price as an amount that can be typed. */
export const priceInput = (bps: number): string => String(bps / 100);

/** What an order is for; with its market where a list has several. */
export function OrderName({
  order,
  market,
  isAlone,
}: {
  order: Pick<Order, "market_id" | "outcome_id" | "side">;
  market: Market | undefined;
  isAlone: boolean;
}) {
  return (
    <span class="order-name">
      {!isAlone && (
        <a href={href(`/markets/${market?.slug ?? order.market_id}?outcome=${order.outcome_id}`)}>
          {marketName(market, order.market_id)}
        </a>
      )}
      <span>
        {sideName(order.side)} {outcomeName(market, order.outcome_id)}
      </span>
    </span>
  );
}

const TIME_IN_FORCE_TEXT: Readonly<Record<string, string>> = {
  gtc: "until canceled",
  ioc: "immediate or cancel",
  fok: "fill or kill",
};

/** How long an order stands, and that it never takes. */
export function orderTerms({ time_in_force, expires_at, post_only }: Order): string {
  const force =
    time_in_force === "gtd" ? `until ${dateTime(expires_at)}` : (TIME_IN_FORCE_TEXT[time_in_force as string] ?? "");
  return post_only ? `${force}, post-only` : force;
}
