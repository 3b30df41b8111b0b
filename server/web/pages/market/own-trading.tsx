/** The user's position, open orders and fills in a market, and splitting and merging its sets. */
import { useMemo } from "preact/hooks";
import { cents, money, shares } from "../../../util/format.ts";
import { openOrders, positions } from "../../account-state.ts";
import { OpenOrders } from "../../trading/open-orders.tsx";
import { PositionsTable } from "../../trading/positions.tsx";
import { type ValuedPosition, valuePosition } from "../../trading/valuation.ts";
import type { Market, Order } from "../../types.ts";
import { Profit } from "../../ui/amounts.tsx";
import { Loading } from "../../ui/notices.tsx";
import { CompleteSets } from "../portfolio/complete-sets.tsx";
import { Fills } from "../portfolio/fills.tsx";
import { type Part, PartTabs } from "./part-tabs.tsx";

interface OwnTradingProps {
  market: Market;
  /** The user's open orders in the market. */
  orders: readonly Order[];
  onSell: (outcomeId: number) => void;
  /** What else the tabs have, on a phone. */
  before?: readonly Part[];
  chosen: string | null;
  onChoose: (name: string) => void;
}

export function OwnTrading({ market, orders, onSell, before = [], chosen, onChoose }: OwnTradingProps) {
  const held = [...(positions.value?.values() ?? [])]
    .filter(({ market_id }) => market_id === market.id)
    .map((position) => valuePosition(position, market))
    .sort((a, b) => a.outcome_id - b.outcome_id);
  const current = held.filter(({ quantity }) => quantity > 0);
  const markets = new Map([[market.id, market]]);
  const list = useMemo(
    () => <OpenOrders orders={orders} markets={markets} marketId={market.id} />,
    [orders, market.id],
  );
  const own: readonly Part[] = [
    {
      ...{ name: "position", text: "Position", count: current.length },
      content:
        positions.value === null ? (
          <Loading />
        ) : (
          <PositionsTable
            caption="Your position in each outcome"
            positions={held}
            markets={markets}
            isSingleMarket
            onSell={onSell}
            empty="No position in this market."
          />
        ),
    },
    {
      ...{ name: "orders", text: "Orders", count: orders.length },
      content: openOrders.value === null ? <Loading /> : list,
    },
    { name: "fills", text: "Fills", content: <Fills marketId={market.id} /> },
    ...(market.status === "open"
      ? [{ name: "sets", text: "Split or merge", content: <CompleteSets only={market} /> }]
      : []),
  ];
  // What there is to see, until the user chooses.
  const first = before[0]?.name ?? (current.length === 0 && orders.length > 0 ? "orders" : "position");
  const shown = chosen ?? first;
  return (
    <section class="panel" aria-label={before.length === 0 ? "Your trading in this market" : "About this market"}>
      <PartTabs
        label={before.length === 0 ? "Your trading" : "About this market"}
        parts={[...before, ...own]}
        current={shown}
        onChange={onChoose}
      />
      {before.length > 0 && shown === before[0]?.name && (
        <Holdings market={market} positions={current} onShow={() => onChoose("position")} />
      )}
    </section>
  );
}

interface HoldingsProps {
  market: Market;
  positions: readonly ValuedPosition[];
  onShow: () => void;
}

/** What the user holds, in one line an outcome. */
function Holdings({ market, positions: held, onShow }: HoldingsProps) {
  return (
    <>
      {held.map(({ outcome_id, quantity, average_price, market_value, unrealized_pnl }) => (
        <button key={outcome_id} type="button" class="holding" translate={false} onClick={onShow}>
          <span>
            <b>
              {shares(quantity)} {market.outcomes.find(({ id }) => id === outcome_id)?.name}
            </b>{" "}
            at {cents(average_price === null ? null : Math.round(average_price))}
          </span>
          <span>
            <b>{market_value === null ? "–" : money(market_value)}</b> <Profit micro={unrealized_pnl} />
          </span>
        </button>
      ))}
    </>
  );
}
