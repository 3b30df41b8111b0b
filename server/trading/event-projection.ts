/**
 * Projects committed engine events into the gateway's memory: live orders, holds, the ledger and the markets' public state;
 * replies to clients and publishes updates on the way. Nothing that a client sees leaves before its commit.
 */
import { matchFeesMicro } from "../../engine/book/match-fees.ts";
import { isFinal, OrderStatus, Reason, Role, Side } from "../../engine/constants.ts";
import type { Ledger } from "../../engine/ledger.ts";
import { MICRO_PER_SHARE } from "../../engine/limits.ts";
import type { EngineEvent } from "../../engine/ring/engine-event.ts";
import { EventKind, sideOf } from "../../engine/ring/records.ts";
import { unreachable } from "../../engine/util/assert.ts";
import type { MarketRegistry } from "../markets/registry.ts";
import type { Trade } from "../markets/types.ts";
import type { FillView } from "../orders/order-json.ts";
import type { Counters } from "../util/counters.ts";
import type { Timeline } from "../util/timeline.ts";
import type { ClientOrderIds } from "./client-order-ids.ts";
import type { CommittedEvents } from "./committed-events.ts";
import type { Holds } from "./holds.ts";
import { NO_MARKET_LISTENER, NO_USER_LISTENER } from "./no-listener.ts";
import type { OrderExpiry } from "./order-expiry.ts";
import { MARK_TIMESTAMPS, type OrderStore } from "./order-store.ts";
import type { OrderTimes } from "./order-times.ts";
import type { OrderedReadQueue } from "./ordered-reads.ts";
import type { PendingReplies } from "./pending-replies.ts";
import type { RecentlyEndedOrders } from "./recently-ended-orders.ts";
import { amendRejection, orderFinished } from "./rejections.ts";
import { NO_TRADES, SlotReport } from "./slot-report.ts";
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
  /** The fills of the current command's taker, until its order.updated. */
  private takerFills: FillView[] = [];
  private readonly report: SlotReport;

  constructor(parts: EventProjectionParts) {
    this.parts = parts;
    this.report = new SlotReport(parts.store);
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
    const { registry, updates, timeline, loop, times } = this.parts;
    registry.drainChanges(timeline.stamp(loop.now()), this.publishBook);
    if (registry.implied.dirty.length > 0) registry.implied.publish(this.elapsed);
    updates.publish();
    times.observe();
  }

  private readonly elapsed = (): number => this.parts.loop.elapsed();

  private readonly publishBook: MarketListener["bookUpdated"] = (market, outcome, sequence, bids, asks) =>
    this.markets.bookUpdated(market, outcome, sequence, bids, asks);

  // ---------------------------------------------------------------- events

  private readonly apply = (event: EngineEvent): void => {
    const { registry, times } = this.parts;
    const { kind } = event;
    switch (kind) {
      case EventKind.levelChanged:
        return registry.setLevel(event.outcome, event.side, event.price, event.levelQuantity);
      case EventKind.batchMatched:
        return times.beginBatch(event);
      case EventKind.orderPlaced:
        return this.orderPlaced(event);
      case EventKind.orderFilled:
        return this.orderFilled(event);
      case EventKind.orderCanceled:
        return this.orderCanceled(event);
      case EventKind.orderReduced:
        return this.orderReduced(event);
      case EventKind.orderAmended:
        return this.orderAmended(event);
      case EventKind.cancelRejected:
        return this.cancelRejected(event.correlationId);
      case EventKind.amendRejected:
        return this.amendRejected(event);
      case EventKind.marketChanged:
        return this.marketChanged(event);
      case EventKind.setsSplit:
        return this.setsSplit(event);
      case EventKind.setsMerged:
        return this.setsMerged(event);
      case EventKind.stopped:
        return;
      default:
        unreachable(kind, "kind of event");
    }
  };

  private orderPlaced(event: EngineEvent): void {
    const { store, holds, pending, counters, times } = this.parts;
    const { slot, status } = event;
    if (this.takerFills.length > 0) this.takerFills = [];
    store.statuses[slot] = OrderStatus.queued;
    // A quote that replaces another one may have become smaller on its way.
    this.setSize(event);
    if (!isFinal(status)) holds.resolveChange(slot);
    pending.resolvePlacement(slot)?.order(this.report.live(slot));
    counters.orders++;
    times.reply(slot);
    this.changed(slot);
    if (event.isUpdate) this.setState(event);
  }

  private orderFilled(event: EngineEvent): void {
    const { store, holds, ledger, updates, counters } = this.parts;
    const { slot, user } = event;
    holds.releasePart(slot, event.quantity);
    if (event.leg === 0) ledger.beginMatch(matchFeesMicro(event));
    ledger.fill(event, store.markets[slot]!);
    updates.accountChanged(user, event.outcome);
    counters.fills++;
    if (event.endsMatch) this.publishTrade(event);
    store.remaining[slot] = event.remaining;
    const isHeard = this.users.listens(user);
    if (event.role === Role.maker) return this.setState(event, isHeard ? [this.fillOf(event)] : NO_TRADES);
    if (isHeard) this.takerFills.push(this.fillOf(event));
    if (!event.endsUpdate) return;
    const fills = this.takerFills;
    this.takerFills = [];
    this.setState(event, fills);
  }

  private publishTrade({ outcome, side, price, quantity, matchType, matchId, fillId, time }: EngineEvent): void {
    const { registry, counters } = this.parts;
    const trade: Trade = { outcomeId: outcome, side, price, quantity, matchType, matchId, fillId, at: time };
    const market = registry.recordTrade(trade);
    const sequence = ++market.tradeSequence;
    counters.trades++;
    if (market.isWatched) this.markets.tradeCreated(market, sequence, trade);
  }

  private orderCanceled(event: EngineEvent): void {
    const { store, pending } = this.parts;
    const { slot, correlationId } = event;
    if (correlationId < 0) pending.resolveCancel(correlationId, store.ids[slot]!);
    else if (correlationId > 0) pending.resolve(correlationId)?.order(this.report.live(slot));
    this.changed(slot);
    this.setState(event);
  }

  /** The fill that the ledger has just booked. */
  private fillOf({ fillId: id, matchId, price, quantity, role, matchType, time }: EngineEvent): FillView {
    const { lastFee: fee, lastRebate: rebate } = this.parts.ledger;
    return { id, matchId, price, quantity, role, matchType, fee, rebate, createdAt: time };
  }

  private cancelRejected(correlationId: number): void {
    const { pending } = this.parts;
    if (correlationId < 0) pending.resolveCancel(correlationId, null);
    else pending.resolve(correlationId)?.error(orderFinished());
  }

  /** Self-trade prevention took shares off the order. */
  private orderReduced(event: EngineEvent): void {
    const { store, holds } = this.parts;
    const { slot } = event;
    holds.reduce(slot, store.remaining[slot]! - event.remaining);
    this.setSize(event);
    this.changed(slot);
    // A taker's order reports with what follows.
    if (event.isUpdate) this.replyWithState(event);
    else this.parts.pending.resolve(event.correlationId);
  }

  /** Price, total quantity or expiry changed, and the hold with them. */
  private orderAmended(event: EngineEvent): void {
    const { store, holds, expiry } = this.parts;
    const { slot } = event;
    this.setSize(event);
    if (event.isExtension) expiry.change(slot, event.expiresAt);
    else {
      store.prices[slot] = event.price;
      // Without a reference, the event says where the order came to rest after self-trade prevention reduced it.
      if (event.correlationId !== 0) holds.resolveChange(slot);
    }
    this.changed(slot);
    this.replyWithState(event);
  }

  private setSize({ slot, quantity, remaining }: EngineEvent): void {
    const { store } = this.parts;
    store.quantities[slot] = quantity;
    store.remaining[slot] = remaining;
  }

  private replyWithState(event: EngineEvent): void {
    const { slot, status, remaining, time, correlationId } = event;
    const reply = this.parts.pending.resolve(correlationId);
    reply?.order(this.report.at(slot, status, Reason.none, remaining, time));
    this.setState(event);
  }

  private amendRejected(event: EngineEvent): void {
    const { store, holds, pending } = this.parts;
    const { slot } = event;
    // The slot may belong to another order by now.
    if (store.ids[slot] === event.orderId) holds.resolveChange(slot);
    pending.resolve(event.correlationId)?.error(amendRejection(event.reason));
  }

  private marketChanged(event: EngineEvent): void {
    const { registry, pending } = this.parts;
    const market = registry.market(event.market);
    registry.setStatus(market, event.status);
    this.markets.marketChanged(market);
    pending.resolve(event.correlationId)?.data("{}");
  }

  private setsSplit(event: EngineEvent): void {
    const { registry, ledger } = this.parts;
    const { user, quantity } = event;
    const { id, firstOutcomeId, outcomes } = registry.market(event.market);
    const amount = quantity * MICRO_PER_SHARE;
    ledger.release(user, amount);
    ledger.changeLiveActivity(user, -amount);
    ledger.split({ id, first: firstOutcomeId, count: outcomes.length }, event, event.time);
    this.replyWithSets(event, 0);
  }

  private setsMerged(event: EngineEvent): void {
    const { registry, ledger } = this.parts;
    const { user, quantity } = event;
    const { id, firstOutcomeId, outcomes } = registry.market(event.market);
    for (const outcome of outcomes) ledger.releaseShares(user, outcome.id, quantity);
    const fee = ledger.merge({ id, first: firstOutcomeId, count: outcomes.length }, event, event.mergeFeeBps);
    this.replyWithSets(event, fee);
  }

  private replyWithSets({ user, market: id, quantity, correlationId }: EngineEvent, fee: number): void {
    const { registry, updates, pending } = this.parts;
    const market = registry.market(id);
    for (const outcome of market.outcomes) updates.accountChanged(user, outcome.id);
    pending.resolve(correlationId)?.data(setsJson(id, quantity, fee));
  }

  // ---------------------------------------------------------------- an order's state

  /** Sets an order's new state, publishes it, and removes the order where the state is final. */
  private setState(event: EngineEvent, fills: readonly FillView[] = NO_TRADES): void {
    const { store, counters, updates, times } = this.parts;
    const { slot, status, reason, remaining, time, userSequence } = event;
    const user = store.users[slot]!;
    store.statuses[slot] = status;
    store.remaining[slot] = remaining;
    store.updatedAt[slot] = time;
    counters.orderUpdates[status]!++;
    updates.applied(user, userSequence, time);
    if (this.users.listens(user)) {
      const report = this.report.at(slot, status, reason, remaining, time);
      report.trades = fills;
      if ((store.marks[slot]! & MARK_TIMESTAMPS) !== 0) report.timestamps = times.of(slot);
      updates.orderUpdated(user, userSequence, time, report);
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
    const sells = sideOf(store.terms[slot]!) === Side.sell;
    updates.accountChanged(store.users[slot]!, sells ? store.outcomes[slot]! : 0);
  }
}

/** The response to a split or merge. @param fee micro-USDC that it cost */
export function setsJson(marketId: number, quantity: number, fee: number): string {
  return `{"market_id":${marketId},"quantity":${quantity},"fee":${fee}}`;
}
