/**
 * Passes of the log that are durable on this box and that nobody may see yet: another place must have them first. Oldest
 * first; passes that made nothing durable wait behind the batch before them. Bounded by the event rings and by the
 * gateway's pending requests. Owned by the log stage.
 */
import type { EngineEvent } from "../ring/engine-event.ts";
import { assert } from "../util/assert.ts";
import type { LogReply } from "./messages.ts";
import type { LogPoint } from "./progress.ts";

export interface HeldPass {
  /** The last batch when the pass ended. */
  readonly point: LogPoint;
  /** µs; null where the pass appended no batch. */
  readonly startedAt: number | null;
  /** How far the pass read each ring. */
  readonly tails: readonly number[];
  readonly stamps: readonly EngineEvent[];
  readonly replies: readonly LogReply[];
}

export class HeldPasses {
  private passes: HeldPass[] = [];

  get isEmpty(): boolean {
    return this.passes.length === 0;
  }

  push(pass: HeldPass): void {
    assert(pass.point.batch >= (this.passes.at(-1)?.point.batch ?? 0), "passes are held in their order");
    this.passes.push(pass);
  }

  /** True if the oldest pass may be shown. @param released the last batch that may be shown */
  canRelease(released: number): boolean {
    const [oldest] = this.passes;
    return oldest !== undefined && oldest.point.batch <= released;
  }

  /** Removes and returns the passes that may be shown. */
  release(released: number): readonly HeldPass[] {
    const kept = this.passes.findIndex(({ point }) => point.batch > released);
    if (kept >= 0) return this.passes.splice(0, kept);
    const all = this.passes;
    this.passes = [];
    return all;
  }
}
