/** All of the user's orders, newest first. */
import { reasonText } from "../../error-messages.ts";
import { dateTime, humanize, priceNumber, shares } from "../../format.ts";
import { useMarkets } from "../../market-cache.ts";
import { OrderName, orderTerms } from "../../trading/order-name.tsx";
import type { Order } from "../../types.ts";
import { Badge } from "../../ui/badge.tsx";
import { ErrorNotice, Loading } from "../../ui/notices.tsx";
import { type Column, LoadMore, Table } from "../../ui/table.tsx";
import { useLivePages } from "./live-pages.tsx";

const STATUS_TONES: Readonly<Record<string, "" | "good" | "bad" | "warn">> = {
  open: "good",
  filled: "good",
  partially_filled: "good",
  rejected: "bad",
};

const ALL = { status: "all" } as const;

const toItems = (order: Order): readonly Order[] => [order];

export function History() {
  const { items, error, more, reload, newer } = useLivePages("/orders", ALL, toItems);
  const markets = useMarkets((items ?? []).map(({ market_id }) => market_id));
  const columns: Column<Order>[] = [
    {
      title: "Order",
      show: (order) => <OrderName order={order} market={markets.get(order.market_id)} isSingleMarket={false} />,
    },
    { title: "Price, ¢", isNumber: true, show: (order) => <PriceOf {...order} /> },
    { title: "Filled", isNumber: true, show: ({ filled, quantity }) => `${shares(filled)} of ${shares(quantity)}` },
    { title: "Time in force", show: orderTerms },
    {
      title: "Status",
      show: ({ status, reason: why }) => (
        <span>
          <Badge text={humanize(status as string)} tone={STATUS_TONES[status as string] ?? ""} />
          {why !== null && <small class="below faint">{reasonText(why as string)}</small>}
        </span>
      ),
    },
    { title: "Placed", isNumber: true, show: ({ created_at }) => dateTime(created_at) },
  ];
  return (
    <section class="bare" aria-labelledby="history-title">
      <h2 id="history-title" class="hidden">
        Order history
      </h2>
      {newer}
      <ErrorNotice error={error} retry={reload} />
      {items === null && error === null && <Loading />}
      {items !== null && (
        <Table caption="Order history" columns={columns} rows={items} keyOf={({ id }) => id} empty="No orders yet." />
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
