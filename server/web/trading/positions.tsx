/** Positions valued at last prices, live. */
import { useEffect, useRef, useState } from "preact/hooks";
import { FULL_PRICE_BPS } from "../../../engine/limits.ts";
import { notionalMicro } from "../../../engine/money.ts";
import { percent, shares } from "../format.ts";
import { marketName, outcomeName } from "../market-cache.ts";
import { subscribeTickers, withTickers } from "../market-tickers.ts";
import { href } from "../router.ts";
import type { Market, Position, Ticker } from "../types.ts";
import { Money, Profit } from "../ui/amounts.tsx";
import { type Column, Table } from "../ui/table.tsx";
import { useThrottled } from "../ui/throttle.ts";

export interface ValuedPosition extends Position {
  /** Mark price, BPS; null if unknown. */
  readonly price: number | null;
}

/** The mark price of a share, BPS: its last price, or what the last prices of all other outcomes leave. Null if unknown. */
function markPrice({ outcomes }: Market, outcomeId: number): number | null {
  const own = outcomes.find(({ id }) => id === outcomeId)?.last_price ?? null;
  if (own !== null) return own;
  let rest = FULL_PRICE_BPS;
  for (const { id, last_price } of outcomes) {
    if (id === outcomeId) continue;
    if (last_price === null) return null;
    rest -= last_price;
  }
  return Math.max(0, rest);
}

/** Values a position at its mark price. @param market undefined: not loaded yet, keep the server's valuation */
export function valuePosition(position: Position, market: Market | undefined): ValuedPosition {
  if (market === undefined) return { ...position, price: null };
  const price = markPrice(market, position.outcome_id);
  const value = position.quantity === 0 ? 0 : price === null ? null : notionalMicro(price, position.quantity);
  return { ...position, price, market_value: value, unrealized_pnl: value === null ? null : value - position.cost };
}

/** Returns the markets with their latest tickers applied, as far as the subscription bound allows. */
export function useLiveMarkets(markets: readonly Market[]): ReadonlyMap<number, Market> {
  const [tickers, setTickers] = useState<ReadonlyMap<number, Ticker>>(new Map());
  const latest = useRef(new Map<number, Ticker>());
  const show = useThrottled(() => setTickers(new Map(latest.current)));
  const key = markets.map(({ id }) => id).join();
  useEffect(
    () =>
      subscribeTickers(markets, (ticker) => {
        latest.current.set(ticker.outcome_id, ticker);
        show();
      }),
    [key],
  );
  return new Map(markets.map((market) => [market.id, withTickers(market, tickers)]));
}

const separateProfits: readonly Column<ValuedPosition>[] = [
  { title: "Unrealized P&L", isNumber: true, show: ({ unrealized_pnl }) => <Profit micro={unrealized_pnl} /> },
  { title: "Realized P&L", isNumber: true, show: ({ realized_pnl }) => <Profit micro={realized_pnl} /> },
];
/** Both figures in one column, for narrow tables. */
const bothProfits: Column<ValuedPosition> = {
  title: "P&L",
  isNumber: true,
  show: ({ unrealized_pnl, realized_pnl }) => (
    <span>
      <Profit micro={unrealized_pnl} />
      <small class="below faint">
        realized <Profit micro={realized_pnl} />
      </small>
    </span>
  ),
};

const amountColumns: readonly Column<ValuedPosition>[] = [
  {
    title: "Shares",
    isNumber: true,
    show: ({ quantity, held }) => (
      <span>
        {shares(quantity)}
        {held > 0 && <small class="below faint">{shares(held)} on hold</small>}
      </span>
    ),
  },
  {
    title: "Avg. price",
    isNumber: true,
    show: ({ average_price, cost }) => (
      <span>
        {average_price === null ? "–" : percent(Math.round(average_price))}
        {cost > 0 && (
          <small class="below faint">
            <Money micro={cost} />
          </small>
        )}
      </span>
    ),
  },
  {
    title: "Value",
    isNumber: true,
    show: ({ quantity, price, market_value }) => (
      <span>
        <Money micro={market_value} />
        {quantity > 0 && <small class="below faint">{price === null ? "no price yet" : `at ${percent(price)}`}</small>}
      </span>
    ),
  },
];

interface PositionProps {
  position: ValuedPosition;
  markets: ReadonlyMap<number, Market>;
}

function PositionName({
  position: { market_id, outcome_id },
  markets,
  isSingleMarket,
}: PositionProps & { isSingleMarket: boolean }) {
  const market = markets.get(market_id);
  const name = outcomeName(market, outcome_id);
  if (isSingleMarket) return <span translate={false}>{name}</span>;
  return (
    <span class="order-name">
      <a href={href(`/markets/${market?.slug ?? market_id}?outcome=${outcome_id}`)}>{marketName(market, market_id)}</a>
      <span translate={false}>{name}</span>
    </span>
  );
}

function SellButton({
  position: { market_id, outcome_id, quantity },
  markets,
  onSell,
}: PositionProps & { onSell: ((outcomeId: number) => void) | undefined }) {
  if (quantity === 0) return <>–</>;
  const market = markets.get(market_id);
  const label = `Sell ${outcomeName(market, outcome_id)}`;
  if (onSell !== undefined) {
    return (
      <button type="button" class="small" aria-label={label} onClick={() => onSell(outcome_id)}>
        Sell
      </button>
    );
  }
  const path = `/markets/${market?.slug ?? market_id}?outcome=${outcome_id}&side=sell`;
  return (
    <a class="button small" aria-label={`${label}: ${marketName(market, market_id)}`} href={href(path)}>
      Sell
    </a>
  );
}

export function PositionsTable({
  caption,
  positions,
  markets,
  isSingleMarket = false,
  onSell,
  empty,
}: {
  caption: string;
  positions: readonly ValuedPosition[];
  markets: ReadonlyMap<number, Market>;
  /** All positions are in one market. */
  isSingleMarket?: boolean;
  /** If absent, the button links to the market's ticket. */
  onSell?: (outcomeId: number) => void;
  empty: string;
}) {
  const columns: Column<ValuedPosition>[] = [
    {
      title: "Outcome",
      show: (position) => <PositionName position={position} markets={markets} isSingleMarket={isSingleMarket} />,
    },
    ...amountColumns,
    ...(isSingleMarket ? [bothProfits] : separateProfits),
    {
      title: "Actions",
      isNumber: true,
      show: (position) => <SellButton position={position} markets={markets} onSell={onSell} />,
    },
  ];
  return (
    <Table caption={caption} columns={columns} rows={positions} keyOf={({ outcome_id }) => outcome_id} empty={empty} />
  );
}
