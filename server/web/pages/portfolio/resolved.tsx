/** What resolved markets paid the user. */
import { MICRO_PER_BPS } from "../../../../engine/limits.ts";
import { money, priceNumber, shares } from "../../../util/format.ts";
import { date } from "../../dates.ts";
import { outcomeName, useMarkets } from "../../market-cache.ts";
import { winnerOf } from "../../market-facts.ts";
import { RowMarket } from "../../trading/order-name.tsx";
import type { Market, Settlement } from "../../types.ts";
import { Profit } from "../../ui/amounts.tsx";
import { Badge } from "../../ui/badge.tsx";
import { ErrorNotice, Loading } from "../../ui/notices.tsx";
import { usePages } from "../../ui/paged-list.ts";
import { type Column, LoadMore, Table } from "../../ui/table.tsx";
import { useFresh } from "../../ui/use-fresh.ts";
import { ChooseMarket, useMarketFilter } from "./market-filter.tsx";

/** The winner; for a market without one, what a share of the user's outcome paid. */
function Result({ market, payout }: { market: Market | undefined; payout: number }) {
  if (market === undefined) return <>–</>;
  const winner = winnerOf(market)?.name;
  return (
    <span translate={false}>
      <Badge
        text={winner ?? `${priceNumber(payout)}¢ a share`}
        tone={payout > 0 && winner !== undefined ? "good" : ""}
      />
    </span>
  );
}

function columnsOf(markets: ReadonlyMap<number, Market>): readonly Column<Settlement>[] {
  const held = ({ market_id, outcome_id, quantity }: Settlement): string =>
    `${shares(quantity)} ${outcomeName(markets.get(market_id), outcome_id)}`;
  return [
    {
      title: "Market",
      phone: "main",
      show: (row) => {
        const market = markets.get(row.market_id);
        const result = market === undefined ? undefined : winnerOf(market)?.name;
        const terms = `${held(row)}${result === undefined ? "" : `, result ${result}`}`;
        return <RowMarket row={row} market={market} terms={terms} />;
      },
    },
    { title: "Result", show: ({ market_id, payout }) => <Result market={markets.get(market_id)} payout={payout} /> },
    { title: "You held", isNumber: true, show: held },
    {
      title: "Average, ¢",
      isNumber: true,
      show: ({ cost, quantity }) => priceNumber(Math.round(cost / quantity / MICRO_PER_BPS)),
    },
    { title: "Cost", isNumber: true, show: ({ cost }) => money(cost) },
    { title: "Paid", isNumber: true, phone: "upper", show: ({ amount }) => money(amount) },
    { title: "Profit", isNumber: true, phone: "lower", show: ({ realized_pnl }) => <Profit micro={realized_pnl} /> },
    { title: "Resolved", show: ({ created_at }) => <span class="muted">{date(created_at)}</span> },
  ];
}

export function Resolved() {
  const { found, only, isUnclear } = useMarketFilter();
  const path = isUnclear ? null : "/wallet/settlements";
  const { items, error, more, reload } = usePages<Settlement>(path, { market_id: only });
  useFresh(reload);
  const markets = useMarkets((items ?? []).map(({ market_id }) => market_id));
  return (
    <section class="bare" aria-labelledby="resolved-title">
      <h2 id="resolved-title" class="hidden">
        Resolved
      </h2>
      {isUnclear && <ChooseMarket found={found} />}
      <ErrorNotice error={error} retry={reload} />
      {items === null && error === null && !isUnclear && <Loading />}
      {items !== null && (
        <Table
          caption="Your payouts from resolved markets"
          columns={columnsOf(markets)}
          rows={items}
          keyOf={({ id }) => id}
          empty="No payouts yet."
        />
      )}
      <LoadMore more={more} />
    </section>
  );
}
