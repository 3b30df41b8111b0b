/**
 * Detects a thread that is alive and makes no progress while work waits: an endless loop, or a lock that is never
 * released. It counts its own ticks instead of reading a clock, so that neither a suspended machine nor a busy gateway
 * counts against a thread. It reports only: it ends nothing.
 */

export interface Watched {
  readonly name: string;
  /** The amount of work that waits. */
  readonly waiting: () => number;
  /** Changes whenever some of the work is done. */
  readonly position: () => number;
}

interface State {
  readonly watched: Watched;
  position: number;
  /** Ticks in a row without progress while work waited. */
  stalledTicks: number;
}

export class Watchdog {
  private readonly maxTicks: number;
  private readonly states: State[];

  /** @param maxTicks how many ticks in a row without progress make a stall */
  constructor(watched: readonly Watched[], maxTicks: number) {
    this.maxTicks = maxTicks;
    this.states = watched.map((each) => ({ watched: each, position: each.position(), stalledTicks: 0 }));
  }

  /** Returns the name of a stalled thread, else null. */
  tick(): string | null {
    for (const state of this.states) {
      const { watched } = state;
      const position = watched.position();
      if (position !== state.position || watched.waiting() === 0) state.stalledTicks = 0;
      else state.stalledTicks++;
      state.position = position;
      if (state.stalledTicks >= this.maxTicks) return watched.name;
    }
    return null;
  }
}
