/** The user's position, open orders and fills in a market, and splitting and merging its sets. */
import { useMemo, useState } from "preact/hooks";
import { openOrders, positions } from "../../account-state.ts";
import { OpenOrders } from "../../trading/open-orders.tsx";
import { PositionsTable } from "../../trading/positions.tsx";
import { valuePosition } from "../../trading/valuation.ts";
import type { Market, Order } from "../../types.ts";
import { Loading } from "../../ui/notices.tsx";
import { type Tab, TabList } from "../../ui/tab-list.tsx";
import { CompleteSets } from "../portfolio/complete-sets.tsx";
import { Fills } from "../portfolio/fills.tsx";

type View = "position" | "orders" | "fills" | "sets";

interface OwnTradingProps {
  market: Market;
  /** The user's open orders in the market. */
  orders: readonly Order[];
  onSell: (outcomeId: number) => void;
}

export function OwnTrading({ market, orders, onSell }: OwnTradingProps) {
  const [chosen, setChosen] = useState<View | null>(null);
  const held = [...(positions.value?.values() ?? [])].filter(({ market_id }) => market_id === market.id);
  const count = held.filter(({ quantity }) => quantity > 0).length;
  // What there is to see, until the user chooses.
  const view = chosen ?? (count === 0 && orders.length > 0 ? "orders" : "position");
  const markets = new Map([[market.id, market]]);
  const list = useMemo(
    () => <OpenOrders orders={orders} markets={markets} marketId={market.id} />,
    [orders, market.id],
  );
  const tabs: readonly Tab<View>[] = [
    { name: "position", text: "Position", count },
    { name: "orders", text: "Orders", count: orders.length },
    { name: "fills", text: "Fills" },
    ...(market.status === "open" ? [{ name: "sets", text: "Split or merge" } as const] : []),
  ];
  return (
    <section class="panel" aria-label="Your trading in this market">
      <TabList label="Your trading" tabs={tabs} current={view} onChange={setChosen}>
        {view === "position" &&
          (positions.value === null ? (
            <Loading />
          ) : (
            <PositionsTable
              caption="Your position in each outcome"
              positions={held
                .map((position) => valuePosition(position, market))
                .sort((a, b) => a.outcome_id - b.outcome_id)}
              markets={markets}
              isSingleMarket
              onSell={onSell}
              empty="No position in this market."
            />
          ))}
        {view === "orders" && (openOrders.value === null ? <Loading /> : list)}
        {view === "fills" && <Fills marketId={market.id} />}
        {view === "sets" && <CompleteSets only={market} />}
      </TabList>
    </section>
  );
}
