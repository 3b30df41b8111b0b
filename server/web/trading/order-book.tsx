/** The live order book of an outcome. A click on a level copies its price to the ticket; arrow keys move between levels. */
import { useMemo, useState } from "preact/hooks";
import { priceNumber, shares } from "../format.ts";
import type { Order } from "../types.ts";
import { Checkbox } from "../ui/fields.tsx";
import { combineDepth, type DepthLevel, EMPTY_LADDER, type Ladder } from "./depth.ts";

const SHOWN = 10;

interface Row extends DepthLevel {
  /** Cumulative quantity from the best level. */
  readonly total: number;
  /** Quantity of the user's own orders. */
  readonly own: number;
}

export function OrderBook({
  name,
  ladder,
  implied,
  ownOrders,
  onPick,
}: {
  /** Name of the outcome. */
  name: string;
  /** Null until the snapshot has arrived. */
  ladder: Ladder | null;
  implied: Ladder;
  /** The user's open orders on the outcome. */
  ownOrders: readonly Order[];
  onPick: (price: number) => void;
}) {
  const [withImplied, setWithImplied] = useState(true);
  const { asks, bids } = useMemo(() => {
    const added = withImplied ? implied : EMPTY_LADDER;
    const rows = (side: "asks" | "bids"): Row[] =>
      withTotals(combineDepth(ladder?.[side] ?? [], added[side], side).slice(0, SHOWN), ownByPrice(ownOrders, side));
    return { asks: rows("asks"), bids: rows("bids") };
  }, [ladder, implied, withImplied, ownOrders]);
  const maxTotal = Math.max(1, asks.at(-1)?.total ?? 0, bids.at(-1)?.total ?? 0);
  const [bestAsk, bestBid] = [asks[0]?.price ?? null, bids[0]?.price ?? null];
  return (
    <section class="panel book" aria-labelledby="book-title">
      <h2 id="book-title">
        Order book: <span translate={false}>{name}</span>
      </h2>
      <Checkbox label="Include mint and merge" checked={withImplied} onChange={setWithImplied} />
      {ladder === null ? (
        <p class="loading" role="status">
          Loading order book…
        </p>
      ) : (
        <div class="levels-frame">
          <p class="levels-head" aria-hidden="true">
            <span>Price, ¢</span>
            <span>Shares</span>
            <span>Sum</span>
          </p>
          <Levels side="asks" rows={asks} maxTotal={maxTotal} onPick={onPick} />
          <p class="spread">
            {bestAsk !== null && bestBid !== null ? (
              <>
                Spread{" "}
                <b class="number" translate={false}>
                  {priceNumber(bestAsk - bestBid)}
                </b>
              </>
            ) : (
              <span class="faint">{asks.length + bids.length === 0 ? "The book is empty" : "One-sided book"}</span>
            )}
          </p>
          <Levels side="bids" rows={bids} maxTotal={maxTotal} onPick={onPick} />
          <p class="hint">
            Select a level to use its price. <span class="mark">You</span> marks your orders
            {withImplied ? (
              <>
                , <span class="mark">+</span> depth implied by orders on other outcomes
              </>
            ) : null}
            .
          </p>
        </div>
      )}
    </section>
  );
}

function Levels({
  side,
  rows,
  maxTotal,
  onPick,
}: {
  side: "asks" | "bids";
  rows: readonly Row[];
  maxTotal: number;
  onPick: (price: number) => void;
}) {
  const isAsks = side === "asks";
  // Keyed by distance from the spread, so that the focus stays in place while prices change.
  const positions = rows.map((row, position) => ({ row, position }));
  if (isAsks) positions.reverse();
  return (
    <ol class={`levels ${side}`} aria-label={isAsks ? "Asks, best last" : "Bids, best first"}>
      {positions.map(({ row: { price, quantity, implied, total, own }, position }) => (
        <li key={position}>
          <button
            type="button"
            class="level"
            translate={false}
            tabIndex={position === 0 ? 0 : -1}
            onClick={() => onPick(price)}
            onKeyDown={moveFocus}
          >
            <i class="depth" style={{ width: `${(100 * total) / maxTotal}%` }} />
            <span class={isAsks ? "down" : "up"}>{priceNumber(price)}</span>
            <span>
              {own > 0 && (
                <span class="mark">
                  You {shares(own)}
                  <span class="hidden"> of </span>
                </span>
              )}
              {implied > 0 && (
                <span class="mark">
                  +<span class="hidden"> with mint or merge, </span>
                </span>
              )}
              {shares(quantity)}
              <span class="hidden"> shares, total </span>
            </span>
            <span>{shares(total)}</span>
          </button>
        </li>
      ))}
    </ol>
  );
}

function moveFocus(event: KeyboardEvent): void {
  const step = event.key === "ArrowDown" ? 1 : event.key === "ArrowUp" ? -1 : 0;
  if (step === 0) return;
  event.preventDefault();
  const levels = [...document.querySelectorAll<HTMLElement>(".book .level")];
  levels[levels.indexOf(event.currentTarget as HTMLElement) + step]?.focus();
}

function ownByPrice(orders: readonly Order[], side: "asks" | "bids"): Map<number, number> {
  const own = new Map<number, number>();
  for (const { side: each, price, remaining } of orders) {
    if (price !== null && (each === 2) === (side === "asks")) own.set(price, (own.get(price) ?? 0) + remaining);
  }
  return own;
}

function withTotals(offers: readonly DepthLevel[], own: ReadonlyMap<number, number>): Row[] {
  let total = 0;
  return offers.map((offer) => {
    total += offer.quantity;
    return { ...offer, total, own: own.get(offer.price) ?? 0 };
  });
}
