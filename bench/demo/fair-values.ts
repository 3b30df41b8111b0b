/**
 * What each outcome is thought to be worth: chances that wander and are drawn back to where they began, one random walk
 * an outcome on the log scale, so that a market's chances always come to 1. Reads no clock.
 */

/** Of the walk: how far it goes in a second, and how long it takes to be drawn back. */
const STEP_PER_ROOT_SECOND = 0.012;
const RETURN_SECONDS = 1_200;
const FULL_PRICE_BPS = 10_000;
/** Chances of 0 have no logarithm. */
const LEAST_CHANCE = 0.002;

export class FairValues {
  private readonly homes: readonly number[];
  private readonly logs: number[];
  private readonly random: () => number;

  /** @param chances that it is drawn back to, any sum @param from where it begins */
  constructor(chances: readonly number[], from: readonly number[], random: () => number) {
    this.homes = logsOf(chances);
    this.logs = logsOf(from);
    this.random = random;
  }

  advance(seconds: number): void {
    const pull = 1 - Math.exp(-seconds / RETURN_SECONDS);
    const spread = STEP_PER_ROOT_SECOND * Math.sqrt(seconds);
    this.logs.forEach((log, i) => {
      this.logs[i] = log + pull * (this.homes[i]! - log) + spread * normal(this.random);
    });
  }

  /** Basis points of each outcome, not rounded; they come to 10,000. */
  prices(): number[] {
    const weights = this.logs.map(Math.exp);
    const sum = weights.reduce((total, weight) => total + weight, 0);
    return weights.map((weight) => (FULL_PRICE_BPS * weight) / sum);
  }
}

function logsOf(chances: readonly number[]): number[] {
  const sum = chances.reduce((total, chance) => total + chance, 0);
  return chances.map((chance) => Math.log(Math.max(LEAST_CHANCE, chance / sum)));
}

/** Normally distributed, mean 0 and deviation 1 (Box and Muller). */
function normal(random: () => number): number {
  return Math.sqrt(-2 * Math.log(1 - random())) * Math.cos(2 * Math.PI * random());
}
