/** What order entry checks before it changes anything: market, live orders, money, shares, daily activity. */
import { OrderType, Side, TimeInForce } from "../../engine/constants.ts";
import type { Ledger } from "../../engine/ledger.ts";
import { MS_PER_DAY } from "../../engine/money.ts";
import { FLAG_POST_ONLY, timeInForceOf, typeOf } from "../../engine/ring/records.ts";
import { ApiError, badRequest, ErrorKind } from "../errors.ts";
import { isPastEnd, isTradable, marketStatusName } from "../markets/registry.ts";
import type { Market } from "../markets/types.ts";
import type { Exchange } from "./exchange.ts";
import type { Origin, Placement, Trader } from "./types.ts";

/** What several orders need together. */
export interface Needs {
  /** micro-USDC */
  money: number;
  /** By outcome. */
  readonly shares: Map<number, number>;
}

/** One order's part of `Needs`. */
export interface Need {
  readonly outcomeId: number;
  readonly side: number;
  readonly money: number;
  readonly shares: number;
}

export function needsOf(orders: readonly Need[]): Needs {
  const needs: Needs = { money: 0, shares: new Map() };
  for (const { outcomeId, side, money, shares } of orders) {
    if (side === Side.buy) needs.money += money;
    else needs.shares.set(outcomeId, (needs.shares.get(outcomeId) ?? 0) + shares);
  }
  return needs;
}

/** @throws ApiError unless this sender's orders can enter the market's books */
export function checkOpen({ gate }: Exchange, { connection }: Origin, market: Market, now: number): void {
  gate.checkOpen();
  if (connection?.ended === true) throw new ApiError(ErrorKind.conflict, "the connection has ended");
  if (!isTradable(market)) throw new ApiError(ErrorKind.marketNotOpen, `the market is ${marketStatusName(market)}`);
  if (isPastEnd(market, now)) throw new ApiError(ErrorKind.marketNotOpen, "the market is closed");
}

/** @throws ApiError 42204 unless the account may have `placed` more orders, once the `replaced` ones are gone */
export function checkLiveOrders(
  { store }: Exchange,
  { userId, maxLiveOrders }: Trader,
  placed: number,
  replaced: number,
): void {
  const live = store.liveOf(userId);
  if (placed <= replaced || live + placed - replaced <= maxLiveOrders) return;
  const text = `the account has ${live} of at most ${maxLiveOrders} live orders: cancel some first`;
  throw new ApiError(ErrorKind.tooManyOrders, text);
}

/** @throws ApiError 42901, 42201, 42202 */
export function checkNeeds(exchange: Exchange, trader: Trader, needs: Needs, now: number): void {
  checkMoney(exchange, trader, needs.money, now);
  for (const [outcomeId, shares] of needs.shares) checkShares(exchange.ledger, trader.userId, outcomeId, shares);
}

/** The notional counts toward the daily limit and must be available. @throws ApiError 42901, 42201 */
export function checkMoney({ ledger }: Exchange, trader: Trader, amount: number, now: number): void {
  checkActivity(ledger, trader, amount, now);
  checkBalance(ledger, trader.userId, amount);
}

function checkActivity(ledger: Ledger, { userId, dailyLimit }: Trader, added: number, now: number): void {
  if (added <= 0) return;
  const day = ledger.countedDay(userId, now);
  const used = ledger.activity(userId, day);
  if (used + added <= dailyLimit) return;
  const retryAfter = Math.ceil(((day + 1) * MS_PER_DAY - now) / 1000);
  const text = `daily activity: ${used} of ${dailyLimit} micro-USDC are used, the order adds ${added}`;
  throw new ApiError(ErrorKind.activityExceeded, text, retryAfter);
}

/** @throws ApiError 42201 */
export function checkBalance(ledger: Ledger, userId: number, needed: number): void {
  const available = ledger.available(userId);
  if (needed <= available) return;
  throw new ApiError(ErrorKind.insufficientBalance, `needs ${needed} micro-USDC, ${available} are available`);
}

/** @throws ApiError 42202 */
export function checkShares(ledger: Ledger, userId: number, outcomeId: number, needed: number): void {
  const available = ledger.availableShares(userId, outcomeId);
  if (needed <= available) return;
  const text = `needs ${needed} shares of outcome ${outcomeId}, ${available} are available`;
  throw new ApiError(ErrorKind.insufficientShares, text);
}

/** What the fields of one placement require of each other. @throws ApiError 40000 */
export function checkTerms(order: Placement): void {
  const { terms, expiresAt } = order;
  const isLimit = typeOf(terms) === OrderType.limit;
  const timeInForce = timeInForceOf(terms);
  if (isLimit && order.price === null) throw badRequest("price: required for a limit order");
  if (!isLimit && timeInForce !== TimeInForce.ioc && timeInForce !== TimeInForce.fok) {
    throw badRequest("time_in_force: a market order is ioc or fok");
  }
  if (timeInForce === TimeInForce.gtd) {
    if (expiresAt === null) throw badRequest("expires_at: required for gtd");
  } else if (expiresAt !== null) throw badRequest("expires_at: only for gtd");
  const rests = isLimit && timeInForce <= TimeInForce.gtd;
  if ((terms & FLAG_POST_ONLY) !== 0 && !rests) throw badRequest("post_only: only for limit orders that may rest");
}

/** @throws ApiError 40000 */
export function checkInFuture(expiresAt: number | null, now: number): void {
  if (expiresAt !== null && expiresAt <= now) throw badRequest("expires_at: must lie in the future");
}

export function hasOutcome(market: Market, outcomeId: number): boolean {
  const index = outcomeId - market.firstOutcomeId;
  return index >= 0 && index < market.outcomes.length;
}

/** As a command has it: 0 for none. Times that aren't positive become 1 ms, which is as late. */
export function validUntilOf({ validUntil }: { readonly validUntil: number | null }): number {
  return validUntil === null ? 0 : Math.max(1, validUntil);
}
