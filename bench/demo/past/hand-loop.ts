/** The gateway's event loop, turned by hand, on a clock that others set: for an exchange in one thread. */
import { assert } from "../../../engine/util/assert.ts";
import { SPIN_TURNS } from "../../../server/trading/turn-loop.ts";
import type { GatewayLoop } from "../../../server/trading/types.ts";

export class HandLoop implements GatewayLoop {
  readonly spinTurns = SPIN_TURNS;
  /** ms since the epoch. */
  readonly now: () => number;
  readonly elapsed: () => number;
  private due: (() => void)[] = [];
  private sleeper: { readonly hasEvents: () => boolean; readonly callback: () => void } | null = null;

  /** @param now both clocks, ms since the epoch */
  constructor(now: () => number) {
    this.now = now;
    this.elapsed = now;
  }

  soon(callback: () => void): void {
    this.due.push(callback);
  }

  sleep(hasEvents: () => boolean, callback: () => void): void {
    assert(this.sleeper === null, "one sleep at a time");
    this.sleeper = { hasEvents, callback };
  }

  /** Runs what is due, and wakes the sleeper if it has something to do. */
  turn(): void {
    const { due } = this;
    this.due = [];
    for (const callback of due) callback();
    const { sleeper } = this;
    if (sleeper === null || !sleeper.hasEvents()) return;
    this.sleeper = null;
    sleeper.callback();
  }
}
