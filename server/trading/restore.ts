/**
 * Puts the live orders of the database back at startup: slot, hold, activity and place in the book, which
 * an order takes by its priority. Then ends the orders that a crash interrupted.
 */
import { OrderStatus, OrderType, Reason, TimeInForce } from "../../engine/constants.ts";
import * as R from "../../engine/ring/records.ts";
import { MinHeap } from "../../engine/util/min-heap.ts";
import type { MarketRegistry } from "../markets/registry.ts";
import type { BulkCancels } from "./bulk-cancels.ts";
import type { ClientOrderIds } from "./client-order-ids.ts";
import type { CommandWriter } from "./command-writer.ts";
import type { Holds } from "./holds.ts";
import type { OrderChunk } from "./order-chunks.ts";
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
  /** Orders to which an amend gave a priority above their id, until the others' ids reach it. */
  private readonly amended = new MinHeap<{ readonly at: number; readonly slot: number }>();
  /** By market: the order that entered its books last; its command waits until all orders are linked. */
  private readonly newest = new Map<number, number>();
  /** What a crash interrupted: slots, and the ids of their orders, which engines may end. */
  private readonly interrupted: { readonly slot: number; readonly id: number }[] = [];
  private readonly disconnected: { readonly slot: number; readonly id: number }[] = [];

  constructor(parts: RestoreParts) {
    this.parts = parts;
  }

  /**
   * Puts the order that the chunk is at back; ids rise from call to call. Returns false where the ring is full: the caller
   * calls again with the same order.
   */
  add(order: OrderChunk): boolean {
    const { id, user, outcome, terms, createdAt, expiresAt, key, priority, status } = order;
    const { store, registry, clientOrderIds, writer, expiry, holds } = this.parts;
    const { id: market } = registry.marketOf(outcome);
    writer.setRestoring(true);
    if (!this.enterAmended(id) || !writer.hasReservedRoom(market)) return false;
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
      status,
      connection: 0,
      expiresAt,
      createdAt,
      updatedAt: order.updatedAt,
    });
    if ((terms & R.FLAG_TEXT) !== 0) store.texts.take(slot, order.texts, order.index);
    if (key !== 0) clientOrderIds.addKey(key, user, id, createdAt);
    store.raiseLastId(priority);
    store.link(slot);
    holds.hold(slot);
    if (priority === id) this.enter(slot);
    else this.amended.add({ at: priority, slot });
    if (R.timeInForceOf(terms) === TimeInForce.gtd && expiresAt !== 0) expiry.add(slot);
    const mayRest = R.typeOf(terms) === OrderType.limit && R.timeInForceOf(terms) <= TimeInForce.gtd;
    if (status === OrderStatus.queued || !mayRest) this.interrupted.push({ slot, id });
    if ((terms & R.FLAG_CANCEL_ON_DISCONNECT) !== 0) this.disconnected.push({ slot, id });
    return true;
  }

  /** Enters the amended orders whose priority is below `until`; false where a ring is full. */
  private enterAmended(until: number): boolean {
    const { amended } = this;
    for (let next = amended.peek(); next !== undefined && next.at < until; next = amended.peek()) {
      if (!this.parts.writer.hasReservedRoom(this.parts.store.markets[next.slot]!)) return false;
      this.enter(amended.pop().slot);
    }
    return true;
  }

  /** Puts the order into its book, behind those that were put there before. */
  private enter(slot: number): void {
    const { store, writer } = this.parts;
    const market = store.markets[slot]!;
    const before = this.newest.get(market);
    if (before !== undefined) writer.restoreOrder(before, false);
    this.newest.set(market, slot);
  }

  /**
   * Ends what a crash interrupted: orders in the middle of their matching, and those with cancel on disconnect. Only the
   * last order of a market can have been in the middle of its matching; where it would match while it rests, the engine
   * ends it.
   */
  async finish(): Promise<void> {
    const { writer, cancels, turn } = this.parts;
    while (!this.enterAmended(Number.POSITIVE_INFINITY)) await turn.room();
    writer.setRestoring(false);
    for (const slot of this.newest.values()) {
      await turn.room();
      writer.restoreOrder(slot, true);
    }
    this.newest.clear();
    cancels.add(this.stillLive(this.interrupted), Reason.operator, null);
    cancels.add(this.stillLive(this.disconnected), Reason.cancelOnDisconnect, null);
    await turn.cancelsWritten();
  }

  private stillLive(orders: readonly { readonly slot: number; readonly id: number }[]): number[] {
    const { ids } = this.parts.store;
    return orders.filter(({ slot, id }) => ids[slot] === id).map(({ slot }) => slot);
  }
}
