/** Gives a new order its slot and its number, for single orders and quotes alike. */
import { FLAG_CANCEL_ON_DISCONNECT } from "../../engine/ring/records.ts";
import type { Exchange } from "./exchange.ts";
import { IN_FLIGHT } from "./order-store.ts";
import type { Origin, Trader } from "./types.ts";

interface NewOrder {
  readonly marketId: number;
  readonly outcomeId: number;
  readonly quantity: number;
}

/** @param packed see records.ts @param expiresAt ms; 0 for never @returns the slot; the order is in flight, not linked */
export function allocateOrder(
  { store, times, timeline }: Exchange,
  { userId }: Trader,
  { connection }: Origin,
  { marketId, outcomeId, quantity }: NewOrder,
  price: number,
  packed: number,
  expiresAt: number,
  now: number,
): number {
  const at = timeline.stamp(now);
  const slot = store.allocate({
    id: store.allocateId(),
    user: userId,
    market: marketId,
    outcome: outcomeId,
    price,
    quantity,
    remaining: quantity,
    packed,
    status: IN_FLIGHT,
    connection: connection?.number ?? 0,
    expiresAt,
    createdAt: at,
    updatedAt: at,
  });
  times.receive(slot);
  return slot;
}

/** The flag of an order that is canceled when its connection ends. */
export function disconnectFlag({ connection }: Origin): number {
  return connection?.cancelOnDisconnect === true ? FLAG_CANCEL_ON_DISCONNECT : 0;
}
