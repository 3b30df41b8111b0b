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
    let i = heap.length;
    heap.push(item);
    while (i > 0) {
      const parent = (i - 1) >> 1;
      if (heap[parent]!.at <= heap[i]!.at) return;
      [heap[parent], heap[i]] = [heap[i]!, heap[parent]!];
      i = parent;
    }
  }

  /** Removes and returns the first item. The heap must not be empty. */
  pop(): T {
    const { heap } = this;
    const first = heap[0]!;
    const last = heap.pop()!;
    if (heap.length === 0) return first;
    heap[0] = last;
    for (let i = 0; ; ) {
      let child = 2 * i + 1;
      if (child >= heap.length) return first;
      if (child + 1 < heap.length && heap[child + 1]!.at < heap[child]!.at) child++;
      if (heap[i]!.at <= heap[child]!.at) return first;
      [heap[child], heap[i]] = [heap[i]!, heap[child]!];
      i = child;
    }
  }
}
