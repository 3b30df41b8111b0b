/**
 * Applies engine events to the ledger and marks the rows that they change. Assigns the numbers that the gateway reads in
 * the records: fill ids and the sequence numbers of order updates. Inserts fills; all other rows wait for the flush.
 */
import type Database from "better-sqlite3";
import { matchFeesMicro } from "../book/match-fees.ts";
import { OrderStatus, Role } from "../constants.ts";
import { notionalMicro } from "../money.ts";
import { loadUnreportedFills } from "../projection/load/orders.ts";
import { RowInserter } from "../projection/row-inserter.ts";
import * as R from "../ring/records.ts";
import type { RingGate } from "../ring/ring.ts";
import { assert } from "../util/assert.ts";
import { stateOf } from "./dirty-orders.ts";
import type { JournalParts } from "./journal-parts.ts";

const FILL_COLUMNS = 18;

export class EventApplier {
  private readonly parts: JournalParts;
  private readonly fillRows: RowInserter;
  private readonly insertSetsEntry: Database.Statement;
  /** By ring: the taker's fills that no order update reports yet. */
  private readonly takerFills: Int32Array;
  /** By order: fills that no update reported before a crash interrupted the matching. */
  private readonly unreportedFills: ReadonlyMap<number, number>;
  /** The id of the current match: its first fill. */
  private matchId = 0;
  private stoppedRings = 0;

  constructor(parts: JournalParts) {
    const { db, gates } = parts;
    this.parts = parts;
    this.fillRows = new RowInserter(db, "fills", new Array<string>(FILL_COLUMNS).fill("?"));
    this.insertSetsEntry = db.prepare("INSERT INTO entries VALUES (?, ?, ?, ?, ?, ?, NULL, NULL, ?, ?, NULL, NULL)");
    this.takerFills = new Int32Array(gates.length);
    this.unreportedFills = loadUnreportedFills(db);
  }

  /** True once every engine has announced that no event follows. */
  get stopped(): boolean {
    return this.stoppedRings === this.parts.gates.length;
  }

  /** Applies `count` events from the gate's tail on. */
  apply(gate: RingGate, gateIndex: number, count: number): void {
    const { words, doubles, mask } = gate;
    for (let i = 0; i < count; i++) {
      this.applyEvent(gateIndex, words, doubles, ((gate.tail + i) & mask) * R.RECORD_WORDS);
    }
  }

  /** Writes pending fills. */
  flush(): void {
    this.fillRows.flush();
  }

  private applyEvent(gateIndex: number, words: Int32Array, doubles: Float64Array, w: number): void {
    switch (R.kindOf(words[w]!)) {
      case R.EventKind.levelChanged:
        break;
      case R.EventKind.batchMatched:
        this.parts.stamps.add(doubles, w);
        break;
      case R.EventKind.orderPlaced:
        this.applyPlacement(gateIndex, words, doubles, w);
        break;
      case R.EventKind.orderFilled:
        this.applyFill(gateIndex, words, doubles, w);
        break;
      case R.EventKind.orderReduced:
        this.applyReduction(gateIndex, words, doubles, w);
        break;
      case R.EventKind.orderAmended:
        this.applyAmend(gateIndex, words, doubles, w);
        break;
      case R.EventKind.orderCanceled:
        this.markDirty(gateIndex, words, doubles, w);
        this.addUpdate(words, doubles, w, this.unreportedFills.get(doubles[(w >> 1) + R.D_ORDER_ID]!) ?? 0);
        break;
      case R.EventKind.marketChanged:
        this.changeMarket(words[w + R.W_SLOT]!, R.statusOf(words[w]!));
        break;
      case R.EventKind.setsSplit:
      case R.EventKind.setsMerged:
        this.applySets(words, doubles, w);
        break;
      case R.EventKind.stopped:
        this.stoppedRings++;
        break;
      case R.EventKind.cancelRefused:
      case R.EventKind.amendRefused:
        break;
      default:
        assert(false, "the journal knows every kind of event");
    }
  }

  // ---------------------------------------------------------------- orders

  /**
   * Raises an event's time to that of the event before it: the journal reads several rings one after the other, and the
   * times of fills, entries and order updates must rise with their numbers. The gateway reads the raised time.
   */
  private raiseTime(doubles: Float64Array, w: number): void {
    const { counters } = this.parts;
    const at = (w >> 1) + R.D_AT;
    if (doubles[at]! < counters.eventAt) doubles[at] = counters.eventAt;
    else counters.eventAt = doubles[at]!;
  }

  /** Marks the event's order dirty, at its raised time; returns its index among the dirty orders. */
  private markDirty(gateIndex: number, words: Int32Array, doubles: Float64Array, w: number): number {
    this.raiseTime(doubles, w);
    return this.parts.dirtyOrders.mark(gateIndex, words, doubles, w);
  }

  private applyPlacement(gateIndex: number, words: Int32Array, doubles: Float64Array, w: number): void {
    const { dirtyOrders, slots } = this.parts;
    const packed = words[w]!;
    const slot = words[w + R.W_SLOT]!;
    // The gateway's own time: orders' ids and times rise together, whichever ring they take.
    const placedAt = doubles[(w >> 1) + R.D_AT]!;
    const index = this.markDirty(gateIndex, words, doubles, w);
    dirtyOrders.placedRecords[index] = w;
    dirtyOrders.placedTimes[index] = placedAt;
    const builder = (packed & R.FLAG_TEXT) === 0 ? 0 : this.countBuilderOrder(slot, placedAt);
    const expiresAt = doubles[(w >> 1) + R.D_EXPIRES_AT]!;
    slots.place(slot, words[w + R.W_PRICE]!, words[w + R.W_QUANTITY]!, expiresAt, builder);
    if (R.statusOf(packed) !== OrderStatus.queued) this.addUpdate(words, doubles, w, 0);
  }

  /** Counts a new order for its builder, if it has one; returns the builder or 0. */
  private countBuilderOrder(slot: number, at: number): number {
    const { builders, texts, transaction } = this.parts;
    const code = texts.builderCode(slot);
    if (code === null) return 0;
    transaction.begin();
    const builder = builders.idOf(code, at);
    builders.addOrder(builder);
    return builder;
  }

  private applyReduction(gateIndex: number, words: Int32Array, doubles: Float64Array, w: number): void {
    const { dirtyOrders, slots } = this.parts;
    const slot = words[w + R.W_SLOT]!;
    const total = words[w + R.W_QUANTITY]!;
    dirtyOrders.totals[this.markDirty(gateIndex, words, doubles, w)] = total;
    slots.load(slot, doubles[(w >> 1) + R.D_ORDER_ID]!);
    slots.setTerms(slot, slots.price(slot), total);
    if (R.roleOf(words[w]!) === Role.maker) this.addUpdate(words, doubles, w, 0);
  }

  private applyAmend(gateIndex: number, words: Int32Array, doubles: Float64Array, w: number): void {
    const { dirtyOrders, slots } = this.parts;
    const d = w >> 1;
    const packed = words[w]!;
    const slot = words[w + R.W_SLOT]!;
    const index = this.markDirty(gateIndex, words, doubles, w);
    dirtyOrders.totals[index] = words[w + R.W_QUANTITY]!;
    if ((packed & R.FLAG_LOST_PRIORITY) !== 0) dirtyOrders.priorities[index] = doubles[d + R.D_DETAIL]!;
    // Load a restored order's terms before some of them change.
    slots.load(slot, doubles[d + R.D_ORDER_ID]!);
    slots.setTerms(slot, words[w + R.W_PRICE]!, words[w + R.W_QUANTITY]!);
    if ((packed & R.FLAG_EXTENDS) !== 0) {
      dirtyOrders.extended[index] = 1;
      slots.setExpiry(slot, doubles[d + R.D_DETAIL]!);
    }
    this.addUpdate(words, doubles, w, 0);
  }

  /**
   * Adds an order update, and writes its number in its owner's sequence into the record, where the gateway reads it.
   * @param fills the number of the order's last fills that it reports
   */
  private addUpdate(words: Int32Array, doubles: Float64Array, w: number, fills: number): void {
    const { dirtyOrders, slots, transaction, updates } = this.parts;
    transaction.begin();
    const d = w >> 1;
    const slot = words[w + R.W_SLOT]!;
    const order = doubles[d + R.D_ORDER_ID]!;
    slots.load(slot, order);
    dirtyOrders.markReported(slot);
    doubles[d + R.D_USER_SEQUENCE] = updates.add(
      words[w + R.W_USER]!,
      order,
      slots.price(slot),
      slots.total(slot),
      words[w + R.W_REMAINING]!,
      stateOf(words[w]!),
      fills,
      fills === 0 ? 0 : slots.lastFill(slot, order),
      doubles[d + R.D_AT]!,
      slots.expiry(slot),
    );
  }

  // ---------------------------------------------------------------- fills

  private applyFill(gateIndex: number, words: Int32Array, doubles: Float64Array, w: number): void {
    const { counters, dirtyOrders, slots, transaction } = this.parts;
    const d = w >> 1;
    const packed = words[w]!;
    const slot = words[w + R.W_SLOT]!;
    const order = doubles[d + R.D_ORDER_ID]!;
    const index = this.markDirty(gateIndex, words, doubles, w);
    const id = ++counters.lastEntryId;
    dirtyOrders.fills[index] = id;
    doubles[d + R.D_FILL_ID] = id;
    this.bookFill(words, doubles, w, id);
    transaction.begin();
    const builder = this.countBuilderFill(words, w, order);
    const previousOfOrder = slots.lastFill(slot, order);
    slots.setLastFill(slot, id);
    if (R.roleOf(packed) === Role.maker) this.addUpdate(words, doubles, w, 1);
    else this.takerFills[gateIndex]!++;
    if ((packed & R.FLAG_UPDATE_END) !== 0) {
      this.addUpdate(words, doubles, w, this.takerFills[gateIndex]!);
      this.takerFills[gateIndex] = 0;
    }
    this.insertFill(words, doubles, w, previousOfOrder, builder);
  }

  /** Books a fill in the ledger, and the trade of a match that it ends. @param id the fill's */
  private bookFill(words: Int32Array, doubles: Float64Array, w: number, id: number): void {
    const { candles, dirtyAccounts, ledger, markets, rates } = this.parts;
    const packed = words[w]!;
    const user = words[w + R.W_USER]!;
    const outcome = words[w + R.W_OUTCOME]!;
    const price = words[w + R.W_PRICE]!;
    const quantity = words[w + R.W_QUANTITY]!;
    const matchType = R.matchTypeOf(packed);
    const ends = (packed & R.FLAG_MATCH_END) !== 0;
    const market = markets.marketOf(outcome);
    const at = doubles[(w >> 1) + R.D_AT]!;
    if (R.legOf(words[w + R.W_REFERENCE]!) === 0) {
      this.matchId = id;
      rates.writeInto(words, w);
      ledger.beginMatch(matchFeesMicro(words, w));
    }
    const side = R.sideOf(packed);
    const pat = (packed & R.FLAG_PAT) !== 0;
    const ownRates = R.ratesOf(words[w + R.W_REFERENCE]!);
    const role = R.roleOf(packed);
    dirtyAccounts.positions.add(
      ledger.fill(user, market, outcome, side, price, quantity, matchType, role, pat, ends, at, ownRates),
    );
    dirtyAccounts.users.add(user);
    if (!ends) return;
    markets.recordTrade(outcome, price, quantity);
    dirtyAccounts.outcomes.add(outcome);
    candles.add(outcome, price, quantity, at, id);
    if (matchType !== 0) dirtyAccounts.markets.add(market);
  }

  /** Counts a fill for its order's builder, if it has one; returns the builder or 0. */
  private countBuilderFill(words: Int32Array, w: number, order: number): number {
    const { builders, ledger, slots } = this.parts;
    const builder = slots.builder(words[w + R.W_SLOT]!, order);
    if (builder === 0) return 0;
    const quantity = words[w + R.W_QUANTITY]!;
    builders.addFill(builder, quantity, notionalMicro(words[w + R.W_PRICE]!, quantity), ledger.lastFee);
    return builder;
  }

  private insertFill(
    words: Int32Array,
    doubles: Float64Array,
    w: number,
    previousOfOrder: number,
    builder: number,
  ): void {
    const { ledger, links, markets } = this.parts;
    const d = w >> 1;
    const packed = words[w]!;
    const id = doubles[d + R.D_FILL_ID]!;
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

  private applySets(words: Int32Array, doubles: Float64Array, w: number): void {
    const { counters, dirtyAccounts, keys, ledger, links, markets, transaction } = this.parts;
    const user = words[w + R.W_USER]!;
    const market = words[w + R.W_SLOT]!;
    const quantity = words[w + R.W_QUANTITY]!;
    const first = markets.firstOutcome(market);
    const count = markets.outcomeCount(market);
    const split = R.kindOf(words[w]!) === R.EventKind.setsSplit;
    const before = ledger.balance(user);
    this.raiseTime(doubles, w);
    const at = doubles[(w >> 1) + R.D_AT]!;
    let fee = 0;
    if (split) ledger.split(user, market, first, count, quantity, at);
    else fee = ledger.merge(user, market, first, count, quantity, words[w + R.W_PRICE]!);
    const after = ledger.balance(user);
    transaction.begin();
    const id = ++counters.lastEntryId;
    doubles[(w >> 1) + R.D_FILL_ID] = id;
    const type = split ? "split" : "merge";
    const lastFill = links.newestFill(user);
    this.insertSetsEntry.run(id, user, type, after + fee - before, after + fee, market, at, lastFill);
    if (fee > 0) this.insertSetsEntry.run(++counters.lastEntryId, user, "fee", -fee, after, market, at, lastFill);
    keys.arrived(words[w + R.W_REFERENCE]!, id, fee);
    dirtyAccounts.users.add(user);
    dirtyAccounts.markets.add(market);
    for (let i = 0; i < count; i++) dirtyAccounts.positions.add(ledger.findPosition(user, first + i));
  }

  private changeMarket(market: number, status: number): void {
    this.parts.dirtyAccounts.statuses.set(market, status);
  }
}
