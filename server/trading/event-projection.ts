/**
 * Projects committed engine events into the gateway's memory: live orders, holds, the ledger and the markets' public state;
 * replies to clients and publishes updates on the way. Nothing that a client sees leaves before its commit.
 */

import { matchFeesMicro } from "../../engine/book/match-fees.ts";
import { isFinal, OrderStatus, Reason, Role, Side } from "../../engine/constants.ts";
import type { Ledger } from "../../engine/ledger.ts";
import { MICRO_PER_SHARE } from "../../engine/limits.ts";
import * as R from "../../engine/ring/records.ts";
import { assert } from "../../engine/util/assert.ts";
import type { MarketRegistry } from "../markets/registry.ts";
import { tradeJson } from "../markets/trade-json.ts";
import type { Trade } from "../markets/types.ts";
import type { Counters } from "../util/counters.ts";
import type { Timeline } from "../util/timeline.ts";
import type { ClientOrderIds } from "./client-order-ids.ts";
import type { CommittedEvents } from "./committed-events.ts";
import type { Holds } from "./holds.ts";
import { NO_MARKET_LISTENER, NO_USER_LISTENER } from "./no-listener.ts";
import type { OrderExpiry } from "./order-expiry.ts";
import { fillJson, liveOrderJson, orderJson, withTimestamps } from "./order-json.ts";
import { MARK_TIMESTAMPS, type OrderStore } from "./order-store.ts";
import type { OrderTimes } from "./order-times.ts";
import type { OrderedReadQueue } from "./ordered-reads.ts";
import type { PendingReplies } from "./pending-replies.ts";
import type { RecentlyEndedOrders } from "./recently-ended-orders.ts";
import { amendRefusal, orderFinished } from "./refusals.ts";
import type { GatewayLoop, MarketListener, UserListener } from "./types.ts";
import type { UserUpdates } from "./user-updates.ts";

export interface EventProjectionParts {
  readonly events: CommittedEvents;
  readonly loop: GatewayLoop;
  readonly store: OrderStore;
  readonly holds: Holds;
  readonly ledger: Ledger;
  readonly registry: MarketRegistry;
  readonly clientOrderIds: ClientOrderIds;
  readonly ended: RecentlyEndedOrders;
  readonly expiry: OrderExpiry;
  readonly pending: PendingReplies;
  readonly updates: UserUpdates;
  readonly counters: Counters;
  readonly times: OrderTimes;
  readonly reads: OrderedReadQueue;
  readonly timeline: Timeline;
}

export class EventProjection {
  private readonly parts: EventProjectionParts;
  private users: UserListener = NO_USER_LISTENER;
  private markets: MarketListener = NO_MARKET_LISTENER;
  /** JSON texts of the fills of the current command's taker, until its order.updated. */
  private takerFills = "";

  constructor(parts: EventProjectionParts) {
    this.parts = parts;
  }

  listen(users: UserListener, markets: MarketListener): void {
    this.users = users;
    this.markets = markets;
  }

  /** Applies all committed events, publishes what they changed and serves the reads that waited for them. */
  applyCommitted(): void {
    if (!this.parts.events.drain(this.apply)) return;
    this.endBatch();
    if (this.parts.reads.unapplied.length > 0) this.parts.reads.advance();
  }

  /** Publishes what changed: books, order updates, accounts. */
  endBatch(): void {
    const { registry, updates, timeline, loop } = this.parts;
    registry.drainChanges(timeline.stamp(loop.now()), this.publishBook);
    if (registry.implied.dirty.length > 0) registry.implied.publish(this.elapsed);
    updates.publish();
  }

  private readonly elapsed = (): number => this.parts.loop.elapsed();

  private readonly publishBook: MarketListener["bookUpdated"] = (market, outcome, sequence, bids, asks) =>
    this.markets.bookUpdated(market, outcome, sequence, bids, asks);

  // ---------------------------------------------------------------- events

  private readonly apply = (words: Int32Array, doubles: Float64Array, w: number): void => {
    const { registry, times } = this.parts;
    const packed = words[w]!;
    switch (R.kindOf(packed)) {
      case R.EventKind.levelChanged: {
        const quantity = doubles[(w >> 1) + R.D_DETAIL]!;
        return registry.setLevel(words[w + R.W_OUTCOME]!, R.sideOf(packed), words[w + R.W_PRICE]!, quantity);
      }
      case R.EventKind.batchMatched:
        return times.beginBatch(doubles, w);
      case R.EventKind.orderPlaced:
        return this.orderPlaced(words, doubles, w);
      case R.EventKind.orderFilled:
        return this.orderFilled(words, doubles, w);
      case R.EventKind.orderCanceled:
        return this.orderCanceled(words, doubles, w);
      case R.EventKind.orderReduced:
        return this.orderReduced(words, doubles, w);
      case R.EventKind.orderAmended:
        return this.orderAmended(words, doubles, w);
      case R.EventKind.cancelRefused:
        return this.cancelRefused(words[w + R.W_REFERENCE]!);
      case R.EventKind.amendRefused:
        return this.amendRefused(words, doubles, w);
      case R.EventKind.marketChanged:
        return this.marketChanged(words, w);
      case R.EventKind.setsSplit:
        return this.setsSplit(words, doubles, w);
      case R.EventKind.setsMerged:
        return this.setsMerged(words, w);
      case R.EventKind.stopped:
        return;
      default:
        assert(false, "the gateway knows every event kind");
    }
  };

  private orderPlaced(words: Int32Array, doubles: Float64Array, w: number): void {
    const { store, holds, pending, counters, times } = this.parts;
    const slot = words[w + R.W_SLOT]!;
    const packed = words[w]!;
    const status = R.statusOf(packed);
    this.takerFills = "";
    store.statuses[slot] = OrderStatus.queued;
    // A quote that replaces another one may have become smaller on its way.
    store.quantities[slot] = words[w + R.W_QUANTITY]!;
    store.remaining[slot] = words[w + R.W_REMAINING]!;
    if (!isFinal(status)) holds.resolveChange(slot);
    pending.resolvePlacement(slot)?.data(liveOrderJson(store, slot));
    counters.orders++;
    times.observe(slot);
    this.changed(slot);
    if (status === OrderStatus.queued) return;
    this.setState(slot, status, R.reasonOf(packed), words[w + R.W_REMAINING]!, doubles, w, "");
  }

  private orderFilled(words: Int32Array, doubles: Float64Array, w: number): void {
    const { store, holds, updates, counters } = this.parts;
    const packed = words[w]!;
    const slot = words[w + R.W_SLOT]!;
    const user = words[w + R.W_USER]!;
    holds.releasePart(slot, words[w + R.W_QUANTITY]!);
    this.fillLedger(words, doubles, w);
    updates.accountChanged(user, words[w + R.W_OUTCOME]!);
    counters.fills++;
    if ((packed & R.FLAG_MATCH_END) !== 0) this.publishTrade(words, doubles, w);
    const fill = this.users.listens(user) ? this.fillText(words, doubles, w) : "";
    const remaining = words[w + R.W_REMAINING]!;
    store.remaining[slot] = remaining;
    if (R.roleOf(packed) === Role.maker) {
      return this.setState(slot, R.statusOf(packed), Reason.none, remaining, doubles, w, fill);
    }
    const fills = this.takerFills === "" ? fill : `${this.takerFills},${fill}`;
    const isLast = (packed & R.FLAG_UPDATE_END) !== 0;
    this.takerFills = isLast ? "" : fills;
    if (isLast) this.setState(slot, R.statusOf(packed), Reason.none, remaining, doubles, w, fills);
  }

  private fillLedger(words: Int32Array, doubles: Float64Array, w: number): void {
    const { store, ledger } = this.parts;
    const packed = words[w]!;
    const reference = words[w + R.W_REFERENCE]!;
    if (R.legOf(reference) === 0) ledger.beginMatch(matchFeesMicro(words, w));
    ledger.fill(
      words[w + R.W_USER]!,
      store.markets[words[w + R.W_SLOT]!]!,
      words[w + R.W_OUTCOME]!,
      R.sideOf(packed),
      words[w + R.W_PRICE]!,
      words[w + R.W_QUANTITY]!,
      R.matchTypeOf(packed),
      R.roleOf(packed),
      (packed & R.FLAG_PAT) !== 0,
      (packed & R.FLAG_MATCH_END) !== 0,
      doubles[(w >> 1) + R.D_AT]!,
      R.ratesOf(reference),
    );
  }

  private fillText(words: Int32Array, doubles: Float64Array, w: number): string {
    const { ledger } = this.parts;
    const packed = words[w]!;
    const id = doubles[(w >> 1) + R.D_FILL_ID]!;
    return fillJson(
      id,
      id - R.legOf(words[w + R.W_REFERENCE]!),
      words[w + R.W_PRICE]!,
      words[w + R.W_QUANTITY]!,
      R.roleOf(packed),
      R.matchTypeOf(packed),
      ledger.lastFee,
      ledger.lastRebate,
      doubles[(w >> 1) + R.D_AT]!,
    );
  }

  private publishTrade(words: Int32Array, doubles: Float64Array, w: number): void {
    const { registry, counters } = this.parts;
    const packed = words[w]!;
    const fillId = doubles[(w >> 1) + R.D_FILL_ID]!;
    const trade: Trade = {
      outcomeId: words[w + R.W_OUTCOME]!,
      side: R.sideOf(packed),
      price: words[w + R.W_PRICE]!,
      quantity: words[w + R.W_QUANTITY]!,
      matchType: R.matchTypeOf(packed),
      matchId: fillId - R.legOf(words[w + R.W_REFERENCE]!),
      fillId,
      at: doubles[(w >> 1) + R.D_AT]!,
    };
    const market = registry.recordTrade(trade);
    const sequence = ++market.tradeSequence;
    counters.trades++;
    if (market.isWatched) this.markets.tradeCreated(market, sequence, trade.at, tradeJson(market.id, trade));
  }

  private orderCanceled(words: Int32Array, doubles: Float64Array, w: number): void {
    const { store, pending } = this.parts;
    const slot = words[w + R.W_SLOT]!;
    const correlationId = words[w + R.W_REFERENCE]!;
    if (correlationId < 0) pending.resolveCancel(correlationId, store.ids[slot]!);
    else if (correlationId > 0) pending.resolve(correlationId)?.data(liveOrderJson(store, slot));
    this.changed(slot);
    const packed = words[w]!;
    this.setState(slot, R.statusOf(packed), R.reasonOf(packed), words[w + R.W_REMAINING]!, doubles, w, "");
  }

  private cancelRefused(correlationId: number): void {
    const { pending } = this.parts;
    if (correlationId < 0) pending.resolveCancel(correlationId, null);
    else pending.resolve(correlationId)?.error(orderFinished());
  }

  /** Self-trade prevention took shares off the order. */
  private orderReduced(words: Int32Array, doubles: Float64Array, w: number): void {
    const { store, holds } = this.parts;
    const slot = words[w + R.W_SLOT]!;
    holds.reduce(slot, store.remaining[slot]! - words[w + R.W_REMAINING]!);
    this.setSize(words, w);
    this.changed(slot);
    // A taker's order reports with what follows.
    if (R.roleOf(words[w]!) !== Role.taker) this.replyWithState(words, doubles, w);
    else this.parts.pending.resolve(words[w + R.W_REFERENCE]!);
  }

  /** Price, total quantity or expiry changed, and the hold with them. */
  private orderAmended(words: Int32Array, doubles: Float64Array, w: number): void {
    const { store, holds, expiry } = this.parts;
    const slot = words[w + R.W_SLOT]!;
    this.setSize(words, w);
    if ((words[w]! & R.FLAG_EXTENDS) !== 0) expiry.change(slot, doubles[(w >> 1) + R.D_DETAIL]!);
    else {
      store.prices[slot] = words[w + R.W_PRICE]!;
      // Without a reference, the event says where the order came to rest after self-trade prevention reduced it.
      if (words[w + R.W_REFERENCE] !== 0) holds.resolveChange(slot);
    }
    this.changed(slot);
    this.replyWithState(words, doubles, w);
  }

  private setSize(words: Int32Array, w: number): void {
    const { store } = this.parts;
    const slot = words[w + R.W_SLOT]!;
    store.quantities[slot] = words[w + R.W_QUANTITY]!;
    store.remaining[slot] = words[w + R.W_REMAINING]!;
  }

  private replyWithState(words: Int32Array, doubles: Float64Array, w: number): void {
    const { store, pending } = this.parts;
    const slot = words[w + R.W_SLOT]!;
    const status = R.statusOf(words[w]!);
    const remaining = words[w + R.W_REMAINING]!;
    const at = doubles[(w >> 1) + R.D_AT]!;
    const answer = pending.resolve(words[w + R.W_REFERENCE]!);
    answer?.data(orderJson(store, slot, status, Reason.none, remaining, at, ""));
    this.setState(slot, status, Reason.none, remaining, doubles, w, "");
  }

  private amendRefused(words: Int32Array, doubles: Float64Array, w: number): void {
    const { store, holds, pending } = this.parts;
    const slot = words[w + R.W_SLOT]!;
    // The slot may belong to another order by now.
    if (store.ids[slot] === doubles[(w >> 1) + R.D_ORDER_ID]) holds.resolveChange(slot);
    pending.resolve(words[w + R.W_REFERENCE]!)?.error(amendRefusal(R.reasonOf(words[w]!)));
  }

  private marketChanged(words: Int32Array, w: number): void {
    const { registry, pending } = this.parts;
    const market = registry.market(words[w + R.W_SLOT]!);
    registry.setStatus(market, R.statusOf(words[w]!));
    this.markets.marketChanged(market);
    pending.resolve(words[w + R.W_REFERENCE]!)?.data("{}");
  }

  private setsSplit(words: Int32Array, doubles: Float64Array, w: number): void {
    const { registry, ledger } = this.parts;
    const user = words[w + R.W_USER]!;
    const quantity = words[w + R.W_QUANTITY]!;
    const { id, firstOutcomeId, outcomes } = registry.market(words[w + R.W_SLOT]!);
    const amount = quantity * MICRO_PER_SHARE;
    ledger.release(user, amount);
    ledger.changeLiveActivity(user, -amount);
    ledger.split(user, id, firstOutcomeId, outcomes.length, quantity, doubles[(w >> 1) + R.D_AT]!);
    this.replyWithSets(words, w, 0);
  }

  private setsMerged(words: Int32Array, w: number): void {
    const { registry, ledger } = this.parts;
    const user = words[w + R.W_USER]!;
    const quantity = words[w + R.W_QUANTITY]!;
    const { id, firstOutcomeId, outcomes } = registry.market(words[w + R.W_SLOT]!);
    for (const outcome of outcomes) ledger.releaseShares(user, outcome.id, quantity);
    const fee = ledger.merge(user, id, firstOutcomeId, outcomes.length, quantity, words[w + R.W_PRICE]!);
    this.replyWithSets(words, w, fee);
  }

  private replyWithSets(words: Int32Array, w: number, fee: number): void {
    const { registry, updates, pending } = this.parts;
    const market = registry.market(words[w + R.W_SLOT]!);
    for (const { id } of market.outcomes) updates.accountChanged(words[w + R.W_USER]!, id);
    pending.resolve(words[w + R.W_REFERENCE]!)?.data(setsJson(market.id, words[w + R.W_QUANTITY]!, fee));
  }

  // ---------------------------------------------------------------- an order's state

  /** Sets an order's new state, publishes it, and removes the order where the state is final. */
  private setState(
    slot: number,
    status: number,
    reason: number,
    remaining: number,
    doubles: Float64Array,
    w: number,
    fills: string,
  ): void {
    const { store, counters, updates, times } = this.parts;
    const user = store.users[slot]!;
    const at = doubles[(w >> 1) + R.D_AT]!;
    const sequence = doubles[(w >> 1) + R.D_USER_SEQUENCE]!;
    store.statuses[slot] = status;
    store.remaining[slot] = remaining;
    store.updatedAt[slot] = at;
    counters.orderUpdates[status]!++;
    updates.applied(user, sequence, at);
    if (this.users.listens(user)) {
      const plain = orderJson(store, slot, status, reason, remaining, at, fills);
      const hasTimestamps = (store.marks[slot]! & MARK_TIMESTAMPS) !== 0;
      updates.orderUpdated(user, sequence, at, hasTimestamps ? withTimestamps(plain, times.json(slot)) : plain);
    }
    if (isFinal(status)) this.remove(slot);
  }

  private remove(slot: number): void {
    const { store, holds, ended, clientOrderIds } = this.parts;
    const user = store.users[slot]!;
    // A change still on its way finds no order.
    holds.end(slot);
    ended.add(store.ids[slot]!, user);
    if (clientOrderIds.isForgotten(store.createdAt[slot]!)) {
      const clientOrderId = store.clientOrderId(slot);
      if (clientOrderId !== null) clientOrderIds.free(user, clientOrderId);
    }
    store.remove(slot);
  }

  /** The order changes its user's balance or, where it sells, the position. */
  private changed(slot: number): void {
    const { store, updates } = this.parts;
    const sells = R.sideOf(store.packed[slot]!) === Side.sell;
    updates.accountChanged(store.users[slot]!, sells ? store.outcomes[slot]! : 0);
  }
}

/** The response to a split or merge. @param fee micro-USDC that it cost */
export function setsJson(marketId: number, quantity: number, fee: number): string {
  return `{"market_id":${marketId},"quantity":${quantity},"fee":${fee}}`;
}
