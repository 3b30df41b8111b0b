/** The geometry of the chart of a portfolio's value: its scale, and points in percent of its size. */

/** ms and micro-USDC, the oldest first. */
export type Point = readonly [at: number, amount: number];

export interface Scale {
  readonly low: number;
  readonly high: number;
  readonly ticks: readonly number[];
}

const MAX_TICKS = 5;
/** 1 USDC, and a part of the amount itself: a line that hardly moves is not blown up further. */
const LEAST_STEP = 1_000_000;
const LEAST_PART = 1 / 20_000;
const ROUND = [1, 2, 2.5, 5, 10] as const;

/** An axis of round amounts around the line. */
export function scaleOf(line: readonly Point[]): Scale {
  const amounts = line.map(([, amount]) => amount);
  const [least, most] = [Math.min(...amounts), Math.max(...amounts)];
  const step = stepFor(most - least, Math.max(Math.abs(least), Math.abs(most)));
  const low = Math.floor(least / step) * step;
  // Adding 0 turns -0 into 0.
  const high = Math.max(Math.ceil(most / step) * step, low + step) + 0;
  return { low, high, ticks: Array.from({ length: Math.round((high - low) / step) + 1 }, (_, i) => low + i * step) };
}

function stepFor(span: number, largest: number): number {
  const rough = Math.max(span / (MAX_TICKS - 1), LEAST_STEP, largest * LEAST_PART);
  const power = 10 ** Math.floor(Math.log10(rough));
  return power * (ROUND.find((each) => each * power >= rough) ?? 10);
}

/** The height of an amount above the axis, in percent of the chart's height. */
export const heightOf = ({ low, high }: Scale, amount: number): number => (100 * (amount - low)) / (high - low);

/** The path of the line in a view box of 100 × 100. */
export function pathOf(line: readonly Point[], scale: Scale): string {
  const from = line[0]?.[0] ?? 0;
  const span = Math.max((line.at(-1)?.[0] ?? 0) - from, 1);
  const points = line.map(
    ([at, amount]) => `${((100 * (at - from)) / span).toFixed(2)} ${(100 - heightOf(scale, amount)).toFixed(2)}`,
  );
  return `M${points.join("L")}`;
}

/** The index of the point nearest to a place on the axis of time. @param share 0 at the left, 1 at the right */
export function nearest(line: readonly Point[], share: number): number {
  const from = line[0]?.[0] ?? 0;
  const wanted = from + share * ((line.at(-1)?.[0] ?? from) - from);
  let best = 0;
  line.forEach(([at], i) => {
    if (Math.abs(at - wanted) < Math.abs((line[best]?.[0] ?? 0) - wanted)) best = i;
  });
  return best;
}

const MICRO = 1_000_000;
const MAX_DIGITS = 6;

/** "12.50K", "840": an amount on the axis, with as many digits as its ticks need to differ. */
export function tickText(amount: number, { low, high, ticks }: Scale): string {
  const most = Math.max(Math.abs(low), Math.abs(high)) / MICRO;
  const [unit, letter] = most < 1e4 ? [1, ""] : most < 1e6 ? [1e3, "K"] : most < 1e9 ? [1e6, "M"] : [1e9, "B"];
  const step = ((ticks[1] ?? high) - (ticks[0] ?? low)) / MICRO / unit;
  let digits = letter === "" ? 0 : 1;
  while (digits < MAX_DIGITS && Math.abs(step * 10 ** digits - Math.round(step * 10 ** digits)) > 1e-6) digits++;
  const size = (Math.abs(amount) / MICRO / unit).toFixed(digits);
  const whole = size.replaceAll(/\B(?=(\d{3})+$)/g, ",");
  return `${amount < 0 ? "−" : ""}${letter === "" && digits === 0 ? whole : size}${letter}`;
}
