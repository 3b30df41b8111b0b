/**
 * The gateway's turn: publishes commands, applies what was committed, polls while replies are pending, and
 * sleeps when nothing is. Owns the turn's state alone; what a turn does belongs to the parts that it calls.
 */
import type { Waker } from "../../engine/ring/waker.ts";
import type { Clock } from "../../engine/util/clock.ts";
import type { BulkCancels } from "./bulk-cancels.ts";
import type { CommandWriter } from "./command-writer.ts";
import type { CommittedEvents } from "./committed-events.ts";
import type { EventProjection } from "./event-projection.ts";
import type { PendingReplies } from "./pending-replies.ts";
import type { GatewayLoop } from "./types.ts";

/**
 * Turns of the event loop that look for committed events before the gateway parks: a turn costs a microsecond or two, a
 * wake-up 25 to 40, and a gateway that spins on takes the core that the engine or the client needs. Where events wait for
 * other boxes, that takes milliseconds, and one turn is enough.
 */
export const SPIN_TURNS = 20;
const HELD_SPIN_TURNS = 1;
/** The gateway sleeps at most this long before it checks for events itself. */
const SLEEP_MS = 1_000;

/** Node's own event loop, woken through `waker`. @param isHeld events wait for other boxes */
export function nodeLoop(waker: Waker, { now, elapsed }: Clock, isHeld = false): GatewayLoop {
  return {
    spinTurns: isHeld ? HELD_SPIN_TURNS : SPIN_TURNS,
    now,
    elapsed,
    soon: setImmediate,
    sleep: (hasEvents, callback) => void waker.sleepAsync(hasEvents, SLEEP_MS).then(callback),
  };
}

export interface TurnParts {
  readonly writer: CommandWriter;
  readonly events: CommittedEvents;
  readonly cancels: BulkCancels;
  readonly pending: PendingReplies;
  readonly projection: EventProjection;
  /** Reads of the tables that wait for the projector, which wakes the gateway. */
  readonly projected: { readonly isDue: boolean; resolveDue(): void };
  /** Writes out what callbacks of `afterTurn` caused. */
  readonly flush: () => void;
}

export class TurnLoop {
  private readonly loop: GatewayLoop;
  private readonly parts: TurnParts;
  private readonly callbacks: (() => void)[] = [];
  private isScheduled = false;
  private isParked = false;
  private spins: number;

  constructor(loop: GatewayLoop, parts: TurnParts) {
    this.loop = loop;
    this.parts = parts;
    this.spins = loop.spinTurns;
    this.park();
  }

  /** Hands commands over at the end of this turn of the event loop, with whatever else arrives in it. */
  schedule(): void {
    if (this.isScheduled) return;
    this.isScheduled = true;
    this.loop.soon(this.run);
  }

  /** Calls back once the events that are being applied now were applied and published. */
  afterTurn(callback: () => void): void {
    this.callbacks.push(callback);
    this.schedule();
  }

  /** Resolves in a later turn. */
  next(): Promise<void> {
    return new Promise((resolve) => this.loop.soon(resolve));
  }

  /** Resolves once every command ring has room again; for the long lists of a startup. */
  async room(): Promise<void> {
    while (!this.parts.writer.haveRoom) {
      this.schedule();
      await this.next();
    }
  }

  /** Resolves once all cancels are written. */
  async cancelsWritten(): Promise<void> {
    while (this.parts.cancels.isBusy) {
      this.schedule();
      await this.next();
    }
  }

  /** Applies all committed events now. */
  drain(): void {
    const { events, projected, projection, flush } = this.parts;
    if (events.hasEvents()) projection.applyCommitted();
    projected.resolveDue();
    if (this.callbacks.length === 0) return;
    for (const callback of this.callbacks.splice(0)) callback();
    flush();
  }

  private readonly run = (): void => {
    this.handOver();
    this.drain();
    // A turn that finds nothing must cost next to nothing: a pending reply spins through some twenty of them.
    if (this.parts.pending.size > 0 && this.spins-- > 0) {
      this.loop.soon(this.run);
      return;
    }
    this.spins = this.loop.spinTurns;
    this.isScheduled = false;
    this.handOver();
    this.park();
  };

  private handOver(): void {
    const { cancels, writer } = this.parts;
    if (cancels.isBusy) cancels.advance();
    if (writer.unpublished > 0) writer.publish();
  }

  private readonly hasEvents = (): boolean => this.parts.events.hasEvents() || this.parts.projected.isDue;

  /** Parks until events arrive that no reply waits for, such as expiries. Parks once at a time. */
  private park(): void {
    if (this.isParked) return;
    this.isParked = true;
    this.loop.sleep(this.hasEvents, this.awake);
  }

  private readonly awake = (): void => {
    this.isParked = false;
    if (this.isScheduled) return;
    this.drain();
    if (this.parts.cancels.isBusy) this.schedule();
    if (!this.isScheduled) this.park();
  };
}
