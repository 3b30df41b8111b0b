/** Tells in a toast what becomes of the orders that were placed on this page. Orders of bots stay silent. */
import { notionalMicro } from "../../../engine/money.ts";
import { cents, money, shares } from "../../util/format.ts";
import { onOrderUpdate, PAGE_ORDER_PREFIX } from "../account-state.ts";
import { exchangeTime } from "../clock.ts";
import { reasonText } from "../error-messages.ts";
import { findMarket, marketName, outcomeName } from "../market-cache.ts";
import { navigate } from "../router.ts";
import type { Market, Order } from "../types.ts";
import { toast } from "../ui/toast.tsx";
import { cancelOrder } from "./cancel-orders.tsx";
import { averageBps, totalsOf } from "./fills.ts";
import { placedOrders } from "./send-order.ts";

/** Older updates are replays after a reconnect, not news. */
const MAX_AGE_MS = 30_000;
/** An order that opens later was amended. */
const MAX_ENTRY_MS = 5_000;

onOrderUpdate((order) => {
  const isOwn = order.client_order_id?.startsWith(PAGE_ORDER_PREFIX) ?? false;
  if (isOwn && exchangeTime() - order.updated_at <= MAX_AGE_MS) void tell(order);
});

async function tell(order: Order): Promise<void> {
  const { trades, status, reason, updated_at, created_at } = order;
  const hasEnded = status === "rejected" || (status === "canceled" && reason !== "user");
  const hasOpened = status === "open" && order.filled === 0 && updated_at - created_at < MAX_ENTRY_MS;
  if (trades.length === 0 && !hasEnded && !hasOpened) return;
  const market = await findMarket(order.market_id);
  // The ticket that sent it shows what becomes of it.
  if (placedOrders.peek().get(order.market_id)?.order.id === order.id) return;
  if (trades.length > 0) tellFill(order, market);
  else if (hasOpened) tellBid(order, market);
  // What has filled in part says so itself.
  else if (order.filled === 0) tellEnd(order, market);
}

function tellFill(order: Order, market: Market | undefined): void {
  const totals = totalsOf(order.trades);
  const name = outcomeName(market, order.outcome_id);
  const verb = order.side === 1 ? "Bought" : "Sold";
  toast(`${verb} ${shares(totals.quantity)} ${name} at ${cents(averageBps(totals))}`, false, {
    detail: `${marketName(market, order.market_id)} · ${money(totals.notional - totals.fee)} USDC`,
    action: { text: "View order", run: () => navigate("/portfolio?show=history") },
  });
}

function tellBid(order: Order, market: Market | undefined): void {
  const { side, price, remaining, outcome_id, market_id } = order;
  const held =
    side === 1 && price !== null
      ? `${money(notionalMicro(price, remaining))} USDC on hold`
      : `${shares(remaining)} shares on hold`;
  toast(
    `${side === 1 ? "Bid" : "Offer"} placed: ${shares(remaining)} ${outcomeName(market, outcome_id)} at ${cents(price)}`,
    false,
    {
      detail: `${marketName(market, market_id)} · ${held}`,
      icon: "list",
      action: { text: "Cancel it", run: () => void cancelOrder(order) },
    },
  );
}

function tellEnd(order: Order, market: Market | undefined): void {
  const { side, reason, outcome_id, market_id, post_only, price } = order;
  const kind = post_only ? (side === 1 ? "Post-only bid" : "Post-only offer") : side === 1 ? "Buy order" : "Sell order";
  toast(`${kind} not placed: ${outcomeName(market, outcome_id)} at ${cents(price)}`, true, {
    detail: `${marketName(market, market_id)} · ${reasonText(reason)}. Nothing was charged.`,
  });
}
