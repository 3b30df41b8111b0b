/**
 * Reads an engine event by the names of its fields (records.ts), wherever its 64 bytes lie: in a ring or in a batch of the
 * log. One object reads one record after another: `at` moves it, so that nothing may keep it. Only the thread that owns the
 * record writes: the fields with setters.
 */
import { isFinal, OrderStatus, Role } from "../constants.ts";
import { unreachable } from "../util/assert.ts";
import { type EventTraits, traitsOf, UpdateRule } from "./event-traits.ts";
import { RecordCursor } from "./record-cursor.ts";
import * as R from "./records.ts";

export class EngineEvent extends RecordCursor {
  /** Moves to the record that `other` reads. */
  atRecordOf(other: EngineEvent): this {
    return this.at(other.words, other.doubles, other.w);
  }

  /** Moves to the next record; behind a ring's last one to its first. */
  next(): this {
    const w = this.w + R.RECORD_WORDS;
    this.w = w === this.words.length ? 0 : w;
    this.d = this.w >> 1;
    return this;
  }

  // ---------------------------------------------------------------- the first word

  get kind(): R.EventKind {
    return R.kindOf(this.packed);
  }

  get side(): number {
    return R.sideOf(this.packed);
  }

  /** An OrderStatus; of marketChanged a MarketStatus. */
  get status(): number {
    return R.statusOf(this.packed);
  }

  /** Fills have none: their match type takes its bits. */
  get reason(): number {
    return this.kind === R.EventKind.orderFilled ? 0 : R.reasonOf(this.packed);
  }

  /** The order's status and its reason in one: status | reason << 4. */
  get state(): number {
    return this.status | (this.reason << 4);
  }

  /** orderFilled. */
  get matchType(): number {
    return R.matchTypeOf(this.packed);
  }

  get role(): number {
    return R.roleOf(this.packed);
  }

  /** The order was placed with a PAT. */
  get isPat(): boolean {
    return (this.packed & R.FLAG_PAT) !== 0;
  }

  /** The last fill of its match: the taker's. */
  get endsMatch(): boolean {
    return (this.packed & R.FLAG_MATCH_END) !== 0;
  }

  /** orderAmended: only the order's expiry changed. */
  get isExtension(): boolean {
    return (this.packed & R.FLAG_EXTENDS) !== 0;
  }

  /** The last fill of its command: one order update reports the taker's fills up to it. */
  get endsUpdate(): boolean {
    return (this.packed & R.FLAG_UPDATE_END) !== 0;
  }

  /** orderAmended. */
  get lostPriority(): boolean {
    return (this.packed & R.FLAG_LOST_PRIORITY) !== 0;
  }

  /** The slot's text area, or the batch's, has a text of the order. */
  get hasText(): boolean {
    return (this.packed & R.FLAG_TEXT) !== 0;
  }

  // ---------------------------------------------------------------- words and doubles

  get slot(): number {
    return this.words[this.w + R.W_SLOT]!;
  }

  /** marketChanged, setsSplit, setsMerged. */
  get market(): number {
    return this.words[this.w + R.W_SLOT]!;
  }

  get user(): number {
    return this.words[this.w + R.W_USER]!;
  }

  get outcome(): number {
    return this.words[this.w + R.W_OUTCOME]!;
  }

  /** BPS. */
  get price(): number {
    return this.words[this.w + R.W_PRICE]!;
  }

  /** setsMerged: the fee, BPS of 1 USDC a set. */
  get mergeFeeBps(): number {
    return this.words[this.w + R.W_PRICE]!;
  }

  /** setsSplit, setsMerged: each set has its parts of 1 USDC; false in logs of earlier versions. */
  get isSetBySet(): boolean {
    return this.words[this.w + R.W_SET_BY_SET] === 1;
  }

  /** Shares: of a fill; or the order's total. */
  get quantity(): number {
    return this.words[this.w + R.W_QUANTITY]!;
  }

  /** The order's remaining quantity after the event. */
  get remaining(): number {
    return this.words[this.w + R.W_REMAINING]!;
  }

  /** That of the event's command; 0 for none. */
  get correlationId(): number {
    return this.words[this.w + R.W_CORRELATION]!;
  }

  get orderId(): number {
    return this.doubles[this.d + R.D_ORDER_ID]!;
  }

  /** ms since the epoch. */
  get time(): number {
    return this.doubles[this.d + R.D_AT]!;
  }

  set time(at: number) {
    this.doubles[this.d + R.D_AT] = at;
  }

  /** orderFilled; of setsSplit and setsMerged the number of the first ledger entry. */
  get fillId(): number {
    return this.doubles[this.d + R.D_FILL_ID]!;
  }

  set fillId(id: number) {
    this.doubles[this.d + R.D_FILL_ID] = id;
  }

  /** The number of the user's order update; 0: it is none. */
  get userSequence(): number {
    return this.doubles[this.d + R.D_USER_SEQUENCE]!;
  }

  set userSequence(sequence: number) {
    this.doubles[this.d + R.D_USER_SEQUENCE] = sequence;
  }

  /** orderPlaced, and an extension: ms; 0 for never. */
  get expiresAt(): number {
    return this.doubles[this.d + R.D_EXPIRES_AT]!;
  }

  /** orderAmended with lostPriority: the new time priority. */
  get priority(): number {
    return this.doubles[this.d + R.D_DETAIL]!;
  }

  /** levelChanged: shares now; 0: the level is gone. */
  get levelQuantity(): number {
    return this.doubles[this.d + R.D_DETAIL]!;
  }

  /** batchMatched: µs since the epoch. */
  get matchedAt(): number {
    return this.doubles[this.d + R.D_MATCHED]!;
  }

  set matchedAt(at: number) {
    this.doubles[this.d + R.D_MATCHED] = at;
  }

  /** batchMatched: µs since the epoch; written after the batch is committed, so that the log has none. */
  get durableAt(): number {
    return this.doubles[this.d + R.D_DURABLE]!;
  }

  set durableAt(at: number) {
    this.doubles[this.d + R.D_DURABLE] = at;
  }

  // ---------------------------------------------------------------- orderPlaced: the order's terms

  /** As its placement packed them (order-terms.ts). */
  get terms(): number {
    return R.placedTerms(this.packed, this.words[this.w + R.W_CORRELATION]!);
  }

  /** The log raised `time`: the order entered earlier, at a time that the batch's text has. */
  get isRaised(): boolean {
    return R.isRaised(this.words[this.w + R.W_CORRELATION]!);
  }

  setRaised(): void {
    this.words[this.w + R.W_CORRELATION]! |= R.RAISED;
  }

  // ---------------------------------------------------------------- word 7 of orderFilled: the leg and the user's rates

  /** The number of earlier fills of this match. */
  get leg(): number {
    return R.legOf(this.words[this.w + R.W_CORRELATION]!);
  }

  /** The match's id: its first fill. */
  get matchId(): number {
    return this.fillId - this.leg;
  }

  /** The user's individual fee and rebate (`R.packRates`); 0: the defaults apply. */
  get rates(): number {
    return R.ratesOf(this.words[this.w + R.W_CORRELATION]!);
  }

  set rates(rates: number) {
    this.words[this.w + R.W_CORRELATION] = R.withRates(this.leg, rates);
  }

  // ---------------------------------------------------------------- what it is

  /** What events of its kind are. */
  get traits(): EventTraits {
    return traitsOf(this.kind);
  }

  /** It is an order update of its user. */
  get isUpdate(): boolean {
    const { update } = this.traits;
    switch (update) {
      case UpdateRule.never:
        return false;
      case UpdateRule.always:
        return true;
      case UpdateRule.unlessQueued:
        return this.status !== OrderStatus.queued;
      case UpdateRule.maker:
        return this.role === Role.maker;
      case UpdateRule.makerOrUpdateEnd:
        return this.role === Role.maker || this.endsUpdate;
      default:
        return unreachable(update, "rule of order updates");
    }
  }

  /** It changes an order, which has ended after it. */
  get endsOrder(): boolean {
    return this.traits.changesOrder && isFinal(this.status);
  }
}
