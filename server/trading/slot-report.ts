/** The orders in memory as replies and updates report them. */
import { OrderStatus, Reason } from "../../engine/constants.ts";
import type { ClientOrderId } from "../../engine/ring/order-texts.ts";
import type { FillView, OrderReport, Timestamps } from "../orders/order-json.ts";
import { IN_FLIGHT, type OrderStore } from "./order-store.ts";
import type { Placement } from "./types.ts";

export const NO_TRADES: readonly FillView[] = [];

/**
 * The order in a slot, moved from order to order: valid until it moves on. Its texts are read from the store when they are
 * asked for, until the slot changes hands.
 */
export class SlotReport implements OrderReport {
  id = 0;
  market = 0;
  outcome = 0;
  terms = 0;
  price = 0;
  quantity = 0;
  remaining = 0;
  expiresAt = 0;
  status: number = OrderStatus.queued;
  reason: number = Reason.none;
  createdAt = 0;
  updatedAt = 0;
  trades = NO_TRADES;
  timestamps: Timestamps | null = null;
  private readonly store: OrderStore;
  private slot = 0;

  constructor(store: OrderStore) {
    this.store = store;
  }

  /** The live order in `slot` as it stands; one in flight as it was requested. */
  live(slot: number): this {
    const { statuses, remaining, updatedAt } = this.store;
    const status = statuses[slot] === IN_FLIGHT ? OrderStatus.queued : statuses[slot]!;
    return this.at(slot, status, Reason.none, remaining[slot]!, updatedAt[slot]!);
  }

  /** The order in `slot`, in the given state, without trades. @param updatedAt ms */
  at(slot: number, status: number, reason: number, remaining: number, updatedAt: number): this {
    const { store } = this;
    this.slot = slot;
    this.id = store.ids[slot]!;
    this.market = store.markets[slot]!;
    this.outcome = store.outcomes[slot]!;
    this.terms = store.terms[slot]!;
    this.price = store.prices[slot]!;
    this.quantity = store.quantities[slot]!;
    this.remaining = remaining;
    this.expiresAt = store.expiresAt[slot]!;
    this.status = status;
    this.reason = reason;
    this.createdAt = store.createdAt[slot]!;
    this.updatedAt = updatedAt;
    this.trades = NO_TRADES;
    this.timestamps = null;
    return this;
  }

  get clientOrderId(): ClientOrderId | null {
    return this.store.clientOrderId(this.slot);
  }

  get builderCode(): string | null {
    return this.store.builderCode(this.slot);
  }
}

/** The response to the first request of a placement, whatever has become of the order since. @param createdAt ms */
export function firstReport(
  id: number,
  placement: Placement,
  builderCode: string | null,
  createdAt: number,
): OrderReport {
  const { marketId: market, outcomeId: outcome, terms, price, quantity, clientOrderId, expiresAt } = placement;
  return {
    ...{ id, clientOrderId, market, outcome, terms, price: price ?? 0, quantity, expiresAt, builderCode },
    ...{ remaining: quantity, status: OrderStatus.queued, reason: Reason.none, createdAt, updatedAt: createdAt },
    ...{ trades: NO_TRADES, timestamps: null },
  };
}
