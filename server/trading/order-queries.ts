/** Reads live orders from memory, as JSON. Changes nothing. */
import { reportJson } from "../orders/order-json.ts";
import { MAX_LIVE_WALKED } from "./limits.ts";
import { IN_FLIGHT, type OrderStore } from "./order-store.ts";
import { SlotReport } from "./slot-report.ts";

/** A page of orders. @property next the id to read on below, null at the end */
export interface OrdersPage {
  readonly items: string[];
  readonly next: number | null;
}

/**
 * The user's live orders with ids below `before`, newest first.
 * @param isWanted decides over the order in a slot; the walk ends after MAX_LIVE_WALKED orders and continues with the next page
 */
export function activeOrders(
  store: OrderStore,
  userId: number,
  before: number,
  limit: number,
  isWanted: (slot: number) => boolean,
): OrdersPage {
  const items: string[] = [];
  const report = new SlotReport(store);
  let last = 0;
  let walked = 0;
  let lastWalked = 0;
  for (let slot = firstSlot(store, userId, before); slot !== 0; slot = store.olderOf(slot)) {
    const id = store.ids[slot]!;
    if (id >= before) continue;
    if (++walked > MAX_LIVE_WALKED) return { items, next: lastWalked };
    lastWalked = id;
    if (store.statuses[slot] === IN_FLIGHT || !isWanted(slot)) continue;
    if (items.length === limit) return { items, next: last };
    items.push(reportJson(report.live(slot)));
    last = id;
  }
  return { items, next: null };
}

/** Usually the last order of the previous page is still live: the walk continues behind it. */
function firstSlot(store: OrderStore, userId: number, before: number): number {
  const slot = store.find(before);
  return slot !== 0 && store.users[slot] === userId ? store.olderOf(slot) : store.newestOf(userId);
}
