/**
 * Previews an order before it is sent: the request body, its cost or proceeds, validation messages and warnings. Pure:
 * prices in BPS, quantities in shares, money in micro-USDC, times in ms since the epoch.
 */
import { MAX_PRICE_BPS, MAX_QUANTITY, MICRO_PER_SHARE, MIN_PRICE_BPS } from "../../../engine/limits.ts";
import { notionalMicro, ownFeeMicro } from "../../../engine/money.ts";
import { cents, money, parseCount, parsePrice, shares, spendable } from "../format.ts";
import type { Order, Outcome, PlaceOrder, Position } from "../types.ts";
import { type DepthLevel, type Estimate, estimate } from "./depth.ts";

type OrderKind = "limit" | "market" | "post_only";
export type TimeInForce = "gtc" | "gtd" | "ioc" | "fok";

/** The state of the ticket's fields, as typed. */
export interface Draft {
  readonly side: "buy" | "sell";
  readonly kind: OrderKind;
  /** Cents a share. For a market order, the worst price, which is optional. */
  readonly price: string;
  readonly quantity: string;
  readonly timeInForce: TimeInForce;
  /** Value of a datetime-local field, in the browser's time zone. */
  readonly expires: string;
}

export type ChangeDraft = (changes: Partial<Draft>) => void;

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
  /** The side of the book that the order fills against, best first; null if unknown: only the exchange can tell. */
  readonly depth: readonly DepthLevel[] | null;
  /** Null: signed out, or not loaded yet. */
  readonly available: number | null;
  /** Undefined: no position. */
  readonly position: Position | undefined;
  /** The user's open orders in the market. */
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
  /** Null if the order can't be sent. */
  readonly body: Omit<PlaceOrder, "client_order_id"> | null;
  readonly problems: Problems;
  /** Messages about empty fields, to show only after a submit attempt. */
  readonly missing: Problems;
  /** Null until price and quantity are valid. */
  readonly summary: PreviewSummary | null;
  readonly warnings: readonly string[];
}

export interface PreviewSummary {
  readonly quantity: number;
  /** What would fill now. */
  readonly fills: Estimate;
  /** Shares that would rest at the order's price; 0 for orders that never rest. */
  readonly resting: number;
  /** Buy: cost of both parts. Sell: proceeds of both parts before the fee. */
  readonly notional: number;
  readonly fee: number;
  /** What a buy puts on hold until the order is done. */
  readonly hold: number;
  /** What the shares pay if their outcome wins. */
  readonly payout: number;
  /** Buy: payout less cost. Sell: proceeds less the average cost of the shares, null if unknown. */
  readonly profit: number | null;
}

/** A worst price this far from the best price triggers a warning, BPS. */
const FAR_BPS = 1_000;

/** Parses a quantity; null if it is invalid. */
export function parseQuantity(text: string): number | null {
  const quantity = parseCount(text);
  return quantity !== null && quantity >= 1 && quantity <= MAX_QUANTITY ? quantity : null;
}

/** The worst price that the order accepts; null until one is entered. */
function worstPriceOf({ kind, side, price }: Draft): number | null {
  if (kind === "market" && price.trim() === "") return side === "buy" ? MAX_PRICE_BPS : MIN_PRICE_BPS;
  return parsePrice(price);
}

/** Shares that can be sold: those not on hold for open sell orders. */
export const availableShares = (position: Position | undefined): number =>
  position === undefined ? 0 : position.quantity - position.held;

/** The largest quantity that the user's funds allow; null while price or balance is unknown. */
export function maxQuantity(draft: Draft, { available, position }: PreviewContext): number | null {
  if (draft.side === "sell") return availableShares(position);
  const worstPrice = worstPriceOf(draft);
  if (worstPrice === null || available === null) return null;
  return Math.min(MAX_QUANTITY, Math.floor(available / notionalMicro(worstPrice, 1)));
}

/** The time in timeInForce, adjusted to what the order type allows. */
export function timeInForceOf({ kind, timeInForce }: Draft): TimeInForce {
  if (kind === "market") return timeInForce === "fok" ? "fok" : "ioc";
  if (kind === "post_only") return timeInForce === "gtd" ? "gtd" : "gtc";
  return timeInForce;
}

export function previewOrder(draft: Draft, context: PreviewContext): OrderPreview {
  const isBuy = draft.side === "buy";
  const worstPrice = worstPriceOf(draft);
  const quantity = parseQuantity(draft.quantity);
  const timeInForce = timeInForceOf(draft);
  const expiresAt = timeInForce === "gtd" && draft.expires !== "" ? new Date(draft.expires).getTime() : null;
  const missing: Problems = {
    price: draft.price.trim() === "" && worstPrice === null ? "Enter a price." : null,
    quantity: draft.quantity.trim() === "" ? "Enter a quantity." : null,
    expires: timeInForce === "gtd" && expiresAt === null ? "Enter an expiry time." : null,
  };
  const summary = worstPrice === null || quantity === null ? null : summarize(draft, worstPrice, quantity, context);
  const problems: Problems = {
    price:
      worstPrice === null && missing.price === null
        ? "Price must be between 0.01¢ and 99.99¢, with at most two decimals."
        : priceProblem(draft, context),
    quantity:
      quantity === null && missing.quantity === null
        ? `Quantity must be a whole number of shares, at most ${shares(MAX_QUANTITY)}.`
        : summary === null
          ? null
          : (fundsProblem(draft, summary, context) ?? bookProblem(draft, summary, context)),
    expires: expiresAt === null ? null : expiryProblem(expiresAt, context),
  };
  const isReady = [...Object.values(missing), ...Object.values(problems)].every((each) => each === null);
  const isMarket = draft.kind === "market";
  const body =
    isReady && quantity !== null
      ? {
          market_id: context.marketId,
          outcome_id: context.outcome.id,
          side: isBuy ? 1 : 2,
          price: isMarket && draft.price.trim() === "" ? null : worstPrice,
          quantity,
          type: isMarket ? ("market" as const) : ("limit" as const),
          time_in_force: timeInForce,
          post_only: draft.kind === "post_only",
          ...(expiresAt === null ? {} : { expires_at: expiresAt }),
        }
      : null;
  return { body, problems, missing, summary, warnings: summary === null ? [] : warningsOf(draft, summary, context) };
}

function summarize(draft: Draft, worstPrice: number, quantity: number, context: PreviewContext): PreviewSummary {
  const isBuy = draft.side === "buy";
  const feeBps = isBuy ? 0 : context.feeBps;
  const fills = estimate(context.depth ?? [], isBuy, worstPrice, quantity, feeBps);
  const timeInForce = timeInForceOf(draft);
  const resting = timeInForce === "ioc" || timeInForce === "fok" ? 0 : quantity - fills.quantity;
  const counted = fills.quantity + resting;
  const notional = fills.notional + notionalMicro(worstPrice, resting);
  const fee = fills.fee + (resting === 0 ? 0 : ownFeeMicro(worstPrice, resting, feeBps));
  const payout = counted * MICRO_PER_SHARE;
  return {
    quantity,
    fills,
    resting,
    notional,
    fee,
    hold: isBuy ? notionalMicro(worstPrice, quantity) : 0,
    payout,
    profit: isBuy ? payout - notional : profitOfSale(counted, notional - fee, context.position),
  };
}

/** Proceeds less the average cost of the shares sold. */
function profitOfSale(sold: number, proceeds: number, position: Position | undefined): number | null {
  if (position === undefined || position.quantity === 0 || sold > position.quantity) return null;
  return proceeds - Math.round((position.cost / position.quantity) * sold);
}

function priceProblem(draft: Draft, { depth }: PreviewContext): string | null {
  const price = parsePrice(draft.price);
  const best = depth?.[0]?.price;
  if (draft.kind !== "post_only" || price === null || best === undefined) return null;
  const crosses = draft.side === "buy" ? price >= best : price <= best;
  const next = draft.side === "buy" ? `below ${cents(best)}` : `above ${cents(best)}`;
  return crosses ? `A post-only order can't fill immediately: choose a price ${next}.` : null;
}

function fundsProblem(draft: Draft, { quantity, hold }: PreviewSummary, context: PreviewContext): string | null {
  const { available, position, outcome } = context;
  if (available === null) return null;
  if (draft.side === "buy") {
    if (hold <= available) return null;
    const isUnbounded = draft.kind === "market" && draft.price.trim() === "";
    const hint = isUnbounded ? " Set a worst price to reduce the hold." : "";
    return `This order needs a hold of ${money(hold)} USDC; ${spendable(available)} USDC are available.${hint}`;
  }
  const free = availableShares(position);
  if (quantity <= free) return null;
  if ((position?.quantity ?? 0) === 0) return `You have no shares of ${outcome.name} to sell.`;
  return `You have ${shares(free)} available shares of ${outcome.name}; open sell orders keep shares on hold.`;
}

/** Problems that follow from the current book: nothing to fill against. */
function bookProblem(draft: Draft, { fills, quantity }: PreviewSummary, { depth }: PreviewContext): string | null {
  const timeInForce = timeInForceOf(draft);
  if (depth === null || (timeInForce !== "ioc" && timeInForce !== "fok")) return null;
  const side = draft.side === "buy" ? "asks" : "bids";
  if (fills.quantity === 0) {
    const [best] = depth;
    if (best === undefined) return `There are no ${side} in the book. A limit order can rest instead.`;
    return `There are no ${side} at this price: the best is ${cents(best.price)}.`;
  }
  if (timeInForce === "fok" && fills.quantity < quantity) {
    return `Only ${shares(fills.quantity)} shares are available at this price: a fill-or-kill order would be canceled.`;
  }
  return null;
}

function expiryProblem(expiresAt: number, { now, closesAt }: PreviewContext): string | null {
  if (Number.isNaN(expiresAt)) return "Enter a valid date and time.";
  if (expiresAt <= now) return "Must be in the future.";
  if (closesAt !== null && expiresAt > closesAt) return "Must be before the market closes.";
  return null;
}

function warningsOf(draft: Draft, summary: PreviewSummary, context: PreviewContext): string[] {
  const warnings: string[] = [];
  const { fills, quantity, resting, hold } = summary;
  const { activity, depth, ownOrders, outcome } = context;
  const left = quantity - fills.quantity - resting;
  if (fills.quantity > 0 && left > 0) {
    warnings.push(
      `Only ${shares(fills.quantity)} shares are available at this price: the other ${shares(left)} will be canceled.`,
    );
  }
  const best = depth?.[0];
  if (best !== undefined && fills.worstPrice !== null && Math.abs(fills.worstPrice - best.price) >= FAR_BPS) {
    warnings.push(
      `The last shares would fill at ${cents(fills.worstPrice)}, far from the best price of ${cents(best.price)}.`,
    );
  }
  const isBuy = draft.side === "buy";
  const meetsOwn = ownOrders.some(({ outcome_id, side, price }) => {
    if (fills.worstPrice === null || price === null) return false;
    if (outcome_id !== outcome.id) return fills.isImplied && (side === 1) === isBuy;
    return (side === 1) !== isBuy && (isBuy ? price <= fills.worstPrice : price >= fills.worstPrice);
  });
  if (meetsOwn) warnings.push("This may match your own order: the rest of the new order would then be canceled.");
  // Sells don't count toward the limit.
  if (isBuy && activity !== null && activity.used + hold > activity.limit) {
    const rest = Math.max(0, activity.limit - activity.used);
    warnings.push(`Your daily limit for buys has ${spendable(rest)} USDC left: the exchange may reject this order.`);
  }
  return warnings;
}
