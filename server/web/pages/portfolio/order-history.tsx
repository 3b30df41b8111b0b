/** The user's orders of every state, newest first. */

import { humanize, priceNumber, shares } from "../../../util/format.ts";
import { reasonText } from "../../error-messages.ts";
import { useMarkets } from "../../market-cache.ts";
import { orderColumns } from "../../trading/open-orders.tsx";
import { FilledTrack, orderTerms } from "../../trading/order-name.tsx";
import type { Order } from "../../types.ts";
import { Badge } from "../../ui/badge.tsx";
import { ErrorNotice, Loading } from "../../ui/notices.tsx";
import { type Column, LoadMore, Table } from "../../ui/table.tsx";
import { useLivePages } from "./live-pages.tsx";
import { ChooseMarket, useMarketFilter } from "./market-filter.tsx";

const STATUS_TONES: Readonly<Record<string, "" | "good" | "bad" | "warn">> = {
  open: "good",
  filled: "good",
  partially_filled: "good",
  rejected: "bad",
};

const stateColumns: readonly Column<Order>[] = [
  { title: "Price, ¢", isNumber: true, show: (order) => <PriceOf {...order} /> },
  { title: "Filled", show: (order) => <FilledTrack {...order} /> },
  { title: "Shares", isNumber: true, show: ({ quantity }) => shares(quantity) },
  {
    title: "Status",
    phone: "upper",
    show: ({ status, reason: why }) => (
      <span>
        <Badge text={humanize(status as string)} tone={STATUS_TONES[status as string] ?? ""} />
        {why !== null && <small class="below faint">{reasonText(why as string)}</small>}
      </span>
    ),
  },
  { title: "Lasts", show: (order) => <span class="muted">{orderTerms(order)}</span> },
];

export function OrderHistory() {
  const { found, only, isUnclear } = useMarketFilter();
  const { items, error, more, reload } = useLivePages(
    isUnclear ? null : "/orders",
    { status: "all", market_id: only },
    (order) => (only === null || order.market_id === only ? [order] : []),
  );
  const markets = useMarkets((items ?? []).map(({ market_id }) => market_id));
  return (
    <section class="bare" aria-label="Order history">
      {isUnclear && <ChooseMarket found={found} />}
      <ErrorNotice error={error} retry={reload} />
      {items === null && error === null && !isUnclear && <Loading />}
      {items !== null && (
        <Table
          caption="Order history"
          columns={[...orderColumns(markets, false), ...stateColumns]}
          rows={items}
          keyOf={({ id }) => id}
          empty="No orders yet."
        />
      )}
      <LoadMore more={more} />
    </section>
  );
}

/** The limit price. For a market order: "market", and its worst price if it has one. */
function PriceOf({ price, type }: Order) {
  if (type !== "market") return priceNumber(price);
  return (
    <span>
      market
      {price !== null && <small class="below faint">worst {priceNumber(price)}</small>}
    </span>
  );
}
