/**
 * Replaces all of a user's quotes in a market at once: one chain of commands, in which nothing of anyone else is matched,
 * and one commit. Plans the replacement, checks and funds it, then writes the chain; the reply completes as its events come.
 */
import { OrderType, Reason, restingTimeInForce, Side } from "../../engine/constants.ts";
import { MAX_CHAIN_COMMANDS } from "../../engine/limits.ts";
import { notionalMicro } from "../../engine/money.ts";
import * as R from "../../engine/ring/records.ts";
import { assert } from "../../engine/util/assert.ts";
import { ApiError, asApiError, badRequest, notFound } from "../errors.ts";
import type { Market } from "../markets/types.ts";
import { copyReport, type OrderReport } from "../orders/order-json.ts";
import type { Exchange } from "./exchange.ts";
import { worstOf } from "./holds.ts";
import { REPLY_DEADLINE_MS } from "./limits.ts";
import {
  checkInFuture,
  checkLiveOrders,
  checkNeeds,
  checkOpen,
  hasOutcome,
  needsOf,
  validUntilOf,
} from "./order-checks.ts";
import { disconnectFlag, IN_FLIGHT, MARK_ENDING, type OrderStore } from "./order-store.ts";
import { exchangeIsFull, quotesTooLate, tooManyInFlight } from "./rejections.ts";
import { SlotReport } from "./slot-report.ts";
import type { OrderEntryOptions, Origin, Quote, QuotesSink, QuoteTerms, Reply, Trader } from "./types.ts";

/** A request to replace a user's quotes in a market. */
export interface QuotesRequest {
  readonly trader: Trader;
  readonly origin: Origin;
  readonly marketId: number;
  readonly quotes: readonly Quote[];
  readonly terms: QuoteTerms;
  readonly now: number;
}

/** The old quote that a new one takes over from (slot 0: none), and what it needs beyond what that one holds. */
interface Takeover {
  readonly slot: number;
  /** What the gateway last knew to remain of it. */
  readonly expected: number;
  readonly money: number;
  readonly shares: number;
}

/** A requested quote, and what becomes of it. */
interface PlannedQuote {
  readonly quote: Quote;
  /** The slot of the same quote that stands already and stays; 0 where this one is placed. */
  readonly standing: number;
  /** Null where the user's means cover old and new quotes together. */
  takeover: Takeover | null;
}

interface Plan {
  readonly planned: readonly PlannedQuote[];
  /** Slots of the quotes that are canceled. */
  readonly old: readonly number[];
  /** `valid_until` has passed: all quotes stay as they are, and the engine rejects the new ones. */
  readonly isLate: boolean;
  readonly expiresAt: number;
}

export class Quotes {
  private readonly exchange: Exchange;
  private readonly saveCancelOnDisconnect: OrderEntryOptions["saveCancelOnDisconnect"];

  constructor(exchange: Exchange, saveCancelOnDisconnect: OrderEntryOptions["saveCancelOnDisconnect"]) {
    this.exchange = exchange;
    this.saveCancelOnDisconnect = saveCancelOnDisconnect;
  }

  /**
   * Makes the request's quotes all of the user's quotes in the market. A quote that stands as requested stays; where only
   * its expiry differs it is extended in place. Where the user's means don't cover old and new together, each new quote
   * takes over what an old one of its outcome and side holds, less what of that one was filled in the meantime.
   * @param open opens the sink of the results, once nothing can be rejected any more
   * @throws ApiError: then all quotes are unchanged
   */
  replace(request: QuotesRequest, open: () => QuotesSink): void {
    const { exchange } = this;
    const { trader, marketId, now } = request;
    const market = this.checkRequest(request);
    const plan = this.plan(request);
    const placed = plan.planned.filter(({ standing }) => standing === 0);
    if (placed.length > 0) checkOpen(exchange, request.origin, market, now);
    this.fund(request, plan, placed);
    const extended = plan.planned.filter(({ standing }) => this.isExtended(plan, standing));
    const commands = plan.old.length + placed.length + extended.length;
    assert(commands <= MAX_CHAIN_COMMANDS, "quotes and those they replace fit a chain");
    if (!exchange.writer.hasRoom(marketId, commands)) throw tooManyInFlight();
    if (!exchange.store.hasSlotsFor(trader.userId, placed.length, plan.old.length)) throw exchangeIsFull();
    // From here it must succeed.
    if (commands > 0) exchange.writer.beginChain(commands);
    const replacement = new Replacement(exchange, this.saveCancelOnDisconnect, request, plan, open());
    exchange.times.receiveTogether(() => replacement.write());
  }

  /** @throws ApiError 4040, 40000, 50300 */
  private checkRequest({ marketId, quotes, terms, now }: QuotesRequest): Market {
    const { registry, gate } = this.exchange;
    const market = registry.get(marketId);
    if (market === undefined) throw notFound("market");
    for (const [i, { outcomeId }] of quotes.entries()) {
      if (!hasOutcome(market, outcomeId)) throw badRequest(`quotes.${i}.outcome_id: not an outcome of this market`);
    }
    checkInFuture(terms.expiresAt, now);
    gate.checkRunning();
    this.exchange.endDue(now);
    return market;
  }

  private plan({ trader, marketId, quotes, terms, now }: QuotesRequest): Plan {
    const isLate = terms.validUntil !== null && now > validUntilOf(terms);
    const standing = this.standing(trader.userId, marketId);
    const planned = quotes.map((quote) => {
      return { quote, standing: popUnchanged(this.exchange, standing, quote), takeover: null };
    });
    return { planned, old: isLate ? [] : standing, isLate, expiresAt: terms.expiresAt ?? 0 };
  }

  /** Slots of the user's quotes in the market, newest first. */
  private standing(userId: number, marketId: number): number[] {
    const { store } = this.exchange;
    const slots: number[] = [];
    for (let slot = store.newestQuoteOf(userId, marketId); slot !== 0; slot = store.olderQuoteOf(slot)) {
      if ((store.marks[slot]! & MARK_ENDING) === 0) slots.push(slot);
    }
    return slots;
  }

  private isExtended({ isLate, expiresAt }: Plan, slot: number): boolean {
    return slot !== 0 && !isLate && this.exchange.store.expiresAt[slot] !== expiresAt;
  }

  // ---------------------------------------------------------------- means

  /**
   * Checks that the user's order limit and buying power cover the placed quotes beside the old ones, or else in their place.
   * @throws ApiError where they do neither; 40900 `too_late` for a late request: what stands keeps what the new quotes would
   * have taken over, and the client must not look for means elsewhere
   */
  private fund(request: QuotesRequest, { old, isLate }: Plan, placed: readonly PlannedQuote[]): void {
    const { trader, now } = request;
    try {
      checkLiveOrders(this.exchange, trader, placed.length, old.length);
      if (this.areCovered(trader, placed, now, old.length > 0)) return;
      this.takeOver(placed, old);
      const needs = placed.map(({ quote: { outcomeId, side }, takeover }) => {
        return { outcomeId, side, money: takeover?.money ?? 0, shares: takeover?.shares ?? 0 };
      });
      checkNeeds(this.exchange, trader, needsOf(needs), now);
    } catch (error) {
      throw isLate ? quotesTooLate() : error;
    }
  }

  /** @param canTakeOver returns false rather than throw where means are lacking @throws ApiError */
  private areCovered(trader: Trader, placed: readonly PlannedQuote[], now: number, canTakeOver: boolean): boolean {
    const needs = placed.map(({ quote: { outcomeId, side, price, quantity } }) => {
      return { outcomeId, side, money: notionalMicro(price, quantity), shares: quantity };
    });
    try {
      checkNeeds(this.exchange, trader, needsOf(needs), now);
      return true;
    } catch (error) {
      if (error instanceof ApiError && canTakeOver) return false;
      throw error;
    }
  }

  /** Gives each quote an old one of its outcome and side to take over from, best price to best price, as far as there are. */
  private takeOver(placed: readonly PlannedQuote[], old: readonly number[]): void {
    const { store, holds } = this.exchange;
    const better = (side: number, a: number, b: number): number => (side === Side.buy ? b - a : a - b);
    const sideOf = (slot: number): number => R.sideOf(store.terms[slot]!);
    // The resting price of an order in flight is unknown: it can be canceled, but not taken over from.
    const free = old.filter((slot) => store.statuses[slot] !== IN_FLIGHT);
    free.sort((a, b) => better(sideOf(a), store.prices[a]!, store.prices[b]!));
    for (const each of placed) {
      const { price, quantity } = each.quote;
      each.takeover = { slot: 0, expected: 0, money: notionalMicro(price, quantity), shares: quantity };
    }
    const byPrice = [...placed].sort((a, b) => better(a.quote.side, a.quote.price, b.quote.price));
    for (const each of byPrice) {
      const { outcomeId, side, price, quantity } = each.quote;
      const at = free.findIndex((slot) => store.outcomes[slot] === outcomeId && sideOf(slot) === side);
      if (at < 0) continue;
      const [slot] = free.splice(at, 1) as [number];
      const before = holds.exposureOf(slot);
      const after = worstOf(before, price, quantity);
      const [money, shares] = [after.money - before.money, after.shares - before.shares];
      each.takeover = { slot, expected: before.shares, money, shares };
    }
  }
}

/** Writes the chain of one replacement, and reports its results. */
class Replacement {
  private readonly exchange: Exchange;
  private readonly save: OrderEntryOptions["saveCancelOnDisconnect"];
  private readonly request: QuotesRequest;
  private readonly plan: Plan;
  private readonly sink: QuotesSink;
  private readonly report: SlotReport;
  /** By quote: parts of its result that are still to come. */
  private readonly parts: Uint8Array;
  /** By quote: its last known state, where several parts make its result. */
  private readonly known: (OrderReport | undefined)[] = [];
  /** All parts that are still to come; `write` counts as one until everything is written. */
  private outstanding = 1;
  private hasFailed = false;

  constructor(
    exchange: Exchange,
    save: OrderEntryOptions["saveCancelOnDisconnect"],
    request: QuotesRequest,
    plan: Plan,
    sink: QuotesSink,
  ) {
    this.exchange = exchange;
    this.save = save;
    this.request = request;
    this.plan = plan;
    this.sink = sink;
    this.report = new SlotReport(exchange.store);
    this.parts = new Uint8Array(plan.planned.length);
  }

  write(): void {
    this.cancelOld();
    const toSave: number[] = [];
    for (const [index, planned] of this.plan.planned.entries()) {
      if (planned.standing === 0) this.place(planned, index);
      else this.keep(planned.standing, index, toSave);
    }
    if (toSave.length > 0) this.saveOrders(toSave);
    this.partDone();
  }

  private readonly partDone = (): void => {
    if (--this.outstanding > 0 || this.hasFailed) return;
    this.sink.done();
  };

  private readonly fail = (error: ApiError): void => {
    if (this.hasFailed) return;
    this.hasFailed = true;
    this.sink.failed(error);
  };

  /** Counts one more part of a quote's result, and returns its reply. A quote is placed, or nothing of the whole is. */
  private expect(index: number, error: (error: ApiError) => void = this.fail): Reply {
    this.outstanding++;
    this.parts[index]!++;
    const noOrder = (): void => assert(false, "a quote's result is an order");
    return { order: (report) => this.arrived(index, report), canceled: noOrder, data: noOrder, error };
  }

  /** A part of the quote's result is known: the last one makes it. */
  private arrived(index: number, report: OrderReport): void {
    this.sink.arrived();
    this.parts[index]!--;
    if (this.hasFailed) return;
    if (this.parts[index] === 0) this.sink.order(index, report);
    else this.known[index] = copyReport(report);
    this.partDone();
  }

  private cancelOld(): void {
    const { store, pending } = this.exchange;
    const { old } = this.plan;
    if (old.length === 0) return;
    this.outstanding++;
    const watcher = { arrived: () => this.sink.arrived(), done: this.partDone };
    const correlationId = pending.expectCancels(old.length, watcher);
    for (const slot of old) {
      store.replace(slot);
      this.exchange.cancelOrder(slot, Reason.user, correlationId, this.request.now);
    }
  }

  private place({ quote, takeover }: PlannedQuote, index: number): void {
    const { exchange } = this;
    const { store, holds, writer, pending, turn } = exchange;
    const { now, terms } = this.request;
    const slot = this.allocate(quote);
    store.link(slot);
    if (takeover === null || takeover.slot === 0) {
      holds.hold(slot);
      writer.placeOrder({ slot, at: now, validUntil: validUntilOf(terms) });
    } else {
      holds.reserveDifference(slot, takeover.slot, takeover.money, takeover.shares);
      writer.replaceOrder({ slot, at: now, replaced: takeover.slot, expected: takeover.expected });
    }
    // The next set, which may come before this one's events, must not find a late quote standing.
    if (this.plan.isLate) store.marks[slot]! |= MARK_ENDING;
    pending.expectPlacement(slot, this.expect(index), now + REPLY_DEADLINE_MS);
    turn.schedule();
  }

  private allocate(quote: Quote): number {
    const { exchange } = this;
    const { trader, origin, marketId, now } = this.request;
    const { expiresAt } = this.plan;
    const flags =
      R.FLAG_QUOTE |
      R.FLAG_POST_ONLY |
      (trader.pat ? R.FLAG_PAT : 0) |
      disconnectFlag(origin) |
      (origin.builderCode === null ? 0 : R.FLAG_TEXT);
    const timeInForce = restingTimeInForce(expiresAt);
    const terms = R.packTerms(quote.side, OrderType.limit, timeInForce, 0, flags);
    const { outcomeId: outcome, price, quantity } = quote;
    const { userId: user } = trader;
    const at = exchange.timeline.stamp(now);
    const slot = exchange.store.allocateNew(
      { user, market: marketId, outcome, price, quantity, terms, expiresAt, at },
      origin,
    );
    exchange.times.receive(slot);
    if (expiresAt > 0) exchange.expiry.add(slot);
    if (origin.builderCode !== null) exchange.store.texts.write(slot, null, origin.builderCode, 0);
    return slot;
  }

  /** A quote that stays: extends it where its expiry differs, and makes it this connection's. */
  private keep(slot: number, index: number, toSave: number[]): void {
    const { store, pending } = this.exchange;
    const { origin, now } = this.request;
    const { isLate, expiresAt } = this.plan;
    const isExtended = !isLate && store.expiresAt[slot] !== expiresAt;
    if (isExtended) this.extend(slot, index);
    // A late request changes nothing, but what it shows must be durable all the same.
    const mustSave = !isLate && adopt(store, slot, origin);
    const orderId = store.ids[slot]!;
    if (store.statuses[slot] !== IN_FLIGHT) {
      if (mustSave) toSave.push(orderId);
      if (!isExtended) this.sink.standing(index, this.report.live(slot));
      return;
    }
    const placed = this.expect(index);
    const saveFirst = (report: OrderReport): void => {
      this.saveOrders([orderId]);
      placed.order(report);
    };
    const reply = mustSave ? { ...placed, order: saveFirst } : placed;
    if (!pending.hasPlacement(slot)) this.exchange.gate.checkRunning();
    pending.joinPlacement(slot, reply, now + REPLY_DEADLINE_MS);
  }

  private extend(slot: number, index: number): void {
    const { writer, pending, turn } = this.exchange;
    const { now } = this.request;
    this.known[index] = copyReport(this.report.live(slot));
    // Where it ended on the way, its last state is all there is to show.
    const part = this.expect(index, () => this.arrived(index, this.known[index]!));
    const correlationId = pending.expect(part, now + REPLY_DEADLINE_MS);
    writer.extendOrder({ slot, at: now, expiresAt: this.plan.expiresAt, correlationId });
    turn.schedule();
  }

  /** Saves whether these durable orders end with their connection; the reply waits for it. */
  private saveOrders(orderIds: readonly number[]): void {
    this.outstanding++;
    this.save(orderIds, disconnectFlag(this.request.origin) !== 0).then(this.partDone, (error) =>
      this.fail(asApiError(error)),
    );
  }
}

/** Removes the standing quote that equals the requested one from the list and returns its slot; 0 where there is none. */
function popUnchanged({ store, holds }: Exchange, standing: number[], quote: Quote): number {
  const at = standing.findIndex(
    (slot) =>
      store.outcomes[slot] === quote.outcomeId &&
      R.sideOf(store.terms[slot]!) === quote.side &&
      store.prices[slot] === quote.price &&
      store.remaining[slot] === quote.quantity &&
      !holds.isReserved(slot),
  );
  return at < 0 ? 0 : (standing.splice(at, 1)[0] ?? 0);
}

/** Makes a standing order its sender's. Returns whether its row in the database must change. */
function adopt(store: OrderStore, slot: number, origin: Origin): boolean {
  store.connections[slot] = origin.connection?.number ?? 0;
  if ((store.terms[slot]! & R.FLAG_CANCEL_ON_DISCONNECT) === disconnectFlag(origin)) return false;
  store.terms[slot]! ^= R.FLAG_CANCEL_ON_DISCONNECT;
  return true;
}
