/**
 * A map from positive integers below 2^53 to positive integers below 2^53, in one flat array: for the lookups of every
 * order (ids, positions), where a Map of a million boxed numbers costs three times the time and memory. A key and its value
 * are adjacent, so that a lookup costs one cache line. Open addressing with linear probing and backward-shift deletion. 0
 * means absent, for keys and values.
 */

const MIN_CAPACITY = 64;

export class NumberMap {
  /** Cell `i` has its key at 2i and its value at 2i + 1. */
  private cells: Float64Array;
  private mask: number;
  private used = 0;

  constructor(expected = 0) {
    let capacity = MIN_CAPACITY;
    while (capacity * 0.6 < expected) capacity *= 2;
    this.cells = new Float64Array(2 * capacity);
    this.mask = capacity - 1;
  }

  get size(): number {
    return this.used;
  }

  /** The key's value; 0 if the key is absent. */
  get(key: number): number {
    const { cells, mask } = this;
    for (let i = this.home(key); ; i = (i + 1) & mask) {
      const found = cells[2 * i]!;
      if (found === key) return cells[2 * i + 1]!;
      if (found === 0) return 0;
    }
  }

  set(key: number, value: number): void {
    if ((this.used + 1) * 5 > (this.mask + 1) * 3) this.grow();
    const { cells, mask } = this;
    let i = this.home(key);
    while (cells[2 * i] !== 0 && cells[2 * i] !== key) i = (i + 1) & mask;
    if (cells[2 * i] === 0) {
      cells[2 * i] = key;
      this.used++;
    }
    cells[2 * i + 1] = value;
  }

  delete(key: number): void {
    const { cells, mask } = this;
    let hole = this.home(key);
    while (cells[2 * hole] !== key) {
      if (cells[2 * hole] === 0) return;
      hole = (hole + 1) & mask;
    }
    this.used--;
    // A later cell of the same run moves into the hole if that is nearer to its home.
    for (let i = (hole + 1) & mask; cells[2 * i] !== 0; i = (i + 1) & mask) {
      const home = this.home(cells[2 * i]!);
      if (((i - home) & mask) < ((i - hole) & mask)) continue;
      cells[2 * hole] = cells[2 * i]!;
      cells[2 * hole + 1] = cells[2 * i + 1]!;
      hole = i;
    }
    cells[2 * hole] = 0;
    cells[2 * hole + 1] = 0;
  }

  private home(key: number): number {
    const low = key | 0;
    const high = (key / 4294967296) | 0;
    const mixed = Math.imul(low ^ Math.imul(high, 0x85ebca6b), 0x9e3779b1);
    return (mixed ^ (mixed >>> 15)) & this.mask;
  }

  private grow(): void {
    const { cells } = this;
    this.cells = new Float64Array(2 * cells.length);
    this.mask = cells.length - 1;
    for (let from = 0; from < cells.length; from += 2) {
      const key = cells[from]!;
      if (key === 0) continue;
      let i = this.home(key);
      while (this.cells[2 * i] !== 0) i = (i + 1) & this.mask;
      this.cells[2 * i] = key;
      this.cells[2 * i + 1] = cells[from + 1]!;
    }
  }
}
