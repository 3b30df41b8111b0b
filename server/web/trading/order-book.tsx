/**
 * The live order book of an outcome. Draws only the rows in view, however deep the book is. A click on a level copies its
 * price to the ticket; arrow keys move between levels.
 */
import { useLayoutEffect, useMemo, useRef, useState } from "preact/hooks";
import { cents, priceNumber, shares } from "../../util/format.ts";
import { kept } from "../browser.ts";
import { isBinary } from "../market-facts.ts";
import { Dot } from "../series.tsx";
import { streamState } from "../stream.ts";
import type { Market, Order, Outcome } from "../types.ts";
import { Checkbox, Select } from "../ui/fields.tsx";
import { Icon } from "../ui/icon.tsx";
import { SegmentedControl } from "../ui/segmented-control.tsx";
import { TickingPrice } from "../ui/ticking-price.tsx";
import { type BookRow, type BookSide, bookRows, groupPrice, ordersByPrice } from "./book-rows.ts";
import { cancelOrder } from "./cancel-orders.tsx";
import { combineDepth, type Depth, type Ladder } from "./depth.ts";

/** Groups of prices, BPS, with their names. */
const STEPS = [
  ["1", "0.01¢"],
  ["10", "0.1¢"],
  ["50", "0.5¢"],
  ["100", "1¢"],
  ["500", "5¢"],
] as const;
type Step = (typeof STEPS)[number][0];
const STEP_KEY = "book-step";

function keptStep(): Step {
  const text = kept.get(STEP_KEY);
  return STEPS.find(([step]) => step === text)?.[0] ?? "1";
}

/** Rows on each side of the middle, where the book has as many. */
const SHOWN = 8;
/** Rows drawn beyond those in view, so that scrolling shows no gap. */
const SPARE = 6;
/** At most so many orders outside the view are pinned to each edge. */
const MAX_PINNED = 3;

interface BookProps {
  market: Market;
  outcome: Outcome;
  /** Null until the snapshot has arrived. */
  ladder: Ladder | null;
  /** With what mint and merge imply; null until all books are known. */
  depth: Depth | null;
  /** The user's open orders on the outcome. */
  ownOrders: readonly Order[];
  onOutcome: (id: number) => void;
  onPick: (price: number) => void;
}

export function OrderBook(props: BookProps) {
  const { market, outcome, ladder, onOutcome } = props;
  const [withImplied, setWithImplied] = useState(true);
  const [step, setStep] = useState<Step>(keptStep);
  const isTwo = isBinary(market);
  return (
    <section class={streamState.value === "stale" ? "panel book is-stale" : "panel book"} aria-labelledby="book-title">
      <div class="panel-head">
        <h2 id="book-title">
          {isTwo ? "Book" : <Dot market={market} outcome={outcome} />}
          <span class={isTwo ? "hidden" : ""} translate={false}>
            {isTwo && ": "}
            {outcome.name}
          </span>
        </h2>
        {isTwo && (
          <SegmentedControl
            label="Outcome of the book"
            value={String(outcome.id)}
            options={market.outcomes.map(({ id, name }) => [String(id), name] as const)}
            onChange={(id) => onOutcome(Number(id))}
          />
        )}
        <Select
          label="Group prices by"
          isLabelHidden
          value={step}
          options={STEPS}
          onChange={(chosen) => {
            setStep(chosen);
            kept.set(STEP_KEY, chosen);
          }}
        />
      </div>
      {ladder === null ? (
        <p class="loading" role="status">
          Loading order book…
        </p>
      ) : (
        <Levels key={outcome.id} {...props} ladder={ladder} withImplied={withImplied} step={Number(step)} />
      )}
      <Checkbox label="Include mint and merge" checked={withImplied} onChange={setWithImplied} />
    </section>
  );
}

interface LevelsProps extends BookProps {
  ladder: Ladder;
  withImplied: boolean;
  step: number;
}

function Levels({ outcome, ladder, depth, ownOrders, withImplied, step, onPick }: LevelsProps) {
  const own = useMemo(
    () => ({ asks: ordersByPrice(ownOrders, "asks"), bids: ordersByPrice(ownOrders, "bids") }),
    [ownOrders],
  );
  const { asks, bids, best } = useMemo(() => {
    const sideOf = (side: BookSide) => {
      const levels = (withImplied ? depth?.[side] : undefined) ?? combineDepth(ladder[side], [], side);
      const shareCounts = new Map(
        [...own[side]].map(([price, orders]) => [price, orders.reduce((sum, { remaining }) => sum + remaining, 0)]),
      );
      return { rows: bookRows(levels, step, side, shareCounts), best: levels[0]?.price ?? null };
    };
    const [a, b] = [sideOf("asks"), sideOf("bids")];
    return { asks: a.rows, bids: b.rows, best: { ask: a.best, bid: b.best } };
  }, [ladder, depth, withImplied, own, step]);
  const view = useView(asks.length, bids.length);
  const inView = { asks: asks.slice(view.asks.from, view.asks.last), bids: bids.slice(view.bids.from, view.bids.last) };
  const maxTotal = Math.max(1, inView.asks.at(-1)?.total ?? 0, inView.bids.at(-1)?.total ?? 0);
  const hiddenOwn = (side: BookSide): [number, readonly Order[]][] => {
    const prices = new Set(inView[side].map(({ price }) => price));
    return [...own[side]].filter(([price]) => !prices.has(groupPrice(price, step, side)));
  };
  const all = { asks, bids };
  const rowsOf = (side: BookSide) => {
    const { from, to } = view[side];
    return (
      <Rows
        side={side}
        rows={all[side].slice(from, to)}
        from={from}
        before={all[side].length - to}
        {...{ maxTotal, onPick }}
      />
    );
  };
  return (
    <div class="levels-frame">
      <p class="levels-head" aria-hidden="true">
        <span>Price, ¢</span>
        <span>Shares</span>
        <span>Sum</span>
      </p>
      <Pinned side="asks" orders={hiddenOwn("asks")} />
      <div class="levels-scroll" ref={view.frame} onScroll={view.onScroll}>
        {rowsOf("asks")}
        <Middle outcome={outcome} best={best} isEmpty={asks.length + bids.length === 0} onCenter={view.center} />
        {rowsOf("bids")}
      </div>
      <Pinned side="bids" orders={hiddenOwn("bids")} />
    </div>
  );
}

interface Range {
  /** The best row that is drawn, and the first one that isn't; indexes from the best. */
  readonly from: number;
  readonly to: number;
  /** The first row beyond those in view. */
  readonly last: number;
}

/** Which rows are in view. Follows the middle until the user scrolls. */
function useView(askCount: number, bidCount: number) {
  const frame = useRef<HTMLDivElement>(null);
  const [scroll, setScroll] = useState({ top: 0, height: 0, row: 1, middle: 0 });
  const isFollowing = useRef(true);
  const own = useRef(0);
  const above = Math.max(askCount, SHOWN);
  const measure = (): void => {
    const element = frame.current;
    if (element === null) return;
    const middle = element.querySelector<HTMLElement>(".spread")?.offsetHeight ?? 0;
    const row = element.querySelector<HTMLElement>(".level")?.offsetHeight ?? 0;
    const next = { top: element.scrollTop, height: element.clientHeight, row: row === 0 ? 24 : row, middle };
    setScroll((before) =>
      before.top === next.top && before.height === next.height && before.row === next.row ? before : next,
    );
  };
  const center = (): void => {
    const element = frame.current;
    const middle = element?.querySelector<HTMLElement>(".spread") ?? null;
    if (element === null || middle === null) return;
    isFollowing.current = true;
    const row = element.querySelector<HTMLElement>(".level")?.offsetHeight ?? 24;
    element.scrollTop = Math.round(above * row + middle.offsetHeight / 2 - element.clientHeight / 2);
    own.current = element.scrollTop;
    measure();
  };
  useLayoutEffect(() => {
    if (isFollowing.current) center();
    else measure();
  }, [askCount, bidCount]);
  const onScroll = (): void => {
    if (frame.current !== null && Math.abs(frame.current.scrollTop - own.current) > 2) isFollowing.current = false;
    measure();
  };
  const { top, height, row, middle } = scroll;
  // Asks are drawn from the worst to the best, down to the middle.
  const toMiddle = above * row;
  const range = (count: number, near: number, far: number): Range => ({
    from: Math.max(0, Math.min(count, Math.floor(near / row) - SPARE)),
    to: Math.max(0, Math.min(count, Math.ceil(far / row) + SPARE)),
    last: Math.max(0, Math.min(count, Math.floor(far / row + 0.01))),
  });
  return {
    frame,
    onScroll,
    center,
    asks: range(askCount, toMiddle - (top + height), toMiddle - top),
    bids: range(bidCount, top - toMiddle - middle, top + height - toMiddle - middle),
  };
}

function Rows({
  side,
  rows,
  from,
  before,
  maxTotal,
  onPick,
}: {
  side: BookSide;
  rows: readonly BookRow[];
  /** Rows nearer to the middle that aren't drawn, and rows farther away. */
  from: number;
  before: number;
  maxTotal: number;
  onPick: (price: number) => void;
}) {
  const isAsks = side === "asks";
  // Keyed by distance from the middle, so that the focus stays in place while prices change.
  const positions = rows.map((row, i) => ({ row, position: from + i }));
  if (isAsks) positions.reverse();
  const space = (count: number) => ({ height: `calc(${count} * var(--row-book))` });
  return (
    <div class={`levels ${side}`}>
      {isAsks && <div style={space(before)} />}
      {!isAsks && <div style={space(from)} />}
      <ol aria-label={isAsks ? "Asks, best last" : "Bids, best first"}>
        {positions.map(({ row, position }) => (
          <li key={position}>
            <Level side={side} row={row} isFirst={position === from} {...{ maxTotal, onPick }} />
          </li>
        ))}
      </ol>
      {isAsks && <div style={space(from)} />}
      {!isAsks && <div style={space(before)} />}
    </div>
  );
}

function Level({
  side,
  row: { price, quantity, implied, total, own },
  isFirst,
  maxTotal,
  onPick,
}: {
  side: BookSide;
  row: BookRow;
  isFirst: boolean;
  maxTotal: number;
  onPick: (price: number) => void;
}) {
  return (
    <button
      type="button"
      class="level"
      translate={false}
      tabIndex={isFirst ? 0 : -1}
      title={implied > 0 ? `${shares(implied)} by mint or merge` : undefined}
      onClick={() => onPick(price)}
      onKeyDown={moveFocus}
    >
      <i class="depth" style={{ width: `${Math.min(100, (100 * total) / maxTotal)}%` }} />
      <span class={side === "asks" ? "down" : "up"}>
        {priceNumber(price)}
        {own > 0 && <i class="mine" />}
      </span>
      <span>
        {own > 0 && <span class="hidden">{shares(own)} of yours in </span>}
        {shares(quantity)}
        <span class="hidden"> shares, total </span>
      </span>
      <span>{shares(total)}</span>
    </button>
  );
}

/** The last price, and the spread. A click brings it back to the middle. */
function Middle({
  outcome,
  best: { ask, bid },
  isEmpty,
  onCenter,
}: {
  outcome: Outcome;
  best: { ask: number | null; bid: number | null };
  isEmpty: boolean;
  onCenter: () => void;
}) {
  const direction = useDirection(outcome.last_price);
  return (
    <div class="spread">
      <button type="button" class="link" title="Center the book" onClick={onCenter} translate={false}>
        <span class="hidden">Last price </span>
        <TickingPrice bps={outcome.last_price} text={priceNumber(outcome.last_price)} />
        {direction !== 0 && (
          <span class={direction > 0 ? "up" : "down"}>
            <span class="hidden">{direction > 0 ? "up" : "down"}</span>
            <Icon name={direction > 0 ? "up" : "down"} size={9} />
          </span>
        )}
      </button>
      <span translate={false}>
        {ask !== null && bid !== null
          ? `Spread ${priceNumber(ask - bid)}`
          : isEmpty
            ? "The book is empty"
            : "One-sided book"}
      </span>
    </div>
  );
}

/** 1 if the last change of the price was up, −1 if it was down, 0 without a change. */
function useDirection(price: number | null): number {
  const state = useRef({ price, direction: 0 });
  const { price: before } = state.current;
  if (price !== before) {
    state.current = { price, direction: price !== null && before !== null ? Math.sign(price - before) : 0 };
  }
  return state.current.direction;
}

/** The user's orders whose levels aren't in view, at the edge beyond which they are. */
function Pinned({ side, orders }: { side: BookSide; orders: readonly (readonly [number, readonly Order[]])[] }) {
  if (orders.length === 0) return null;
  const isAsks = side === "asks";
  const more = orders.length - MAX_PINNED;
  const nearest = orders.slice(0, MAX_PINNED);
  if (isAsks) nearest.reverse();
  return (
    <ul class={`pinned ${side}`} aria-label={isAsks ? "Your offers outside the view" : "Your bids outside the view"}>
      {nearest.map(([price, each]) => (
        <li key={price} translate={false}>
          <span class={isAsks ? "down" : "up"}>
            {priceNumber(price)}
            <i class="mine" />
          </span>
          <span>{shares(each.reduce((sum, { remaining }) => sum + remaining, 0))}</span>
          <span>
            Yours
            <button
              type="button"
              class="quiet"
              aria-label={`Cancel your ${isAsks ? "offer" : "bid"} at ${cents(price)}`}
              onClick={() => {
                for (const order of each) void cancelOrder(order);
              }}
            >
              <Icon name="close" size={14} />
            </button>
          </span>
        </li>
      ))}
      {more > 0 && <li class="faint">and {more} more, in your orders</li>}
    </ul>
  );
}

function moveFocus(event: KeyboardEvent): void {
  const step = event.key === "ArrowDown" ? 1 : event.key === "ArrowUp" ? -1 : 0;
  if (step === 0) return;
  event.preventDefault();
  const levels = [...document.querySelectorAll<HTMLElement>(".book .level")];
  levels[levels.indexOf(event.currentTarget as HTMLElement) + step]?.focus();
}
