/** The batch stamps among the events of one pass of the log, which all become durable at the same time. */
import { EngineEvent } from "../ring/engine-event.ts";

export class BatchStamps {
  // Reused from pass to pass.
  private readonly stamps: EngineEvent[] = [];
  private count = 0;

  /** Adds a stamp. */
  add(event: EngineEvent): void {
    if (this.count === this.stamps.length) this.stamps.push(new EngineEvent());
    this.stamps[this.count++]!.atRecordOf(event);
  }

  /** Removes and returns all stamps, for a pass that is shown later. */
  take(): EngineEvent[] {
    const taken = this.stamps.splice(0, this.count);
    this.count = 0;
    return taken;
  }

  /** Writes into all stamps when they became durable, while the log still owns the records. @param at µs */
  resolve(at: number): void {
    for (let i = 0; i < this.count; i++) this.stamps[i]!.durableAt = at;
    this.count = 0;
  }
}
