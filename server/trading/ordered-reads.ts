/**
 * Reads of a user's own state leave after the messages about what they show. A client that reads its orders anew and
 * then hears nothing on a socket that it had open before knows that no older news is still to come.
 *
 * Memory shows what was applied, whose messages may be held back for an answer; the database shows what was committed,
 * which the gateway may not have applied. A read waits for both, and not longer than READ_WAIT_MS.
 */

import type { CommittedEvents } from "./committed-events.ts";
import { READ_WAIT_MS } from "./limits.ts";
import type { OrderedReads } from "./types.ts";

interface Read {
  readonly userId: number;
  /** By link: the event position that must have been applied. */
  readonly marks: readonly number[];
  /** ms since the epoch */
  readonly deadline: number;
  readonly give: () => void;
}

export class OrderedReadQueue implements OrderedReads {
  private readonly events: CommittedEvents;
  /** Calls back when the user's messages so far are on their way. */
  private readonly afterMessages: (userId: number, callback: () => void) => void;
  /** Oldest first. */
  readonly unapplied: Read[] = [];
  /** Behind messages that are held back, oldest first. */
  private readonly held = new Set<Read>();
  private isOver = false;

  constructor(events: CommittedEvents, afterMessages: (userId: number, callback: () => void) => void) {
    this.events = events;
    this.afterMessages = afterMessages;
  }

  /** Calls `give` once the user has been told what the database held when this was called. */
  afterCommitted(userId: number, now: number, give: () => void): void {
    if (this.isOver) return give();
    const marks = this.events.published();
    if (this.unapplied.length === 0 && this.events.haveApplied(marks)) this.afterTold(userId, now, give);
    else this.unapplied.push({ userId, marks, deadline: now + READ_WAIT_MS, give });
  }

  /** Resolves once the user has been told what the database holds now. */
  committed(userId: number): Promise<void> {
    return new Promise((resolve) => this.afterCommitted(userId, Date.now(), resolve));
  }

  /** Calls `give` once the user has been told what memory holds. */
  afterTold(userId: number, now: number, give: () => void): void {
    if (this.isOver) return give();
    this.hold({ userId, marks: [], deadline: now + READ_WAIT_MS, give });
  }

  /** Events were applied and told. */
  advance(): void {
    while (this.unapplied.length > 0 && this.events.haveApplied(this.unapplied[0]!.marks)) {
      this.hold(this.unapplied.shift()!);
    }
  }

  /** Gives those that wait too long: their engine or a batch's lookups are stuck, and a late read helps nobody. */
  expire(now: number): void {
    while (this.unapplied.length > 0 && this.unapplied[0]!.deadline <= now) this.unapplied.shift()!.give();
    for (const read of this.held) {
      if (read.deadline > now) return;
      this.held.delete(read);
      read.give();
    }
  }

  /** The journal failed: nothing more is told, and reads wait for nothing. */
  end(): void {
    this.isOver = true;
    this.expire(Number.POSITIVE_INFINITY);
  }

  private hold(read: Read): void {
    this.held.add(read);
    this.afterMessages(read.userId, () => {
      if (this.held.delete(read)) read.give();
    });
  }
}
