/**
 * What a market's outcomes were worth over its past: chances that drift and jump between the points of its story, with noise
 * around them that returns to 0 within a day or two, and sleeps at night. Reads no clock: the caller says when it is.
 */
import { itemAt } from "../../support/item-at.ts";
import { normal, pricesOf } from "../chances.ts";
import type { FairPrices } from "../types.ts";
import type { StoryPoint } from "./story.ts";

const DAY_MS = 86_400_000;
/** Of the noise, on the log scale: its deviation, and how soon it returns. */
const NOISE = 0.05;
const RETURN_MS = 2 * DAY_MS;
/** Chances of 0 have no logarithm. */
const LEAST_CHANCE = 0.3;

interface Point {
  /** ms */
  readonly at: number;
  readonly logs: readonly number[];
}

export class FairPath implements FairPrices {
  private readonly points: readonly Point[];
  private readonly noise: number[];
  private readonly volatility: number;
  private readonly random: () => number;
  private at: number;

  /** @param end when the story ends, ms */
  constructor(story: readonly StoryPoint[], volatility: number, end: number, random: () => number) {
    this.points = story.map(({ daysAgo, chances }) => {
      return { at: end - daysAgo * DAY_MS, logs: chances.map((chance) => Math.log(Math.max(LEAST_CHANCE, chance))) };
    });
    const first = itemAt(this.points, 0);
    this.at = first.at;
    this.noise = first.logs.map(() => 0);
    this.volatility = volatility;
    this.random = random;
  }

  /** @param tempo 0 to 1: how awake the market has been since the last call */
  moveTo(at: number, tempo: number): void {
    const kept = Math.exp((-tempo * (at - this.at)) / RETURN_MS);
    const spread = this.volatility * NOISE * Math.sqrt(1 - kept * kept);
    this.noise.forEach((noise, i) => {
      this.noise[i] = noise * kept + spread * normal(this.random);
    });
    this.at = at;
  }

  prices(): number[] {
    return pricesOf(this.story().map((log, i) => log + itemAt(this.noise, i)));
  }

  /** The logarithms of the chances now. */
  private story(): readonly number[] {
    const { points, at } = this;
    const next = points.findIndex((point) => point.at > at);
    if (next <= 0) return itemAt(points, next < 0 ? points.length - 1 : 0).logs;
    const [from, to] = [itemAt(points, next - 1), itemAt(points, next)];
    const share = (at - from.at) / (to.at - from.at);
    return from.logs.map((log, i) => log + share * (itemAt(to.logs, i) - log));
  }
}
