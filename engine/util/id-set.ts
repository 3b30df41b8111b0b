import { withIndex } from "./typed-arrays.ts";

/**
 * A set of small integers that is filled and cleared repeatedly: a list and a mark per id. A Set leaves a table behind at
 * each `clear`, and those tables keep one another alive until the next full garbage collection.
 */
export class IdSet {
  private marks = new Uint8Array(1024);
  private ids = new Int32Array(256);
  private count = 0;

  get size(): number {
    return this.count;
  }

  add(id: number): void {
    this.marks = withIndex(this.marks, id);
    if (this.marks[id] === 1) return;
    this.marks[id] = 1;
    this.ids = withIndex(this.ids, this.count);
    this.ids[this.count++] = id;
  }

  /** The ids in insertion order; valid until the next change. */
  list(): Int32Array {
    return this.ids.subarray(0, this.count);
  }

  clear(): void {
    for (let i = 0; i < this.count; i++) this.marks[this.ids[i]!] = 0;
    this.count = 0;
  }
}
