/**
 * What live orders set aside in the gateway's ledger: a buy's USDC, which count for daily activity too, or a sell's shares.
 * Usually price times what remains.
 *
 * While changes of an order are on their way to the engine, fills may be on their way back, and nobody can say yet which
 * came first. Such an order has a reservation instead: the most that any succession of fills and changes can cost. That is
 * less than old and new together: each share is filled at the old price or at the new one, not at both.
 *
 * A quote that takes over from another one counts on what that one holds. Whatever frees it before the new one is placed,
 * but a fill, passes it on: nobody else may spend it in between.
 */
import { Side } from "../../engine/constants.ts";
import type { Ledger } from "../../engine/ledger.ts";
import { notionalMicro } from "../../engine/money.ts";
import { sideOf } from "../../engine/ring/records.ts";
import { MARK_RESERVED, type OrderStore } from "./order-store.ts";

/** What an order may still cost at most. */
export interface Exposure {
  /** micro-USDC of notional: what a buy holds, and what it counts for daily activity. A sell's is the same sum, unused. */
  readonly money: number;
  /** The most that may rest: what a sell holds. */
  readonly shares: number;
  /** The highest price that it may rest at, BPS. */
  readonly price: number;
}

interface Reservation extends Exposure {
  /** Changes on their way. */
  readonly changes: number;
}

/**
 * The exposure of an order that changes from what `before` says to so many shares at a price, with fills in flight.
 * Of f shares filled before, each cost at most `before.price`, and all together at most `before.money`; what remains
 * costs `price` a share. Where the new price is the lower one that is most when `before.money` was just used up.
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
  /** By slot of a quote that is being replaced: the slot of the one on its way that takes over what it holds. */
  private readonly successors = new Map<number, number>();

  constructor(store: OrderStore, ledger: Ledger) {
    this.store = store;
    this.ledger = ledger;
  }

  exposureOf(slot: number): Exposure {
    const { store } = this;
    if (this.isReserved(slot)) return this.reservations.get(slot)!;
    const shares = store.remaining[slot]!;
    return { money: notionalMicro(store.prices[slot]!, shares), shares, price: store.prices[slot]! };
  }

  isReserved(slot: number): boolean {
    return (this.store.marks[slot]! & MARK_RESERVED) !== 0;
  }

  /** Sets aside for all that remains of the order. */
  hold(slot: number): void {
    this.change(slot, this.store.remaining[slot]!, 1);
  }

  /** A self-trade took so many shares away. With changes on their way the reservation stays: they may bring them back. */
  reduce(slot: number, shares: number): void {
    if (!this.isReserved(slot)) this.change(slot, shares, -1);
  }

  /** Gives back what so many shares of the order held: they were filled. */
  releasePart(slot: number, shares: number): void {
    if (this.isReserved(slot)) {
      const before = this.reservations.get(slot)!;
      const money = before.money - notionalMicro(this.store.prices[slot]!, shares);
      this.reservations.set(slot, { ...before, money, shares: before.shares - shares });
    }
    this.change(slot, shares, -1);
  }

  /** Gives all back that the order still holds: it ends. */
  end(slot: number): void {
    const left = this.successors.has(slot) ? this.exposureOf(slot) : null;
    if (this.isReserved(slot)) this.dropReservation(slot);
    else this.change(slot, this.store.remaining[slot]!, -1);
    if (left === null) return;
    this.passOn(slot, left.money, left.shares);
    this.successors.delete(slot);
  }

  /** Another change of a live order is on its way. The caller has seen that the difference is there. */
  reserve(slot: number, exposure: Exposure): void {
    const before = this.exposureOf(slot);
    const changes = (this.isReserved(slot) ? this.reservations.get(slot)!.changes : 0) + 1;
    this.changeBy(slot, exposure.money - before.money, exposure.shares - before.shares);
    this.reservations.set(slot, { ...exposure, changes });
    this.store.marks[slot]! |= MARK_RESERVED;
  }

  /** An order on its way takes over what the one in `replaced` holds, and adds only the difference until it is placed. */
  reserveDifference(slot: number, replaced: number, money: number, shares: number): void {
    this.successors.set(replaced, slot);
    this.changeBy(slot, money, shares);
    this.reservations.set(slot, { money, shares, price: this.store.prices[slot]!, changes: 1 });
    this.store.marks[slot]! |= MARK_RESERVED;
  }

  /** A change came back, made or refused; the store says what the order is now. With the last one the hold is usual again. */
  resolveChange(slot: number): void {
    if (!this.isReserved(slot)) return;
    const reservation = this.reservations.get(slot)!;
    if (reservation.changes > 1) {
      this.reservations.set(slot, { ...reservation, changes: reservation.changes - 1 });
      return;
    }
    this.dropReservation(slot);
    this.hold(slot);
    const { money, shares } = this.exposureOf(slot);
    this.passOn(slot, reservation.money - money, reservation.shares - shares);
  }

  /** What the order in `slot` just gave back goes to the one that takes over from it, where there is one. */
  private passOn(slot: number, money: number, shares: number): void {
    const successor = this.successors.get(slot);
    if (successor === undefined) return;
    const reservation = this.reservations.get(successor)!;
    this.changeBy(successor, money, shares);
    this.reservations.set(successor, {
      ...reservation,
      money: reservation.money + money,
      shares: reservation.shares + shares,
    });
  }

  private dropReservation(slot: number): void {
    const { money, shares } = this.reservations.get(slot)!;
    this.reservations.delete(slot);
    this.store.marks[slot]! &= ~MARK_RESERVED;
    this.changeBy(slot, -money, -shares);
  }

  private change(slot: number, shares: number, sign: 1 | -1): void {
    const { store, ledger } = this;
    const user = store.users[slot]!;
    if (sideOf(store.packed[slot]!) === Side.buy) {
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
    if (sideOf(store.packed[slot]!) === Side.buy) {
      ledger.changeLiveActivity(user, money);
      if (money >= 0) ledger.hold(user, money);
      else ledger.release(user, -money);
    } else if (shares >= 0) ledger.holdShares(user, store.outcomes[slot]!, shares);
    else ledger.releaseShares(user, store.outcomes[slot]!, -shares);
  }
}
