/**
 * The owners of orders that ended recently. An order's id picks its entry: consecutive ids have different entries, so the
 * latest MAX_RECENTLY_ENDED_ORDERS entryd are all here once they end. An older one may overwrite an entry or lose its own;
 * the database has it. Holds no order that ended before startup. Owned by the gateway thread.
 */
import { MAX_RECENTLY_ENDED_ORDERS } from "./limits.ts";

export class RecentlyEndedOrders {
  private readonly ids = new Float64Array(MAX_RECENTLY_ENDED_ORDERS);
  private readonly owners = new Int32Array(MAX_RECENTLY_ENDED_ORDERS);

  add(orderId: number, userId: number): void {
    const entry = orderId % MAX_RECENTLY_ENDED_ORDERS;
    this.ids[entry] = orderId;
    this.owners[entry] = userId;
  }

  /** Returns the order's user; 0 where it isn't here. */
  ownerOf(orderId: number): number {
    const entry = orderId % MAX_RECENTLY_ENDED_ORDERS;
    return this.ids[entry] === orderId ? this.owners[entry]! : 0;
  }
}
