/**
 * Notices a thread that is alive and does nothing while work waits for it: an endless loop, a lock that never comes free.
 * It counts its own ticks and no clock, so that a machine that was asleep, or a gateway that was busy, takes nobody's time
 * away. It ends nothing itself.
 */

export interface Watched {
  readonly name: string;
  /** Work that waits. */
  readonly waiting: () => number;
  /** Moves whenever some of it is done. */
  readonly position: () => number;
}

interface State {
  readonly watched: Watched;
  position: number;
  /** Ticks in a row in which work waited and none was done. */
  ticks: number;
}

export class Watchdog {
  private readonly maxTicks: number;
  private readonly states: State[];

  /** @param maxTicks so many in a row without progress are too many */
  constructor(watched: readonly Watched[], maxTicks: number) {
    this.maxTicks = maxTicks;
    this.states = watched.map((one) => ({ watched: one, position: one.position(), ticks: 0 }));
  }

  /** The name of what stands still for too long, else null. */
  tick(): string | null {
    for (const state of this.states) {
      const { watched } = state;
      const position = watched.position();
      if (position !== state.position || watched.waiting() === 0) state.ticks = 0;
      else state.ticks++;
      state.position = position;
      if (state.ticks >= this.maxTicks) return watched.name;
    }
    return null;
  }
}
