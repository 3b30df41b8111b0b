/** The batch stamps among the events of one journal pass, which all become durable at the same time. */
import * as R from "../ring/records.ts";

export class BatchStamps {
  // Reused from pass to pass.
  private readonly rings: Float64Array[] = [];
  private readonly records: number[] = [];
  private count = 0;

  /** Adds the stamp that starts at word `w`. */
  add(doubles: Float64Array, w: number): void {
    this.rings[this.count] = doubles;
    this.records[this.count] = w;
    this.count++;
  }

  /** Writes into all stamps when they became durable, while the log still owns the records. @param at µs */
  resolve(at: number): void {
    for (let i = 0; i < this.count; i++) this.rings[i]![(this.records[i]! >> 1) + R.D_DURABLE] = at;
    this.count = 0;
  }
}
