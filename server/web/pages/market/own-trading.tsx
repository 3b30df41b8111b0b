/** The user's positions and open orders in a market. */
import { useMemo } from "preact/hooks";
import { openOrders, positions } from "../../account-state.ts";
import { OpenOrders } from "../../trading/open-orders.tsx";
import { PositionsTable } from "../../trading/positions.tsx";
import { valuePosition } from "../../trading/valuation.ts";
import type { Market } from "../../types.ts";
import { Loading } from "../../ui/notices.tsx";

export function OwnTrading({
  market,
  orders,
  onSell,
}: {
  market: Market;
  orders: NonNullable<typeof openOrders.value>;
  onSell: (outcomeId: number) => void;
}) {
  const markets = new Map([[market.id, market]]);
  const list = useMemo(
    () => <OpenOrders title="Your open orders" orders={orders} markets={markets} marketId={market.id} />,
    [orders, market.id],
  );
  const held = [...(positions.value?.values() ?? [])].filter(({ market_id }) => market_id === market.id);
  const valued = held.map((position) => valuePosition(position, market)).sort((a, b) => a.outcome_id - b.outcome_id);
  return (
    <>
      <section class="panel" aria-labelledby="position-title">
        <h2 id="position-title">Your position</h2>
        {positions.value === null ? (
          <Loading />
        ) : (
          <PositionsTable
            caption="Your position in each outcome"
            positions={valued}
            markets={markets}
            isSingleMarket
            onSell={onSell}
            empty="No position in this market."
          />
        )}
      </section>
      {openOrders.value === null ? <Loading /> : list}
    </>
  );
}
