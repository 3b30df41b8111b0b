/**
 * A market maker of the demo: keeps several levels of quotes around an outcome's fair value, replaced atomically by PUT
 * /quotes, and an inventory of complete sets to sell from. A maker that only bids, on every outcome, offers to mint;
 * one that only asks offers to merge. Quotes lie on a price grid and their sizes depend on their prices, so that most
 * of them stay unchanged when the value moves a little.
 */
import { itemAt } from "../support/item-at.ts";
import type { Api, Reply } from "./api.ts";
import type { Position, TradedMarket } from "./types.ts";

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
const LEVELS = 5;
/** BPS between levels; near 0 and 10,000 they are closer. */
const STEP = 50;
const EDGE_STEP = 20;
const EDGE = 1_000;
/**
 * The distance from the value to the nearest quote, in steps; how often a maker redraws it, and how often it refills
 * filled quotes.
 */
const LEAST_DISTANCE = 0.8;
const DISTANCE_RANGE = 1.4;
const ANEW_SHARE = 0.08;
const PUT_BACK_SHARE = 0.25;
/** The inventory of complete sets per market: below the floor a maker splits, above the ceiling it merges. */
const SETS = { floor: 1_500, target: 3_000, ceiling: 6_000 };
const SHARES_LACKING = 42202;

export class Maker {
  readonly api: Api;
  private readonly style: MakerStyle;
  private readonly random: () => number;
  /** By market, steps. */
  private readonly distances = new Map<number, number>();
  /** The quotes last sent by market, as text. */
  private readonly sent = new Map<number, string>();

  constructor(api: Api, style: MakerStyle, random: () => number) {
    this.api = api;
    this.style = style;
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

  /** Splits or merges complete sets of the market towards the target. */
  async refill(market: TradedMarket): Promise<void> {
    if (this.style === "bids") return;
    const positions = (await this.api.all<Position>("/me/positions")).filter((held) => held.market_id === market.id);
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
    outcomes.forEach((outcome_id, i) => {
      const value = itemAt(prices, i);
      const step = value < EDGE || value > FULL_PRICE_BPS - EDGE ? EDGE_STEP : STEP;
      const bid = Math.floor(value / step - distance);
      const ask = Math.ceil(value / step + distance);
      for (let level = 0; level < LEVELS; level++) {
        const [low, high] = [(bid - level) * step, (ask + level) * step];
        if (this.style !== "asks" && low > 0) quotes.push(quoteAt(outcome_id, BUY, low));
        if (this.style !== "bids" && high < FULL_PRICE_BPS) quotes.push(quoteAt(outcome_id, SELL, high));
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

/** A size from 30 to 199 shares that looks random but depends only on the quote's price, outcome and side. */
function quoteAt(outcome_id: number, side: 1 | 2, price: number): Quote {
  const mixed = Math.imul(price * 31 + outcome_id * 7 + side, 0x9e3779b1) >>> 8;
  return { outcome_id, side, price, quantity: 30 + (mixed % 170) };
}
