/**
 * The fair value of each outcome: a mean-reverting random walk per outcome on the log scale, normalised so that a
 * market's chances always add up to 1. Reads no clock.
 */
import { itemAt } from "../support/item-at.ts";
import { normal, pricesOf } from "./chances.ts";

/** The walk's volatility per second, and the time scale of its mean reversion. */
const STEP_PER_ROOT_SECOND = 0.003;
const RETURN_SECONDS = 1_200;
/** Chances of 0 have no logarithm. */
const LEAST_CHANCE = 0.002;

export class FairValues {
  private readonly homes: readonly number[];
  private readonly logs: number[];
  private readonly random: () => number;

  /** @param chances the long-run means, with any sum @param from the starting values */
  constructor(chances: readonly number[], from: readonly number[], random: () => number) {
    this.homes = logsOf(chances);
    this.logs = logsOf(from);
    this.random = random;
  }

  advance(seconds: number): void {
    const pull = 1 - Math.exp(-seconds / RETURN_SECONDS);
    const spread = STEP_PER_ROOT_SECOND * Math.sqrt(seconds);
    this.logs.forEach((log, i) => {
      this.logs[i] = log + pull * (itemAt(this.homes, i) - log) + spread * normal(this.random);
    });
  }

  /** Basis points of each outcome, not rounded; they add up to 10,000. */
  prices(): number[] {
    return pricesOf(this.logs);
  }
}

function logsOf(chances: readonly number[]): number[] {
  const sum = chances.reduce((total, chance) => total + chance, 0);
  return chances.map((chance) => Math.log(Math.max(LEAST_CHANCE, chance / sum)));
}
