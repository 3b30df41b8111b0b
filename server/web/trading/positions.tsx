/** A table of positions, with what they cost and what they are worth. */
import { priceNumber, shares } from "../format.ts";
import { marketName, outcomeName } from "../market-cache.ts";
import { href } from "../router.ts";
import type { Market } from "../types.ts";
import { Money, Profit } from "../ui/amounts.tsx";
import { type Column, Table } from "../ui/table.tsx";
import type { ValuedPosition } from "./valuation.ts";

const separateProfits: readonly Column<ValuedPosition>[] = [
  { title: "Profit", isNumber: true, show: ({ unrealized_pnl }) => <Profit micro={unrealized_pnl} /> },
  { title: "Realized", isNumber: true, show: ({ realized_pnl }) => <Profit micro={realized_pnl} /> },
];
/** Both figures in one column, for narrow tables. */
const bothProfits: Column<ValuedPosition> = {
  title: "Profit",
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
    title: "Average, ¢",
    isNumber: true,
    show: ({ average_price }) => (average_price === null ? "–" : priceNumber(Math.round(average_price))),
  },
  { title: "Now, ¢", isNumber: true, show: ({ price }) => priceNumber(price) },
  { title: "Value", isNumber: true, show: ({ market_value }) => <Money micro={market_value} /> },
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
