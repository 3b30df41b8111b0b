/**
 * Counts values in buckets between fixed bounds. In memory that threads can share: one of them observes, any may read at
 * any time. An observation costs some ten nanoseconds and allocates nothing.
 */
import { assert } from "./assert.ts";

/** What is handed to a thread so that it can open a histogram. */
export interface HistogramMemory {
  /** Upper bounds of the buckets, rising; a value on a bound is below it. */
  readonly bounds: readonly number[];
  readonly buffer: SharedArrayBuffer;
}

const CELL_BYTES = 8;

export function createHistogram(bounds: readonly number[]): HistogramMemory {
  assert(bounds.length > 0 && bounds.every((bound, i) => i === 0 || bound > bounds[i - 1]!), "bounds rise");
  // A count for each bucket, one for what is above all bounds, and the sum.
  return { bounds, buffer: new SharedArrayBuffer((bounds.length + 2) * CELL_BYTES) };
}

/** Bounds from `first` to at least `last`, six to a factor of ten: each is 1.4 to 1.7 times the one before. */
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
  /** The bounds between two that nothing is beyond: bucket `i` has what is above edge `i` and not above the next. */
  private readonly edges: Float64Array;
  private readonly cells: Float64Array;
  private readonly buckets: number;
  /** Where the last value fell: those that follow each other are much alike, and this look costs a third of the search. */
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

  /** For each bound how many values were not above it, and last, for infinity, how many there were in all. */
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
