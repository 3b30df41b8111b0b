/**
 * Dead man's switches: when each user's live orders are canceled unless the user renews the timer. Owns the times; the
 * options store them and cancel. No client sees a time that isn't durable. A switch that fired stays durable until its
 * cancels are: after a crash in between it fires again, before anybody can trade, for the orders that it was for. Which ones
 * those are is a matter of order ids and never of stamps: the machine's clock may be set. Reads no clock.
 */
import { MinHeap } from "../../engine/util/min-heap.ts";
import { badRequest } from "../errors.ts";
import { MAX_CANCEL_AFTER_MS, MIN_CANCEL_AFTER_MS } from "./limits.ts";

/** Stale heap entries that may stay before a sweep, beside twice as many as there are switches. */
const MAX_STALE = 1_000;

interface CancelTimerOptions {
  /** Makes a user's switch durable: when it fires, ms since the epoch; `firedFor` of the last order it fired for; null: none. */
  readonly save: (userId: number, state: number | null) => Promise<unknown>;
  /** Cancels the user's live orders up to this id, those in flight included, before it returns; resolves once that is durable. */
  readonly cancel: (userId: number, lastOrderId: number, now: number) => Promise<void>;
  /** The newest order's id. */
  readonly lastOrderId: () => number;
}

/** How a switch that fired is saved: below 0, which is no time. */
const firedFor = (lastOrderId: number): number => -Math.max(1, lastOrderId);

interface Switch {
  /** Null once the user ended it. */
  firesAt: number | null;
  /** When its heap entry is due: no later than `firesAt`. A renewed switch keeps its earlier entry. */
  dueAt: number;
}

/** @param timeoutMs within the bounds of the request's schema @throws ApiError 40000 between 0 and the least */
export function checkTimeout(timeoutMs: number): void {
  if (timeoutMs === 0 || timeoutMs >= MIN_CANCEL_AFTER_MS) return;
  throw badRequest(`timeout_ms: must be 0, or ${MIN_CANCEL_AFTER_MS} to ${MAX_CANCEL_AFTER_MS}`);
}

export class CancelTimers {
  private readonly options: CancelTimerOptions;
  private readonly switches = new Map<number, Switch>();
  private readonly heap = new MinHeap<{ readonly at: number; readonly userId: number }>();
  /** By user: cancels in flight of a switch that fired. */
  private readonly firing = new Map<number, Promise<void>>();
  /** By user: the last order of a switch that fired before the start, and whose cancels may not be durable. */
  private readonly fired = new Map<number, number>();

  constructor(options: CancelTimerOptions) {
    this.options = options;
  }

  /**
   * Sets, renews or (0) ends the user's switch as a request asks for it; resolves with its time once that is durable.
   * @param timeoutMs that passed `checkTimeout`
   */
  request(userId: number, timeoutMs: number, now: number): Promise<number | null> {
    const firesAt = timeoutMs === 0 ? null : now + timeoutMs;
    // A renewal that arrives too late must not postpone a timer that is due.
    this.fireDue(now);
    return this.set(userId, firesAt).then(() => firesAt);
  }

  /** Restores what was saved at startup. */
  restore(userId: number, state: number): void {
    if (state < 0) this.fired.set(userId, -state);
    this.arm(userId, Math.max(0, state));
  }

  /** Sets, renews or (null) ends the user's switch at once; resolves when that is durable. @param firesAt ms */
  async set(userId: number, firesAt: number | null): Promise<void> {
    if (firesAt !== null) this.arm(userId, firesAt);
    else {
      const ended = this.switches.get(userId);
      if (ended !== undefined) ended.firesAt = null;
    }
    // The previous time may have fired: its row is cleared once its cancels are durable.
    await this.firing.get(userId);
    await this.options.save(userId, firesAt);
  }

  /** When the earliest heap entry is due, ms; Infinity without one. */
  get nextAt(): number {
    return this.heap.peek()?.at ?? Number.POSITIVE_INFINITY;
  }

  /** Cancels the orders of every user whose time has come, whatever their stamps. */
  fireDue(now: number): void {
    for (let next = this.heap.peek(); next !== undefined && next.at <= now; next = this.heap.peek()) {
      const { at, userId } = this.heap.pop();
      const found = this.switches.get(userId);
      if (found === undefined || found.dueAt !== at) continue;
      this.switches.delete(userId);
      if (found.firesAt === null) continue;
      if (found.firesAt > now) this.arm(userId, found.firesAt);
      else this.fire(userId, now);
    }
  }

  private arm(userId: number, firesAt: number): void {
    const known = this.switches.get(userId);
    if (known !== undefined && known.dueAt <= firesAt) {
      known.firesAt = firesAt;
      return;
    }
    this.switches.set(userId, { firesAt, dueAt: firesAt });
    this.heap.add({ at: firesAt, userId });
    if (this.heap.size <= 2 * this.switches.size + MAX_STALE) return;
    this.heap.keep(({ at, userId: user }) => this.switches.get(user)?.dueAt === at);
  }

  private fire(userId: number, now: number): void {
    const before = this.firing.get(userId) ?? Promise.resolve();
    const last = this.fired.get(userId) ?? this.options.lastOrderId();
    this.fired.delete(userId);
    // Now: what is admitted next must not match them.
    const saved = this.options.save(userId, firedFor(last));
    const canceled = this.options.cancel(userId, last, now);
    const fired = Promise.all([saved, canceled, before])
      .then(() => {
        // The user set a new time meanwhile, which replaces this one.
        if (this.switches.has(userId)) return;
        return this.options.save(userId, null).then(() => {});
      })
      // Trading has stopped, or the cancels took too long: the time stays durable and fires again at the next startup.
      .catch(() => {})
      .then(() => {
        if (this.firing.get(userId) === fired) this.firing.delete(userId);
      });
    this.firing.set(userId, fired);
  }
}
