/**
 * Applies engine events to the ledger and marks the rows that they change. Inserts fills; all other rows wait for the
 * flush. The log stage assigned all numbers; each is asserted to be the next one.
 */
import type Database from "better-sqlite3";
import { matchFeesMicro } from "../book/match-fees.ts";
import { MatchType, Role, Side } from "../constants.ts";
import type { OrderText, Records, TextReader } from "../log/batch-format.ts";
import { notionalMicro } from "../money.ts";
import { EngineEvent } from "../ring/engine-event.ts";
import { EventKind } from "../ring/records.ts";
import { assert, unreachable } from "../util/assert.ts";
import type { ProjectorParts } from "./parts.ts";
import { RowInserter } from "./row-inserter.ts";
import { type ColumnOf, FILLS } from "./tables.ts";

export class EventApplier {
  private readonly parts: ProjectorParts;
  private readonly fillRows: RowInserter<ColumnOf<typeof FILLS>>;
  private readonly insertSetsEntry: Database.Statement;
  private readonly event = new EngineEvent();
  /** The id of the current match: its first fill. */
  private matchId = 0;

  constructor(parts: ProjectorParts) {
    this.parts = parts;
    this.fillRows = new RowInserter(parts.db, FILLS);
    this.insertSetsEntry = parts.db.prepare(
      `INSERT INTO entries (id, user_id, type, amount, balance_after, market_id, created_at, last_fill_id)
       VALUES (?, ?, ?, ?, ?, ?, ?, ?)`,
    );
  }

  /** Applies a batch's events. */
  apply({ words, doubles, count }: Records, texts: TextReader): void {
    const { event } = this;
    event.at(words, doubles, 0);
    for (let i = 0; i < count; i++, event.next()) this.applyEvent(event, texts);
  }

  /** Writes pending fills. */
  flush(): void {
    this.fillRows.flush();
  }

  private applyEvent(event: EngineEvent, texts: TextReader): void {
    const { kind } = event;
    switch (kind) {
      case EventKind.levelChanged:
      case EventKind.batchMatched:
      case EventKind.cancelRejected:
      case EventKind.amendRejected:
      case EventKind.stopped:
        return;
      case EventKind.orderPlaced:
        return this.applyPlacement(event, texts.next(event));
      case EventKind.orderFilled:
        return this.applyFill(event);
      case EventKind.orderReduced:
        return this.applyReduction(event);
      case EventKind.orderAmended:
        return this.applyAmend(event);
      case EventKind.orderCanceled:
        this.parts.dirtyOrders.mark(event);
        return this.addUpdate(event);
      case EventKind.marketChanged:
        this.parts.dirtyAccounts.statuses.set(event.market, event.status);
        return;
      case EventKind.setsSplit:
      case EventKind.setsMerged:
        return this.applySets(event);
      default:
        unreachable(kind, "kind of event");
    }
  }

  // ---------------------------------------------------------------- orders

  private applyPlacement(event: EngineEvent, text: OrderText): void {
    const { counters, dirtyOrders, slots } = this.parts;
    const index = dirtyOrders.place(event);
    // The gateway's own time: orders' ids and times rise together, whichever ring they take.
    const placedAt = text.placedAt ?? event.time;
    dirtyOrders.placedTimes[index] = placedAt;
    dirtyOrders.entriesBefore[index] = counters.lastEntryId;
    const builder = text.builderCode === null ? 0 : this.countBuilderOrder(text.builderCode, placedAt);
    dirtyOrders.builders[index] = builder;
    if (text.clientOrderId !== null) this.keepText(index, text);
    slots.place(event, builder);
    if (event.isUpdate) this.addUpdate(event);
  }

  private keepText(index: number, { clientOrderId, fingerprint }: OrderText): void {
    this.parts.dirtyOrders.texts.set(index, { clientOrderId, fingerprint });
  }

  /** Counts a new order for its builder; returns the builder. */
  private countBuilderOrder(code: string, at: number): number {
    const { builders } = this.parts;
    const builder = builders.idOf(code, at);
    builders.addOrder(builder);
    return builder;
  }

  private applyReduction(event: EngineEvent): void {
    const { slots } = this.parts;
    slots.load(event.slot, event.orderId);
    this.changeTerms(event, slots.price(event.slot));
    if (event.isUpdate) this.addUpdate(event);
  }

  private applyAmend(event: EngineEvent): void {
    const { dirtyOrders, slots } = this.parts;
    const { slot } = event;
    slots.load(slot, event.orderId);
    const index = this.changeTerms(event, event.price);
    if (event.lostPriority) dirtyOrders.priorities[index] = event.priority;
    if (event.isExtension) {
      dirtyOrders.extended[index] = 1;
      dirtyOrders.expiry[index] = event.expiresAt;
      slots.setExpiry(slot, event.expiresAt);
    }
    this.addUpdate(event);
  }

  /** Sets a loaded order's terms, and keeps the old ones for the updates before; returns the order's index. */
  private changeTerms(event: EngineEvent, price: number): number {
    const { dirtyOrders, links, slots, updates } = this.parts;
    const { slot, quantity: total } = event;
    const index = dirtyOrders.mark(event);
    const sequence = links.sequenceOf(event.user) + 1;
    updates.addTermChange(event.orderId, sequence, slots.price(slot), slots.total(slot), slots.expiry(slot));
    dirtyOrders.amended[index] = 1;
    dirtyOrders.price[index] = price;
    dirtyOrders.total[index] = total;
    slots.setTerms(slot, price, total);
    return index;
  }

  /** The event is an order update. */
  private addUpdate({ user, userSequence, orderId }: EngineEvent): void {
    const { counters, links, updates } = this.parts;
    assert(userSequence === links.sequenceOf(user) + 1, "a user's order updates have no gap");
    links.setSequence(user, userSequence);
    updates.addUpdate(user, userSequence, orderId);
    counters.orderUpdates++;
  }

  // ---------------------------------------------------------------- fills

  private applyFill(event: EngineEvent): void {
    const { counters, dirtyOrders, slots, updates } = this.parts;
    const { slot, orderId, fillId } = event;
    assert(fillId === ++counters.lastEntryId, "fills and entries have no gap");
    slots.load(slot, orderId);
    dirtyOrders.fill(event);
    this.bookFill(event);
    const builder = this.countBuilderFill(event);
    const previousOfOrder = slots.lastFill(slot);
    slots.setLastFill(slot, fillId);
    this.insertFill(event, previousOfOrder, builder);
    if (event.isUpdate) this.addUpdate(event);
    else updates.addFill(orderId);
  }

  /** Books a fill in the ledger, and the trade of a match that it ends. */
  private bookFill(event: EngineEvent): void {
    const { candles, dirtyAccounts, holdings, ledger, markets } = this.parts;
    const { user, outcome, price, quantity, time, endsMatch, fillId } = event;
    const market = markets.marketOf(outcome);
    if (event.leg === 0) {
      this.matchId = fillId;
      ledger.beginMatch(matchFeesMicro(event));
    }
    holdings.balanceChanged(user, time, ledger.balance(user));
    const position = ledger.fill(event, market);
    const change = event.side === Side.buy ? quantity : -quantity;
    holdings.positionChanged(position, time, ledger.quantity(position) - change);
    dirtyAccounts.positions.add(position);
    dirtyAccounts.users.add(user);
    if (!endsMatch) return;
    markets.recordTrade(outcome, price, quantity);
    dirtyAccounts.outcomes.add(outcome);
    candles.add(outcome, price, quantity, time, fillId);
    if (event.matchType !== MatchType.direct) dirtyAccounts.markets.add(market);
  }

  /** Counts a fill for its order's builder, if it has one; returns the builder or 0. */
  private countBuilderFill({ slot, price, quantity }: EngineEvent): number {
    const { builders, ledger, slots } = this.parts;
    const builder = slots.builder(slot);
    if (builder !== 0) builders.addFill(builder, quantity, notionalMicro(price, quantity), ledger.lastFee);
    return builder;
  }

  private insertFill(event: EngineEvent, previousOfOrder: number, builder: number): void {
    const { ledger, links, markets } = this.parts;
    const { user, outcome, role, fillId } = event;
    const row = this.fillRows.next();
    const { params, at } = this.fillRows;
    params[row + at.id] = fillId;
    params[row + at.match_id] = this.matchId;
    params[row + at.user_id] = user;
    params[row + at.order_id] = event.orderId;
    params[row + at.outcome_id] = outcome;
    params[row + at.side] = event.side;
    params[row + at.price] = event.price;
    params[row + at.quantity] = event.quantity;
    params[row + at.role] = role;
    params[row + at.match_type] = event.matchType;
    params[row + at.fee] = ledger.lastFee;
    params[row + at.rebate] = ledger.lastRebate;
    params[row + at.balance_after] = ledger.balance(user);
    params[row + at.created_at] = event.time;
    params[row + at.previous_of_user] = links.addFill(user, fillId);
    params[row + at.previous_of_order] = previousOfOrder;
    params[row + at.previous_of_market] = role === Role.taker ? links.addTrade(markets.marketOf(outcome), fillId) : 0;
    params[row + at.builder_id] = builder || null;
  }

  // ---------------------------------------------------------------- complete sets

  private applySets(event: EngineEvent): void {
    const { counters, dirtyAccounts, holdings, keys, ledger, links, markets } = this.parts;
    const { user, market, quantity, time, fillId: id } = event;
    const first = markets.firstOutcome(market);
    const count = markets.outcomeCount(market);
    const sets = { id: market, first, count };
    const split = event.kind === EventKind.setsSplit;
    const before = ledger.balance(user);
    holdings.balanceChanged(user, time, before);
    let fee = 0;
    if (split) ledger.split(sets, event, time);
    else fee = ledger.merge(sets, event, event.mergeFeeBps);
    const after = ledger.balance(user);
    assert(id === ++counters.lastEntryId, "fills and entries have no gap");
    const type = split ? "split" : "merge";
    const lastFill = links.newestFill(user);
    this.insertSetsEntry.run(id, user, type, after + fee - before, after + fee, market, time, lastFill);
    if (fee > 0) this.insertSetsEntry.run(++counters.lastEntryId, user, "fee", -fee, after, market, time, lastFill);
    keys.arrived(event.correlationId, id, fee);
    dirtyAccounts.users.add(user);
    dirtyAccounts.markets.add(market);
    for (let i = 0; i < count; i++) {
      const position = ledger.findPosition(user, first + i);
      holdings.positionChanged(position, time, ledger.quantity(position) - (split ? quantity : -quantity));
      dirtyAccounts.positions.add(position);
    }
  }
}
