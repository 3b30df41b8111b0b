/** The user's fills, newest first. */
import { tradedMicro } from "../../../../engine/money.ts";
import { capitalized, money, priceNumber, shares, signedMoney } from "../../../util/format.ts";
import { rowClock } from "../../dates.ts";
import { outcomeName, useMarkets } from "../../market-cache.ts";
import { SideBadge, sideName, subjectColumns } from "../../trading/order-name.tsx";
import type { Market, Order, OwnFill } from "../../types.ts";
import { ErrorNotice, Loading } from "../../ui/notices.tsx";
import { type Column, LoadMore, Table } from "../../ui/table.tsx";
import { useLivePages } from "./live-pages.tsx";
import { ChooseMarket, useMarketFilter } from "./market-filter.tsx";

function fillsOf({ id, market_id, outcome_id, side, builder_code, trades }: Order): OwnFill[] {
  return trades.map((fill) => ({ ...fill, order_id: id, market_id, outcome_id, side, builder_code }));
}

/** "Maker", and where the shares come from or go to, unless they change hands. */
function roleText({ role, match_type }: OwnFill): string {
  const text = capitalized(role as string);
  return match_type === "direct" ? text : `${text}, ${match_type}`;
}

/** "Buy 43 Yes at 52.0¢" */
function fillLine({ side, quantity, outcome_id, price }: OwnFill, market: Market | undefined, hasOutcome: boolean) {
  const what = hasOutcome ? ` ${outcomeName(market, outcome_id)}` : "";
  return `${sideName(side)} ${shares(quantity)}${what} at ${priceNumber(price)}¢`;
}

function columnsOf(markets: ReadonlyMap<number, Market>, isSingleMarket: boolean): readonly Column<OwnFill>[] {
  return [
    {
      title: "Time",
      phone: "lower",
      show: ({ created_at }) => (
        <span class="muted" translate={false}>
          {rowClock(created_at)}
        </span>
      ),
    },
    ...subjectColumns(markets, isSingleMarket, fillLine),
    { title: "Side", show: ({ side }) => <SideBadge side={side} /> },
    { title: "Price, ¢", isNumber: true, show: ({ price }) => priceNumber(price) },
    { title: "Shares", isNumber: true, show: ({ quantity }) => shares(quantity) },
    { title: "Amount", isNumber: true, phone: "upper", show: (fill) => signedMoney(tradedMicro(fill)) },
    { title: "Role", show: (fill) => <span class="muted">{roleText(fill)}</span> },
    { title: "Fee", isNumber: true, show: ({ fee }) => <span class="muted">{fee > 0 ? `−${money(fee)}` : "–"}</span> },
    {
      title: "Rebate",
      isNumber: true,
      show: ({ rebate }) => <span class="muted">{rebate > 0 ? signedMoney(rebate) : "–"}</span>,
    },
  ];
}

/** @param marketId only the fills of this market, in a panel that names them; null: of the markets that the filter finds */
export function Fills({ marketId = null }: { marketId?: number | null }) {
  const filter = useMarketFilter();
  const isUnclear = marketId === null && filter.isUnclear;
  const wanted = marketId ?? filter.only;
  const { items, error, more, reload } = useLivePages(isUnclear ? null : "/me/fills", { market_id: wanted }, (order) =>
    wanted === null || order.market_id === wanted ? fillsOf(order) : [],
  );
  const markets = useMarkets((items ?? []).map(({ market_id }) => market_id));
  return (
    <section class="bare" aria-label="Fills">
      {marketId === null && <h2 class="hidden">Fills</h2>}
      {isUnclear && <ChooseMarket found={filter.found} />}
      <ErrorNotice error={error} retry={reload} />
      {items === null && error === null && !isUnclear && <Loading />}
      {items !== null && (
        <Table
          caption="Your fills"
          columns={columnsOf(markets, marketId !== null)}
          rows={items}
          keyOf={({ id }) => id}
          empty="No fills yet."
        />
      )}
      <LoadMore more={more} />
    </section>
  );
}
