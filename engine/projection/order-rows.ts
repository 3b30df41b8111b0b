/** Writes the rows of dirty orders: inserts new ones by their ids, and updates the others once. */
import type Database from "better-sqlite3";
import { isFinal, restingTimeInForce, TimeInForce } from "../constants.ts";
import * as R from "../ring/records.ts";
import type { Counters } from "./counters.ts";
import type { DirtyOrders } from "./dirty-orders.ts";
import type { RestingOrders } from "./resting-orders.ts";
import { RowInserter } from "./row-inserter.ts";
import type { RowLinks } from "./row-links.ts";

const ORDERS_TABLE = `orders (id, user_id, outcome_id, side, post_only, pat, price, quantity, remaining, status, reason,
  client_order_id, fingerprint, quote, created_at, updated_at, previous_of_user, last_fill_id, type, time_in_force,
  self_trade_prevention, expires_at, priority, builder_id, tied)`;
const BOUND_COLUMNS = 18;
/** Most orders have these values in the other columns, from `type` on: their statement contains them and binds nothing. */
const USUAL_TERMS = ["0", "0", "0", "NULL", "NULL", "NULL", "0"];

export interface OrderRowsParts {
  readonly db: Database.Database;
  readonly dirtyOrders: DirtyOrders;
  readonly links: RowLinks;
  readonly resting: RestingOrders;
  readonly counters: Counters;
}

export class OrderRows {
  private readonly parts: OrderRowsParts;
  private readonly rows: RowInserter;
  /** For orders with the usual terms. */
  private readonly usualRows: RowInserter;
  private readonly writeState: Database.Statement;
  private readonly writeFilled: Database.Statement;
  private readonly writeTerms: Database.Statement;
  private readonly writeExpiry: Database.Statement;
  /** The indexes of new orders, reused. */
  private readonly added: number[] = [];

  constructor(parts: OrderRowsParts) {
    const { db } = parts;
    this.parts = parts;
    const bound = (count: number): string[] => new Array<string>(count).fill("?");
    this.rows = new RowInserter(db, ORDERS_TABLE, bound(BOUND_COLUMNS + USUAL_TERMS.length));
    this.usualRows = new RowInserter(db, ORDERS_TABLE, [...bound(BOUND_COLUMNS), ...USUAL_TERMS]);
    const state = "remaining = ?, status = ?, reason = ?, updated_at = ?";
    this.writeState = db.prepare(`UPDATE orders SET ${state} WHERE id = ?`);
    this.writeFilled = db.prepare(`UPDATE orders SET ${state}, last_fill_id = ? WHERE id = ?`);
    this.writeTerms = db.prepare(
      "UPDATE orders SET price = ?, quantity = ?, priority = coalesce(?, priority) WHERE id = ?",
    );
    this.writeExpiry = db.prepare("UPDATE orders SET expires_at = ?, time_in_force = ? WHERE id = ?");
  }

  /** Writes all dirty orders and clears them. Inside a transaction. */
  flush(): void {
    const { counters, dirtyOrders, resting } = this.parts;
    const { ids } = dirtyOrders;
    const { added } = this;
    added.length = 0;
    let isSorted = true;
    let last = 0;
    for (let index = 0; index < dirtyOrders.count; index++) {
      if (dirtyOrders.isNew[index] === 0) {
        this.update(index);
        continue;
      }
      if (ids[index]! < last) isSorted = false;
      last = ids[index]!;
      added.push(index);
    }
    // Several engine threads commit ids out of order.
    if (!isSorted) added.sort((a, b) => ids[a]! - ids[b]!);
    for (const index of added) this.insert(index);
    this.flushInserts();
    dirtyOrders.clear();
    resting.advance(counters.lastOrderId);
  }

  private flushInserts(): void {
    this.rows.flush();
    this.usualRows.flush();
  }

  private update(index: number): void {
    const { dirtyOrders, resting } = this.parts;
    const id = dirtyOrders.ids[index]!;
    const at = dirtyOrders.times[index]!;
    const state = dirtyOrders.states[index]!;
    const status = state & 0xf;
    const remaining = dirtyOrders.remaining[index]!;
    const fill = dirtyOrders.fills[index]!;
    if (fill === 0) this.writeState.run(remaining, status, state >> 4, at, id);
    else this.writeFilled.run(remaining, status, state >> 4, at, fill, id);
    if (dirtyOrders.amended[index] === 1) {
      const priority = dirtyOrders.priorities[index]! || null;
      this.writeTerms.run(dirtyOrders.price[index]!, dirtyOrders.total[index]!, priority, id);
    }
    if (dirtyOrders.extended[index] === 1) {
      const expiresAt = dirtyOrders.expiry[index]!;
      this.writeExpiry.run(expiresAt || null, restingTimeInForce(expiresAt), id);
    }
    if (isFinal(status)) resting.remove(id);
  }

  private insert(index: number): void {
    const { counters, dirtyOrders, resting } = this.parts;
    const id = dirtyOrders.ids[index]!;
    const state = dirtyOrders.states[index]!;
    const priority = dirtyOrders.priorities[index]!;
    const packed = dirtyOrders.packed[index]!;
    const terms = dirtyOrders.terms[index]!;
    const expiresAt = dirtyOrders.expiry[index]!;
    // A quote's expiry may have been set or removed in the transaction that placed it.
    const timeInForce = dirtyOrders.extended[index] === 0 ? R.termsTimeInForce(terms) : restingTimeInForce(expiresAt);
    const builder = dirtyOrders.builders[index]!;
    const cancelOnDisconnect = (packed & R.FLAG_CANCEL_ON_DISCONNECT) !== 0;
    const hasUsualTerms = terms === 0 && timeInForce === TimeInForce.gtc && expiresAt === 0 && priority === 0;
    const isUsual = hasUsualTerms && builder === 0 && !cancelOnDisconnect;
    const text = (packed & R.FLAG_TEXT) === 0 ? undefined : dirtyOrders.texts.get(index);
    const clientOrderId = text?.clientOrderId ?? null;
    const user = dirtyOrders.users[index]!;
    const previous = this.link(user, id);
    const rows = isUsual ? this.usualRows : this.rows;
    const row = rows.next();
    const { params } = rows;
    params[row] = id;
    params[row + 1] = user;
    params[row + 2] = dirtyOrders.outcomes[index]!;
    params[row + 3] = R.sideOf(packed);
    params[row + 4] = (packed & R.FLAG_POST_ONLY) !== 0 ? 1 : 0;
    params[row + 5] = (packed & R.FLAG_PAT) !== 0 ? 1 : 0;
    params[row + 6] = dirtyOrders.price[index]!;
    params[row + 7] = dirtyOrders.total[index]!;
    params[row + 8] = dirtyOrders.remaining[index]!;
    params[row + 9] = state & 0xf;
    params[row + 10] = state >> 4;
    params[row + 11] = clientOrderId;
    params[row + 12] = clientOrderId === null ? null : (text?.fingerprint ?? null);
    params[row + 13] = (packed & R.FLAG_QUOTE) !== 0 ? 1 : 0;
    params[row + 14] = dirtyOrders.placedTimes[index]!;
    params[row + 15] = dirtyOrders.times[index]!;
    params[row + 16] = previous;
    params[row + 17] = dirtyOrders.fills[index]! || dirtyOrders.entriesBefore[index]!;
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
