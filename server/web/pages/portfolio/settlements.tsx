/** The user's payouts from resolved markets. */
import { dateTime, priceNumber, shares } from "../../format.ts";
import { marketName, outcomeName, useMarkets } from "../../market-cache.ts";
import { href } from "../../router.ts";
import type { Settlement } from "../../types.ts";
import { Money, Profit } from "../../ui/amounts.tsx";
import { ErrorNotice, Loading } from "../../ui/notices.tsx";
import { usePages } from "../../ui/paged-list.ts";
import { type Column, LoadMore, Table } from "../../ui/table.tsx";
import { useFresh } from "../../ui/use-fresh.ts";

export function Settlements() {
  const { items, error, more, reload } = usePages<Settlement>("/wallet/settlements");
  useFresh(reload);
  const markets = useMarkets((items ?? []).map(({ market_id }) => market_id));
  const columns: Column<Settlement>[] = [
    {
      title: "Outcome",
      show: ({ market_id, outcome_id }) => (
        <span class="order-name">
          <a href={href(`/markets/${markets.get(market_id)?.slug ?? market_id}`)}>
            {marketName(markets.get(market_id), market_id)}
          </a>
          <span translate={false}>{outcomeName(markets.get(market_id), outcome_id)}</span>
        </span>
      ),
    },
    { title: "Shares", isNumber: true, show: ({ quantity }) => shares(quantity) },
    { title: "Payout, ¢", isNumber: true, show: ({ payout }) => priceNumber(payout) },
    { title: "Received", isNumber: true, show: ({ amount }) => <Money micro={amount} /> },
    { title: "Cost", isNumber: true, show: ({ cost }) => <Money micro={cost} /> },
    { title: "Profit", isNumber: true, show: ({ realized_pnl }) => <Profit micro={realized_pnl} /> },
    { title: "Time", isNumber: true, show: ({ created_at }) => dateTime(created_at) },
  ];
  return (
    <section class="bare" aria-labelledby="settlements-title">
      <h2 id="settlements-title" class="hidden">
        Settlements
      </h2>
      <ErrorNotice error={error} retry={reload} />
      {items === null && error === null && <Loading />}
      {items !== null && (
        <Table
          caption="Your payouts from resolved markets"
          columns={columns}
          rows={items}
          keyOf={({ id }) => id}
          empty="No settlements yet."
        />
      )}
      <LoadMore more={more} />
    </section>
  );
}
