/** The stamps among the events of one pass of the journal, which are all durable at one time. */
import * as R from "../ring/records.ts";

export class BatchStamps {
  // Kept and written over, pass by pass.
  private readonly rings: Float64Array[] = [];
  private readonly records: number[] = [];
  private count = 0;

  /** Notes the stamp that starts at word `w`. */
  add(doubles: Float64Array, w: number): void {
    this.rings[this.count] = doubles;
    this.records[this.count] = w;
    this.count++;
  }

  /** Tells all of them when they were durable. While the journal still owns the records. */
  resolve(at: number): void {
    for (let i = 0; i < this.count; i++) this.rings[i]![(this.records[i]! >> 1) + R.D_DURABLE] = at;
    this.count = 0;
  }
}
