/** The geometry of a small chart of chances: its scale, and points in percent of its size. */
const BPS_PER_PERCENT = 100;

/** ms and BPS, the oldest first. */
export type Point = readonly [at: number, price: number];

/** Between two prices of the API's sparkline. */
const STEP_MS = 4 * 3_600_000;

/** An outcome's week: the API's sparkline, with the present chance in place of its last price. @param now ms */
export function weekOf(sparkline: readonly number[], chance: number, now: number): Point[] {
  const last = sparkline.length - 1;
  return sparkline.map((price, i): Point => (i === last ? [now, chance] : [now - (last - i) * STEP_MS, price]));
}

export interface Scale {
  /** Percent of the axis. */
  readonly low: number;
  readonly high: number;
  readonly ticks: readonly number[];
}

/** The axis begins at 0 % where the prices come near it. */
const NEAR_ZERO = 25;
const STEPS = [5, 10, 20, 25] as const;
const MAX_TICKS = 5;

export function scaleOf(lines: readonly (readonly Point[])[]): Scale {
  const prices = lines.flat().map(([, price]) => price / BPS_PER_PERCENT);
  const [least, most] = [Math.min(...prices), Math.max(...prices)];
  const step =
    STEPS.find((each) => (ceil(most, each) - (least < NEAR_ZERO ? 0 : floor(least, each))) / each < MAX_TICKS) ?? 25;
  const low = least < NEAR_ZERO ? 0 : floor(least, step);
  const high = Math.max(ceil(most, step), low + step);
  return { low, high, ticks: Array.from({ length: (high - low) / step + 1 }, (_, i) => low + i * step) };
}

const floor = (value: number, step: number): number => Math.floor(value / step) * step;
const ceil = (value: number, step: number): number => Math.ceil(value / step) * step;

/** The height of a chance above the axis, in percent of the chart's height. */
export const heightOf = ({ low, high }: Scale, percent: number): number => (100 * (percent - low)) / (high - low);

/** The path of a line in a view box of 100 × 100. */
export function pathOf(line: readonly Point[], scale: Scale, from: number, to: number): string {
  const points = line.map(([at, price]) => {
    const x = (100 * (at - from)) / (to - from);
    return `${x.toFixed(2)} ${(100 - heightOf(scale, price / BPS_PER_PERCENT)).toFixed(2)}`;
  });
  return `M${points.join("L")}`;
}

/** Moves labels apart that would overlap: by index, the height of each. @param gap least distance */
export function spread(heights: readonly number[], gap: number): number[] {
  const order = heights.map((_, i) => i).sort((a, b) => (heights[a] ?? 0) - (heights[b] ?? 0));
  const moved = [...heights];
  let least = Number.NEGATIVE_INFINITY;
  for (const i of order) {
    moved[i] = Math.max(moved[i] ?? 0, least);
    least = (moved[i] ?? 0) + gap;
  }
  return moved;
}
