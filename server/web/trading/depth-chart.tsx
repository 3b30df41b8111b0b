/** The depth of a book: how many shares are bid and offered up to each price, in two stepped areas around the middle. */
import { compact, priceNumber, shares } from "../../util/format.ts";
import type { DepthLevel } from "./depth.ts";

interface DepthProps {
  /** Best first. */
  readonly bids: readonly DepthLevel[];
  readonly asks: readonly DepthLevel[];
}

/** Units of the drawing. */
const WIDTH = 640;
const HEIGHT = 300;
const RIGHT = 48;
const BOTTOM = 24;
const TOP = 24;
/** How far around the middle the chart reaches at least, BPS. */
const MIN_REACH = 500;
/** Levels farther from the middle than this many times the nearest ones' distance aren't drawn. */
const NEAR_BPS = 500;

export function DepthChart({ bids, asks }: DepthProps) {
  const [bestBid, bestAsk] = [bids[0]?.price, asks[0]?.price];
  const middle =
    bestBid !== undefined && bestAsk !== undefined ? (bestBid + bestAsk) / 2 : (bestBid ?? bestAsk ?? null);
  if (middle === null) return <p class="empty">The book is empty.</p>;
  const far = [...bids, ...asks].map(({ price }) => Math.abs(price - middle));
  const reach = Math.min(10_000, Math.max(MIN_REACH, ...far.filter((each) => each <= 3 * NEAR_BPS)));
  const [from, to] = [Math.max(0, middle - reach), Math.min(10_000, middle + reach)];
  const shown = (levels: readonly DepthLevel[]) => levels.filter(({ price }) => price >= from && price <= to);
  const sums = { bids: summed(shown(bids)), asks: summed(shown(asks)) };
  const most = Math.max(1, sums.bids.at(-1)?.[1] ?? 0, sums.asks.at(-1)?.[1] ?? 0);
  const ticks = niceTicks(most);
  const top = ticks.at(-1) ?? most;
  const plot = { w: WIDTH - RIGHT, h: HEIGHT - BOTTOM - TOP };
  const x = (price: number): number => ((price - from) / (to - from)) * plot.w;
  const y = (sum: number): number => TOP + plot.h - (sum / top) * plot.h;
  const within = (levels: readonly DepthLevel[]): number =>
    levels.reduce((sum, { price, quantity }) => sum + (Math.abs(price - middle) <= NEAR_BPS ? quantity : 0), 0);
  const text = `${shares(within(bids))} bid and ${shares(within(asks))} offered within 5¢ of the middle, ${priceNumber(Math.round(middle))}¢`;
  return (
    <figure class="depth-chart">
      <svg viewBox={`0 0 ${WIDTH} ${HEIGHT}`} role="img" aria-label={`Depth: ${text}`}>
        {ticks.map((tick) => (
          <g key={tick}>
            <path class="grid" d={`M0 ${y(tick)}H${plot.w}`} />
            <text x={WIDTH - 4} y={y(tick) + 4} text-anchor="end">
              {compact(tick)}
            </text>
          </g>
        ))}
        {priceTicks(from, to).map((price) => (
          <text key={price} x={x(price)} y={HEIGHT - 6} text-anchor="middle">
            {priceNumber(price)}¢
          </text>
        ))}
        <Side name="bids" points={sums.bids} edge={from} {...{ x, y }} />
        <Side name="asks" points={sums.asks} edge={to} {...{ x, y }} />
        <path class="middle" d={`M${x(middle)} ${TOP}V${y(0)}`} />
        <text class="strong" x={x(middle)} y={16} text-anchor="middle">
          Mid {priceNumber(Math.round(middle))}¢
        </text>
      </svg>
      <figcaption translate={false}>{text}.</figcaption>
    </figure>
  );
}

type Point = readonly [price: number, sum: number];

function summed(levels: readonly DepthLevel[]): Point[] {
  let sum = 0;
  return levels.map(({ price, quantity }) => {
    sum += quantity;
    return [price, sum] as const;
  });
}

function Side({
  name,
  points,
  edge,
  x,
  y,
}: {
  name: "bids" | "asks";
  points: readonly Point[];
  /** The price at which the area ends. */
  edge: number;
  x: (price: number) => number;
  y: (sum: number) => number;
}) {
  const [first] = points;
  if (first === undefined) return null;
  let line = `M${x(first[0])} ${y(0)}`;
  let last = 0;
  for (const [price, sum] of points) {
    line += `L${x(price)} ${y(last)}L${x(price)} ${y(sum)}`;
    last = sum;
  }
  line += `L${x(edge)} ${y(last)}`;
  return (
    <g class={name}>
      <path class="area" d={`${line}L${x(edge)} ${y(0)}Z`} />
      <path class="edge" d={line} />
    </g>
  );
}

/** Three or four round numbers up to at least `most`. */
function niceTicks(most: number): number[] {
  const raw = most / 3;
  const power = 10 ** Math.floor(Math.log10(raw));
  const step = Math.max(1, [1, 2, 2.5, 5, 10].map((each) => each * power).find((each) => each >= raw) ?? 10 * power);
  return Array.from({ length: Math.ceil(most / step) }, (_, i) => (i + 1) * step);
}

/** Round prices inside the span, BPS. */
function priceTicks(from: number, to: number): number[] {
  const step = [50, 100, 200, 500, 1_000, 2_000].find((each) => (to - from) / each <= 7) ?? 2_000;
  const ticks: number[] = [];
  for (let price = Math.ceil((from + step / 4) / step) * step; price < to - step / 4; price += step) ticks.push(price);
  return ticks;
}
