/**
 * What traders ask for: checks a placement, an amend, a cancel, a set of quotes or a change of complete sets, holds what
 * it needs and hands the command on. Everything that can be refused is refused here, before anything was done; what only
 * the book can know comes back as an engine event (exchange.ts), and so does every answer.
 */

import {
  OrderType,
  Reason,
  restingTimeInForce,
  SelfTradePrevention,
  Side,
  TimeInForce,
} from "../../engine/constants.ts";
import type { Ledger } from "../../engine/ledger.ts";
import {
  ANSWER_DEADLINE_MS,
  MAX_CHAIN_COMMANDS,
  MAX_PRICE_BPS,
  MICRO_PER_SHARE,
  MIN_PRICE_BPS,
} from "../../engine/limits.ts";
import { MS_PER_DAY, mergeFeeBps, notionalMicro, utcDay } from "../../engine/money.ts";
import * as R from "../../engine/ring/records.ts";
import { assert } from "../../engine/util/assert.ts";
import { ApiError, asApiError, badRequest, ErrorKind, notFound, overloaded } from "../errors.ts";
import { successBody } from "../http/envelope.ts";
import { isPastEnd, isTradable, marketStatusName } from "../markets/registry.ts";
import type { Market } from "../markets/types.ts";
import { fingerprintOf } from "./client-order-ids.ts";
import { CompositeReply } from "./composite-reply.ts";
import type { EngineLink } from "./engine-links.ts";
import { type Exchange, orderFinished } from "./exchange.ts";
import { type Exposure, worstOf } from "./holds.ts";
import { firstAnswerJson, liveOrderJson, withTimestamps } from "./order-json.ts";
import { IN_FLIGHT, isNamed, MARK_ENDING, MARK_TIMESTAMPS, type OrderStore } from "./order-store.ts";
import type {
  Amendment,
  Answer,
  Connection,
  EndedOrder,
  OrderFilter,
  Origin,
  Placement,
  Quote,
  QuoteTerms,
  Trader,
} from "./types.ts";

export interface OrderEntryOptions {
  readonly exchange: Exchange;
  /** Looks an order up in the database, on behalf of a user. */
  readonly findEnded: (userId: number, orderId: number) => Promise<EndedOrder | null>;
  /** Has durable orders end with their connections, should the exchange crash, or no longer. */
  readonly tie: (orderIds: readonly number[], tied: boolean) => Promise<unknown>;
  /** What merging costs users without terms of their own, BPS of 1 USDC a set. */
  readonly usualMergeFeeBps: number;
}

/** What some placements come to, beside what is held already. */
interface Needs {
  /** micro-USDC: held by buys, and counted for the day. */
  money: number;
  /** By outcome. */
  readonly shares: Map<number, number>;
}

export class OrderEntry {
  private readonly exchange: Exchange;
  private readonly usualMergeFeeBps: number;
  private readonly findEnded: OrderEntryOptions["findEnded"];
  private readonly tie: OrderEntryOptions["tie"];

  constructor(options: OrderEntryOptions) {
    this.exchange = options.exchange;
    this.usualMergeFeeBps = options.usualMergeFeeBps;
    this.findEnded = options.findEnded;
    this.tie = options.tie;
  }

  // ---------------------------------------------------------------- placing

  /**
   * Places an order; `answer` gets the queued order once it is durable, or, where the client order id names the same
   * order already, what the first request was answered with.
   * @throws ApiError where it is refused; then nothing was done
   */
  place(trader: Trader, origin: Origin, order: Placement, now: number, answer: Answer): void {
    const { exchange } = this;
    const market = exchange.registry.get(order.marketId);
    if (market === undefined) throw notFound("market");
    if (!hasOutcome(market, order.outcomeId)) throw badRequest("outcome_id: not an outcome of this market");
    checkTerms(order);
    const { clientOrderId } = order;
    if (clientOrderId !== null) {
      const orderId = exchange.clientOrderIds.find(trader.userId, clientOrderId);
      if (orderId !== 0) return this.repeat(trader.userId, orderId, order, now, answer);
    }
    // Not before: a repeat may well come when its order has expired.
    if (order.expiresAt !== null && order.expiresAt <= now) throw badRequest("expires_at: must lie in the future");
    this.checkOpen(origin, market, now);
    exchange.expireDue(now);
    this.checkLiveOrders(trader, 1, 0);
    const price = order.price ?? (order.side === Side.buy ? MAX_PRICE_BPS : MIN_PRICE_BPS);
    if (order.side === Side.buy) this.checkMoney(trader, notionalMicro(price, order.quantity), now);
    else checkShares(exchange.ledger, trader.userId, order.outcomeId, order.quantity);
    const link = exchange.links.of(market.id);
    if (!exchange.links.hasRoom(link)) throw tooMuchInFlight();
    if (!exchange.store.hasSlotsFor(trader.userId, 1, 0)) throw noSlots();
    if (clientOrderId !== null) exchange.clientOrderIds.checkRoom(trader.userId);
    // From here it must succeed.
    const flags =
      (order.postOnly ? R.FLAG_POST_ONLY : 0) |
      (trader.pat ? R.FLAG_PAT : 0) |
      tieOf(origin) |
      (clientOrderId === null && origin.builderCode === null ? 0 : R.FLAG_TEXT);
    const kind = R.CommandKind.placeOrder;
    const type = order.price === null ? OrderType.unboundMarket : order.type;
    const packed = R.packCommand(kind, order.side, type, order.timeInForce, order.selfTradePrevention, flags);
    const slot = this.take(trader, origin, market.id, order, price, packed, now);
    const { store } = exchange;
    store.expiresAt[slot] = order.expiresAt ?? 0;
    if ((packed & R.FLAG_TEXT) !== 0) {
      const fingerprint = clientOrderId === null ? 0 : fingerprint47(order);
      store.texts.write(slot, clientOrderId, origin.builderCode, fingerprint);
      if (clientOrderId !== null)
        exchange.clientOrderIds.add(trader.userId, clientOrderId, store.ids[slot]!, store.createdAt[slot]!);
    }
    store.link(slot);
    exchange.holds.hold(slot);
    if (order.timeInForce === TimeInForce.gtd) {
      exchange.expiries.add({ at: order.expiresAt!, slot, orderId: store.ids[slot]! });
    }
    const validUntil = validUntilOf(order);
    exchange.pushOrder(link, packed, slot, order.quantity, 0, store.expiresAt[slot]!, validUntil, now);
    if (order.timestamps) store.marks[slot]! |= MARK_TIMESTAMPS;
    exchange.awaitPlacement(slot, order.timestamps ? timedAnswer(exchange, slot, answer) : answer, now);
  }

  /** Gives a new order its slot and its number. */
  private take(
    trader: Trader,
    origin: Origin,
    market: number,
    { outcomeId, quantity }: Placement | Quote,
    price: number,
    packed: number,
    now: number,
  ): number {
    const { store, times, timeline } = this.exchange;
    const at = timeline.stamp(now);
    const slot = store.take({
      id: this.exchange.nextOrderId(),
      user: trader.userId,
      market,
      outcome: outcomeId,
      price,
      quantity,
      remaining: quantity,
      packed,
      status: IN_FLIGHT,
      connection: origin.connection?.number ?? 0,
      expiresAt: 0,
      createdAt: at,
      updatedAt: at,
    });
    times.receive(slot);
    return slot;
  }

  /** A client order id that is in use: the same body is answered as at first, another one is a conflict. */
  private repeat(userId: number, orderId: number, order: Placement, now: number, answer: Answer): void {
    const { store } = this.exchange;
    const slot = store.find(orderId);
    const fingerprint = fingerprint47(order);
    if (slot === 0) {
      this.findEnded(userId, orderId).then(
        (ended) => {
          if (ended === null || ended.userId !== userId || ended.fingerprint !== fingerprint) answer.error(idInUse());
          else answer.data(firstAnswerJson(orderId, order, ended.builderCode, ended.createdAt));
        },
        (error) => answer.error(asApiError(error)),
      );
      return;
    }
    if (store.texts.fingerprint(slot) !== fingerprint || store.users[slot] !== userId) throw idInUse();
    if (store.statuses[slot] === IN_FLIGHT) this.exchange.joinPlacement(slot, answer, now);
    else answer.data(firstAnswerJson(orderId, order, store.texts.builderCode(slot), store.createdAt[slot]!));
  }

  // ---------------------------------------------------------------- canceling

  /**
   * Cancels an order of the user; `answer` gets it as it stood when the cancel reached it, 40900 where it has ended, 4040
   * where the user has no such order.
   */
  cancel(userId: number, orderId: number, now: number, answer: Answer): void {
    const slot = this.findOwn(userId, orderId);
    if (slot === 0) this.explainMissing(userId, orderId, answer);
    else this.cancelSlot(slot, now, answer);
  }

  /** The same for the order that a client order id names, also while its placement is on its way. */
  cancelByClientId(userId: number, clientOrderId: string, now: number, answer: Answer): void {
    const orderId = this.exchange.clientOrderIds.find(userId, clientOrderId);
    if (orderId === 0) throw notFound("order");
    const { store } = this.exchange;
    const slot = store.find(orderId);
    if (slot === 0) this.explainMissing(userId, orderId, answer);
    else if (!isNamed(store, slot, userId, clientOrderId)) throw notFound("order");
    else this.cancelSlot(slot, now, answer);
  }

  private cancelSlot(slot: number, now: number, answer: Answer): void {
    const { exchange } = this;
    if (exchange.refusal !== null) throw exchange.refusal;
    if (!exchange.links.hasReservedRoom(exchange.links.of(exchange.store.markets[slot]!))) throw tooMuchInFlight();
    exchange.pushCancel(slot, Reason.user, exchange.expect(answer, now), now);
  }

  /** Cancels all live orders of the user that fit; `answer` gets {order_ids} of those that it ended. */
  cancelAll(userId: number, filter: OrderFilter, now: number, answer: Answer, reason: number = Reason.user): void {
    const { exchange } = this;
    if (exchange.refusal !== null) throw exchange.refusal;
    const { store } = exchange;
    const only = filter.clientOrderId === undefined ? 0 : exchange.clientOrderIds.find(userId, filter.clientOrderId);
    const slots: number[] = [];
    for (let slot = store.newestOf(userId); slot !== 0; slot = store.olderOf(slot)) {
      if (filter.marketId !== undefined && store.markets[slot] !== filter.marketId) continue;
      if (filter.outcomeId !== undefined && store.outcomes[slot] !== filter.outcomeId) continue;
      if (filter.side !== undefined && R.sideOf(store.packed[slot]!) !== filter.side) continue;
      if (filter.clientOrderId !== undefined && store.ids[slot] !== only) continue;
      if (filter.placedBefore !== undefined && store.createdAt[slot]! >= filter.placedBefore) continue;
      slots.push(slot);
    }
    const gathered = new CompositeReply(exchange, userId, answer, now + ANSWER_DEADLINE_MS);
    exchange.cancels.add(slots, reason, {
      arrived: () => gathered.arrived(),
      done: (orderIds) => gathered.finish(`{"order_ids":[${orderIds.join(",")}]}`),
    });
    exchange.schedule();
  }

  /** The connection has ended: cancels what it placed, if it is tied. */
  endConnection(userId: number, connection: Connection): void {
    if (!connection.tied) return;
    connection.ended = true;
    const { store, cancels } = this.exchange;
    const slots: number[] = [];
    for (let slot = store.newestOf(userId); slot !== 0; slot = store.olderOf(slot)) {
      if (store.connections[slot] === connection.number) slots.push(slot);
    }
    cancels.add(slots, Reason.cancelOnDisconnect, null);
    this.exchange.schedule();
  }

  // ---------------------------------------------------------------- amending

  /** Amends price, total quantity or both of a live order; `answer` gets it as amended. @throws ApiError */
  amend(trader: Trader, origin: Origin, orderId: number, change: Amendment, now: number, answer: Answer): void {
    if (change.price === null && change.quantity === null)
      throw badRequest("price, quantity: give one of them or both");
    const slot = this.findOwn(trader.userId, orderId);
    if (slot === 0) return this.explainMissing(trader.userId, orderId, answer);
    const { exchange } = this;
    const { store, holds, ledger, links } = exchange;
    const market = exchange.registry.get(store.markets[slot]!)!;
    const { price, quantity } = change;
    const keepsPriority =
      (price === null || price === store.prices[slot]) && (quantity === null || quantity <= store.quantities[slot]!);
    if (keepsPriority && exchange.refusal !== null) throw exchange.refusal;
    if (!keepsPriority) this.checkOpen(origin, market, now);
    exchange.expireDue(now);
    if ((store.marks[slot]! & MARK_ENDING) !== 0) throw new ApiError(ErrorKind.conflict, "the order is being canceled");
    const filled = store.quantities[slot]! - store.remaining[slot]!;
    const before = holds.exposureOf(slot);
    // What isn't given stays as the changes before this one leave it: at most what they are reserved for.
    const shares = quantity === null ? before.shares : Math.max(0, quantity - filled);
    const after = worstOf(before, price ?? before.price, shares);
    if (R.sideOf(store.packed[slot]!) === Side.buy) this.checkMoney(trader, after.money - before.money, now);
    else checkShares(ledger, trader.userId, store.outcomes[slot]!, after.shares - before.shares);
    const link = links.of(market.id);
    if (!links.hasRoom(link)) throw tooMuchInFlight();
    // From here it must succeed.
    holds.reserve(slot, after);
    const validUntil = validUntilOf(change);
    const packed = R.packCancel(R.CommandKind.amendOrder, 0, 0);
    const priority = exchange.nextOrderId();
    links.push(
      link, packed, slot, trader.userId, store.outcomes[slot]!, price ?? 0, quantity ?? 0, market.id,
      exchange.expect(answer, now), orderId, now, priority, validUntil,
    ); // biome-ignore format: one record
    exchange.schedule();
  }

  // ---------------------------------------------------------------- quotes

  /**
   * Makes `quotes` all of the user's quotes in the market, at once: one chain of commands, in which nothing of anyone
   * else's is matched, and one commit. A quote that stands as it is asked for stays. Where the user's means don't cover
   * old and new together, each new quote takes over what an old one of its outcome and side holds, and is smaller by what
   * of that one was filled in the meantime. One that stays and has another end in time gets that, where it stands. Of
   * what comes too late all quotes are as they were, and the new ones are rejected. `answer` gets {results}.
   * @throws ApiError: then all quotes are as they were
   */
  replaceQuotes(
    trader: Trader,
    origin: Origin,
    marketId: number,
    quotes: readonly Quote[],
    terms: QuoteTerms,
    now: number,
    answer: Answer,
  ): void {
    const { exchange } = this;
    const { store, links } = exchange;
    const { userId } = trader;
    const market = exchange.registry.get(marketId);
    if (market === undefined) throw notFound("market");
    quotes.forEach(({ outcomeId }, i) => {
      if (!hasOutcome(market, outcomeId)) throw badRequest(`quotes.${i}.outcome_id: not an outcome of this market`);
    });
    if (terms.expiresAt !== null && terms.expiresAt <= now) throw badRequest("expires_at: must lie in the future");
    if (exchange.refusal !== null) throw exchange.refusal;
    exchange.expireDue(now);
    const isLate = terms.validUntil !== null && now > validUntilOf(terms);
    const expiresAt = terms.expiresAt ?? 0;
    const standing = this.standingQuotes(userId, marketId);
    const results = quotes.map((quote) => takeUnchanged(exchange, standing, quote));
    const old = isLate ? [] : standing.filter((slot) => slot !== 0);
    const placed = quotes.filter((_, i) => results[i] === 0);
    if (placed.length > 0) this.checkOpen(origin, market, now);
    const pairs = this.coverQuotes(trader, placed, old, isLate, now);
    const link = links.of(marketId);
    const isExtended = (slot: number): boolean => slot !== 0 && !isLate && store.expiresAt[slot] !== expiresAt;
    const commands = old.length + placed.length + results.filter(isExtended).length;
    assert(commands <= MAX_CHAIN_COMMANDS, "quotes and those they replace fit a chain");
    if (!links.hasRoom(link, commands)) throw tooMuchInFlight();
    if (!store.hasSlotsFor(userId, placed.length, old.length)) throw noSlots();
    // From here it must succeed.
    const gathered = new CompositeReply(exchange, userId, answer, now + ANSWER_DEADLINE_MS);
    const texts = results.map((slot) => (slot === 0 ? null : liveOrderJson(store, slot)));
    // This function counts as one, so that the last to settle is known.
    let outstanding = 1;
    const settle = (): void => {
      if (--outstanding > 0) return;
      gathered.finish(`{"results":[${texts.map((text) => successBody(text!)).join(",")}]}`);
    };
    const awaited = (index: number): Answer => {
      outstanding++;
      return quoteAnswer(texts, index, gathered, settle);
    };
    if (commands > 0) links.beginChain(commands);
    if (old.length > 0) {
      outstanding++;
      const reference = exchange.cancels.watch(old.length, { arrived: () => gathered.arrived(), done: settle });
      for (const slot of old) {
        store.replace(slot);
        exchange.pushCancel(slot, Reason.user, reference, now);
      }
    }
    /** Ties orders that are durable to this connection, or to none; the answer waits until that is durable too. */
    const tie = (orderIds: readonly number[]): void => {
      outstanding++;
      this.tie(orderIds, tieOf(origin) !== 0).then(settle, (error) => gathered.fail(asApiError(error)));
    };
    const tieAnew: number[] = [];
    let n = 0;
    quotes.forEach((quote, i) => {
      const standingSlot = results[i]!;
      if (standingSlot === 0) {
        const pair = pairs === null ? null : pairs[n]!;
        const slot = this.pushQuote(trader, origin, link, marketId, quote, terms, pair, now);
        n++;
        // The next set, which may come before the engine's word on this one, must not find it standing.
        if (isLate) store.marks[slot]! |= MARK_ENDING;
        exchange.awaitPlacement(slot, awaited(i), now);
        return;
      }
      if (isExtended(standingSlot)) {
        const extended = awaited(i);
        // Where it ended on the way, what it was is all there is to show.
        const error = (): void => extended.data(texts[i]!);
        exchange.pushExpiry(link, standingSlot, expiresAt, { data: extended.data, error }, now);
      }
      // A late request changes nothing, but what it shows must be durable all the same.
      const tieChanges = !isLate && takeOver(store, standingSlot, origin);
      const orderId = store.ids[standingSlot]!;
      if (store.statuses[standingSlot] === IN_FLIGHT) {
        const placed = awaited(i);
        const placedThenTied = (json: string): void => {
          tie([orderId]);
          placed.data(json);
        };
        exchange.joinPlacement(standingSlot, tieChanges ? { ...placed, data: placedThenTied } : placed, now);
      } else if (tieChanges) tieAnew.push(orderId);
    });
    if (tieAnew.length > 0) tie(tieAnew);
    settle();
  }

  private standingQuotes(userId: number, marketId: number): number[] {
    const { store } = this.exchange;
    const slots: number[] = [];
    for (let slot = store.newestQuoteOf(userId, marketId); slot !== 0; slot = store.olderQuoteOf(slot)) {
      if ((store.marks[slot]! & MARK_ENDING) === 0) slots.push(slot);
    }
    return slots;
  }

  /** As `fundQuotes`, within the user's live orders. @throws ApiError 40900 where it lacks means, or orders, but is late */
  private coverQuotes(
    trader: Trader,
    quotes: readonly Quote[],
    old: readonly number[],
    isLate: boolean,
    now: number,
  ): QuotePair[] | null {
    try {
      this.checkLiveOrders(trader, quotes.length, old.length);
      return this.fundQuotes(trader, quotes, old, now);
    } catch (error) {
      // What stands keeps what the new ones would have taken over, and nobody should look for means elsewhere.
      throw isLate
        ? new ApiError(ErrorKind.conflict, "too_late: valid_until was over, the quotes are as they were")
        : error;
    }
  }

  /**
   * Sees that the user's means cover the quotes beside the old ones (null), or else in their place: then each quote's
   * pair. @throws ApiError where they do neither
   */
  private fundQuotes(
    trader: Trader,
    quotes: readonly Quote[],
    old: readonly number[],
    now: number,
  ): QuotePair[] | null {
    const together = needsOf(
      quotes.map(({ outcomeId, side, price, quantity }) => {
        return { outcomeId, side, money: notionalMicro(price, quantity), shares: quantity };
      }),
    );
    try {
      this.checkNeeds(trader, together, now);
      return null;
    } catch (error) {
      if (!(error instanceof ApiError) || old.length === 0) throw error;
    }
    const pairs = this.pairQuotes(quotes, old);
    const differences = pairs.map(({ money, shares }, i) => {
      const { outcomeId, side } = quotes[i]!;
      return { outcomeId, side, money, shares };
    });
    this.checkNeeds(trader, needsOf(differences), now);
    return pairs;
  }

  /** Gives each quote an old one of its outcome and side to replace, best price to best price, as far as there are. */
  private pairQuotes(quotes: readonly Quote[], old: readonly number[]): QuotePair[] {
    const { store, holds } = this.exchange;
    const better = (side: number, a: number, b: number): number => (side === Side.buy ? b - a : a - b);
    // What one in flight will come to rest at isn't known: it can be replaced, but not taken over from.
    const free = old.filter((slot) => store.statuses[slot] !== IN_FLIGHT);
    free.sort((a, b) => better(R.sideOf(store.packed[a]!), store.prices[a]!, store.prices[b]!));
    const pairs: QuotePair[] = quotes.map(({ price, quantity }) => {
      return { slot: 0, expected: 0, money: notionalMicro(price, quantity), shares: quantity };
    });
    const order = quotes.map((_, i) => i).sort((a, b) => better(quotes[a]!.side, quotes[a]!.price, quotes[b]!.price));
    for (const i of order) {
      const { outcomeId, side, price, quantity } = quotes[i]!;
      const at = free.findIndex((slot) => store.outcomes[slot] === outcomeId && R.sideOf(store.packed[slot]!) === side);
      if (at < 0) continue;
      const [slot] = free.splice(at, 1) as [number];
      const before = holds.exposureOf(slot);
      const after: Exposure = worstOf(before, price, quantity);
      pairs[i] = {
        slot,
        expected: before.shares,
        money: after.money - before.money,
        shares: after.shares - before.shares,
      };
    }
    return pairs;
  }

  private pushQuote(
    trader: Trader,
    origin: Origin,
    link: EngineLink,
    marketId: number,
    quote: Quote,
    terms: QuoteTerms,
    pair: QuotePair | null,
    now: number,
  ): number {
    const { exchange } = this;
    const { store, holds } = exchange;
    const { side, price, quantity } = quote;
    const flags =
      R.FLAG_QUOTE |
      R.FLAG_POST_ONLY |
      (trader.pat ? R.FLAG_PAT : 0) |
      tieOf(origin) |
      (origin.builderCode === null ? 0 : R.FLAG_TEXT);
    const expiresAt = terms.expiresAt ?? 0;
    const tif = restingTimeInForce(expiresAt);
    const packed = R.packCommand(R.CommandKind.placeOrder, side, OrderType.limit, tif, 0, flags);
    const slot = this.take(trader, origin, marketId, quote, price, packed, now);
    store.expiresAt[slot] = expiresAt;
    if (expiresAt > 0) exchange.expiries.add({ at: expiresAt, slot, orderId: store.ids[slot]! });
    if (origin.builderCode !== null) store.texts.write(slot, null, origin.builderCode, 0);
    store.link(slot);
    if (pair === null || pair.slot === 0) {
      holds.hold(slot);
      exchange.pushOrder(link, packed, slot, quantity, 0, expiresAt, validUntilOf(terms), now);
    } else {
      holds.reserveDifference(slot, pair.slot, pair.money, pair.shares);
      // In the place of valid_until, which has been looked at: who is late replaces nothing.
      exchange.pushOrder(link, packed | R.FLAG_REPLACES, slot, quantity, pair.slot, expiresAt, pair.expected, now);
    }
    return slot;
  }

  // ---------------------------------------------------------------- complete sets

  /**
   * Turns USDC into complete sets, or back for the user's merge fee of now; `answer` gets {market_id, quantity, fee}.
   * @param begin called once nothing can refuse it any more, before it is done @throws ApiError
   */
  changeSets(
    trader: Trader,
    marketId: number,
    quantity: number,
    split: boolean,
    now: number,
    answer: Answer,
    begin: (reference: number) => void,
  ): void {
    const { exchange } = this;
    const market = exchange.registry.get(marketId);
    if (market === undefined) throw notFound("market");
    if (exchange.refusal !== null) throw exchange.refusal;
    const status = split && isPastEnd(market, now) ? "closed" : marketStatusName(market);
    const allowed = split ? ["open", "halted"] : ["open", "halted", "closed"];
    if (!allowed.includes(status)) throw new ApiError(ErrorKind.marketNotOpen, `the market is ${status}`);
    if (market.isSettling) throw new ApiError(ErrorKind.marketNotOpen, "the market is being settled");
    const { ledger, links } = exchange;
    const { userId } = trader;
    const amount = quantity * MICRO_PER_SHARE;
    if (split) this.checkMoney(trader, amount, now);
    else for (const outcome of market.outcomes) checkShares(ledger, userId, outcome.id, quantity);
    const link = links.of(marketId);
    if (!links.hasRoom(link)) throw tooMuchInFlight();
    // From here it must succeed.
    const reference = exchange.expect(answer, now);
    begin(reference);
    if (split) {
      ledger.hold(userId, amount);
      ledger.changeLiveActivity(userId, amount);
    } else for (const outcome of market.outcomes) ledger.holdShares(userId, outcome.id, quantity);
    const kind = split ? R.CommandKind.splitSets : R.CommandKind.mergeSets;
    const fee = split ? 0 : mergeFeeBps(trader, this.usualMergeFeeBps);
    links.push(link, R.packCancel(kind, 0, 0), 0, userId, 0, fee, quantity, marketId, reference, 0, now, 0, 0);
    exchange.schedule();
  }

  // ---------------------------------------------------------------- checks

  /** @throws ApiError unless orders can enter the market's books on behalf of this sender */
  private checkOpen(origin: Origin, market: Market, now: number): void {
    if (this.exchange.refusal !== null) throw this.exchange.refusal;
    if (origin.connection?.ended === true) throw new ApiError(ErrorKind.conflict, "the connection has ended");
    if (!isTradable(market)) throw new ApiError(ErrorKind.marketNotOpen, `the market is ${marketStatusName(market)}`);
    if (isPastEnd(market, now)) throw new ApiError(ErrorKind.marketNotOpen, "the market is closed");
  }

  /** @throws ApiError 42204 unless the account may have so many more, once those that they replace are gone */
  private checkLiveOrders({ userId, maxLiveOrders }: Trader, placed: number, replaced: number): void {
    const live = this.exchange.store.liveOf(userId);
    if (placed <= replaced || live + placed - replaced <= maxLiveOrders) return;
    const text = `the account has ${live} of at most ${maxLiveOrders} live orders: cancel some first`;
    throw new ApiError(ErrorKind.tooManyOrders, text);
  }

  private checkNeeds(trader: Trader, needs: Needs, now: number): void {
    const { ledger } = this.exchange;
    this.checkMoney(trader, needs.money, now);
    for (const [outcomeId, shares] of needs.shares) checkShares(ledger, trader.userId, outcomeId, shares);
  }

  /** What goes into a position counts for the day and must be there. @throws ApiError 42901, 42201 */
  private checkMoney(trader: Trader, amount: number, now: number): void {
    this.checkActivity(trader, amount, now);
    checkBalance(this.exchange.ledger, trader.userId, amount);
  }

  private checkActivity(trader: Trader, activity: number, now: number): void {
    if (activity <= 0) return;
    const day = utcDay(now);
    const { userId, dailyLimit } = trader;
    const used = this.exchange.ledger.activity(userId, day);
    if (used + activity <= dailyLimit) return;
    const retryAfter = Math.ceil(((day + 1) * MS_PER_DAY - now) / 1000);
    const text = `daily activity: ${used} of ${dailyLimit} micro-USDC are used, the order adds ${activity}`;
    throw new ApiError(ErrorKind.activityExceeded, text, retryAfter);
  }

  /** A live order of the user, or 0. One in flight has no id yet that its owner could know. */
  private findOwn(userId: number, orderId: number): number {
    const { store } = this.exchange;
    const slot = store.find(orderId);
    return slot !== 0 && store.users[slot] === userId && store.statuses[slot] !== IN_FLIGHT ? slot : 0;
  }

  /**
   * Tells an order that has ended from one that the user doesn't have: from memory where it ended lately, since bursts
   * of what comes too late are a maker's everyday. @throws ApiError where memory knows
   */
  private explainMissing(userId: number, orderId: number, answer: Answer): void {
    const { store, ended } = this.exchange;
    const owner = ended.ownerOf(orderId);
    if (owner === userId) throw orderFinished();
    if (owner !== 0 || store.find(orderId) !== 0 || !this.exchange.hasGiven(orderId)) throw notFound("order");
    this.findEnded(userId, orderId).then(
      (found) => {
        const own = found !== null && found.userId === userId;
        answer.error(own ? orderFinished() : notFound("order"));
      },
      (error) => answer.error(asApiError(error)),
    );
  }
}

/** The old quote that a new one takes over from (slot 0: none), and what it needs beyond what that one holds. */
interface QuotePair {
  readonly slot: number;
  /** What the gateway last knew to remain of it. */
  readonly expected: number;
  readonly money: number;
  readonly shares: number;
}

function needsOf(quotes: readonly { outcomeId: number; side: number; money: number; shares: number }[]): Needs {
  const needs: Needs = { money: 0, shares: new Map() };
  for (const { outcomeId, side, money, shares } of quotes) {
    if (side === Side.buy) needs.money += money;
    else needs.shares.set(outcomeId, (needs.shares.get(outcomeId) ?? 0) + shares);
  }
  return needs;
}

/** Takes the standing quote that is just as asked for out of the list (0 in its place); 0 where there is none. */
function takeUnchanged({ store, holds }: Exchange, standing: number[], quote: Quote): number {
  const at = standing.findIndex(
    (slot) =>
      slot !== 0 &&
      store.outcomes[slot] === quote.outcomeId &&
      R.sideOf(store.packed[slot]!) === quote.side &&
      store.prices[slot] === quote.price &&
      store.remaining[slot] === quote.quantity &&
      !holds.isReserved(slot),
  );
  if (at < 0) return 0;
  const slot = standing[at]!;
  standing[at] = 0;
  return slot;
}

/** Adds the times to the answer of the order in `slot`; a repeat of its placement, which waits for the same, has none. */
function timedAnswer({ times }: Exchange, slot: number, answer: Answer): Answer {
  return {
    data: (json) => answer.data(withTimestamps(json, times.json(slot))),
    error: (error) => answer.error(error),
  };
}

/** The flag of an order that goes when the connection does over which it comes. */
function tieOf({ connection }: Origin): number {
  return connection?.tied === true ? R.FLAG_CANCEL_ON_DISCONNECT : 0;
}

/** Makes a standing order its sender's; answers whether that changes what its row says about ties. */
function takeOver(store: OrderStore, slot: number, origin: Origin): boolean {
  store.connections[slot] = origin.connection?.number ?? 0;
  if ((store.packed[slot]! & R.FLAG_CANCEL_ON_DISCONNECT) === tieOf(origin)) return false;
  store.packed[slot]! ^= R.FLAG_CANCEL_ON_DISCONNECT;
  return true;
}

function quoteAnswer(texts: (string | null)[], index: number, gathered: CompositeReply, settle: () => void): Answer {
  return {
    data(json) {
      gathered.arrived();
      texts[index] = json;
      settle();
    },
    // A quote in the chain is placed, or nothing of the whole is: the gathered answer says what went wrong.
    error: (error) => gathered.fail(error),
  };
}

/** As a command says it: 0 stands for none, and what was due in 1970 is as late at 1 ms. */
function validUntilOf({ validUntil }: { readonly validUntil: number | null }): number {
  return validUntil === null ? 0 : Math.max(1, validUntil);
}

function hasOutcome(market: Market, outcomeId: number): boolean {
  const index = outcomeId - market.firstOutcomeId;
  return index >= 0 && index < market.outcomes.length;
}

/** @throws ApiError 42201 */
export function checkBalance(ledger: Ledger, userId: number, needed: number): void {
  const available = ledger.available(userId);
  if (needed <= available) return;
  throw new ApiError(ErrorKind.insufficientBalance, `needs ${needed} micro-USDC, ${available} are available`);
}

function checkShares(ledger: Ledger, userId: number, outcomeId: number, needed: number): void {
  const available = ledger.availableShares(userId, outcomeId);
  if (needed <= available) return;
  const text = `needs ${needed} shares of outcome ${outcomeId}, ${available} are available`;
  throw new ApiError(ErrorKind.insufficientShares, text);
}

function tooMuchInFlight(): ApiError {
  return overloaded("too many orders in flight: try again");
}

function noSlots(): ApiError {
  return overloaded(
    "the exchange has nearly all the orders that it can hold: the rest is for accounts with few orders",
  );
}

function idInUse(): ApiError {
  return new ApiError(ErrorKind.conflict, "client_order_id: in use by another order");
}

/** What the fields of one placement ask of each other. @throws ApiError 40000 */
function checkTerms(order: Placement): void {
  const { type, timeInForce, expiresAt, postOnly } = order;
  if (type === OrderType.limit && order.price === null) throw badRequest("price: required for a limit order");
  if (type === OrderType.market && timeInForce !== TimeInForce.ioc && timeInForce !== TimeInForce.fok) {
    throw badRequest("time_in_force: a market order is ioc or fok");
  }
  if (timeInForce === TimeInForce.gtd) {
    if (expiresAt === null) throw badRequest("expires_at: required for gtd");
  } else if (expiresAt !== null) throw badRequest("expires_at: only for gtd");
  const rests = type === OrderType.limit && timeInForce <= TimeInForce.gtd;
  if (postOnly && !rests) throw badRequest("post_only: only for limit orders that may rest");
  assert(order.selfTradePrevention <= SelfTradePrevention.decrement, "the schema lets known modes through");
}

/**
 * What two bodies with one client order id must share: every field that says something, defaults filled in. How long the
 * request itself is good says nothing of the order; 0 stands where it was, so that fingerprints on record stay good.
 */
function fingerprint47(order: Placement): number {
  return fingerprintOf([
    order.marketId,
    order.outcomeId,
    order.side,
    order.price ?? 0,
    order.quantity,
    order.type,
    order.timeInForce,
    order.postOnly ? 1 : 0,
    order.selfTradePrevention,
    order.expiresAt ?? 0,
    0,
  ]);
}
