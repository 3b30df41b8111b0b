/** A table of positions, with what they cost and what they are worth. */
import { cents, money, priceNumber, shares } from "../../util/format.ts";
import { marketName, outcomeName } from "../market-cache.ts";
import { required } from "../required.ts";
import { href } from "../router.ts";
import type { Market } from "../types.ts";
import { Money, Profit } from "../ui/amounts.tsx";
import { type Column, Table } from "../ui/table.tsx";
import { subjectColumns } from "./order-name.tsx";
import { sumOf, type ValuedPosition } from "./valuation.ts";

/** Both figures in one column, for narrow tables. */
const bothProfits: Column<ValuedPosition> = {
  title: "Profit",
  isNumber: true,
  phone: "lower",
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
];

/** "5,000 No at 61.0¢, now 64.25¢" */
function positionLine(position: ValuedPosition, market: Market | undefined, hasOutcome: boolean): string {
  const { outcome_id, quantity, average_price, price } = position;
  const what = hasOutcome ? ` ${outcomeName(market, outcome_id)}` : " shares";
  const average = average_price === null ? "–" : cents(Math.round(average_price));
  return `${shares(quantity)}${what} at ${average}, now ${cents(price)}`;
}

interface PositionProps {
  position: ValuedPosition;
  markets: ReadonlyMap<number, Market>;
}

/** A profit as a bar to the right of a line, a loss to its left. @param most the largest of all, micro-USDC */
function ProfitBar({ micro, most }: { micro: number; most: number }) {
  const width = most === 0 ? 0 : (BAR_HALF * Math.abs(micro)) / most;
  return (
    <svg class="profit-bar" width={2 * BAR_HALF + 4} height="8" aria-hidden="true">
      <path d={`M${BAR_HALF + 2} 0v8`} />
      <rect
        x={micro >= 0 ? BAR_HALF + 2 : BAR_HALF + 2 - width}
        y="1.5"
        width={width}
        height="5"
        rx="1"
        data-sign={Math.sign(micro)}
      />
    </svg>
  );
}
const BAR_HALF = 30;

/** The profit on shares held and on those sold, beside each other, with totals. */
function profitColumns(positions: readonly ValuedPosition[]): readonly Column<ValuedPosition>[] {
  const most = Math.max(...positions.map(({ unrealized_pnl }) => Math.abs(unrealized_pnl ?? 0)));
  const sum = (of: (position: ValuedPosition) => number | null) => <Profit micro={sumOf(positions.map(of))} />;
  return [
    {
      title: "Profit",
      isNumber: true,
      phone: "lower",
      show: ({ unrealized_pnl }) => (
        <span class="profit">
          {unrealized_pnl !== null && <ProfitBar micro={unrealized_pnl} most={most} />}
          <Profit micro={unrealized_pnl} />
        </span>
      ),
      total: sum(({ unrealized_pnl }) => unrealized_pnl),
    },
    {
      title: "Realized",
      isNumber: true,
      show: ({ realized_pnl }) => (realized_pnl === 0 ? "–" : <Profit micro={realized_pnl} />),
      total: sum(({ realized_pnl }) => realized_pnl),
    },
  ];
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
  const count = `${positions.length} ${positions.length === 1 ? "position" : "positions"}`;
  const [subject, ...others] = subjectColumns(markets, isSingleMarket, positionLine);
  const total = isSingleMarket ? {} : { total: `${count}, cost ${money(sumOf(positions.map(({ cost }) => cost)))}` };
  const columns: Column<ValuedPosition>[] = [
    { ...required(subject, "a first column"), ...total },
    ...others,
    ...amountColumns,
    {
      title: "Value",
      isNumber: true,
      phone: "upper",
      show: ({ market_value }) => <Money micro={market_value} />,
      ...(isSingleMarket ? {} : { total: money(sumOf(positions.map(({ market_value }) => market_value))) }),
    },
    ...(isSingleMarket ? [bothProfits] : profitColumns(positions)),
    {
      title: "Actions",
      isNumber: true,
      // Elsewhere the row leads to the market.
      ...(isSingleMarket ? { phone: "end" as const } : {}),
      show: (position) => <SellButton position={position} markets={markets} onSell={onSell} />,
    },
  ];
  return (
    <Table caption={caption} columns={columns} rows={positions} keyOf={({ outcome_id }) => outcome_id} empty={empty} />
  );
}
