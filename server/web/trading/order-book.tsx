/** One outcome's order book, live: a level puts its price into the ticket; arrow keys go from level to level. */
import { useMemo, useState } from "preact/hooks";
import { fullPercent, percent, shares } from "../format.ts";
import type { Order } from "../types.ts";
import { Checkbox } from "../ui/fields.tsx";
import { combineDepth, type DepthLevel, EMPTY_LADDER, type Ladder } from "./depth.ts";

const SHOWN = 10;

interface Row extends DepthLevel {
  /** All from the best on. */
  readonly sum: number;
  /** The caller's own part. */
  readonly own: number;
}

export function OrderBook({
  name,
  ladder,
  implied,
  ownOrders,
  onPick,
}: {
  /** The outcome's. */
  name: string;
  /** Null until it is there. */
  ladder: Ladder | null;
  implied: Ladder;
  /** Of the outcome. */
  ownOrders: readonly Order[];
  onPick: (price: number) => void;
}) {
  const [withImplied, setWithImplied] = useState(true);
  const { asks, bids } = useMemo(() => {
    const added = withImplied ? implied : EMPTY_LADDER;
    const rows = (side: "asks" | "bids"): Row[] =>
      addUp(combineDepth(ladder?.[side] ?? [], added[side], side).slice(0, SHOWN), ownByPrice(ownOrders, side));
    return { asks: rows("asks"), bids: rows("bids") };
  }, [ladder, implied, withImplied, ownOrders]);
  const most = Math.max(1, asks.at(-1)?.sum ?? 0, bids.at(-1)?.sum ?? 0);
  const [bestAsk, bestBid] = [asks[0]?.price ?? null, bids[0]?.price ?? null];
  return (
    <section class="panel book" aria-labelledby="book-title">
      <h2 id="book-title">Order book: {name}</h2>
      <Checkbox label="Include mint and merge" checked={withImplied} onChange={setWithImplied} />
      {ladder === null ? (
        <p class="loading" role="status">
          Loading the book…
        </p>
      ) : (
        <div class="levels-frame">
          <p class="levels-head" aria-hidden="true">
            <span>Price</span>
            <span>Shares</span>
            <span>Sum</span>
          </p>
          <Levels side="asks" rows={asks} most={most} onPick={onPick} />
          <p class="spread">
            {bestAsk !== null && bestBid !== null ? (
              <>
                Spread <b class="number">{percent(bestAsk - bestBid)}</b>
              </>
            ) : (
              <span class="faint">
                {asks.length + bids.length === 0 ? "Nobody offers anything yet" : "One side only"}
              </span>
            )}
          </p>
          <Levels side="bids" rows={bids} most={most} onPick={onPick} />
          <p class="hint">
            Choose a level to use its price. <span class="mark">You</span> marks your orders
            {withImplied ? (
              <>
                , <span class="mark">+</span> what orders for other outcomes offer here
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
  most,
  onPick,
}: {
  side: "asks" | "bids";
  rows: readonly Row[];
  most: number;
  onPick: (price: number) => void;
}) {
  const isAsks = side === "asks";
  // Places are counted from the spread, so that the one that has the focus stays where it is while prices change.
  const places = rows.map((row, place) => ({ row, place }));
  if (isAsks) places.reverse();
  return (
    <ol
      class={`levels ${side}`}
      aria-label={isAsks ? "Offers to sell, the best last" : "Offers to buy, the best first"}
    >
      {places.map(({ row: { price, quantity, implied, sum, own }, place }) => (
        <li key={place}>
          <button
            type="button"
            class="level"
            tabIndex={place === 0 ? 0 : -1}
            onClick={() => onPick(price)}
            onKeyDown={moveFocus}
          >
            <i class="depth" style={{ width: `${(100 * sum) / most}%` }} />
            <span class={isAsks ? "down" : "up"}>{fullPercent(price)}</span>
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
              <span class="hidden"> shares, sum </span>
            </span>
            <span>{shares(sum)}</span>
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

function addUp(offers: readonly DepthLevel[], own: ReadonlyMap<number, number>): Row[] {
  let sum = 0;
  return offers.map((offer) => {
    sum += offer.quantity;
    return { ...offer, sum, own: own.get(offer.price) ?? 0 };
  });
}
