/**
 * Writes a command, and reads a kept one, by the names of its fields (records.ts). One object works on one record after
 * another: `at` moves it, so that nothing may keep it. The matcher reads commands word by word instead.
 */
import { RecordCursor } from "./record-cursor.ts";
import * as R from "./records.ts";

export class CommandRecord extends RecordCursor {
  /** Every field becomes 0. */
  clear(): void {
    const { words, w } = this;
    for (let word = w; word < w + R.RECORD_WORDS; word++) words[word] = 0;
  }

  get slot(): number {
    return this.words[this.w + R.W_SLOT]!;
  }

  set slot(slot: number) {
    this.words[this.w + R.W_SLOT] = slot;
  }

  get user(): number {
    return this.words[this.w + R.W_USER]!;
  }

  set user(user: number) {
    this.words[this.w + R.W_USER] = user;
  }

  get outcome(): number {
    return this.words[this.w + R.W_OUTCOME]!;
  }

  set outcome(outcome: number) {
    this.words[this.w + R.W_OUTCOME] = outcome;
  }

  /** BPS. */
  get price(): number {
    return this.words[this.w + R.W_PRICE]!;
  }

  set price(price: number) {
    this.words[this.w + R.W_PRICE] = price;
  }

  /** Shares; of restoreOrder what remains; of openMarket the number of outcomes. */
  get quantity(): number {
    return this.words[this.w + R.W_QUANTITY]!;
  }

  set quantity(quantity: number) {
    this.words[this.w + R.W_QUANTITY] = quantity;
  }

  get market(): number {
    return this.words[this.w + R.W_MARKET]!;
  }

  set market(market: number) {
    this.words[this.w + R.W_MARKET] = market;
  }

  /** Comes back with the event; 0 for none. */
  set correlationId(id: number) {
    this.words[this.w + R.W_CORRELATION] = id;
  }

  /** restoreOrder: the order's total. */
  get total(): number {
    return this.words[this.w + R.W_CORRELATION]!;
  }

  set total(quantity: number) {
    this.words[this.w + R.W_CORRELATION] = quantity;
  }

  /** placeOrder with flag replaces: the slot of the order that it takes over from. */
  set replacedSlot(slot: number) {
    this.words[this.w + R.W_CORRELATION] = slot;
  }

  get orderId(): number {
    return this.doubles[this.d + R.D_ORDER_ID]!;
  }

  set orderId(id: number) {
    this.doubles[this.d + R.D_ORDER_ID] = id;
  }

  /** ms since the epoch. */
  get time(): number {
    return this.doubles[this.d + R.D_AT]!;
  }

  set time(at: number) {
    this.doubles[this.d + R.D_AT] = at;
  }

  /** ms; 0 for never. */
  get expiresAt(): number {
    return this.doubles[this.d + R.D_EXPIRES_AT]!;
  }

  set expiresAt(at: number) {
    this.doubles[this.d + R.D_EXPIRES_AT] = at;
  }

  /** amendOrder: the new time priority. */
  set priority(priority: number) {
    this.doubles[this.d + R.D_PRIORITY] = priority;
  }

  /** ms; 0 for always. */
  set validUntil(at: number) {
    this.doubles[this.d + R.D_VALID_UNTIL] = at;
  }

  /** placeOrder with flag replaces: what the gateway last knew to remain of the replaced order. */
  set expectedRemaining(quantity: number) {
    this.doubles[this.d + R.D_EXPECTED] = quantity;
  }

  /** In an opening of the log alone: the order's time priority. */
  get openingPriority(): number {
    return this.doubles[this.d + R.D_OPENING_PRIORITY]!;
  }

  set openingPriority(priority: number) {
    this.doubles[this.d + R.D_OPENING_PRIORITY] = priority;
  }
}
