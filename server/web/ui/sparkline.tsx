/** A small line of prices, without a scale: the shape of a week. */
import { useId } from "preact/hooks";

const WIDTH = 128;
const HEIGHT = 44;
const PADDING = 4;
/** A quiet week is a nearly straight line: at least this many BPS fill the height. */
const MIN_SPAN_BPS = 400;

/** @param prices BPS, at equal steps of time, the last one now */
export function Sparkline({ prices }: { prices: readonly number[] }) {
  const gradient = useId();
  if (prices.length < 2) return null;
  const [low, high] = [Math.min(...prices), Math.max(...prices)];
  const span = Math.max(high - low, MIN_SPAN_BPS);
  const floor = (low + high - span) / 2;
  const points = prices.map((price, i) => {
    const x = (i * (WIDTH - PADDING)) / (prices.length - 1);
    const y = HEIGHT - PADDING - ((price - floor) / span) * (HEIGHT - 2 * PADDING);
    return [x.toFixed(1), y.toFixed(1)] as const;
  });
  const line = `M${points.map((point) => point.join(" ")).join("L")}`;
  const [endX, endY] = points.at(-1) ?? ["0", "0"];
  return (
    <svg class="sparkline" width={WIDTH} height={HEIGHT} viewBox={`0 0 ${WIDTH} ${HEIGHT}`} aria-hidden="true">
      <linearGradient id={gradient} x1="0" y1="0" x2="0" y2="1">
        <stop offset="0" stop-opacity=".18" />
        <stop offset="1" stop-opacity="0" />
      </linearGradient>
      <path d={`${line}L${endX} ${HEIGHT}L0 ${HEIGHT}Z`} fill={`url(#${gradient})`} stroke="none" />
      <path d={line} />
      <circle cx={endX} cy={endY} r="2.5" />
    </svg>
  );
}
