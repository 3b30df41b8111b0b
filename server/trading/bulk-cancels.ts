/**
 * Cancels of many orders at a time: pushed as the rings take them, so that a user with a hundred thousand orders blocks
 * nobody, and gathered into one answer. A cancel is never refused for want of room; it waits. Owned by the gateway thread.
 */
import type { OrderStore } from "./order-store.ts";

/** Counts the cancels of one request and tells which orders they ended. */
class CancelGroup {
  readonly orderIds: number[] = [];
  outstanding: number;
  private readonly arrived: () => void;
  private readonly done: (orderIds: readonly number[]) => void;

  constructor(count: number, arrived: () => void, done: (orderIds: readonly number[]) => void) {
    this.outstanding = count;
    this.arrived = arrived;
    this.done = done;
  }

  settle(orderId: number | null): void {
    this.arrived();
    if (orderId !== null) this.orderIds.push(orderId);
    if (--this.outstanding === 0) this.done(this.orderIds);
  }
}

interface Job {
  readonly slots: readonly number[];
  readonly orderIds: readonly number[];
  readonly reason: number;
  readonly reference: number;
  next: number;
}

export interface CancelWatcher {
  /** A cancel came back, made or refused; called before the order's own update. */
  arrived(): void;
  /** All came back; the orders that these cancels ended. */
  done(orderIds: readonly number[]): void;
}

export class BulkCancels {
  private readonly store: OrderStore;
  /** Writes a cancel; false where the ring is full. */
  private readonly push: (slot: number, reason: number, reference: number) => boolean;
  private readonly jobs: Job[] = [];
  private readonly groups = new Map<number, CancelGroup>();
  private lastGroup = 0;

  constructor(store: OrderStore, push: (slot: number, reason: number, reference: number) => boolean) {
    this.store = store;
    this.push = push;
  }

  /** Some cancels are still to be pushed. */
  get isBusy(): boolean {
    return this.jobs.length > 0;
  }

  /** Makes a group of so many cancels, which the caller pushes itself; answers their reference. */
  watch(count: number, { arrived, done }: CancelWatcher): number {
    this.groups.set(++this.lastGroup, new CancelGroup(count, arrived, done));
    return -this.lastGroup;
  }

  /** Cancels the orders in `slots`, one after the other. */
  add(slots: readonly number[], reason: number, watcher: CancelWatcher | null): void {
    if (slots.length === 0) {
      watcher?.done([]);
      return;
    }
    const reference = watcher === null ? 0 : this.watch(slots.length, watcher);
    this.jobs.push({ slots, orderIds: slots.map((slot) => this.store.ids[slot]!), reason, reference, next: 0 });
  }

  /** Pushes what the rings take; true when something was pushed. */
  advance(): boolean {
    let pushed = false;
    for (let job = this.jobs[0]; job !== undefined; job = this.jobs[0]) {
      for (; job.next < job.slots.length; job.next++) {
        const slot = job.slots[job.next]!;
        const orderId = job.orderIds[job.next]!;
        if (this.store.ids[slot] !== orderId) this.settle(job.reference, null);
        else if (!this.push(slot, job.reason, job.reference)) return pushed;
        else pushed = true;
      }
      this.jobs.shift();
    }
    return pushed;
  }

  /** A cancel with this reference (below 0) came back: the order that it ended, or null where it was refused. */
  settle(reference: number, orderId: number | null): void {
    const group = this.groups.get(-reference);
    if (group === undefined) return;
    group.settle(orderId);
    if (group.outstanding === 0) this.groups.delete(-reference);
  }

  /** Forgets who waits: the journal failed, nothing comes back. */
  clear(): void {
    this.jobs.length = 0;
    this.groups.clear();
  }
}
