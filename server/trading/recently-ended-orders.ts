/**
 * Whose the orders were that ended lately. A place an order, chosen by its id: of ids that follow each other each has a
 * place of its own, so that the latest MAX_RECENTLY_ENDED_ORDERS that were placed are all here once they end. One that
 * was placed before them may take another's place, or lose its own: what isn't here is in the database. Knows no order
 * that ended before the start. Owned by the gateway thread.
 */
import { MAX_RECENTLY_ENDED_ORDERS } from "./limits.ts";

export class RecentlyEndedOrders {
  private readonly ids = new Float64Array(MAX_RECENTLY_ENDED_ORDERS);
  private readonly owners = new Int32Array(MAX_RECENTLY_ENDED_ORDERS);

  add(orderId: number, userId: number): void {
    const place = orderId % MAX_RECENTLY_ENDED_ORDERS;
    this.ids[place] = orderId;
    this.owners[place] = userId;
  }

  /** The user whose order it was; 0 where it isn't here. */
  ownerOf(orderId: number): number {
    const place = orderId % MAX_RECENTLY_ENDED_ORDERS;
    return this.ids[place] === orderId ? this.owners[place]! : 0;
  }
}
