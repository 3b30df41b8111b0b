/** Splits USDC into complete sets of a market's shares, and merges complete sets back. */

import { MICRO_PER_SHARE } from "../../engine/limits.ts";
import { mergeFeeBps } from "../../engine/money.ts";
import { ApiError, ErrorKind, notFound } from "../errors.ts";
import { isPastEnd, marketStatusName } from "../markets/registry.ts";
import type { Market } from "../markets/types.ts";
import type { Exchange } from "./exchange.ts";
import { REPLY_DEADLINE_MS } from "./limits.ts";
import { checkMoney, checkShares } from "./order-checks.ts";
import { tooManyInFlight } from "./rejections.ts";
import type { Reply, Trader } from "./types.ts";

/** Called with the command's correlation id once nothing can reject it any more, before anything changes. */
export type BeforeChange = (correlationId: number) => void;

/** Complete sets of a market. */
interface Sets {
  readonly marketId: number;
  readonly quantity: number;
}

export class CompleteSets {
  private readonly exchange: Exchange;
  private readonly defaultMergeFeeBps: number;

  /** @param defaultMergeFeeBps of users without terms of their own, BPS of 1 USDC per set */
  constructor(exchange: Exchange, defaultMergeFeeBps: number) {
    this.exchange = exchange;
    this.defaultMergeFeeBps = defaultMergeFeeBps;
  }

  /** Turns 1 USDC per set into one share of each outcome; `reply` gets {market_id, quantity, fee}. @throws ApiError */
  split(trader: Trader, { marketId, quantity }: Sets, now: number, reply: Reply, before: BeforeChange): void {
    const { exchange } = this;
    const { ledger, writer, pending, turn } = exchange;
    const { userId } = trader;
    const market = this.marketOf(marketId);
    checkStatus(market, isPastEnd(market, now) ? "closed" : marketStatusName(market), ["open", "halted"]);
    const amount = quantity * MICRO_PER_SHARE;
    checkMoney(exchange, trader, amount, now);
    if (!writer.hasRoom(marketId)) throw tooManyInFlight();
    // From here it must succeed.
    const correlationId = pending.expect(reply, now + REPLY_DEADLINE_MS);
    before(correlationId);
    ledger.hold(userId, amount);
    ledger.changeLiveActivity(userId, amount);
    writer.splitSets({ userId, marketId, at: now, quantity, correlationId });
    turn.schedule();
  }

  /** Turns one share of each outcome per set into 1 USDC, less the user's merge fee; `reply` as for `split`. @throws ApiError */
  merge(trader: Trader, { marketId, quantity }: Sets, now: number, reply: Reply, before: BeforeChange): void {
    const { ledger, writer, pending, turn } = this.exchange;
    const { userId } = trader;
    const market = this.marketOf(marketId);
    checkStatus(market, marketStatusName(market), ["open", "halted", "closed"]);
    for (const { id } of market.outcomes) checkShares(ledger, userId, id, quantity);
    if (!writer.hasRoom(marketId)) throw tooManyInFlight();
    // From here it must succeed.
    const correlationId = pending.expect(reply, now + REPLY_DEADLINE_MS);
    before(correlationId);
    for (const { id } of market.outcomes) ledger.holdShares(userId, id, quantity);
    const feeBps = mergeFeeBps(trader, this.defaultMergeFeeBps);
    writer.mergeSets({ userId, marketId, at: now, quantity, feeBps, correlationId });
    turn.schedule();
  }

  private marketOf(marketId: number): Market {
    const { registry, gate } = this.exchange;
    const market = registry.get(marketId);
    if (market === undefined) throw notFound("market");
    gate.checkOpen();
    return market;
  }
}

function checkStatus(market: Market, status: string, allowed: readonly string[]): void {
  if (!allowed.includes(status)) throw new ApiError(ErrorKind.marketNotOpen, `the market is ${status}`);
  if (market.isSettling) throw new ApiError(ErrorKind.marketNotOpen, "the market is being settled");
}
