/**
 * Delivers reads of a user's own state after the messages about what they show. A client that reads its orders and then
 * receives nothing on an open socket knows that no older update is still on its way.
 *
 * Memory shows applied events, whose messages may wait for a composite reply; the tables show projected events, which
 * the gateway may not have applied. A read waits for both, at most READ_WAIT_MS.
 */

import type { Clock } from "../../engine/util/clock.ts";
import type { CommittedEvents } from "./committed-events.ts";
import { READ_WAIT_MS } from "./limits.ts";
import type { OrderedReads } from "./types.ts";

interface Read {
  readonly userId: number;
  /** By link: the event cursor that the gateway must have applied. */
  readonly marks: readonly number[];
  /** ms since the epoch */
  readonly deadline: number;
  readonly deliver: () => void;
}

export class OrderedReadQueue implements OrderedReads {
  private readonly events: CommittedEvents;
  /** Calls back once the user's messages so far were sent. */
  private readonly afterMessages: (userId: number, callback: () => void) => void;
  private readonly clock: Clock;
  /** Oldest first. */
  readonly unapplied: Read[] = [];
  /** Reads behind deferred messages, oldest first. */
  private readonly behindMessages = new Set<Read>();
  private isOver = false;

  constructor(events: CommittedEvents, afterMessages: (userId: number, callback: () => void) => void, clock: Clock) {
    this.events = events;
    this.clock = clock;
    this.afterMessages = afterMessages;
  }

  /** Calls `deliver` once the user was sent everything that the tables had at the time of this call. */
  afterCommitted(userId: number, deliver: () => void): void {
    if (this.isOver) return deliver();
    const now = this.clock.now();
    const marks = this.events.published();
    if (this.unapplied.length === 0 && this.events.haveApplied(marks)) this.afterMessagesSent(userId, now, deliver);
    else this.unapplied.push({ userId, marks, deadline: now + READ_WAIT_MS, deliver });
  }

  /** Resolves once the user was sent everything that the tables have now. */
  committed(userId: number): Promise<void> {
    return new Promise((resolve) => this.afterCommitted(userId, resolve));
  }

  /** Calls `deliver` once the user was sent everything that memory has. */
  afterMessagesSent(userId: number, now: number, deliver: () => void): void {
    if (this.isOver) return deliver();
    this.waitForMessages({ userId, marks: [], deadline: now + READ_WAIT_MS, deliver });
  }

  /** Events were applied and published. */
  advance(): void {
    for (let [read] = this.unapplied; read !== undefined; [read] = this.unapplied) {
      if (!this.events.haveApplied(read.marks)) return;
      this.unapplied.shift();
      this.waitForMessages(read);
    }
  }

  /** Delivers reads past their deadline: their engine or a batch's lookups are stuck, and a late read helps nobody. */
  expire(now: number): void {
    for (let [read] = this.unapplied; read !== undefined && read.deadline <= now; [read] = this.unapplied) {
      this.unapplied.shift();
      read.deliver();
    }
    for (const read of this.behindMessages) {
      if (read.deadline > now) return;
      this.behindMessages.delete(read);
      read.deliver();
    }
  }

  /** The log failed: no message follows, so reads wait for none. */
  end(): void {
    this.isOver = true;
    this.expire(Number.POSITIVE_INFINITY);
  }

  private waitForMessages(read: Read): void {
    this.behindMessages.add(read);
    this.afterMessages(read.userId, () => {
      if (this.behindMessages.delete(read)) read.deliver();
    });
  }
}
