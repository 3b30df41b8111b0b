/** Expires `gtd` orders. Owns when each is due; the order store owns the orders. */
import { Reason, restingTimeInForce } from "../../engine/constants.ts";
import * as R from "../../engine/ring/records.ts";
import { MinHeap } from "../../engine/util/min-heap.ts";
import type { CommandWriter } from "./command-writer.ts";
import type { OrderStore } from "./order-store.ts";

/** Entries of ended orders that may stay before a sweep, beside twice as many as there are live orders. */
const MAX_STALE = 10_000;

interface Due {
  /** ms since the epoch */
  readonly at: number;
  readonly slot: number;
  readonly orderId: number;
}

export class OrderExpiry {
  private readonly store: OrderStore;
  private readonly writer: CommandWriter;
  /** Cancels the order in `slot`. */
  private readonly cancel: (slot: number, reason: number, now: number) => void;
  /** Entries of orders that ended early stay until their time or the next sweep. */
  private readonly heap = new MinHeap<Due>();
  /** When the earliest entry is due, ms; Infinity without one. */
  nextAt = Number.POSITIVE_INFINITY;

  constructor(store: OrderStore, writer: CommandWriter, cancel: (slot: number, reason: number, now: number) => void) {
    this.store = store;
    this.writer = writer;
    this.cancel = cancel;
  }

  /** The order in `slot` expires at its `expiresAt`. */
  add(slot: number): void {
    const at = this.store.expiresAt[slot]!;
    this.heap.add({ at, slot, orderId: this.store.ids[slot]! });
    this.nextAt = Math.min(this.nextAt, at);
  }

  /** The order in `slot` expires at another time. @param expiresAt ms; 0 for never */
  change(slot: number, expiresAt: number): void {
    const { store } = this;
    store.expiresAt[slot] = expiresAt;
    store.terms[slot] = R.withTimeInForce(store.terms[slot]!, restingTimeInForce(expiresAt));
    if (expiresAt > 0) this.add(slot);
  }

  /** Cancels each order whose time has come: once `nextAt` has, and before any command that could match one. */
  expireDue(now: number): void {
    let next = this.heap.peek();
    for (; next !== undefined && next.at <= now; next = this.heap.peek()) {
      if (this.isCurrent(next)) {
        // With a full ring the rest expires at the next tick; until then placements are rejected, cancels are not.
        if (!this.writer.hasRoom(this.store.markets[next.slot]!)) return;
        this.cancel(next.slot, Reason.expired, now);
      }
      this.heap.pop();
    }
    this.nextAt = next?.at ?? Number.POSITIVE_INFINITY;
  }

  /** Drops entries of ended orders where too many piled up: their times were the senders' choice. */
  sweep(): void {
    if (this.heap.size > 2 * this.store.liveCount + MAX_STALE) this.heap.keep(this.isCurrent);
  }

  /** False where the order has ended or expires at another time. */
  private readonly isCurrent = ({ at, slot, orderId }: Due): boolean =>
    this.store.ids[slot] === orderId && this.store.expiresAt[slot] === at;
}
