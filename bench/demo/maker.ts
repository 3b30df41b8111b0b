/**
 * A market maker of the demo: keeps several levels of quotes around an outcome's fair value, replaced atomically by PUT
 * /quotes, and an inventory of complete sets to sell from. A maker that only bids, on every outcome, offers to mint;
 * one that only asks offers to merge. Quotes lie on a price grid and their sizes depend on their prices, so that most
 * of them stay unchanged when the value moves a little.
 */
import { MAX_QUOTES } from "../../server/trading/limits.ts";
import { itemAt } from "../support/item-at.ts";
import { listAll } from "./list-all.ts";
import type { Caller, Position, Reply, TradedMarket } from "./types.ts";

export type MakerStyle = "both" | "bids" | "asks";

interface Quote {
  readonly outcome_id: number;
  readonly side: 1 | 2;
  readonly price: number;
  readonly quantity: number;
}

const BUY = 1;
const SELL = 2;
const FULL_PRICE_BPS = 10_000;
/** BPS between levels; near 0 and 10,000 they are closer. */
const STEP = 50;
const EDGE_STEP = 20;
const EDGE = 1_000;
/** Of its levels, as many lie on each step from the value on; the others on every fourth, so that they stay when it moves. */
const NEAR_LEVELS = 6;
const FAR_LEVELS = 5;
const FAR_STEPS = 4;
/**
 * The distance from the value to the nearest quote, in steps; how often a maker redraws it, and how often it refills
 * filled quotes.
 */
const LEAST_DISTANCE = 0.8;
const DISTANCE_RANGE = 1.4;
const ANEW_SHARE = 0.03;
const PUT_BACK_SHARE = 0.25;
/** The inventory of complete sets per market: below the floor a maker splits, above the ceiling it merges. */
const SETS = { floor: 1_500, target: 3_000, ceiling: 6_000 };
const SHARES_LACKING = 42202;

export class Maker {
  readonly api: Caller;
  private readonly style: MakerStyle;
  /** The part of a step by which its grid differs from other makers'. */
  private readonly phase: number;
  private readonly random: () => number;
  /** By market, steps. */
  private readonly distances = new Map<number, number>();
  /** The quotes last sent by market, as text. */
  private readonly sent = new Map<number, string>();

  constructor(api: Caller, style: MakerStyle, phase: number, random: () => number) {
    this.api = api;
    this.style = style;
    this.phase = phase;
    this.random = random;
  }

  /** Replaces the maker's quotes in the market if they change, or `always`. Returns null if nothing was sent. */
  async quote(market: TradedMarket, always: boolean): Promise<Reply<unknown> | null> {
    const quotes = this.quotes(market);
    const text = JSON.stringify(quotes);
    if (!always && text === this.sent.get(market.id) && this.random() > PUT_BACK_SHARE) return null;
    this.sent.set(market.id, text);
    const reply = await this.api.call("PUT", `/quotes/${market.id}`, { quotes });
    if (reply.code === SHARES_LACKING) await this.refill(market);
    return reply;
  }

  /** Takes all quotes in the market back, as makers do when news comes. */
  async pull(market: TradedMarket): Promise<Reply<unknown>> {
    this.sent.delete(market.id);
    return this.api.call("PUT", `/quotes/${market.id}`, { quotes: [] });
  }

  /** Splits or merges complete sets of the market towards the target. */
  async refill(market: TradedMarket): Promise<void> {
    if (this.style === "bids") return;
    const positions = (await listAll<Position>(this.api, "/me/positions")).filter(
      (held) => held.market_id === market.id,
    );
    const least = (count: (position: Position) => number): number =>
      Math.min(
        ...market.outcomes.map((outcome) => {
          const position = positions.find(({ outcome_id }) => outcome_id === outcome);
          return position === undefined ? 0 : count(position);
        }),
      );
    const sets = least(({ quantity }) => quantity);
    const free = least(({ quantity, held }) => quantity - held);
    const { floor, target, ceiling } = SETS;
    const change = (how: "split" | "merge", quantity: number): Promise<unknown> =>
      this.api.call("POST", `/wallet/${how}`, { market_id: market.id, quantity });
    if (sets < floor) await change("split", target - sets);
    else if (free > ceiling) await change("merge", free - target);
  }

  private quotes({ id, outcomes, fair }: TradedMarket): Quote[] {
    const prices = fair.prices();
    const quotes: Quote[] = [];
    const distance = this.distance(id);
    const sides = this.style === "both" ? 2 : 1;
    const most = Math.floor(MAX_QUOTES / outcomes.length / sides);
    outcomes.forEach((outcome_id, i) => {
      const value = itemAt(prices, i);
      const step = value < EDGE || value > FULL_PRICE_BPS - EDGE ? EDGE_STEP : STEP;
      const at = value / step - this.phase;
      const priceOf = (steps: number): number => Math.round((steps + this.phase) * step);
      for (const steps of this.style === "asks" ? [] : levels(Math.floor(at - distance), -1, most)) {
        const price = priceOf(steps);
        if (price > 0) quotes.push(quoteAt(outcome_id, BUY, price));
      }
      for (const steps of this.style === "bids" ? [] : levels(Math.ceil(at + distance), 1, most)) {
        const price = priceOf(steps);
        if (price < FULL_PRICE_BPS) quotes.push(quoteAt(outcome_id, SELL, price));
      }
    });
    return quotes;
  }

  private distance(marketId: number): number {
    const known = this.distances.get(marketId);
    if (known !== undefined && this.random() > ANEW_SHARE) return known;
    const distance = LEAST_DISTANCE + DISTANCE_RANGE * this.random();
    this.distances.set(marketId, distance);
    return distance;
  }
}

/** The levels of one side, in steps, best first. @param direction -1 for bids */
function levels(best: number, direction: 1 | -1, most: number): number[] {
  const near = Array.from({ length: NEAR_LEVELS }, (_, i) => best + direction * i);
  const lastNear = best + direction * (NEAR_LEVELS - 1);
  const next = direction * (Math.floor((direction * lastNear) / FAR_STEPS) + 1) * FAR_STEPS;
  const far = Array.from({ length: FAR_LEVELS }, (_, i) => next + direction * i * FAR_STEPS);
  return [...near, ...far].slice(0, most);
}

/** A size from 30 to 199 shares that looks random but depends only on the quote's price, outcome and side. */
function quoteAt(outcome_id: number, side: 1 | 2, price: number): Quote {
  const mixed = Math.imul(price * 31 + outcome_id * 7 + side, 0x9e3779b1) >>> 8;
  return { outcome_id, side, price, quantity: 30 + (mixed % 170) };
}
