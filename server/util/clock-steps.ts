/**
 * Detects that the machine's clock was set while the process ran, forward or back, by a clock that nobody sets. Deadlines that
 * were noted as times of day mean something else from then on.
 */
import type { Clock } from "../../engine/util/clock.ts";

/** A smaller step changes no deadline that anybody notices, ms. */
const MIN_STEP_MS = 500;

export class ClockSteps {
  private readonly clock: Clock;
  private offset: number;

  constructor(clock: Clock) {
    this.clock = clock;
    this.offset = this.read();
  }

  /** By how much the clock was set since the last call, ms; 0 where it wasn't. */
  measure(): number {
    const offset = this.read();
    const step = offset - this.offset;
    if (Math.abs(step) < MIN_STEP_MS) return 0;
    this.offset = offset;
    return step;
  }

  private read(): number {
    return this.clock.now() - this.clock.elapsed();
  }
}
