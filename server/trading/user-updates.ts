/**
 * What users receive of a turn: order updates in the order of their numbers (with several engines, those of one user come
 * from several rings), then one change of each account. Owns the numbers; the user outbox delivers.
 */
import { withIndex } from "../../engine/util/typed-arrays.ts";
import { copyReport, type OrderReport } from "../orders/order-json.ts";
import type { Timeline } from "../util/timeline.ts";
import type { CommittedEvents } from "./committed-events.ts";
import { NO_USER_LISTENER } from "./no-listener.ts";
import type { GatewayLoop, UserListener } from "./types.ts";

interface OrderUpdate {
  readonly user: number;
  readonly sequence: number;
  readonly at: number;
  readonly report: OrderReport;
}

export class UserUpdates {
  private readonly events: CommittedEvents;
  private readonly timeline: Timeline;
  private readonly loop: GatewayLoop;
  private readonly isSingleRing: boolean;
  private users: UserListener = NO_USER_LISTENER;
  /** By user: the last number of its order updates. */
  private sequences = new Float64Array(1024);
  /** The latest time of an applied event, ms. */
  private appliedAt: number;
  /** With several rings: order updates of this turn. */
  private readonly gathered: OrderUpdate[] = [];
  /** By user with a connection: outcomes whose positions changed. Its balance changed too. */
  private readonly changed = new Map<number, Set<number>>();

  constructor(events: CommittedEvents, rings: number, timeline: Timeline, loop: GatewayLoop) {
    this.events = events;
    this.timeline = timeline;
    this.loop = loop;
    this.isSingleRing = rings === 1;
    this.appliedAt = timeline.stamp(loop.now());
  }

  listen(users: UserListener): void {
    this.users = users;
  }

  /** The last number of the user's order updates. */
  sequenceOf(userId: number): number {
    return this.sequences[userId] ?? 0;
  }

  setSequence(userId: number, sequence: number): void {
    if (userId >= this.sequences.length) this.sequences = withIndex(this.sequences, userId);
    this.sequences[userId] = sequence;
  }

  /** An event with this update was applied. */
  applied(userId: number, sequence: number, at: number): void {
    if (at > this.appliedAt) this.appliedAt = at;
    if (sequence > this.sequenceOf(userId)) this.setSequence(userId, sequence);
  }

  /** Publishes an order update: now, or with several rings once all of the turn are there. */
  orderUpdated(user: number, sequence: number, at: number, report: OrderReport): void {
    if (this.isSingleRing) this.users.orderUpdated(user, sequence, at, report);
    else this.gathered.push({ user, sequence, at, report: copyReport(report) });
  }

  /** Accounts that changed in this turn. */
  get changedAccounts(): number {
    return this.changed.size;
  }

  /** The user's balance changed, and its position in the outcome, unless that is 0. */
  accountChanged(userId: number, outcomeId: number): void {
    if (!this.users.listens(userId)) return;
    let outcomes = this.changed.get(userId);
    if (outcomes === undefined) {
      outcomes = new Set();
      this.changed.set(userId, outcomes);
    }
    if (outcomeId !== 0) outcomes.add(outcomeId);
  }

  /** Publishes what the turn gathered. */
  publish(): void {
    if (this.gathered.length > 0) this.publishOrders();
    if (this.changed.size > 0) this.publishAccounts();
    this.users.endBatch();
  }

  private publishOrders(): void {
    this.gathered.sort((a, b) => a.sequence - b.sequence);
    for (const { user, sequence, at, report } of this.gathered) this.users.orderUpdated(user, sequence, at, report);
    this.gathered.length = 0;
  }

  private publishAccounts(): void {
    const at = this.publishedUntil();
    for (const [userId, outcomes] of this.changed) {
      this.users.accountChanged(userId, this.sequenceOf(userId), at, outcomes);
    }
    this.changed.clear();
  }

  /**
   * The time up to which every update was published, ms: now while nothing is in flight, else that of the last event
   * applied. No later update has an earlier time.
   */
  publishedUntil(): number {
    if (this.events.areIdle()) this.appliedAt = this.timeline.stamp(this.loop.now());
    return this.appliedAt;
  }
}
