/** The JSON of the orders in memory, and of a placement's first reply. */
import { OrderStatus, Reason } from "../../engine/constants.ts";
import { orderJson } from "../orders/order-json.ts";
import { IN_FLIGHT, type OrderStore } from "./order-store.ts";
import type { Placement } from "./types.ts";

/** What changes of an order. */
interface OrderState {
  /** An OrderStatus, and a Reason. */
  readonly status: number;
  readonly reason: number;
  readonly remaining: number;
  /** ms */
  readonly updatedAt: number;
}

/** The order in `slot`, in the given state. @param trades JSON texts of its fills, joined by commas */
export function slotJson(store: OrderStore, slot: number, state: OrderState, trades: string): string {
  const { status, reason, remaining, updatedAt } = state;
  const order = {
    id: store.ids[slot]!,
    clientOrderId: store.clientOrderId(slot),
    market: store.markets[slot]!,
    outcome: store.outcomes[slot]!,
    terms: store.terms[slot]!,
    price: store.prices[slot]!,
    quantity: store.quantities[slot]!,
    remaining,
    expiresAt: store.expiresAt[slot]!,
    status,
    reason,
    builderCode: store.builderCode(slot),
    createdAt: store.createdAt[slot]!,
    updatedAt,
  };
  return orderJson(order, trades);
}

/** The live order in `slot` as it stands; one in flight as it was requested. */
export function liveOrderJson(store: OrderStore, slot: number): string {
  const status = store.statuses[slot] === IN_FLIGHT ? OrderStatus.queued : store.statuses[slot]!;
  const [remaining, updatedAt] = [store.remaining[slot]!, store.updatedAt[slot]!];
  return slotJson(store, slot, { status, reason: Reason.none, remaining, updatedAt }, "");
}

/** The response to the first request of a placement, whatever has become of the order since. @param createdAt ms */
export function firstReplyJson(
  id: number,
  placement: Placement,
  builderCode: string | null,
  createdAt: number,
): string {
  const { marketId: market, outcomeId: outcome, terms, price, quantity, clientOrderId, expiresAt } = placement;
  const order = {
    ...{ id, clientOrderId, market, outcome, terms, price: price ?? 0, quantity, expiresAt, builderCode },
    ...{ remaining: quantity, status: OrderStatus.queued, reason: Reason.none, createdAt, updatedAt: createdAt },
  };
  return orderJson(order, "");
}
