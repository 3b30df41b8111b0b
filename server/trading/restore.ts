/**
 * Puts the live orders of the database back at startup: slot, hold, activity and place in the book, market by market in the
 * order of priority. Then ends the orders that a crash interrupted.
 */
import { OrderStatus, OrderType, Reason, TimeInForce } from "../../engine/constants.ts";
import type { LiveOrder } from "../../engine/projection/load/orders.ts";
import * as R from "../../engine/ring/records.ts";
import type { MarketRegistry } from "../markets/registry.ts";
import type { BulkCancels } from "./bulk-cancels.ts";
import type { ClientOrderIds } from "./client-order-ids.ts";
import type { CommandWriter } from "./command-writer.ts";
import type { Holds } from "./holds.ts";
import type { OrderExpiry } from "./order-expiry.ts";
import type { OrderStore } from "./order-store.ts";
import type { TurnLoop } from "./turn-loop.ts";

export interface RestoreParts {
  readonly store: OrderStore;
  readonly registry: MarketRegistry;
  readonly clientOrderIds: ClientOrderIds;
  readonly writer: CommandWriter;
  readonly holds: Holds;
  readonly expiry: OrderExpiry;
  readonly cancels: BulkCancels;
  readonly turn: TurnLoop;
}

export class Restore {
  private readonly parts: RestoreParts;
  private slots: number[] = [];
  /** By market: the order that entered its books last; its command waits until it is linked and has its hold. */
  private readonly newest = new Map<number, number>();

  constructor(parts: RestoreParts) {
    this.parts = parts;
  }

  /**
   * Puts one order back. Returns false where the ring is full: nothing was done.
   * @param firstNamed the caller adds client order ids of the last 24 hours from this order id on
   */
  add(order: LiveOrder, firstNamed: number): boolean {
    const { id, user, outcome, terms, clientOrderId, createdAt, expiresAt } = order;
    const { store, registry, clientOrderIds, writer, expiry } = this.parts;
    const { id: market } = registry.marketOf(outcome);
    if (!writer.hasReservedRoom(market)) return false;
    writer.setRestoring(true);
    // Spelled out: a spread of a million orders takes seconds.
    const slot = store.allocate({
      id,
      user,
      market,
      outcome,
      price: order.price,
      quantity: order.quantity,
      remaining: order.remaining,
      terms,
      status: order.status,
      connection: 0,
      expiresAt,
      createdAt,
      updatedAt: order.updatedAt,
    });
    if ((terms & R.FLAG_TEXT) !== 0) {
      store.texts.write(slot, clientOrderId, order.builderCode, order.fingerprint ?? 0);
    }
    if (clientOrderId !== null && (id < firstNamed || clientOrderIds.isForgotten(createdAt))) {
      clientOrderIds.add(user, clientOrderId, id, createdAt);
    }
    store.raiseLastId(order.priority);
    const before = this.newest.get(market);
    if (before !== undefined) writer.restoreOrder(before, false);
    this.newest.set(market, slot);
    if (R.timeInForceOf(terms) === TimeInForce.gtd && expiresAt !== 0) expiry.add(slot);
    this.slots.push(slot);
    return true;
  }

  /**
   * Links the orders to their users, in the order of their ids, and ends what a crash interrupted: orders in the middle of
   * their matching, and those with cancel on disconnect. Only the last order of a market can have been in the middle of its
   * matching; where it would match while it rests, the engine ends it.
   */
  async finish(): Promise<void> {
    const { store, writer, holds, turn } = this.parts;
    writer.setRestoring(false);
    this.slots.sort((a, b) => store.ids[a]! - store.ids[b]!);
    for (const slot of this.slots) {
      store.link(slot);
      holds.hold(slot);
    }
    for (const slot of this.newest.values()) {
      await turn.room();
      writer.restoreOrder(slot, true);
    }
    this.newest.clear();
    this.cancelInterrupted();
    this.slots = [];
    await turn.cancelsWritten();
  }

  private cancelInterrupted(): void {
    const { store, cancels } = this.parts;
    const { ids, statuses, terms } = store;
    const mayRest = (slot: number): boolean =>
      R.typeOf(terms[slot]!) === OrderType.limit && R.timeInForceOf(terms[slot]!) <= TimeInForce.gtd;
    const live = this.slots.filter((slot) => ids[slot] !== 0);
    const interrupted = live.filter((slot) => statuses[slot] === OrderStatus.queued || !mayRest(slot));
    const disconnected = live.filter((slot) => (terms[slot]! & R.FLAG_CANCEL_ON_DISCONNECT) !== 0);
    cancels.add(interrupted, Reason.operator, null);
    cancels.add(disconnected, Reason.cancelOnDisconnect, null);
  }
}
