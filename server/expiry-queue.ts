/** Which gtd order expires next: a binary heap by time. Orders that ended meanwhile stay until their time or a `keep`. */

interface Expiry {
  readonly at: number;
  readonly slot: number;
  readonly orderId: number;
}

export class ExpiryQueue {
  private heap: Expiry[] = [];

  get size(): number {
    return this.heap.length;
  }

  /** Drops what doesn't fit. */
  keep(fits: (expiry: Expiry) => boolean): void {
    // A sorted list is a heap.
    this.heap = this.heap.filter(fits).sort((a, b) => a.at - b.at);
  }

  /** The next one due, or undefined. */
  peek(): Expiry | undefined {
    return this.heap[0];
  }

  add(at: number, slot: number, orderId: number): void {
    const { heap } = this;
    let i = heap.length;
    heap.push({ at, slot, orderId });
    while (i > 0) {
      const parent = (i - 1) >> 1;
      if (heap[parent]!.at <= heap[i]!.at) return;
      [heap[parent], heap[i]] = [heap[i]!, heap[parent]!];
      i = parent;
    }
  }

  /** Takes the next one out. */
  take(): Expiry {
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
