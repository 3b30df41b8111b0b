/** The user's fills, newest first. */
import { dateTime, humanize, money, priceNumber, shares } from "../../format.ts";
import { useMarkets } from "../../market-cache.ts";
import { OrderName } from "../../trading/order-name.tsx";
import type { Order, OwnFill } from "../../types.ts";
import { ErrorNotice, Loading } from "../../ui/notices.tsx";
import { type Column, LoadMore, Table } from "../../ui/table.tsx";
import { useLivePages } from "./live-pages.tsx";

function fillsOf({ id, market_id, outcome_id, side, builder_code, trades }: Order): OwnFill[] {
  return trades.map((fill) => ({ ...fill, order_id: id, market_id, outcome_id, side, builder_code }));
}

/** @param marketId only the fills of this market, in a panel that names them */
export function Fills({ marketId = null }: { marketId?: number | null }) {
  const { items, error, more, reload, newer } = useLivePages("/me/fills", { market_id: marketId }, (order) =>
    marketId === null || order.market_id === marketId ? fillsOf(order) : [],
  );
  const markets = useMarkets((items ?? []).map(({ market_id }) => market_id));
  const columns: Column<OwnFill>[] = [
    {
      title: "Fill",
      show: (fill) => (
        <OrderName order={fill} market={markets.get(fill.market_id)} isSingleMarket={marketId !== null} />
      ),
    },
    { title: "Price, ¢", isNumber: true, show: ({ price }) => priceNumber(price) },
    { title: "Shares", isNumber: true, show: ({ quantity }) => shares(quantity) },
    { title: "Type", show: ({ match_type, role }) => `${humanize(match_type as string)}, ${humanize(role as string)}` },
    {
      title: "Fee and rebate",
      isNumber: true,
      show: ({ fee, rebate }) => (
        <span>
          {fee > 0 && <span>−{money(fee)}</span>}
          {rebate > 0 && <span class="up"> +{money(rebate)}</span>}
          {fee + rebate === 0 && "–"}
        </span>
      ),
    },
    { title: "Time", isNumber: true, show: ({ created_at }) => dateTime(created_at) },
  ];
  return (
    <section class="bare" aria-label="Fills">
      {marketId === null && <h2 class="hidden">Fills</h2>}
      {newer}
      <ErrorNotice error={error} retry={reload} />
      {items === null && error === null && <Loading />}
      {items !== null && (
        <Table caption="Your fills" columns={columns} rows={items} keyOf={({ id }) => id} empty="No fills yet." />
      )}
      <LoadMore more={more} />
    </section>
  );
}
