/**
 * Counts values in buckets between fixed bounds, in memory that threads can share: one thread observes, any thread may read
 * at any time. An observation costs about ten nanoseconds and allocates nothing.
 */
import { assert } from "./assert.ts";

/** The memory from which a thread opens a histogram. */
export interface HistogramMemory {
  /** The buckets' upper bounds, rising and inclusive. */
  readonly bounds: readonly number[];
  readonly buffer: SharedArrayBuffer;
}

const CELL_BYTES = 8;

export function createHistogram(bounds: readonly number[]): HistogramMemory {
  assert(bounds.length > 0 && bounds.every((bound, i) => i === 0 || bound > bounds[i - 1]!), "bounds rise");
  // A count per bucket, a count of values above all bounds, and the sum.
  return { bounds, buffer: new SharedArrayBuffer((bounds.length + 2) * CELL_BYTES) };
}

/** Bounds from `first` to at least `last`, six per factor of ten: each is 1.4 to 1.7 times the previous one. */
export function logBounds(first: number, last: number): number[] {
  const bounds: number[] = [];
  for (let scale = first; ; scale *= 10) {
    for (const step of [1, 1.5, 2, 3, 5, 7]) {
      bounds.push(step * scale);
      if (step * scale >= last) return bounds;
    }
  }
}

export class Histogram {
  /** The bounds between -Infinity and Infinity: bucket `i` counts values above edge `i` and up to the next edge. */
  private readonly edges: Float64Array;
  private readonly cells: Float64Array;
  private readonly buckets: number;
  /** The last value's bucket: consecutive values are similar, and this check costs a third of the search. */
  private last = 0;

  constructor(memory: HistogramMemory) {
    this.edges = Float64Array.of(Number.NEGATIVE_INFINITY, ...memory.bounds, Number.POSITIVE_INFINITY);
    this.cells = new Float64Array(memory.buffer);
    this.buckets = memory.bounds.length + 1;
  }

  observe(value: number): void {
    const { edges, cells } = this;
    let bucket = this.last;
    if (value > edges[bucket + 1]! || value <= edges[bucket]!) {
      bucket = this.find(value);
      this.last = bucket;
    }
    cells[bucket]! += 1;
    cells[this.buckets]! += value;
  }

  private find(value: number): number {
    const { edges } = this;
    let low = 0;
    let high = this.buckets - 1;
    while (low < high) {
      const middle = (low + high) >> 1;
      if (value <= edges[middle + 1]!) high = middle;
      else low = middle + 1;
    }
    return low;
  }

  /** The number of values up to each bound; the last bound is infinity. */
  cumulated(): { readonly bound: number; readonly count: number }[] {
    let count = 0;
    return Array.from({ length: this.buckets }, (_, i) => {
      count += this.cells[i]!;
      return { bound: this.edges[i + 1]!, count };
    });
  }

  get sum(): number {
    return this.cells[this.buckets]!;
  }
}
