/**
 * Writes the rows of dirty orders: inserts new orders at once, and hands the changes of existing rows to the
 * write-behind, unless no order update reports them.
 */
import type Database from "better-sqlite3";
import { isFinal, restingTimeInForce, TimeInForce } from "../constants.ts";
import { RowInserter } from "../projection/row-inserter.ts";
import * as R from "../ring/records.ts";
import { type JournalParts, lastNumbers } from "./journal-parts.ts";

const ORDERS_TABLE = `orders (id, user_id, outcome_id, side, post_only, pat, price, quantity, remaining, status, reason,
  client_order_id, fingerprint, quote, created_at, updated_at, previous_of_user, last_fill_id, type, time_in_force,
  self_trade_prevention, expires_at, priority, builder_id, tied)`;
const BOUND_COLUMNS = 18;
/** Most orders have these values in the other columns, from `type` on: their statement contains them and binds nothing. */
const USUAL_TERMS = ["0", "0", "0", "NULL", "NULL", "NULL", "0"];

export class OrderRows {
  private readonly parts: JournalParts;
  private readonly rows: RowInserter;
  /** For orders with the usual terms. */
  private readonly usualRows: RowInserter;
  private readonly writeOrder: Database.Statement;
  private readonly writeExpiryStatement: Database.Statement;

  constructor(parts: JournalParts) {
    const { db } = parts;
    this.parts = parts;
    const bound = (count: number): string[] => new Array<string>(count).fill("?");
    this.rows = new RowInserter(db, ORDERS_TABLE, bound(BOUND_COLUMNS + USUAL_TERMS.length));
    this.usualRows = new RowInserter(db, ORDERS_TABLE, [...bound(BOUND_COLUMNS), ...USUAL_TERMS]);
    this.writeOrder = db.prepare(
      `UPDATE orders SET price = ?, quantity = ?, remaining = ?, status = ?, reason = ?,
       priority = coalesce(?, priority), updated_at = ?, last_fill_id = coalesce(?, last_fill_id) WHERE id = ?`,
    );
    this.writeExpiryStatement = db.prepare("UPDATE orders SET expires_at = ?, time_in_force = ? WHERE id = ?");
  }

  /** Writes all dirty orders and clears them. Inside a transaction. */
  flush(): void {
    const { dirtyOrders } = this.parts;
    for (let index = 0; index < dirtyOrders.count; index++) {
      if (dirtyOrders.reported[index] === 1) this.writeDirty(index);
    }
    this.flushUnreported();
    dirtyOrders.clear();
    this.flushInserts();
  }

  private flushInserts(): void {
    this.rows.flush();
    this.usualRows.flush();
  }

  /**
   * A pass can end in the middle of an order's matching, in a state that no update reports yet. The order's row must not
   * look older than its last update, so all pending changes are written first, this pass's included.
   */
  private flushUnreported(): void {
    const { dirtyOrders, writeBehind } = this.parts;
    if (!dirtyOrders.hasUnreported()) return;
    writeBehind.writeAll(lastNumbers(this.parts));
    for (let index = 0; index < dirtyOrders.count; index++) {
      if (dirtyOrders.reported[index] === 0) this.writeDirty(index);
    }
  }

  private writeDirty(index: number): void {
    const { dirtyOrders, slots, writeBehind } = this.parts;
    const record = dirtyOrders.placedRecords[index]!;
    if (record >= 0) {
      this.insert(index, record);
      return;
    }
    const id = dirtyOrders.ids[index]!;
    const slot = dirtyOrders.slots[index]!;
    const at = dirtyOrders.times[index]!;
    const state = dirtyOrders.states[index]!;
    const remaining = dirtyOrders.remaining[index]!;
    const fill = dirtyOrders.fills[index]!;
    const isReported = dirtyOrders.reported[index] === 1;
    if (dirtyOrders.extended[index] === 1) this.writeExpiry(slot, id);
    if (dirtyOrders.totals[index] !== 0 || !isReported) {
      slots.load(slot, id);
      const [price, total] = [slots.price(slot), slots.total(slot)];
      const priority = dirtyOrders.priorities[index]! || null;
      this.writeOrder.run(price, total, remaining, state & 0xf, state >> 4, priority, at, fill || null, id);
    }
    // After an amend too: a change from before it may still be pending.
    if (isReported) writeBehind.add(id, remaining, state, at, fill);
  }

  private writeExpiry(slot: number, id: number): void {
    const expiresAt = this.parts.slots.expiry(slot);
    this.writeExpiryStatement.run(expiresAt || null, restingTimeInForce(expiresAt), id);
  }

  /** Inserts a new order. @param record the first word of its orderPlaced record */
  private insert(index: number, record: number): void {
    const { counters, dirtyOrders, gates, resting, slots, texts } = this.parts;
    const { words } = gates[dirtyOrders.gates[index]!]!;
    const id = dirtyOrders.ids[index]!;
    const slot = dirtyOrders.slots[index]!;
    const state = dirtyOrders.states[index]!;
    const priority = dirtyOrders.priorities[index]!;
    const packed = words[record]!;
    const terms = words[record + R.W_REFERENCE]!;
    const expiresAt = slots.expiry(slot);
    // A quote's expiry may have been set or removed in the pass that placed it.
    const timeInForce = dirtyOrders.extended[index] === 0 ? R.termsTimeInForce(terms) : restingTimeInForce(expiresAt);
    const builder = slots.builder(slot, id);
    const cancelOnDisconnect = (packed & R.FLAG_CANCEL_ON_DISCONNECT) !== 0;
    const hasUsualTerms = terms === 0 && timeInForce === TimeInForce.gtc && expiresAt === 0 && priority === 0;
    const isUsual = hasUsualTerms && builder === 0 && !cancelOnDisconnect;
    const clientOrderId = (packed & R.FLAG_TEXT) !== 0 ? texts.clientOrderId(slot) : null;
    const user = words[record + R.W_USER]!;
    const previous = this.link(user, id);
    const rows = isUsual ? this.usualRows : this.rows;
    const row = rows.next();
    const { params } = rows;
    params[row] = id;
    params[row + 1] = user;
    params[row + 2] = words[record + R.W_OUTCOME]!;
    params[row + 3] = R.sideOf(packed);
    params[row + 4] = (packed & R.FLAG_POST_ONLY) !== 0 ? 1 : 0;
    params[row + 5] = (packed & R.FLAG_PAT) !== 0 ? 1 : 0;
    params[row + 6] = slots.price(slot);
    params[row + 7] = slots.total(slot);
    params[row + 8] = dirtyOrders.remaining[index]!;
    params[row + 9] = state & 0xf;
    params[row + 10] = state >> 4;
    params[row + 11] = clientOrderId;
    params[row + 12] = clientOrderId === null ? null : texts.fingerprint(slot);
    params[row + 13] = (packed & R.FLAG_QUOTE) !== 0 ? 1 : 0;
    params[row + 14] = dirtyOrders.placedTimes[index]!;
    params[row + 15] = dirtyOrders.times[index]!;
    params[row + 16] = previous;
    params[row + 17] = dirtyOrders.fills[index]! || counters.lastEntryId;
    if (!isUsual) {
      params[row + BOUND_COLUMNS] = R.termsType(terms);
      params[row + BOUND_COLUMNS + 1] = timeInForce;
      params[row + BOUND_COLUMNS + 2] = R.termsSelfTradePrevention(terms);
      params[row + BOUND_COLUMNS + 3] = expiresAt || null;
      params[row + BOUND_COLUMNS + 4] = priority || null;
      params[row + BOUND_COLUMNS + 5] = builder || null;
      params[row + BOUND_COLUMNS + 6] = cancelOnDisconnect ? 1 : 0;
    }
    if (id > counters.lastOrderId) counters.lastOrderId = id;
    if (!isFinal(state & 0xf)) resting.addLate(id);
  }

  /** Links the order to its owner's previous order and returns that one's id. */
  private link(user: number, id: number): number {
    const { links } = this.parts;
    if (id > links.newestOrder(user)) return links.addOrder(user, id);
    // The order that follows may still be pending.
    this.flushInserts();
    return links.insertOrder(user, id);
  }
}
