/**
 * Numbers of users' order updates, and their publication in the order of the numbers: with several engines, updates of one
 * user come from several rings in one turn.
 */
import { withIndex } from "../../engine/util/typed-arrays.ts";
import type { CommittedEvents } from "./committed-events.ts";
import type { UserListener } from "./types.ts";

interface OrderUpdate {
  readonly user: number;
  readonly sequence: number;
  readonly at: number;
  readonly json: string;
}

export class OrderUpdates {
  private readonly events: CommittedEvents;
  private readonly time: () => number;
  private readonly isSingleRing: boolean;
  private users: UserListener;
  /** By user: the last number of its order updates. */
  private sequences = new Float64Array(1024);
  /** The latest time of an applied event, ms. */
  private appliedAt: number;
  /** With several rings: updates of this turn. */
  private readonly gathered: OrderUpdate[] = [];

  /** @param time returns the time for what goes on record now, ms */
  constructor(events: CommittedEvents, rings: number, time: () => number, users: UserListener) {
    this.events = events;
    this.time = time;
    this.isSingleRing = rings === 1;
    this.users = users;
    this.appliedAt = time();
  }

  listen(users: UserListener): void {
    this.users = users;
  }

  /** The last number of the user's order updates. */
  sequenceOf(userId: number): number {
    return this.sequences[userId] ?? 0;
  }

  /** An event with this update was applied. */
  applied(userId: number, sequence: number, at: number): void {
    if (at > this.appliedAt) this.appliedAt = at;
    if (sequence > this.sequenceOf(userId)) this.setSequence(userId, sequence);
  }

  setSequence(userId: number, sequence: number): void {
    if (userId >= this.sequences.length) this.sequences = withIndex(this.sequences, userId);
    this.sequences[userId] = sequence;
  }

  /** Publishes an update: now, or with several rings once all of the turn are there. */
  add(user: number, sequence: number, at: number, json: string): void {
    if (this.isSingleRing) this.users.orderUpdated(user, sequence, at, json);
    else this.gathered.push({ user, sequence, at, json });
  }

  publish(): void {
    if (this.gathered.length === 0) return;
    this.gathered.sort((a, b) => a.sequence - b.sequence);
    for (const { user, sequence, at, json } of this.gathered) this.users.orderUpdated(user, sequence, at, json);
    this.gathered.length = 0;
  }

  /**
   * The time up to which every update was published, ms: now while nothing is in flight, else that of the last event
   * applied. No later update has an earlier time.
   */
  publishedUntil(): number {
    if (this.events.areIdle()) this.appliedAt = this.time();
    return this.appliedAt;
  }
}
