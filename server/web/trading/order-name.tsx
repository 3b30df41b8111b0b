/** How orders and fills are named: market, side, outcome, and terms. */
import "./rows.css";
import { cents, priceNumber, shares } from "../../util/format.ts";
import { rowTime } from "../dates.ts";
import { marketName, outcomeName } from "../market-cache.ts";
import { href } from "../router.ts";
import { Dot } from "../series.tsx";
import type { Market, Order } from "../types.ts";
import type { Column } from "../ui/table.tsx";
import { Tile } from "../ui/tile.tsx";
import type { Children } from "../ui/use-data.ts";

const SIDES: Readonly<Record<number, string>> = { 1: "Buy", 2: "Sell" };
export const sideName = (side: number): string => SIDES[side] ?? "";

/** A price in cents as the input field shows it. */
export const priceInput = priceNumber;

/** Whose market and outcome a row is about. */
interface Subject {
  market_id: number;
  outcome_id: number;
}

/** Names an order in a sentence of its own: market, side and outcome. */
export function OrderName({
  order,
  market,
}: {
  order: Pick<Order, "market_id" | "outcome_id" | "side">;
  market: Market | undefined;
}) {
  return (
    <span class="order-name">
      <a href={href(`/markets/${market?.slug ?? order.market_id}?outcome=${order.outcome_id}`)}>
        {marketName(market, order.market_id)}
      </a>
      <span translate={false}>
        <span class={order.side === 1 ? "up" : "down"}>{sideName(order.side)}</span>{" "}
        {outcomeName(market, order.outcome_id)}
      </span>
    </span>
  );
}

/** Names a row in one line without its market, for a phone. @param hasOutcome false where the outcome stands above */
type LineOf<T> = (row: T, market: Market | undefined, hasOutcome: boolean) => string;

/**
 * The columns that say what a row is about: market and outcome, or the outcome alone in a table of one market. On a phone
 * the first of them stands for the whole row, with its line.
 */
export function subjectColumns<T extends Subject>(
  markets: ReadonlyMap<number, Market>,
  isSingleMarket: boolean,
  lineOf: LineOf<T>,
): readonly Column<T>[] {
  const marketOf = ({ market_id }: T): Market | undefined => markets.get(market_id);
  if (isSingleMarket) {
    const show = (row: T) => <RowOutcome row={row} market={marketOf(row)} terms={lineOf(row, marketOf(row), false)} />;
    return [{ title: "Outcome", phone: "main", show }];
  }
  const showMarket = (row: T) => (
    <RowMarket row={row} market={marketOf(row)} terms={lineOf(row, marketOf(row), true)} />
  );
  return [
    { title: "Market", phone: "main", show: showMarket },
    { title: "Outcome", show: (row) => <RowOutcome row={row} market={marketOf(row)} /> },
  ];
}

/** The market of a row. @param terms on a phone, below it, instead of the columns */
export function RowMarket({ row, market, terms }: { row: Subject; market: Market | undefined; terms: string }) {
  const { market_id, outcome_id } = row;
  return (
    <span class="tiled">
      {market !== undefined && <Tile slug={market.slug} picture={market.picture} size="tiny" />}
      <a href={href(`/markets/${market?.slug ?? market_id}?outcome=${outcome_id}`)}>{marketName(market, market_id)}</a>
      <small class="terms" translate={false}>
        {terms}
      </small>
    </span>
  );
}

/** The outcome of a row. @param terms on a phone, below it: for tables of one market */
function RowOutcome({ row, market, terms }: { row: Subject; market: Market | undefined; terms?: string }) {
  const outcome = market?.outcomes.find(({ id }) => id === row.outcome_id);
  return (
    <span class="outcome-name" translate={false}>
      {market !== undefined && outcome !== undefined && <Dot market={market} outcome={outcome} />}
      {outcomeName(market, row.outcome_id)}
      {terms !== undefined && <small class="terms">{terms}</small>}
    </span>
  );
}

export function SideBadge({ side }: { side: number }) {
  return <span class={`badge side ${side === 1 ? "buy" : "sell"}`}>{sideName(side)}</span>;
}

/** How much of an order is filled, as a bar and a number. */
export function FilledTrack({ filled, quantity }: Pick<Order, "filled" | "quantity">): Children {
  return (
    <span class="filled">
      <span class="track" aria-hidden="true">
        <i style={{ width: `${(100 * filled) / quantity}%` }} />
      </span>
      {shares(filled)}
    </span>
  );
}

/** "Buy 1,000 Madrid at 34.0¢, 420 filled" */
export function orderLine(order: Order, market: Market | undefined, hasOutcome: boolean): string {
  const what = hasOutcome ? ` ${outcomeName(market, order.outcome_id)}` : "";
  const price = order.price === null ? "at the market" : `at ${cents(order.price)}`;
  const filled = order.filled === 0 ? "" : `, ${shares(order.filled)} filled`;
  return `${sideName(order.side)} ${shares(order.quantity)}${what} ${price}${filled}`;
}

const TIME_IN_FORCE_TEXT: Readonly<Record<string, string>> = {
  gtc: "Good till canceled",
  ioc: "Immediate or cancel",
  fok: "Fill or kill",
};

/** How long an order lasts, and whether it is post-only. */
export function orderTerms({ time_in_force, expires_at, post_only }: Order): string {
  const force =
    time_in_force === "gtd"
      ? `Until ${expires_at === null ? "–" : rowTime(expires_at)}`
      : (TIME_IN_FORCE_TEXT[time_in_force as string] ?? "");
  return post_only ? `${force}, post-only` : force;
}
