/**
 * What live orders hold in the gateway's ledger: a buy holds USDC, which also counts as daily activity, a sell holds shares.
 * Usually that is the price times the remaining quantity.
 *
 * While a change of an order is on its way to the engine, fills may be on their way back, and their order is unknown. Such
 * an order has a reservation instead: the most that any sequence of fills and changes can cost. That is less than old and
 * new together, because each share fills at the old price or at the new one, not at both.
 *
 * A quote that takes over from another one relies on what that one holds. If anything but a fill frees it before the new
 * one is placed, it passes to the new one: no other order may use it in between.
 */
import { Side } from "../../engine/constants.ts";
import type { Ledger } from "../../engine/ledger.ts";
import { notionalMicro } from "../../engine/money.ts";
import { sideOf } from "../../engine/ring/records.ts";
import { assert } from "../../engine/util/assert.ts";
import { MARK_RESERVED, type OrderStore } from "./order-store.ts";

/** The most that an order may still cost. */
export interface Exposure {
  /** micro-USDC of notional: what a buy holds and adds to daily activity. A sell has the same sum, unused. */
  readonly money: number;
  /** The largest quantity that may rest: what a sell holds. */
  readonly shares: number;
  /** The highest price that it may rest at, BPS. */
  readonly price: number;
}

interface Reservation extends Exposure {
  /** Changes in flight. */
  readonly changes: number;
}

/**
 * The exposure of an order that changes from `before` to `shares` shares at `price`, with fills in flight. Shares filled
 * before the change cost at most `before.price` each and `before.money` in total; the rest costs `price` per share. With a
 * lower new price, the maximum is where fills have just used up `before.money`.
 */
export function worstOf(before: Exposure, price: number, shares: number): Exposure {
  const filledAtMost = Math.floor(before.money / notionalMicro(before.price, 1));
  const afterFills = before.money + notionalMicro(price, Math.max(0, shares - filledAtMost));
  return {
    money: price >= before.price ? Math.max(before.money, notionalMicro(price, shares)) : afterFills,
    shares: Math.max(before.shares, shares),
    price: Math.max(before.price, price),
  };
}

export class Holds {
  private readonly store: OrderStore;
  private readonly ledger: Ledger;
  private readonly reservations = new Map<number, Reservation>();
  /** By slot of a replaced quote: the slot of the quote in flight that takes over what it holds. */
  private readonly successors = new Map<number, number>();

  constructor(store: OrderStore, ledger: Ledger) {
    this.store = store;
    this.ledger = ledger;
  }

  exposureOf(slot: number): Exposure {
    const { store } = this;
    if (this.isReserved(slot)) return this.reservationOf(slot);
    const shares = store.remaining[slot]!;
    return { money: notionalMicro(store.prices[slot]!, shares), shares, price: store.prices[slot]! };
  }

  private reservationOf(slot: number): Reservation {
    const reservation = this.reservations.get(slot);
    assert(reservation !== undefined, "a marked order has its reservation");
    return reservation;
  }

  isReserved(slot: number): boolean {
    return (this.store.marks[slot]! & MARK_RESERVED) !== 0;
  }

  /** Holds for all that remains of the order. */
  hold(slot: number): void {
    this.change(slot, this.store.remaining[slot]!, 1);
  }

  /** Self-trade prevention took `shares` off. A reservation stays: the changes in flight may bring them back. */
  reduce(slot: number, shares: number): void {
    if (!this.isReserved(slot)) this.change(slot, shares, -1);
  }

  /** Releases what `shares` of the order held: they were filled. */
  releasePart(slot: number, shares: number): void {
    if (this.isReserved(slot)) {
      const before = this.reservationOf(slot);
      const money = before.money - notionalMicro(this.store.prices[slot]!, shares);
      this.reservations.set(slot, { ...before, money, shares: before.shares - shares });
    }
    this.change(slot, shares, -1);
  }

  /** Releases everything that the order still holds: it ends. */
  end(slot: number): void {
    const left = this.successors.has(slot) ? this.exposureOf(slot) : null;
    if (this.isReserved(slot)) this.dropReservation(slot);
    else this.change(slot, this.store.remaining[slot]!, -1);
    if (left === null) return;
    this.passOn(slot, left.money, left.shares);
    this.successors.delete(slot);
  }

  /** Another change of a live order goes out. The caller has checked that the difference is available. */
  reserve(slot: number, exposure: Exposure): void {
    const before = this.exposureOf(slot);
    const changes = (this.isReserved(slot) ? this.reservationOf(slot).changes : 0) + 1;
    this.changeBy(slot, exposure.money - before.money, exposure.shares - before.shares);
    this.reservations.set(slot, { ...exposure, changes });
    this.store.marks[slot]! |= MARK_RESERVED;
  }

  /** An order in flight takes over what the one in `replaced` holds, and holds only the difference until it is placed. */
  reserveDifference(slot: number, replaced: number, money: number, shares: number): void {
    this.successors.set(replaced, slot);
    this.changeBy(slot, money, shares);
    this.reservations.set(slot, { money, shares, price: this.store.prices[slot]!, changes: 1 });
    this.store.marks[slot]! |= MARK_RESERVED;
  }

  /** A change came back, executed or rejected; the store has the order as it is now. After the last one the hold is the usual one. */
  resolveChange(slot: number): void {
    if (!this.isReserved(slot)) return;
    const reservation = this.reservationOf(slot);
    if (reservation.changes > 1) {
      this.reservations.set(slot, { ...reservation, changes: reservation.changes - 1 });
      return;
    }
    this.dropReservation(slot);
    this.hold(slot);
    const { money, shares } = this.exposureOf(slot);
    this.passOn(slot, reservation.money - money, reservation.shares - shares);
  }

  /** What the order in `slot` just released goes to the one that takes over from it, if any. */
  private passOn(slot: number, money: number, shares: number): void {
    const successor = this.successors.get(slot);
    if (successor === undefined) return;
    const reservation = this.reservationOf(successor);
    this.changeBy(successor, money, shares);
    this.reservations.set(successor, {
      ...reservation,
      money: reservation.money + money,
      shares: reservation.shares + shares,
    });
  }

  private dropReservation(slot: number): void {
    const { money, shares } = this.reservationOf(slot);
    this.reservations.delete(slot);
    this.store.marks[slot]! &= ~MARK_RESERVED;
    this.changeBy(slot, -money, -shares);
  }

  private change(slot: number, shares: number, sign: 1 | -1): void {
    const { store, ledger } = this;
    const user = store.users[slot]!;
    if (sideOf(store.terms[slot]!) === Side.buy) {
      const money = notionalMicro(store.prices[slot]!, shares);
      ledger.changeLiveActivity(user, sign * money);
      if (sign > 0) ledger.hold(user, money);
      else ledger.release(user, money);
    } else if (sign > 0) ledger.holdShares(user, store.outcomes[slot]!, shares);
    else ledger.releaseShares(user, store.outcomes[slot]!, shares);
  }

  private changeBy(slot: number, money: number, shares: number): void {
    const { store, ledger } = this;
    const user = store.users[slot]!;
    if (sideOf(store.terms[slot]!) === Side.buy) {
      ledger.changeLiveActivity(user, money);
      if (money >= 0) ledger.hold(user, money);
      else ledger.release(user, -money);
    } else if (shares >= 0) ledger.holdShares(user, store.outcomes[slot]!, shares);
    else ledger.releaseShares(user, store.outcomes[slot]!, -shares);
  }
}
