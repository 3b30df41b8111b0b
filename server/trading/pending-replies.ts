/**
 * Replies that wait for a commit. Each has a correlation id, which goes out with a command and comes back with one event.
 * One kind of id serves all of them: above 0 a single reply waits, below 0 a group of cancels (bulk-cancels.ts). The event
 * of a placement carries no id; it is found by the order's slot.
 *
 * Flat and reused: the tables that a Map outgrows keep their entries alive until the next full collection, which was half a
 * kilobyte per order.
 */
import { assert } from "../../engine/util/assert.ts";
import type { Reply } from "./types.ts";

/** What a group of cancels reports, each as its event comes back and before the order's own update. */
export interface CancelWatcher {
  /** A cancel was executed or rejected. */
  arrived(): void;
  /** All of them came back. @param orderIds the orders that they ended */
  done(orderIds: readonly number[]): void;
}

class CancelGroup {
  readonly orderIds: number[] = [];
  outstanding: number;
  private readonly watcher: CancelWatcher;

  constructor(count: number, watcher: CancelWatcher) {
    this.outstanding = count;
    this.watcher = watcher;
  }

  resolve(orderId: number | null): void {
    this.watcher.arrived();
    if (orderId !== null) this.orderIds.push(orderId);
    if (--this.outstanding === 0) this.watcher.done(this.orderIds);
  }
}

export class PendingReplies {
  /** By correlation id, from 1. Null: free, or abandoned while its event is still to come. */
  private readonly replies: (Reply | null)[] = [null];
  /** By correlation id, ms since the epoch; 0 where it is free. */
  private readonly deadlines: number[] = [0];
  private readonly free: number[] = [];
  /** By slot of an order in flight: the correlation id of its reply. */
  private readonly placements: Int32Array;
  private readonly groups = new Map<number, CancelGroup>();
  private lastGroup = 0;
  /** Replies that clients still wait for. */
  size = 0;

  /** @param capacity the largest slot */
  constructor(capacity: number) {
    this.placements = new Int32Array(capacity + 1);
  }

  /** @param deadline ms since the epoch @returns the correlation id, from 1 */
  expect(reply: Reply, deadline: number): number {
    const id = this.free.pop() ?? this.replies.length;
    this.replies[id] = reply;
    this.deadlines[id] = deadline;
    this.size++;
    return id;
  }

  /** Returns the reply whose event has come and frees its id; null where the reply was abandoned, and for id 0. */
  resolve(id: number): Reply | null {
    if (id === 0) return null;
    assert(this.deadlines[id] !== 0, "a correlation id comes back once");
    this.deadlines[id] = 0;
    const reply = this.abandon(id);
    this.free.push(id);
    return reply;
  }

  /** Abandons every reply whose deadline has come. Their ids stay in use, because their events may still come. */
  abandonOverdue(now: number): Reply[] {
    const overdue: Reply[] = [];
    for (let id = 1; id < this.deadlines.length; id++) {
      const reply = this.isOverdue(id, now) ? this.abandon(id) : null;
      if (reply !== null) overdue.push(reply);
    }
    return overdue;
  }

  /** Every reply that waits with a deadline gets this one. @param deadline ms */
  restartDeadlines(deadline: number): void {
    for (let id = 1; id < this.deadlines.length; id++) {
      const given = this.deadlines[id]!;
      if (given !== 0 && given !== Number.MAX_SAFE_INTEGER) this.deadlines[id] = deadline;
    }
  }

  private isOverdue(id: number, now: number): boolean {
    return (this.deadlines[id] ?? 0) <= now;
  }

  private abandon(id: number): Reply | null {
    const reply = this.replies[id] ?? null;
    if (reply !== null) this.size--;
    this.replies[id] = null;
    return reply;
  }

  // ---------------------------------------------------------------- placements

  /** The reply to the placement of the order in `slot`. */
  expectPlacement(slot: number, reply: Reply, deadline: number): void {
    this.placements[slot] = this.expect(reply, deadline);
  }

  /** True while a client waits for the placement of the order in `slot`. */
  hasPlacement(slot: number): boolean {
    return this.replies[this.placements[slot] ?? 0] !== null;
  }

  /** A repeat of the placement in flight: both get its reply, or this one alone where the first was abandoned. */
  joinPlacement(slot: number, reply: Reply, deadline: number): void {
    const id = this.placements[slot] ?? 0;
    const first = this.replies[id] ?? null;
    this.replies[id] = first === null ? reply : both(first, reply);
    if (first !== null) return;
    this.size++;
    this.deadlines[id] = deadline;
  }

  resolvePlacement(slot: number): Reply | null {
    const reply = this.resolve(this.placements[slot] ?? 0);
    this.placements[slot] = 0;
    return reply;
  }

  // ---------------------------------------------------------------- groups of cancels

  /** Returns the correlation id, below 0, of `count` cancels that report to one watcher. */
  expectCancels(count: number, watcher: CancelWatcher): number {
    this.groups.set(++this.lastGroup, new CancelGroup(count, watcher));
    return -this.lastGroup;
  }

  /** A cancel of a group came back. @param orderId the order that it ended, null where it was rejected */
  resolveCancel(id: number, orderId: number | null): void {
    const group = this.groups.get(-id);
    if (group === undefined) return;
    group.resolve(orderId);
    if (group.outstanding === 0) this.groups.delete(-id);
  }

  /** The log failed: nothing comes back. */
  clearGroups(): void {
    this.groups.clear();
  }
}

function both(first: Reply, second: Reply): Reply {
  return {
    order(report) {
      first.order(report);
      second.order(report);
    },
    canceled(orderIds) {
      first.canceled(orderIds);
      second.canceled(orderIds);
    },
    data(json) {
      first.data(json);
      second.data(json);
    },
    error(error) {
      first.error(error);
      second.error(error);
    },
  };
}
