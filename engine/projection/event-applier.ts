/**
 * Applies engine events to the ledger and marks the rows that they change. Inserts fills; all other rows wait for the
 * flush. The log stage assigned all numbers; each is asserted to be the next one.
 */
import type Database from "better-sqlite3";
import { matchFeesMicro } from "../book/match-fees.ts";
import { OrderStatus, Role, Side } from "../constants.ts";
import type { OrderText, Records, TextReader } from "../log/batch-format.ts";
import { notionalMicro } from "../money.ts";
import * as R from "../ring/records.ts";
import { assert } from "../util/assert.ts";
import type { ProjectorParts } from "./parts.ts";
import { RowInserter } from "./row-inserter.ts";

const FILL_COLUMNS = 18;

export class EventApplier {
  private readonly parts: ProjectorParts;
  private readonly fillRows: RowInserter;
  private readonly insertSetsEntry: Database.Statement;
  // The batch that is being applied.
  private words: Int32Array = new Int32Array(0);
  private doubles: Float64Array = new Float64Array(0);
  private texts!: TextReader;
  /** The id of the current match: its first fill. */
  private matchId = 0;

  constructor(parts: ProjectorParts) {
    this.parts = parts;
    this.fillRows = new RowInserter(parts.db, "fills", new Array<string>(FILL_COLUMNS).fill("?"));
    this.insertSetsEntry = parts.db.prepare(
      "INSERT INTO entries VALUES (?, ?, ?, ?, ?, ?, NULL, NULL, ?, ?, NULL, NULL, NULL)",
    );
  }

  /** Applies a batch's events. */
  apply({ words, doubles, count }: Records, texts: TextReader): void {
    this.words = words;
    this.doubles = doubles;
    this.texts = texts;
    for (let w = 0; w < count * R.RECORD_WORDS; w += R.RECORD_WORDS) this.applyEvent(w);
  }

  /** Writes pending fills. */
  flush(): void {
    this.fillRows.flush();
  }

  private applyEvent(w: number): void {
    switch (R.kindOf(this.words[w]!)) {
      case R.EventKind.levelChanged:
      case R.EventKind.batchMatched:
      case R.EventKind.cancelRefused:
      case R.EventKind.amendRefused:
      case R.EventKind.stopped:
        break;
      case R.EventKind.orderPlaced:
        this.applyPlacement(w);
        break;
      case R.EventKind.orderFilled:
        this.applyFill(w);
        break;
      case R.EventKind.orderReduced:
        this.applyReduction(w);
        break;
      case R.EventKind.orderAmended:
        this.applyAmend(w);
        break;
      case R.EventKind.orderCanceled:
        this.parts.dirtyOrders.mark(this.words, this.doubles, w);
        this.addUpdate(w);
        break;
      case R.EventKind.marketChanged:
        this.changeMarket(this.words[w + R.W_SLOT]!, R.statusOf(this.words[w]!));
        break;
      case R.EventKind.setsSplit:
      case R.EventKind.setsMerged:
        this.applySets(w);
        break;
      default:
        assert(false, "the projector knows every kind of event");
    }
  }

  // ---------------------------------------------------------------- orders

  private applyPlacement(w: number): void {
    const { counters, dirtyOrders, slots } = this.parts;
    const { words, doubles } = this;
    const packed = words[w]!;
    const text = this.texts.next(words, w);
    const index = dirtyOrders.place(words, doubles, w);
    // The gateway's own time: orders' ids and times rise together, whichever ring they take.
    const placedAt = text.placedAt ?? doubles[(w >> 1) + R.D_AT]!;
    dirtyOrders.placedTimes[index] = placedAt;
    dirtyOrders.entriesBefore[index] = counters.lastEntryId;
    const builder = text.builderCode === null ? 0 : this.countBuilderOrder(text.builderCode, placedAt);
    dirtyOrders.builders[index] = builder;
    if (text.clientOrderId !== null) this.keepText(index, text);
    const expiresAt = doubles[(w >> 1) + R.D_EXPIRES_AT]!;
    const order = doubles[(w >> 1) + R.D_ORDER_ID]!;
    slots.place(words[w + R.W_SLOT]!, order, words[w + R.W_PRICE]!, words[w + R.W_QUANTITY]!, expiresAt, builder);
    if (R.statusOf(packed) !== OrderStatus.queued) this.addUpdate(w);
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

  private applyReduction(w: number): void {
    const { slots } = this.parts;
    const { words } = this;
    const slot = words[w + R.W_SLOT]!;
    slots.load(slot, this.doubles[(w >> 1) + R.D_ORDER_ID]!);
    this.changeTerms(w, slots.price(slot), words[w + R.W_QUANTITY]!);
    if (R.roleOf(words[w]!) === Role.maker) this.addUpdate(w);
  }

  private applyAmend(w: number): void {
    const { dirtyOrders, slots } = this.parts;
    const { words, doubles } = this;
    const packed = words[w]!;
    const slot = words[w + R.W_SLOT]!;
    slots.load(slot, doubles[(w >> 1) + R.D_ORDER_ID]!);
    const index = this.changeTerms(w, words[w + R.W_PRICE]!, words[w + R.W_QUANTITY]!);
    const detail = doubles[(w >> 1) + R.D_DETAIL]!;
    if ((packed & R.FLAG_LOST_PRIORITY) !== 0) dirtyOrders.priorities[index] = detail;
    if ((packed & R.FLAG_EXTENDS) !== 0) {
      dirtyOrders.extended[index] = 1;
      dirtyOrders.expiry[index] = detail;
      slots.setExpiry(slot, detail);
    }
    this.addUpdate(w);
  }

  /** Sets a loaded order's terms, and keeps the old ones for the updates before; returns the order's index. */
  private changeTerms(w: number, price: number, total: number): number {
    const { dirtyOrders, links, slots, updates } = this.parts;
    const { words, doubles } = this;
    const slot = words[w + R.W_SLOT]!;
    const index = dirtyOrders.mark(words, doubles, w);
    const sequence = links.sequenceOf(words[w + R.W_USER]!) + 1;
    const order = doubles[(w >> 1) + R.D_ORDER_ID]!;
    updates.addTermChange(order, sequence, slots.price(slot), slots.total(slot), slots.expiry(slot));
    dirtyOrders.amended[index] = 1;
    dirtyOrders.price[index] = price;
    dirtyOrders.total[index] = total;
    slots.setTerms(slot, price, total);
    return index;
  }

  /** The event is an order update. */
  private addUpdate(w: number): void {
    const { counters, links, updates } = this.parts;
    const user = this.words[w + R.W_USER]!;
    const sequence = this.doubles[(w >> 1) + R.D_USER_SEQUENCE]!;
    assert(sequence === links.sequenceOf(user) + 1, "a user's order updates have no gap");
    links.setSequence(user, sequence);
    updates.addUpdate(user, sequence, this.doubles[(w >> 1) + R.D_ORDER_ID]!);
    counters.orderUpdates++;
  }

  // ---------------------------------------------------------------- fills

  private applyFill(w: number): void {
    const { counters, dirtyOrders, slots, updates } = this.parts;
    const { words, doubles } = this;
    const packed = words[w]!;
    const slot = words[w + R.W_SLOT]!;
    const order = doubles[(w >> 1) + R.D_ORDER_ID]!;
    const id = doubles[(w >> 1) + R.D_FILL_ID]!;
    assert(id === ++counters.lastEntryId, "fills and entries have no gap");
    slots.load(slot, order);
    dirtyOrders.fills[dirtyOrders.mark(words, doubles, w)] = id;
    this.bookFill(w, id);
    const builder = this.countBuilderFill(w);
    const previousOfOrder = slots.lastFill(slot);
    slots.setLastFill(slot, id);
    this.insertFill(w, id, previousOfOrder, builder);
    if (R.roleOf(packed) === Role.maker || (packed & R.FLAG_UPDATE_END) !== 0) this.addUpdate(w);
    else updates.addFill(order);
  }

  /** Books a fill in the ledger, and the trade of a match that it ends. */
  private bookFill(w: number, id: number): void {
    const { candles, dirtyAccounts, holdings, ledger, markets } = this.parts;
    const { words } = this;
    const packed = words[w]!;
    const user = words[w + R.W_USER]!;
    const outcome = words[w + R.W_OUTCOME]!;
    const price = words[w + R.W_PRICE]!;
    const quantity = words[w + R.W_QUANTITY]!;
    const matchType = R.matchTypeOf(packed);
    const ends = (packed & R.FLAG_MATCH_END) !== 0;
    const market = markets.marketOf(outcome);
    const at = this.doubles[(w >> 1) + R.D_AT]!;
    if (R.legOf(words[w + R.W_REFERENCE]!) === 0) {
      this.matchId = id;
      ledger.beginMatch(matchFeesMicro(words, w));
    }
    const side = R.sideOf(packed);
    const pat = (packed & R.FLAG_PAT) !== 0;
    const ownRates = R.ratesOf(words[w + R.W_REFERENCE]!);
    const role = R.roleOf(packed);
    holdings.balanceChanged(user, at, ledger.balance(user));
    const position = ledger.fill(
      user,
      market,
      outcome,
      side,
      price,
      quantity,
      matchType,
      role,
      pat,
      ends,
      at,
      ownRates,
    );
    const change = side === Side.buy ? quantity : -quantity;
    holdings.positionChanged(position, at, ledger.quantity(position) - change);
    dirtyAccounts.positions.add(position);
    dirtyAccounts.users.add(user);
    if (!ends) return;
    markets.recordTrade(outcome, price, quantity);
    dirtyAccounts.outcomes.add(outcome);
    candles.add(outcome, price, quantity, at, id);
    if (matchType !== 0) dirtyAccounts.markets.add(market);
  }

  /** Counts a fill for its order's builder, if it has one; returns the builder or 0. */
  private countBuilderFill(w: number): number {
    const { builders, ledger, slots } = this.parts;
    const { words } = this;
    const builder = slots.builder(words[w + R.W_SLOT]!);
    if (builder === 0) return 0;
    const quantity = words[w + R.W_QUANTITY]!;
    builders.addFill(builder, quantity, notionalMicro(words[w + R.W_PRICE]!, quantity), ledger.lastFee);
    return builder;
  }

  private insertFill(w: number, id: number, previousOfOrder: number, builder: number): void {
    const { ledger, links, markets } = this.parts;
    const { words, doubles } = this;
    const d = w >> 1;
    const packed = words[w]!;
    const user = words[w + R.W_USER]!;
    const outcome = words[w + R.W_OUTCOME]!;
    const role = R.roleOf(packed);
    const row = this.fillRows.next();
    const { params } = this.fillRows;
    params[row] = id;
    params[row + 1] = this.matchId;
    params[row + 2] = user;
    params[row + 3] = doubles[d + R.D_ORDER_ID]!;
    params[row + 4] = outcome;
    params[row + 5] = R.sideOf(packed);
    params[row + 6] = words[w + R.W_PRICE]!;
    params[row + 7] = words[w + R.W_QUANTITY]!;
    params[row + 8] = role;
    params[row + 9] = R.matchTypeOf(packed);
    params[row + 10] = ledger.lastFee;
    params[row + 11] = ledger.lastRebate;
    params[row + 12] = ledger.balance(user);
    params[row + 13] = doubles[d + R.D_AT]!;
    params[row + 14] = links.addFill(user, id);
    params[row + 15] = previousOfOrder;
    params[row + 16] = role === Role.taker ? links.addTrade(markets.marketOf(outcome), id) : 0;
    params[row + 17] = builder || null;
  }

  // ---------------------------------------------------------------- sets and markets

  private applySets(w: number): void {
    const { counters, dirtyAccounts, holdings, keys, ledger, links, markets } = this.parts;
    const { words } = this;
    const user = words[w + R.W_USER]!;
    const market = words[w + R.W_SLOT]!;
    const quantity = words[w + R.W_QUANTITY]!;
    const first = markets.firstOutcome(market);
    const count = markets.outcomeCount(market);
    const split = R.kindOf(words[w]!) === R.EventKind.setsSplit;
    const before = ledger.balance(user);
    const at = this.doubles[(w >> 1) + R.D_AT]!;
    holdings.balanceChanged(user, at, before);
    let fee = 0;
    if (split) ledger.split(user, market, first, count, quantity, at);
    else fee = ledger.merge(user, market, first, count, quantity, words[w + R.W_PRICE]!);
    const after = ledger.balance(user);
    const id = this.doubles[(w >> 1) + R.D_FILL_ID]!;
    assert(id === ++counters.lastEntryId, "fills and entries have no gap");
    const type = split ? "split" : "merge";
    const lastFill = links.newestFill(user);
    this.insertSetsEntry.run(id, user, type, after + fee - before, after + fee, market, at, lastFill);
    if (fee > 0) this.insertSetsEntry.run(++counters.lastEntryId, user, "fee", -fee, after, market, at, lastFill);
    keys.arrived(words[w + R.W_REFERENCE]!, id, fee);
    dirtyAccounts.users.add(user);
    dirtyAccounts.markets.add(market);
    for (let i = 0; i < count; i++) {
      const position = ledger.findPosition(user, first + i);
      holdings.positionChanged(position, at, ledger.quantity(position) - (split ? quantity : -quantity));
      dirtyAccounts.positions.add(position);
    }
  }

  private changeMarket(market: number, status: number): void {
    this.parts.dirtyAccounts.statuses.set(market, status);
  }
}
