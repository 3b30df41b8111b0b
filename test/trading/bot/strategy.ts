/**
 * The wishes of a market maker's bot: quotes around a fair price per outcome, and occasional single orders, amends, cancels,
 * batches and sets, chosen by one random source and the bot's own books. Sends nothing.
 */

import type { Random } from "../../support/random.ts";
import type { TestMarket } from "../../support/world.ts";
import { type Books, BUY, type OwnOrder, SELL } from "./books.ts";
import type { PlacementBody, Quote, Wish } from "./requests.ts";

const TICK = 10;
const MAX_QUOTE = 6;
/** The share of single orders that may rest. */
const RESTS = 0.5;
const SETS = 30;
/** The bot splits when it has fewer shares of an outcome. */
const FEW_SHARES = 24;
const MANY_SHARES = 80;

export class Strategy {
  /** Ids of the orders that PUT /quotes placed; the books know which of them rest. */
  readonly quoteIds = new Set<number>();
  private readonly random: Random;
  private readonly market: TestMarket;
  private readonly books: Books;
  private readonly prefix: string;
  private placements = 0;

  constructor(random: Random, market: TestMarket, books: Books, prefix: string) {
    this.random = random;
    this.market = market;
    this.books = books;
    this.prefix = prefix;
  }

  /** One step's wishes, each made when its turn comes. */
  plan(fair: readonly number[]): (() => Wish | null)[] {
    const { random } = this;
    const plan: (() => Wish | null)[] = [];
    if (random.chance(0.35)) plan.push(() => this.place(fair));
    if (random.chance(0.12)) plan.push(() => this.amend(fair));
    if (random.chance(0.12)) plan.push(() => this.cancel());
    if (random.chance(0.08)) plan.push(() => this.cancelByClientId());
    if (random.chance(0.08)) plan.push(() => this.batch(fair));
    if (random.chance(0.02)) plan.push(() => this.cancelAll());
    if (random.chance(0.9)) plan.splice(random.integer(0, plan.length), 0, () => this.quotes(fair));
    const sets = this.sets();
    if (sets !== null) plan.unshift(() => sets);
    return plan;
  }

  liveQuotes(): OwnOrder[] {
    return [...this.books.live.values()].filter(({ id }) => this.quoteIds.has(id));
  }

  private quotes(fair: readonly number[]): Wish {
    const { random, market } = this;
    if (random.chance(0.03)) return { kind: "quotes", quotes: [] };
    const standing = this.liveQuotes();
    const spread = random.pick([20, 50, 100, 150]);
    const levels = random.integer(1, 3);
    const quotes: Quote[] = [];
    market.outcomes.forEach((outcome, index) => {
      for (const side of [BUY, SELL]) {
        const old = standing.filter((order) => order.outcome_id === outcome && order.side === side);
        if (old.length > 0 && random.chance(0.35)) quotes.push(...old.map(quoteOf));
        else if (random.chance(0.88)) quotes.push(...this.ladder(outcome, side, fair[index]!, spread, levels));
      }
    });
    return { kind: "quotes", quotes };
  }

  private ladder(outcome: number, side: number, fair: number, spread: number, levels: number): Quote[] {
    const { random } = this;
    let left = side === BUY ? Number.POSITIVE_INFINITY : this.sharesToQuote(outcome);
    // Sometimes all available shares, so that old and new quotes together aren't covered; rarely more.
    const all = side === SELL && random.chance(0.1);
    if (side === SELL && random.chance(0.02)) left += 30;
    const quotes: Quote[] = [];
    for (let level = 0; level < levels; level++) {
      const quantity = Math.min(left, all && level === levels - 1 ? left : random.integer(1, MAX_QUOTE));
      if (quantity === 0) break;
      left -= quantity;
      const away = spread + level * random.pick([1, 2, 4]) * TICK * 2;
      const price = Math.round((side === BUY ? fair - away : fair + away) / TICK) * TICK;
      quotes.push({ outcome_id: outcome, side, price: clamp(price), quantity });
    }
    return quotes;
  }

  /** Shares that are free or held by quotes. */
  private sharesToQuote(outcome: number): number {
    let shares = this.books.shares(outcome);
    for (const order of this.books.live.values()) {
      if (order.side === SELL && order.outcome_id === outcome && !this.quoteIds.has(order.id))
        shares -= order.remaining;
    }
    return Math.max(0, shares);
  }

  private place(fair: readonly number[]): Wish {
    const { random, market } = this;
    const index = random.integer(0, market.outcomes.length - 1);
    const side = random.pick([BUY, SELL]);
    const kind = random.next();
    // Orders that don't rest take the others' resting orders.
    const away = kind < RESTS ? random.integer(-40, 40) : (side === BUY ? 1 : -1) * random.integer(0, 80);
    const price = clamp(fair[index]! + TICK * away);
    const body: Record<string, unknown> & PlacementBody = {
      ...{ market_id: market.id, outcome_id: market.outcomes[index]!, side, price, quantity: random.integer(1, 8) },
      client_order_id: `${this.prefix}:${++this.placements}`,
      self_trade_prevention: random.pick(["cancel_taker", "cancel_maker", "cancel_both", "decrement"]),
    };
    const now = Date.now();
    if (random.chance(0.3)) body["valid_until"] = now + (random.chance(0.1) ? -1_000 : random.pick([20, 30_000]));
    if (kind < 0.2) return { kind: "place", body };
    if (kind < 0.35) Object.assign(body, { post_only: true });
    else if (kind < RESTS) Object.assign(body, { time_in_force: "gtd", expires_at: now + random.integer(50, 500) });
    else if (kind < 0.75) Object.assign(body, { time_in_force: "ioc" });
    else if (kind < 0.88) Object.assign(body, { time_in_force: "fok" });
    else {
      Object.assign(body, { type: "market", time_in_force: random.pick(["ioc", "fok"]) });
      if (random.chance(0.5)) delete (body as { price?: number }).price;
    }
    return { kind: "place", body };
  }

  private amend(fair: readonly number[]): Wish | null {
    const { random, market } = this;
    const order = this.anyOrder();
    if (order === null) return null;
    const change: Record<string, number> = {};
    const near = fair[market.outcomes.indexOf(order.outcome_id)]! + TICK * random.integer(-30, 30);
    if (random.chance(0.6)) change["price"] = clamp(near);
    if (random.chance(0.6) || change["price"] === undefined) {
      change["quantity"] = Math.max(1, order.quantity + random.integer(-4, 4));
    }
    if (random.chance(0.2)) change["valid_until"] = Date.now() + 30_000;
    return { kind: "amend", id: order.id, change };
  }

  private cancel(): Wish | null {
    const order = this.anyOrder();
    return order === null ? null : { kind: "cancel", id: order.id };
  }

  private cancelByClientId(): Wish | null {
    const named = [...this.books.live.values()].flatMap(({ client_order_id }) => client_order_id ?? []);
    if (named.length === 0) return null;
    return { kind: "cancelByClientId", clientOrderId: this.random.pick(named) };
  }

  private cancelAll(): Wish {
    const { random, market } = this;
    const filters: Record<string, number> = {};
    if (random.chance(0.5)) filters["market_id"] = market.id;
    if (random.chance(0.5)) filters["outcome_id"] = random.pick(market.outcomes);
    if (random.chance(0.5)) filters["side"] = random.pick([BUY, SELL]);
    return { kind: "cancelAll", filters };
  }

  private batch(fair: readonly number[]): Wish {
    const { random } = this;
    const wishes: Wish[] = [];
    for (let left = random.integer(2, 6); left > 0; left--) {
      const make = random.pick([
        () => this.place(fair),
        () => this.place(fair),
        () => this.cancel(),
        () => this.amend(fair),
      ]);
      const wish = make();
      if (wish !== null) wishes.push(wish);
    }
    if (wishes.length === 0) wishes.push(this.place(fair));
    return { kind: "batch", wishes };
  }

  private sets(): Wish | null {
    const { books, market, random } = this;
    const fewest = Math.min(...market.outcomes.map((outcome) => books.shares(outcome)));
    if (fewest < FEW_SHARES) return { kind: "sets", name: "split", quantity: SETS };
    if (fewest > MANY_SHARES && random.chance(0.3)) return { kind: "sets", name: "merge", quantity: SETS };
    return null;
  }

  /** A live order, quotes among them; sometimes one that has ended. */
  private anyOrder(): OwnOrder | null {
    const { books, random } = this;
    if (books.live.size > 0 && random.chance(0.93)) return random.pick([...books.live.values()]);
    return books.orders.get(books.lastOrderId) ?? null;
  }
}

function quoteOf({ outcome_id, side, price, remaining }: OwnOrder): Quote {
  return { outcome_id, side, price: price!, quantity: remaining };
}

function clamp(price: number): number {
  return Math.min(9_999, Math.max(1, price));
}
