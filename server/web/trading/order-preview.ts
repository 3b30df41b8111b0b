/**
 * What an order ticket says of an order before it is sent: what it costs or brings, and why it can't work. Pure: prices
 * in BPS, quantities in shares, money in micro-USDC, times in ms since the epoch.
 */
import { MAX_PRICE_BPS, MAX_QUANTITY, MICRO_PER_SHARE, MIN_PRICE_BPS } from "../../../engine/limits.ts";
import { notionalMicro, ownFeeMicro } from "../../../engine/money.ts";
import { money, parsePrice, percent, shares, withoutGrouping } from "../format.ts";
import type { Order, Outcome, PlaceOrder, Position } from "../types.ts";
import { type DepthLevel, type Estimate, estimate } from "./depth.ts";

type OrderKind = "limit" | "market" | "post_only";
export type TimeInForce = "gtc" | "gtd" | "ioc" | "fok";

/** A ticket as it was filled in. */
export interface Draft {
  readonly side: "buy" | "sell";
  readonly kind: OrderKind;
  /** Percent; of a market order the worst price, which may be empty. */
  readonly price: string;
  readonly quantity: string;
  readonly timeInForce: TimeInForce;
  /** As a datetime-local field has it, in the person's own zone. */
  readonly expires: string;
}

export const EMPTY_DRAFT: Draft = {
  side: "buy",
  kind: "limit",
  price: "",
  quantity: "",
  timeInForce: "gtc",
  expires: "",
};

export interface PreviewContext {
  readonly marketId: number;
  readonly outcome: Outcome;
  /** What the order would meet, the best first; null where that isn't known now: only the exchange can say. */
  readonly offers: readonly DepthLevel[] | null;
  /** Null: nobody is signed in, or it isn't known yet. */
  readonly available: number | null;
  /** Undefined: none. */
  readonly position: Position | undefined;
  /** The caller's own live orders of the market. */
  readonly ownOrders: readonly Order[];
  readonly feeBps: number;
  readonly activity: { readonly used: number; readonly limit: number } | null;
  readonly closesAt: number | null;
  readonly now: number;
}

interface Problems {
  readonly price: string | null;
  readonly quantity: string | null;
  readonly expires: string | null;
}

export interface OrderPreview {
  /** Null where it can't be sent. */
  readonly body: Omit<PlaceOrder, "client_order_id"> | null;
  readonly problems: Problems;
  /** Shown once somebody tries to send: nobody is told off for what isn't typed yet. */
  readonly missing: Problems;
  /** Null until there are price and quantity. */
  readonly summary: PreviewSummary | null;
  readonly warnings: readonly string[];
}

export interface PreviewSummary {
  readonly quantity: number;
  /** What would be traded at once. */
  readonly traded: Estimate;
  /** Shares that would wait in the book, at the order's own price; 0 of orders that never rest. */
  readonly resting: number;
  /** To buy: the cost of both; to sell: the proceeds of both without the fee. */
  readonly notional: number;
  readonly fee: number;
  /** A buyer's money, set aside until the order is done. */
  readonly hold: number;
  /** What the shares pay if their outcome happens, or cost when they were bought: profit is measured by it. */
  readonly payout: number;
  readonly profit: number | null;
}

/** A worst price so far from the best one is worth a warning, BPS. */
const FAR_BPS = 1_000;

/** A quantity as it was typed; null where it is none. */
export function parseQuantity(text: string): number | null {
  const digits = withoutGrouping(text);
  const quantity = /^\d{1,10}$/.test(digits) ? Number(digits) : 0;
  return quantity >= 1 && quantity <= MAX_QUANTITY ? quantity : null;
}

/** The worst price that the order would be filled at; null where it isn't there yet. */
function worstPriceOf({ kind, side, price }: Draft): number | null {
  if (kind === "market" && price.trim() === "") return side === "buy" ? MAX_PRICE_BPS : MIN_PRICE_BPS;
  return parsePrice(price);
}

/** Shares that can be sold: those that open sell orders don't hold. */
export const availableShares = (position: Position | undefined): number =>
  position === undefined ? 0 : position.quantity - position.held;

/** The most that can be ordered; null where price or balance say nothing yet. */
export function maxQuantity(draft: Draft, { available, position }: PreviewContext): number | null {
  if (draft.side === "sell") return availableShares(position);
  const bound = worstPriceOf(draft);
  if (bound === null || available === null) return null;
  return Math.min(MAX_QUANTITY, Math.floor(available / notionalMicro(bound, 1)));
}

/** What stays in force, with what fits the kind of order. */
export function timeInForceOf({ kind, timeInForce }: Draft): TimeInForce {
  if (kind === "market") return timeInForce === "fok" ? "fok" : "ioc";
  if (kind === "post_only") return timeInForce === "gtd" ? "gtd" : "gtc";
  return timeInForce;
}

export function previewOrder(draft: Draft, around: PreviewContext): OrderPreview {
  const isBuy = draft.side === "buy";
  const bound = worstPriceOf(draft);
  const quantity = parseQuantity(draft.quantity);
  const force = timeInForceOf(draft);
  const expiresAt = force === "gtd" && draft.expires !== "" ? new Date(draft.expires).getTime() : null;
  const missing: Problems = {
    price: draft.price.trim() === "" && bound === null ? "Type a price." : null,
    quantity: draft.quantity.trim() === "" ? "Type how many shares." : null,
    expires: force === "gtd" && expiresAt === null ? "Say when the order is to end." : null,
  };
  const summary = bound === null || quantity === null ? null : summarize(draft, bound, quantity, around);
  const problems: Problems = {
    price:
      bound === null && missing.price === null
        ? "A price is between 0.01 and 99.99 %, with two decimals at most."
        : priceProblem(draft, around),
    quantity:
      quantity === null && missing.quantity === null
        ? `A whole number of shares, ${shares(MAX_QUANTITY)} at most.`
        : summary === null
          ? null
          : (fundsProblem(draft, summary, around) ?? bookProblem(draft, summary, around)),
    expires: expiresAt === null ? null : expiryProblem(expiresAt, around),
  };
  const isReady = [...Object.values(missing), ...Object.values(problems)].every((each) => each === null);
  const isMarket = draft.kind === "market";
  const body = isReady
    ? {
        market_id: around.marketId,
        outcome_id: around.outcome.id,
        side: isBuy ? 1 : 2,
        price: isMarket && draft.price.trim() === "" ? null : bound,
        quantity: quantity!,
        type: isMarket ? "market" : "limit",
        time_in_force: force,
        post_only: draft.kind === "post_only",
        ...(expiresAt === null ? {} : { expires_at: expiresAt }),
      }
    : null;
  return { body, problems, missing, summary, warnings: summary === null ? [] : warningsOf(draft, summary, around) };
}

function summarize(draft: Draft, bound: number, quantity: number, around: PreviewContext): PreviewSummary {
  const isBuy = draft.side === "buy";
  const feeBps = isBuy ? 0 : around.feeBps;
  const traded = estimate(around.offers ?? [], isBuy, bound, quantity, feeBps);
  const force = timeInForceOf(draft);
  const resting = force === "ioc" || force === "fok" ? 0 : quantity - traded.quantity;
  const counted = traded.quantity + resting;
  const notional = traded.notional + notionalMicro(bound, resting);
  const fee = traded.fee + (resting === 0 ? 0 : ownFeeMicro(bound, resting, feeBps));
  const payout = counted * MICRO_PER_SHARE;
  return {
    quantity,
    traded,
    resting,
    notional,
    fee,
    hold: isBuy ? notionalMicro(bound, quantity) : 0,
    payout,
    profit: isBuy ? payout - notional : profitOfSale(counted, notional - fee, around.position),
  };
}

/** Against what the shares cost on average. */
function profitOfSale(sold: number, proceeds: number, position: Position | undefined): number | null {
  if (position === undefined || position.quantity === 0 || sold > position.quantity) return null;
  return proceeds - Math.round((position.cost / position.quantity) * sold);
}

function priceProblem(draft: Draft, { offers }: PreviewContext): string | null {
  const price = parsePrice(draft.price);
  const best = offers?.[0]?.price;
  if (draft.kind !== "post_only" || price === null || best === undefined) return null;
  const crosses = draft.side === "buy" ? price >= best : price <= best;
  const next = draft.side === "buy" ? `below ${percent(best)}` : `above ${percent(best)}`;
  return crosses ? `Post-only orders mustn't trade at once: choose a price ${next}.` : null;
}

function fundsProblem(draft: Draft, { quantity, hold }: PreviewSummary, around: PreviewContext): string | null {
  const { available, position, outcome } = around;
  if (available === null) return null;
  if (draft.side === "buy") {
    if (hold <= available) return null;
    const bound = draft.kind === "market" && draft.price.trim() === "";
    const hint = bound ? " A worst price lowers what is set aside." : "";
    return `That sets ${money(hold)} USDC aside, and ${money(available)} are available.${hint}`;
  }
  const free = availableShares(position);
  if (quantity <= free) return null;
  if ((position?.quantity ?? 0) === 0) return `You have no shares of ${outcome.name} to sell.`;
  return `You have ${shares(free)} free shares of ${outcome.name}; open sell orders hold theirs.`;
}

/** What only the book can know, as it is now. */
function bookProblem(draft: Draft, { traded, quantity }: PreviewSummary, { offers }: PreviewContext): string | null {
  const force = timeInForceOf(draft);
  if (offers === null || (force !== "ioc" && force !== "fok")) return null;
  const side = draft.side === "buy" ? "sells" : "buys";
  if (traded.quantity === 0) {
    const [best] = offers;
    if (best === undefined) return `Nobody ${side} at the moment: use a limit order, which waits in the book.`;
    return `Nobody ${side} at that price: the best is ${percent(best.price)}.`;
  }
  if (force === "fok" && traded.quantity < quantity) {
    return `Only ${shares(traded.quantity)} shares can be had at that price: a fill-or-kill order would be canceled whole.`;
  }
  return null;
}

function expiryProblem(expiresAt: number, { now, closesAt }: PreviewContext): string | null {
  if (Number.isNaN(expiresAt)) return "That is no date.";
  if (expiresAt <= now) return "That is in the past.";
  if (closesAt !== null && expiresAt > closesAt) return "The market closes before that.";
  return null;
}

function warningsOf(draft: Draft, summary: PreviewSummary, around: PreviewContext): string[] {
  const warnings: string[] = [];
  const { traded, quantity, resting, hold } = summary;
  const { activity, offers, ownOrders, outcome } = around;
  const left = quantity - traded.quantity - resting;
  if (traded.quantity > 0 && left > 0) {
    warnings.push(
      `The books have ${shares(traded.quantity)} shares at that price: the other ${shares(left)} are canceled.`,
    );
  }
  const best = offers?.[0];
  if (best !== undefined && traded.worstPrice !== null && Math.abs(traded.worstPrice - best.price) >= FAR_BPS) {
    warnings.push(
      `The last shares would trade at ${percent(traded.worstPrice)}, far from the best ${percent(best.price)}.`,
    );
  }
  const isBuy = draft.side === "buy";
  const meetsOwn = ownOrders.some(({ outcome_id, side, price }) => {
    if (traded.worstPrice === null || price === null) return false;
    if (outcome_id !== outcome.id) return traded.isImplied && (side === 1) === isBuy;
    return (side === 1) !== isBuy && (isBuy ? price <= traded.worstPrice : price >= traded.worstPrice);
  });
  if (meetsOwn) warnings.push("This may meet an order of your own: what is left of the new order is then canceled.");
  // Selling never counts.
  if (isBuy && activity !== null && activity.used + hold > activity.limit) {
    const rest = Math.max(0, activity.limit - activity.used);
    warnings.push(`Your daily limit for buying has ${money(rest)} USDC left: the exchange may refuse this.`);
  }
  return warnings;
}
