/** The arithmetic of chances on the log scale. */

const FULL_PRICE_BPS = 10_000;

/** The prices of outcomes by the logarithms of their chances: basis points, not rounded; they add up to 10,000. */
export function pricesOf(logs: readonly number[]): number[] {
  const weights = logs.map(Math.exp);
  const sum = weights.reduce((total, weight) => total + weight, 0);
  return weights.map((weight) => (FULL_PRICE_BPS * weight) / sum);
}

/** Normally distributed, mean 0 and deviation 1 (Box and Muller). */
export function normal(random: () => number): number {
  return Math.sqrt(-2 * Math.log(1 - random())) * Math.cos(2 * Math.PI * random());
}
