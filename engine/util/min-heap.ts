import { assert } from "./assert.ts";

/** A binary heap of items with a number `at`: the smallest comes first. */
export class MinHeap<T extends { readonly at: number }> {
  private heap: T[] = [];

  get size(): number {
    return this.heap.length;
  }

  /** Drops the items that don't satisfy `fits`. */
  keep(fits: (item: T) => boolean): void {
    // A sorted list is a heap.
    this.heap = this.heap.filter(fits).sort((a, b) => a.at - b.at);
  }

  /** The first item, or undefined. */
  peek(): T | undefined {
    return this.heap[0];
  }

  add(item: T): void {
    const { heap } = this;
    let hole = heap.length;
    heap.push(item);
    while (hole > 0) {
      const index = (hole - 1) >> 1;
      const parent = this.item(index);
      if (parent.at <= item.at) break;
      heap[hole] = parent;
      hole = index;
    }
    heap[hole] = item;
  }

  /** Removes and returns the first item. The heap must not be empty. */
  pop(): T {
    const { heap } = this;
    const first = this.item(0);
    const last = heap.pop();
    if (last === undefined || heap.length === 0) return first;
    let hole = 0;
    for (let index = 1; index < heap.length; index = 2 * hole + 1) {
      if (index + 1 < heap.length && this.item(index + 1).at < this.item(index).at) index++;
      const child = this.item(index);
      if (last.at <= child.at) break;
      heap[hole] = child;
      hole = index;
    }
    heap[hole] = last;
    return first;
  }

  private item(index: number): T {
    const item = this.heap[index];
    assert(item !== undefined, "an index is within the heap");
    return item;
  }
}
