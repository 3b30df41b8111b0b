/**
 * Cancels of many orders at a time, written as the rings have room, so that a user with a hundred thousand orders blocks
 * nobody. A cancel is never rejected for lack of room; it waits. Owned by the gateway thread.
 */
import type { OrderStore } from "./order-store.ts";
import type { CancelWatcher, PendingReplies } from "./pending-replies.ts";

interface Job {
  readonly slots: readonly number[];
  readonly orderIds: readonly number[];
  readonly reason: number;
  readonly correlationId: number;
  next: number;
}

/** Writes a cancel. Returns false where the ring is full. */
export type WriteCancel = (slot: number, reason: number, correlationId: number) => boolean;

export class BulkCancels {
  private readonly store: OrderStore;
  private readonly pending: PendingReplies;
  private readonly write: WriteCancel;
  private readonly jobs: Job[] = [];
  /** True while some cancels are still to be written. */
  isBusy = false;

  constructor(store: OrderStore, pending: PendingReplies, write: WriteCancel) {
    this.store = store;
    this.pending = pending;
    this.write = write;
  }

  /** Cancels the orders in `slots`, in this order. */
  add(slots: readonly number[], reason: number, watcher: CancelWatcher | null): void {
    if (slots.length === 0) {
      watcher?.done([]);
      return;
    }
    const correlationId = watcher === null ? 0 : this.pending.expectCancels(slots.length, watcher);
    this.jobs.push({ slots, orderIds: slots.map((slot) => this.store.ids[slot]!), reason, correlationId, next: 0 });
    this.isBusy = true;
  }

  /** Writes what the rings take. */
  advance(): void {
    for (let job = this.jobs[0]; job !== undefined; job = this.jobs[0]) {
      if (!this.advanceJob(job)) return;
      this.jobs.shift();
    }
    this.isBusy = false;
  }

  /** Returns false where a ring is full. */
  private advanceJob(job: Job): boolean {
    const { slots, orderIds, reason, correlationId } = job;
    for (; job.next < slots.length; job.next++) {
      const slot = slots[job.next]!;
      // An order that ended meanwhile needs no cancel.
      if (this.store.ids[slot] !== orderIds[job.next]) this.pending.resolveCancel(correlationId, null);
      else if (!this.write(slot, reason, correlationId)) return false;
    }
    return true;
  }

  /** The log failed: nothing comes back. */
  clear(): void {
    this.jobs.length = 0;
    this.isBusy = false;
    this.pending.clearGroups();
  }
}
