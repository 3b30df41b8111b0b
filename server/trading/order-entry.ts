/**
 * Places, amends and cancels orders: checks a request, holds what it needs and writes the command. Everything that can be
 * rejected is rejected here, before anything changed; what only the book can know comes back as an engine event
 * (event-projection.ts), and so does every reply.
 */
import { OrderType, Reason, Side, TimeInForce } from "../../engine/constants.ts";
import { MAX_PRICE_BPS, MIN_PRICE_BPS } from "../../engine/limits.ts";
import { notionalMicro } from "../../engine/money.ts";
import type { ClientOrderId } from "../../engine/ring/order-texts.ts";
import * as R from "../../engine/ring/records.ts";
import { ApiError, asApiError, badRequest, ErrorKind, notFound } from "../errors.ts";
import type { Market } from "../markets/types.ts";
import { copyReport } from "../orders/order-json.ts";
import { fingerprintOf } from "./client-order-keys.ts";
import { CompleteSets } from "./complete-sets.ts";
import { CompositeReply } from "./composite-reply.ts";
import type { Exchange } from "./exchange.ts";
import { worstOf } from "./holds.ts";
import { REPLY_DEADLINE_MS } from "./limits.ts";
import * as check from "./order-checks.ts";
import { disconnectFlag, IN_FLIGHT, isNamed, MARK_ENDING, MARK_TIMESTAMPS } from "./order-store.ts";
import { Quotes } from "./quotes.ts";
import { clientOrderIdInUse, exchangeIsFull, orderFinished, tooManyInFlight } from "./rejections.ts";
import { firstReport } from "./slot-report.ts";
import type {
  Amendment,
  Connection,
  EndedOrder,
  OrderEntryOptions,
  OrderFilter,
  Origin,
  Placement,
  Reply,
  Trader,
} from "./types.ts";

export class OrderEntry {
  readonly quotes: Quotes;
  readonly sets: CompleteSets;
  private readonly exchange: Exchange;
  private readonly findEnded: (userId: number, orderId: number) => Promise<EndedOrder | null>;

  /** @param options.exchange whose orders these are */
  constructor(options: OrderEntryOptions & { readonly exchange: Exchange }) {
    this.exchange = options.exchange;
    this.findEnded = options.findEnded;
    this.quotes = new Quotes(options.exchange, options.saveCancelOnDisconnect);
    this.sets = new CompleteSets(options.exchange, options.defaultMergeFeeBps);
  }

  // ---------------------------------------------------------------- placing

  /**
   * Places an order; `reply` gets the queued order once it is durable or, where the client order id names the same order
   * already, what the first request got.
   * @throws ApiError where it is rejected; then nothing changed
   */
  place(trader: Trader, origin: Origin, order: Placement, now: number, reply: Reply): void {
    const { exchange } = this;
    const { store, writer, clientOrderIds, expiry, holds } = exchange;
    const market = exchange.registry.get(order.marketId);
    if (market === undefined) throw notFound("market");
    if (!check.hasOutcome(market, order.outcomeId)) throw badRequest("outcome_id: not an outcome of this market");
    check.checkTerms(order);
    const { clientOrderId } = order;
    if (clientOrderId !== null) {
      const orderId = clientOrderIds.find(trader.userId, clientOrderId);
      if (orderId !== 0) return this.repeat(trader.userId, orderId, order, now, reply);
    }
    // Checked after the duplicate: a retry may arrive after its order has expired.
    check.checkInFuture(order.expiresAt, now);
    this.checkPlacement(trader, origin, market, order, now);
    if (clientOrderId !== null) clientOrderIds.checkRoom(trader.userId);
    // From here it must succeed.
    const slot = this.allocate(trader, origin, order, now);
    store.link(slot);
    holds.hold(slot);
    if (R.timeInForceOf(order.terms) === TimeInForce.gtd) expiry.add(slot);
    writer.placeOrder({ slot, at: now, validUntil: check.validUntilOf(order) });
    if (order.timestamps) store.marks[slot]! |= MARK_TIMESTAMPS;
    const placed = order.timestamps ? withTimes(exchange, slot, reply) : reply;
    exchange.pending.expectPlacement(slot, placed, now + REPLY_DEADLINE_MS);
    exchange.turn.schedule();
  }

  private checkPlacement(trader: Trader, origin: Origin, market: Market, order: Placement, now: number): void {
    const { exchange } = this;
    check.checkOpen(exchange, origin, market, now);
    exchange.endDue(now);
    check.checkLiveOrders(exchange, trader, 1, 0);
    if (R.sideOf(order.terms) === Side.buy)
      check.checkMoney(exchange, trader, notionalMicro(boundOf(order), order.quantity), now);
    else check.checkShares(exchange.ledger, trader.userId, order.outcomeId, order.quantity);
    if (!exchange.writer.hasRoom(market.id)) throw tooManyInFlight();
    if (!exchange.store.hasSlotsFor(trader.userId, 1, 0)) throw exchangeIsFull();
  }

  /** Gives the order a slot, a number and its texts. */
  private allocate(trader: Trader, origin: Origin, order: Placement, now: number): number {
    const { exchange } = this;
    const { store } = exchange;
    const { clientOrderId } = order;
    const hasText = clientOrderId !== null || origin.builderCode !== null;
    const flags = (trader.pat ? R.FLAG_PAT : 0) | disconnectFlag(origin) | (hasText ? R.FLAG_TEXT : 0);
    const terms = order.terms | flags;
    const user = trader.userId;
    const { marketId: market, outcomeId: outcome, quantity } = order;
    const price = boundOf(order);
    const expiresAt = order.expiresAt ?? 0;
    const at = exchange.timeline.stamp(now);
    // Spelled out: a spread costs an order a sixth of the gateway's time.
    const slot = store.allocateNew({ user, market, outcome, price, quantity, terms, expiresAt, at }, origin);
    exchange.times.receive(slot);
    if (!hasText) return slot;
    store.texts.write(slot, clientOrderId, origin.builderCode, clientOrderId === null ? 0 : fingerprint(order));
    if (clientOrderId !== null) {
      exchange.clientOrderIds.add(trader.userId, clientOrderId, store.ids[slot]!, store.createdAt[slot]!);
    }
    return slot;
  }

  /** The client order id is in use: the same body gets the first reply, another body a conflict. */
  private repeat(userId: number, orderId: number, order: Placement, now: number, reply: Reply): void {
    const { store } = this.exchange;
    const slot = store.find(orderId);
    if (slot === 0) return this.repeatEnded(userId, orderId, order, reply);
    if (store.texts.fingerprint(slot) !== fingerprint(order) || store.users[slot] !== userId)
      throw clientOrderIdInUse();
    if (store.statuses[slot] === IN_FLIGHT) this.joinPlacement(slot, reply, now);
    else reply.order(firstReport(orderId, order, store.texts.builderCode(slot), store.createdAt[slot]!));
  }

  private repeatEnded(userId: number, orderId: number, order: Placement, reply: Reply): void {
    this.findEnded(userId, orderId).then(
      (ended) => {
        const isSame = ended !== null && ended.userId === userId && ended.fingerprint === fingerprint(order);
        if (!isSame) reply.error(clientOrderIdInUse());
        else reply.order(firstReport(orderId, order, ended.builderCode, ended.createdAt));
      },
      (error) => reply.error(asApiError(error)),
    );
  }

  /**
   * Completes `reply` once the placement in flight of the order in `slot` is durable.
   * @throws ApiError where trading has stopped: the first reply was abandoned, and the order isn't durable
   */
  joinPlacement(slot: number, reply: Reply, now: number): void {
    const { pending, gate } = this.exchange;
    if (!pending.hasPlacement(slot)) gate.checkRunning();
    pending.joinPlacement(slot, reply, now + REPLY_DEADLINE_MS);
  }

  // ---------------------------------------------------------------- canceling

  /**
   * Cancels an order of the user; `reply` gets it as it stood when the cancel reached it, 40900 where it has ended, 4040
   * where the user has no such order.
   */
  cancel(userId: number, orderId: number, now: number, reply: Reply): void {
    const slot = this.findOwn(userId, orderId);
    if (slot === 0) this.explainMissing(userId, orderId, reply);
    else this.cancelSlot(slot, now, reply);
  }

  /** The same for the order that a client order id names, also while its placement is in flight. */
  cancelByClientId(userId: number, clientOrderId: ClientOrderId, now: number, reply: Reply): void {
    const orderId = this.exchange.clientOrderIds.find(userId, clientOrderId);
    if (orderId === 0) throw notFound("order");
    const { store } = this.exchange;
    const slot = store.find(orderId);
    if (slot === 0) this.explainMissing(userId, orderId, reply);
    else if (!isNamed(store, slot, userId, clientOrderId)) throw notFound("order");
    else this.cancelSlot(slot, now, reply);
  }

  private cancelSlot(slot: number, now: number, reply: Reply): void {
    const { exchange } = this;
    exchange.gate.checkRunning();
    if (!exchange.writer.hasReservedRoom(exchange.store.markets[slot]!)) throw tooManyInFlight();
    exchange.cancelOrder(slot, Reason.user, exchange.pending.expect(reply, now + REPLY_DEADLINE_MS), now);
  }

  /** Cancels the user's live orders that match the filter; `reply` gets the ids of those that this ended. */
  cancelAll(userId: number, filter: OrderFilter, now: number, reply: Reply, reason: number = Reason.user): void {
    const { exchange } = this;
    exchange.gate.checkRunning();
    const slots = this.matching(userId, filter);
    const composite = new CompositeReply(exchange, userId, reply, now + REPLY_DEADLINE_MS);
    exchange.cancels.add(slots, reason, {
      arrived: () => composite.arrived(),
      done: (orderIds) => composite.finish((given) => given.canceled(orderIds)),
    });
    exchange.turn.schedule();
  }

  private matching(userId: number, filter: OrderFilter): number[] {
    const { store, clientOrderIds } = this.exchange;
    const only = filter.clientOrderId === undefined ? 0 : clientOrderIds.find(userId, filter.clientOrderId);
    const slots: number[] = [];
    for (let slot = store.newestOf(userId); slot !== 0; slot = store.olderOf(slot)) {
      if (filter.marketId !== undefined && store.markets[slot] !== filter.marketId) continue;
      if (filter.outcomeId !== undefined && store.outcomes[slot] !== filter.outcomeId) continue;
      if (filter.side !== undefined && R.sideOf(store.terms[slot]!) !== filter.side) continue;
      if (filter.clientOrderId !== undefined && store.ids[slot] !== only) continue;
      if (filter.lastOrderId !== undefined && store.ids[slot]! > filter.lastOrderId) continue;
      slots.push(slot);
    }
    return slots;
  }

  /** The connection has ended: cancels the orders that it placed, if it asked for cancel on disconnect. */
  endConnection(userId: number, connection: Connection): void {
    if (!connection.cancelOnDisconnect) return;
    connection.ended = true;
    const { store, cancels, turn } = this.exchange;
    const slots: number[] = [];
    for (let slot = store.newestOf(userId); slot !== 0; slot = store.olderOf(slot)) {
      if (store.connections[slot] === connection.number) slots.push(slot);
    }
    cancels.add(slots, Reason.cancelOnDisconnect, null);
    turn.schedule();
  }

  // ---------------------------------------------------------------- amending

  /** Amends price, total quantity or both of a live order; `reply` gets it as amended. @throws ApiError */
  amend(trader: Trader, origin: Origin, change: Amendment, now: number, reply: Reply): void {
    const { orderId } = change;
    if (change.price === null && change.quantity === null) {
      throw badRequest("price, quantity: give one of them or both");
    }
    const slot = this.findOwn(trader.userId, orderId);
    if (slot === 0) return this.explainMissing(trader.userId, orderId, reply);
    const { exchange } = this;
    const { store, holds, ledger, writer, pending } = exchange;
    const market = exchange.registry.market(store.markets[slot]!);
    const { price, quantity } = change;
    const keepsPriority =
      (price === null || price === store.prices[slot]) && (quantity === null || quantity <= store.quantities[slot]!);
    if (keepsPriority) exchange.gate.checkRunning();
    if (!keepsPriority) check.checkOpen(exchange, origin, market, now);
    exchange.endDue(now);
    if ((store.marks[slot]! & MARK_ENDING) !== 0) throw new ApiError(ErrorKind.conflict, "the order is being canceled");
    const filled = store.quantities[slot]! - store.remaining[slot]!;
    const before = holds.exposureOf(slot);
    // A field that is not given stays as the changes before this one leave it: at most what they are reserved for.
    const shares = quantity === null ? before.shares : Math.max(0, quantity - filled);
    const after = worstOf(before, price ?? before.price, shares);
    if (R.sideOf(store.terms[slot]!) === Side.buy) {
      check.checkMoney(exchange, trader, after.money - before.money, now);
    } else check.checkShares(ledger, trader.userId, store.outcomes[slot]!, after.shares - before.shares);
    if (!writer.hasRoom(market.id)) throw tooManyInFlight();
    // From here it must succeed.
    holds.reserve(slot, after);
    writer.amendOrder({
      ...{ slot, at: now, price: price ?? 0, quantity: quantity ?? 0, validUntil: check.validUntilOf(change) },
      priority: store.allocateId(),
      correlationId: pending.expect(reply, now + REPLY_DEADLINE_MS),
    });
    exchange.turn.schedule();
  }

  // ---------------------------------------------------------------- finding

  /** The slot of a live order of the user, or 0. One in flight has no id yet that its owner could know. */
  private findOwn(userId: number, orderId: number): number {
    const { store } = this.exchange;
    const slot = store.find(orderId);
    return slot !== 0 && store.users[slot] === userId && store.statuses[slot] !== IN_FLIGHT ? slot : 0;
  }

  /**
   * Distinguishes an order that has ended from one that the user never had: from the cache of recently ended orders, because
   * bursts of late cancels are normal for a maker. @throws ApiError where memory knows
   */
  private explainMissing(userId: number, orderId: number, reply: Reply): void {
    const { store, ended } = this.exchange;
    const owner = ended.ownerOf(orderId);
    if (owner === userId) throw orderFinished();
    if (owner !== 0 || store.find(orderId) !== 0 || !store.hasAllocated(orderId)) throw notFound("order");
    this.findEnded(userId, orderId).then(
      (found) => reply.error(found !== null && found.userId === userId ? orderFinished() : notFound("order")),
      (error) => reply.error(asApiError(error)),
    );
  }
}

/** The limit price, or a market order's price collar, BPS. */
function boundOf({ price, terms }: Placement): number {
  return price ?? (R.sideOf(terms) === Side.buy ? MAX_PRICE_BPS : MIN_PRICE_BPS);
}

/** Adds timestamps to the reply of the order in `slot`; a repeat of its placement, which waits for the same, has none. */
function withTimes({ times }: Exchange, slot: number, reply: Reply): Reply {
  return {
    order: (report) => reply.order(copyReport(report, times.of(slot))),
    canceled: (orderIds) => reply.canceled(orderIds),
    data: (json) => reply.data(json),
    error: (error) => reply.error(error),
  };
}

/** The terms that a fingerprint has as numbers of their own. */
const CLASSIC_TERMS = R.packTerms(0xf, 0xf, 0xf, 0x3, R.FLAG_POST_ONLY);

/**
 * What two bodies with one client order id must share: every field that describes the order, with its default; how long the
 * request itself is valid doesn't. Fingerprints are on record: what they consist of never changes, terms that came later
 * share the last number, which is 0 without them.
 */
function fingerprint({ marketId, outcomeId, terms, price, quantity, expiresAt }: Placement): number {
  const type = R.typeOf(terms) === OrderType.limit ? OrderType.limit : OrderType.market;
  return fingerprintOf([
    marketId,
    outcomeId,
    R.sideOf(terms),
    price ?? 0,
    quantity,
    type,
    R.timeInForceOf(terms),
    (terms & R.FLAG_POST_ONLY) === 0 ? 0 : 1,
    R.selfTradePreventionOf(terms),
    expiresAt ?? 0,
    terms & ~CLASSIC_TERMS,
  ]);
}
