/** Writes the rows of dirty orders: inserts new ones by their ids, and updates the others once. */
import type Database from "better-sqlite3";
import { isFinal, restingTimeInForce } from "../constants.ts";
import { ORDER_TERMS, type OrderTerm } from "../ring/order-terms.ts";
import * as R from "../ring/records.ts";
import { assert } from "../util/assert.ts";
import type { Counters } from "./counters.ts";
import type { DirtyOrders } from "./dirty-orders.ts";
import type { RestingOrders } from "./resting-orders.ts";
import { RowInserter } from "./row-inserter.ts";
import type { RowLinks } from "./row-links.ts";
import { type ColumnOf, ORDERS } from "./tables.ts";

/** Most orders have these values in the last columns: their statement contains them and binds nothing. */
const USUAL = {
  ...{ type: "0", time_in_force: "0", self_trade_prevention: "0", tied: "0" },
  ...{ expires_at: "NULL", priority: "NULL", builder_id: "NULL" },
} as const;
/** The terms that most orders have as 0, and their bits. */
const RARE_TERMS = ORDER_TERMS.filter(({ column }) => column in USUAL);
const RARE_BITS = RARE_TERMS.reduce((bits, { mask }) => bits | mask, 0);

/** A term, and its column's place in a row. */
const placed = (term: OrderTerm): OrderTerm & { readonly place: number } => {
  const place = (ORDERS.at as Readonly<Record<string, number>>)[term.column];
  assert(place !== undefined, "every term of an order has a column");
  return { ...term, place };
};
const TERM_COLUMNS = ORDER_TERMS.filter((term) => !RARE_TERMS.includes(term)).map(placed);
const RARE_COLUMNS = RARE_TERMS.map(placed);

export interface OrderRowsParts {
  readonly db: Database.Database;
  readonly dirtyOrders: DirtyOrders;
  readonly links: RowLinks;
  readonly resting: RestingOrders;
  readonly counters: Counters;
}

export class OrderRows {
  private readonly parts: OrderRowsParts;
  private readonly rows: RowInserter<ColumnOf<typeof ORDERS>>;
  /** For orders with the usual values. */
  private readonly usualRows: RowInserter<ColumnOf<typeof ORDERS>>;
  private readonly writeState: Database.Statement;
  private readonly writeFilled: Database.Statement;
  private readonly writeTerms: Database.Statement;
  private readonly writeExpiry: Database.Statement;
  /** The indexes of new orders, reused. */
  private readonly added: number[] = [];

  constructor(parts: OrderRowsParts) {
    const { db } = parts;
    this.parts = parts;
    this.rows = new RowInserter(db, ORDERS);
    this.usualRows = new RowInserter(db, ORDERS, { constants: USUAL });
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
    const expiresAt = dirtyOrders.expiry[index]!;
    const asPlaced = dirtyOrders.terms[index]!;
    // A quote's expiry may have been set or removed in the transaction that placed it.
    const isExtended = dirtyOrders.extended[index] === 1;
    const terms = isExtended ? R.withTimeInForce(asPlaced, restingTimeInForce(expiresAt)) : asPlaced;
    const builder = dirtyOrders.builders[index]!;
    const isUsual = (terms & RARE_BITS) === 0 && expiresAt === 0 && priority === 0 && builder === 0;
    const text = (terms & R.FLAG_TEXT) === 0 ? undefined : dirtyOrders.texts.get(index);
    const clientOrderId = text?.clientOrderId ?? null;
    const user = dirtyOrders.users[index]!;
    const previous = this.link(user, id);
    const rows = isUsual ? this.usualRows : this.rows;
    const row = rows.next();
    const { params, at } = rows;
    params[row + at.id] = id;
    params[row + at.user_id] = user;
    params[row + at.outcome_id] = dirtyOrders.outcomes[index]!;
    params[row + at.price] = dirtyOrders.price[index]!;
    params[row + at.quantity] = dirtyOrders.total[index]!;
    params[row + at.remaining] = dirtyOrders.remaining[index]!;
    params[row + at.status] = state & 0xf;
    params[row + at.reason] = state >> 4;
    params[row + at.client_order_id] = clientOrderId;
    params[row + at.fingerprint] = clientOrderId === null ? null : (text?.fingerprint ?? null);
    params[row + at.created_at] = dirtyOrders.placedTimes[index]!;
    params[row + at.updated_at] = dirtyOrders.times[index]!;
    params[row + at.previous_of_user] = previous;
    params[row + at.last_fill_id] = dirtyOrders.fills[index]! || dirtyOrders.entriesBefore[index]!;
    for (const { mask, shift, place } of TERM_COLUMNS) params[row + place] = (terms & mask) >>> shift;
    if (!isUsual) {
      for (const { mask, shift, place } of RARE_COLUMNS) params[row + place] = (terms & mask) >>> shift;
      params[row + at.expires_at] = expiresAt || null;
      params[row + at.priority] = priority || null;
      params[row + at.builder_id] = builder || null;
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
