/**
 * Previews an order before it is sent: the request body, what it costs or brings, what stands in its way and what may
 * surprise. Pure: prices in BPS, quantities in shares, money in micro-USDC, times in ms since the epoch.
 */
import { MAX_PRICE_BPS, MAX_QUANTITY, MICRO_PER_SHARE, MIN_PRICE_BPS } from "../../../engine/limits.ts";
import { notionalMicro, ownFeeMicro } from "../../../engine/money.ts";
import { exactMoney, shares } from "../../util/format.ts";
import { parseCount, parseMoney, parsePrice } from "../parse.ts";
import type { Order, Outcome, PlaceOrder, Position } from "../types.ts";
import { type DepthLevel, type Estimate, estimate } from "./depth.ts";

type OrderKind = "market" | "limit";
export type TimeInForce = "gtc" | "gtd" | "ioc" | "fok";
/** What the amount of a buy counts. Sells count shares. */
export type AmountUnit = "usdc" | "shares";

/** The state of the ticket's fields, as typed. */
export interface Draft {
  readonly side: "buy" | "sell";
  readonly kind: OrderKind;
  /** Cents a share, of a limit order. */
  readonly price: string;
  readonly amount: string;
  readonly unit: AmountUnit;
  readonly timeInForce: TimeInForce;
  readonly isPostOnly: boolean;
  /** Value of a datetime-local field, in the browser's time zone. */
  readonly expires: string;
}

export type ChangeDraft = (changes: Partial<Draft>) => void;

export const EMPTY_DRAFT: Draft = {
  side: "buy",
  kind: "market",
  price: "",
  amount: "",
  unit: "usdc",
  timeInForce: "gtc",
  isPostOnly: false,
  expires: "",
};

export interface PreviewContext {
  readonly marketId: number;
  readonly outcome: Outcome;
  /** The side of the book that the order fills against, best first; null if unknown. */
  readonly depth: readonly DepthLevel[] | null;
  /** The connection is lost: nothing that is shown is current. */
  readonly isStale: boolean;
  /** Null: signed out, or not loaded yet. */
  readonly available: number | null;
  /** Undefined: no position. */
  readonly position: Position | undefined;
  /** The user's open orders in the market. */
  readonly ownOrders: readonly Order[];
  readonly feeBps: number;
  /** What counts toward the daily limit; null if unknown. */
  readonly activity: { readonly used: number; readonly limit: number } | null;
  readonly closesAt: number | null;
  readonly now: number;
  /** How far beyond the best price a market order may fill. */
  readonly slippageBps: number;
}

interface Problems {
  readonly price: string | null;
  readonly amount: string | null;
  readonly expires: string | null;
}

/** Why a well-formed order can't be sent. */
export type Obstacle =
  /** A buy needs more money than there is. `maxShares` fit. */
  | { readonly kind: "funds"; readonly available: number; readonly maxShares: number; readonly bound: number }
  /** A sell needs more shares than are free; `owned` counts those on hold, too. */
  | { readonly kind: "shares"; readonly free: number; readonly owned: number }
  /** Nothing is offered, or bid, at all. */
  | { readonly kind: "empty" }
  /** What is offered or bid is beyond the order's price. */
  | { readonly kind: "beyond"; readonly best: number }
  /** A fill-or-kill order for more than there is. */
  | { readonly kind: "too-few"; readonly found: number }
  /** A post-only order would trade at once; `next` is the nearest price at which it rests. */
  | { readonly kind: "crosses"; readonly best: number; readonly next: number | null }
  /** The connection is lost. */
  | { readonly kind: "not-live" };

/** What may surprise, without standing in the way. */
export type Warning =
  | { readonly kind: "partial"; readonly found: number; readonly rest: number }
  | { readonly kind: "own" }
  /** Beyond today's limit by `over`; `maxShares` fit. */
  | { readonly kind: "limit"; readonly over: number; readonly limit: number; readonly maxShares: number };

/** A limit far through the market: what fills at once, and what it can come to. */
export interface FarPrice {
  readonly price: number;
  readonly best: number;
  readonly fills: Estimate;
  /** The most that a buy costs, or the least that a sell brings before its fee. */
  readonly worst: number;
}

export interface OrderPreview {
  /** Null if the order can't be sent. */
  readonly body: Omit<PlaceOrder, "client_order_id"> | null;
  /** The worst price that the order accepts: its limit, or the bound of a market order. Null until known. */
  readonly bound: number | null;
  readonly problems: Problems;
  /** Messages about empty fields, to show only after a submit attempt. */
  readonly missing: Problems;
  readonly obstacle: Obstacle | null;
  readonly far: FarPrice | null;
  /** Null until price and amount are valid. */
  readonly summary: PreviewSummary | null;
  readonly warnings: readonly Warning[];
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
}

/** A limit so far beyond the best price asks first, BPS: 5¢. */
const FAR_BPS = 500;

/** Parses a quantity; null if it is invalid. */
export function parseQuantity(text: string): number | null {
  const quantity = parseCount(text);
  return quantity !== null && quantity >= 1 && quantity <= MAX_QUANTITY ? quantity : null;
}

const isBuy = ({ side }: Draft): boolean => side === "buy";

/** The unit that the amount is in. */
export const unitOf = ({ side, unit }: Draft): AmountUnit => (side === "sell" ? "shares" : unit);

/** The worst price that the order accepts; null until there is one. */
function boundOf(draft: Draft, { depth, outcome, slippageBps }: PreviewContext): number | null {
  if (draft.kind === "limit") return parsePrice(draft.price);
  // Without live books, the last known price is the best guess; the bound makes it safe.
  const known = isBuy(draft) ? outcome.implied_ask : outcome.implied_bid;
  const best = depth === null ? known : (depth[0]?.price ?? null);
  if (best === null) return null;
  return isBuy(draft) ? Math.min(MAX_PRICE_BPS, best + slippageBps) : Math.max(MIN_PRICE_BPS, best - slippageBps);
}

/** Shares that can be sold: those not on hold for open sell orders. */
export const availableShares = (position: Position | undefined): number =>
  position === undefined ? 0 : position.quantity - position.held;

/** The most shares that a buy's hold may take, of the balance and of today's limit. */
function affordable(bound: number, money: number | null): number {
  return money === null
    ? MAX_QUANTITY
    : Math.min(MAX_QUANTITY, Math.max(0, Math.floor(money / notionalMicro(bound, 1))));
}

const leftToday = ({ activity }: PreviewContext): number | null =>
  activity === null ? null : Math.max(0, activity.limit - activity.used);

/** The amount that Max fills in, as the field shows it; null if there is none, or it isn't known yet. */
export function maxAmount(draft: Draft, context: PreviewContext): string | null {
  const { available, position } = context;
  const bound = boundOf(draft, context);
  if (!isBuy(draft)) return typedShares(availableShares(position));
  if (available === null) return null;
  const money = Math.min(available, leftToday(context) ?? available);
  if (unitOf(draft) === "shares") return bound === null ? null : typedShares(affordable(bound, money));
  return money === 0 ? null : typedMoney(money);
}

const typedShares = (count: number): string | null => (count === 0 ? null : String(count));

/** Money as a field shows it: exact, without separators. */
export const typedMoney = (micro: number): string => exactMoney(micro).replaceAll(",", "").replace(/\.00$/, "");

/** The number of shares that the amount stands for; null if it is none, or if it depends on a price that isn't known. */
function quantityOf(draft: Draft, bound: number | null, context: PreviewContext): number | null {
  if (unitOf(draft) === "shares") return parseQuantity(draft.amount);
  const micro = parseMoney(draft.amount);
  if (micro === null || micro === 0 || bound === null) return null;
  const wanted =
    draft.kind === "limit" ? Math.floor(micro / notionalMicro(bound, 1)) : sharesFor(micro, bound, context);
  // An order may hold more than it costs. Who names no more money than they have gets what it can hold.
  const { available } = context;
  const left = leftToday(context);
  const fits = (money: number | null): number =>
    money === null || micro > money ? MAX_QUANTITY : affordable(bound, money);
  return Math.min(MAX_QUANTITY, wanted, fits(available), fits(left));
}

/** How many shares an amount of money buys: at what is offered, and beyond that at the bound. */
function sharesFor(micro: number, bound: number, { depth }: PreviewContext): number {
  let left = micro;
  let count = 0;
  for (const { price, quantity } of depth ?? []) {
    if (price > bound) break;
    const bought = Math.min(quantity, Math.floor(left / notionalMicro(price, 1)));
    count += bought;
    left -= notionalMicro(price, bought);
    if (bought < quantity) return count;
  }
  return count + Math.floor(left / notionalMicro(bound, 1));
}

/** The time in force, adjusted to what the order type allows. */
export function timeInForceOf({ kind, timeInForce, isPostOnly }: Draft): TimeInForce {
  if (kind === "market") return timeInForce === "fok" ? "fok" : "ioc";
  if (isPostOnly) return timeInForce === "gtd" ? "gtd" : "gtc";
  return timeInForce;
}

const isPostOnlyOf = ({ kind, isPostOnly }: Draft): boolean => kind === "limit" && isPostOnly;

export function previewOrder(draft: Draft, context: PreviewContext): OrderPreview {
  const bound = boundOf(draft, context);
  const quantity = quantityOf(draft, bound, context);
  const timeInForce = timeInForceOf(draft);
  const expiresAt = timeInForce === "gtd" && draft.expires !== "" ? new Date(draft.expires).getTime() : null;
  const missing: Problems = {
    price: draft.kind === "limit" && draft.price.trim() === "" ? "Enter a price." : null,
    amount: draft.amount.trim() === "" ? "Enter an amount." : null,
    expires: timeInForce === "gtd" && expiresAt === null ? "Enter an expiry time." : null,
  };
  const problems: Problems = {
    price:
      draft.kind === "limit" && bound === null && missing.price === null
        ? "Price must be between 0.01¢ and 99.99¢, with at most two decimals."
        : null,
    amount: missing.amount === null ? amountProblem(draft, bound, quantity) : null,
    expires: expiresAt === null ? null : expiryProblem(expiresAt, context),
  };
  const isFilledIn = [...Object.values(missing), ...Object.values(problems)].every((each) => each === null);
  const summary =
    bound === null || quantity === null || quantity === 0 ? null : summarize(draft, bound, quantity, context);
  const obstacle =
    marketObstacle(draft, context) ??
    (summary === null || bound === null ? null : obstacleOf(draft, bound, summary, context));
  const body =
    isFilledIn && obstacle === null && summary !== null
      ? {
          market_id: context.marketId,
          outcome_id: context.outcome.id,
          side: isBuy(draft) ? 1 : 2,
          price: bound,
          quantity: summary.quantity,
          type: draft.kind,
          time_in_force: timeInForce,
          post_only: isPostOnlyOf(draft),
          ...(expiresAt === null ? {} : { expires_at: expiresAt }),
        }
      : null;
  const far = summary === null || bound === null ? null : farPrice(draft, bound, summary, context);
  const warnings = summary === null || bound === null ? [] : warningsOf(draft, bound, summary, context);
  return { body, bound, problems, missing, obstacle, far, summary, warnings };
}

function amountProblem(draft: Draft, bound: number | null, quantity: number | null): string | null {
  if (unitOf(draft) === "shares") {
    return quantity === null ? `Must be a whole number of shares, at most ${shares(MAX_QUANTITY)}.` : null;
  }
  const micro = parseMoney(draft.amount);
  if (micro === null || micro === 0) return "Must be an amount of USDC, with at most six decimals.";
  return bound !== null && quantity === 0 ? "Buys less than one share." : null;
}

function summarize(draft: Draft, bound: number, quantity: number, context: PreviewContext): PreviewSummary {
  const feeBps = isBuy(draft) ? 0 : context.feeBps;
  const fills = estimate(context.depth ?? [], isBuy(draft), bound, quantity, feeBps);
  const timeInForce = timeInForceOf(draft);
  const resting = timeInForce === "ioc" || timeInForce === "fok" ? 0 : quantity - fills.quantity;
  return {
    quantity,
    fills,
    resting,
    notional: fills.notional + notionalMicro(bound, resting),
    fee: fills.fee + (resting === 0 ? 0 : ownFeeMicro(bound, resting, feeBps)),
    hold: isBuy(draft) ? notionalMicro(bound, quantity) : 0,
    payout: (fills.quantity + resting) * MICRO_PER_SHARE,
  };
}

/** What stands in the way before there is an order. */
function marketObstacle({ kind }: Draft, { depth, isStale }: PreviewContext): Obstacle | null {
  if (isStale) return { kind: "not-live" };
  if (kind !== "market" || depth === null) return null;
  return depth.length === 0 ? { kind: "empty" } : null;
}

function obstacleOf(
  draft: Draft,
  bound: number,
  { quantity, hold, fills }: PreviewSummary,
  context: PreviewContext,
): Obstacle | null {
  const { depth, available, position } = context;
  if (isBuy(draft) && available !== null && hold > available) {
    const maxShares = affordable(bound, Math.min(available, leftToday(context) ?? available));
    return { kind: "funds", available, maxShares, bound };
  }
  const free = availableShares(position);
  if (!isBuy(draft) && available !== null && quantity > free) {
    return { kind: "shares", free, owned: position?.quantity ?? 0 };
  }
  const best = depth?.[0]?.price;
  if (depth === null) return null;
  if (isPostOnlyOf(draft) && best !== undefined && (isBuy(draft) ? bound >= best : bound <= best)) {
    const next = isBuy(draft) ? best - 1 : best + 1;
    return { kind: "crosses", best, next: next < MIN_PRICE_BPS || next > MAX_PRICE_BPS ? null : next };
  }
  const timeInForce = timeInForceOf(draft);
  if (timeInForce !== "ioc" && timeInForce !== "fok") return null;
  if (fills.quantity === 0) return best === undefined ? { kind: "empty" } : { kind: "beyond", best };
  return timeInForce === "fok" && fills.quantity < quantity ? { kind: "too-few", found: fills.quantity } : null;
}

function farPrice(
  draft: Draft,
  price: number,
  { quantity, fills }: PreviewSummary,
  { depth }: PreviewContext,
): FarPrice | null {
  const best = depth?.[0]?.price;
  if (draft.kind !== "limit" || isPostOnlyOf(draft) || best === undefined) return null;
  const beyond = isBuy(draft) ? price - best : best - price;
  return beyond < FAR_BPS ? null : { price, best, fills, worst: notionalMicro(price, quantity) };
}

function expiryProblem(expiresAt: number, { now, closesAt }: PreviewContext): string | null {
  if (Number.isNaN(expiresAt)) return "Enter a valid date and time.";
  if (expiresAt <= now) return "Must be in the future.";
  if (closesAt !== null && expiresAt > closesAt) return "Must be before the market closes.";
  return null;
}

function warningsOf(draft: Draft, bound: number, summary: PreviewSummary, context: PreviewContext): Warning[] {
  const warnings: Warning[] = [];
  const { fills, quantity, resting, hold } = summary;
  const { activity, ownOrders, outcome } = context;
  const rest = quantity - fills.quantity - resting;
  if (fills.quantity > 0 && rest > 0) warnings.push({ kind: "partial", found: fills.quantity, rest });
  const meetsOwn = ownOrders.some(({ outcome_id, side, price }) => {
    if (fills.worstPrice === null || price === null) return false;
    if (outcome_id !== outcome.id) return fills.isImplied && (side === 1) === isBuy(draft);
    return (side === 1) !== isBuy(draft) && (isBuy(draft) ? price <= fills.worstPrice : price >= fills.worstPrice);
  });
  if (meetsOwn) warnings.push({ kind: "own" });
  // Sells don't count toward the limit.
  if (isBuy(draft) && activity !== null && activity.used + hold > activity.limit) {
    const over = activity.used + hold - activity.limit;
    warnings.push({ kind: "limit", over, limit: activity.limit, maxShares: affordable(bound, leftToday(context)) });
  }
  return warnings;
}
