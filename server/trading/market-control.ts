/** Opens, halts, resumes and closes markets on their engine threads, and publishes what became of them. */

import { overloaded } from "../errors.ts";
import { isProposed, isTradable, type MarketRegistry } from "../markets/registry.ts";
import type { Market } from "../markets/types.ts";
import type { CommandWriter, MarketChange } from "./command-writer.ts";
import { REPLY_DEADLINE_MS } from "./limits.ts";
import { NO_MARKET_LISTENER, NO_USER_LISTENER } from "./no-listener.ts";
import type { PendingReplies } from "./pending-replies.ts";
import type { TurnLoop } from "./turn-loop.ts";
import type { MarketListener, Reply, UserListener } from "./types.ts";

export interface MarketControlParts {
  readonly registry: MarketRegistry;
  readonly writer: CommandWriter;
  readonly pending: PendingReplies;
  readonly turn: TurnLoop;
}

export class MarketControl {
  private readonly parts: MarketControlParts;
  private users: UserListener = NO_USER_LISTENER;
  private markets: MarketListener = NO_MARKET_LISTENER;
  /** The last of those that wait for room in a ring. */
  private lastWaiting: Promise<void> | null = null;

  constructor(parts: MarketControlParts) {
    this.parts = parts;
  }

  listen(users: UserListener, markets: MarketListener): void {
    this.users = users;
    this.markets = markets;
  }

  /** Publishes the market as it is now. */
  publish(market: Market): void {
    this.markets.marketChanged(market);
    this.users.endBatch();
  }

  /**
   * Runs `run` once the market's ring has room for a command that cannot be rejected: now, or later and then in the order of
   * the calls, because markets are kept in the order in which they were created.
   */
  whenRoom(marketId: number, run: () => void): Promise<void> | undefined {
    const { writer, turn } = this.parts;
    if (this.lastWaiting === null && writer.hasReservedRoom(marketId)) return void run();
    const waiting = (this.lastWaiting ?? Promise.resolve()).then(() => turn.room()).then(run);
    this.lastWaiting = waiting;
    return waiting.then(() => {
      if (this.lastWaiting === waiting) this.lastWaiting = null;
    });
  }

  /** Changes a market's texts, its end or its picture, and publishes it unless it is still a proposal. */
  describe(market: Market, changes: Parameters<MarketRegistry["describe"]>[1]): void {
    this.parts.registry.describe(market, changes);
    if (!isProposed(market)) this.publish(market);
  }

  /** Takes in a market that was just created, or a proposal that was accepted. */
  created(market: Market): void {
    // Proposals appear in no public list.
    if (!isTradable(market)) return;
    this.open(market);
    this.publish(market);
  }

  /** Announces the market to its engine thread: at startup, and when it is created. */
  open(market: Market): void {
    this.parts.writer.openMarket(market);
    this.parts.turn.schedule();
  }

  /**
   * Halts, resumes or closes a market; `reply` gets an empty object once that is durable.
   * @param begin called once nothing can reject it any more, before it is done
   * @throws ApiError 50300 where the ring is full
   */
  change(market: Market, change: MarketChange, now: number, reply: Reply, begin?: () => void): void {
    const { writer, pending, turn } = this.parts;
    if (!writer.hasReservedRoom(market.id)) throw overloaded("too many commands in flight: try again");
    // From here it must succeed.
    begin?.();
    const correlationId = pending.expect(reply, now + REPLY_DEADLINE_MS);
    writer.changeMarket({ marketId: market.id, change, at: now, correlationId });
    turn.schedule();
  }
}
