/**
 * Dead man's switches: when each user's live orders are canceled unless the user asks again in time. Owns those times;
 * how they are kept and what cancels is its maker's business. Nobody is told of a time that isn't durable, and one that
 * came stays durable until what it canceled is: after a crash in between it comes again, and cancels only what was placed
 * before it. Reads no clock.
 */
import { MinHeap } from "../../engine/util/min-heap.ts";

/** Places in the heap that count no more, beside as many as there are switches, before they are swept out. */
const MAX_STALE = 1_000;

interface CancelTimerOptions {
  /** Makes a user's time durable, null for none; ms since the epoch. */
  readonly save: (userId: number, firesAt: number | null) => Promise<unknown>;
  /** Cancels the user's live orders that were placed before then; resolves once that is durable. */
  readonly cancel: (userId: number, placedBefore: number, now: number) => Promise<void>;
}

interface Switch {
  /** Null: it was ended. */
  firesAt: number | null;
  /** When the heap has it looked at: then or before. What is put off stays there until its earlier time comes. */
  lookAt: number;
}

export class CancelTimers {
  private readonly options: CancelTimerOptions;
  private readonly switches = new Map<number, Switch>();
  private readonly heap = new MinHeap<{ readonly at: number; readonly userId: number }>();
  /** By user, cancels under way of a time that came. */
  private readonly firing = new Map<number, Promise<void>>();

  constructor(options: CancelTimerOptions) {
    this.options = options;
  }

  /** Takes a durable time in, at start. */
  restore(userId: number, firesAt: number): void {
    this.arm(userId, firesAt);
  }

  /** Sets, puts off or (null) ends the user's switch, at once; resolves when that is durable. @param firesAt ms */
  async set(userId: number, firesAt: number | null): Promise<void> {
    if (firesAt !== null) this.arm(userId, firesAt);
    else {
      const ended = this.switches.get(userId);
      if (ended !== undefined) ended.firesAt = null;
    }
    // The time before this one may have come: it is forgotten when what it cancels is durable.
    await this.firing.get(userId);
    await this.options.save(userId, firesAt);
  }

  /** Cancels for everybody whose time has come. */
  fireDue(now: number): void {
    for (let next = this.heap.peek(); next !== undefined && next.at <= now; next = this.heap.peek()) {
      const { at, userId } = this.heap.pop();
      const found = this.switches.get(userId);
      if (found === undefined || found.lookAt !== at) continue;
      this.switches.delete(userId);
      if (found.firesAt === null) continue;
      if (found.firesAt > now) this.arm(userId, found.firesAt);
      else this.fire(userId, found.firesAt, now);
    }
  }

  private arm(userId: number, firesAt: number): void {
    const known = this.switches.get(userId);
    if (known !== undefined && known.lookAt <= firesAt) {
      known.firesAt = firesAt;
      return;
    }
    this.switches.set(userId, { firesAt, lookAt: firesAt });
    this.heap.add({ at: firesAt, userId });
    if (this.heap.size <= 2 * this.switches.size + MAX_STALE) return;
    this.heap.keep(({ at, userId: user }) => this.switches.get(user)?.lookAt === at);
  }

  private fire(userId: number, firesAt: number, now: number): void {
    const before = this.firing.get(userId) ?? Promise.resolve();
    const fired = before
      .then(() => this.options.cancel(userId, firesAt, now))
      .then(() => {
        // A new time was set meanwhile, and takes this one's place.
        if (this.switches.has(userId)) return;
        return this.options.save(userId, null).then(() => {});
      })
      // It stays durable, and comes again at the next start: trading has stopped, or the cancels took too long.
      .catch(() => {})
      .then(() => {
        if (this.firing.get(userId) === fired) this.firing.delete(userId);
      });
    this.firing.set(userId, fired);
  }
}
