/**
 * A map from positive integers below 2^53 to positive int32 values, in two flat arrays: for the look-ups of every
 * order (ids, positions), where a Map of a million boxed numbers costs three times the time and memory.
 * Open addressing with linear probing and backward-shift deletion. 0 is "not there" for keys and values.
 */

const MIN_CAPACITY = 64;

export class NumberMap {
  private keys: Float64Array;
  private values: Int32Array;
  private mask: number;
  private used = 0;

  constructor(expected = 0) {
    let capacity = MIN_CAPACITY;
    while (capacity * 0.6 < expected) capacity *= 2;
    this.keys = new Float64Array(capacity);
    this.values = new Int32Array(capacity);
    this.mask = capacity - 1;
  }

  get size(): number {
    return this.used;
  }

  /** Answers 0 where the key is absent. */
  get(key: number): number {
    for (let i = this.home(key); ; i = (i + 1) & this.mask) {
      const found = this.keys[i]!;
      if (found === key) return this.values[i]!;
      if (found === 0) return 0;
    }
  }

  set(key: number, value: number): void {
    if ((this.used + 1) * 5 > this.keys.length * 3) this.grow();
    let i = this.home(key);
    while (this.keys[i] !== 0 && this.keys[i] !== key) i = (i + 1) & this.mask;
    if (this.keys[i] === 0) {
      this.keys[i] = key;
      this.used++;
    }
    this.values[i] = value;
  }

  delete(key: number): void {
    let hole = this.home(key);
    while (this.keys[hole] !== key) {
      if (this.keys[hole] === 0) return;
      hole = (hole + 1) & this.mask;
    }
    this.used--;
    // Whatever follows in the same run and may stand nearer its home moves into the hole.
    for (let i = (hole + 1) & this.mask; this.keys[i] !== 0; i = (i + 1) & this.mask) {
      const home = this.home(this.keys[i]!);
      if (((i - home) & this.mask) < ((i - hole) & this.mask)) continue;
      this.keys[hole] = this.keys[i]!;
      this.values[hole] = this.values[i]!;
      hole = i;
    }
    this.keys[hole] = 0;
    this.values[hole] = 0;
  }

  private home(key: number): number {
    const low = key | 0;
    const high = (key / 4294967296) | 0;
    const mixed = Math.imul(low ^ Math.imul(high, 0x85ebca6b), 0x9e3779b1);
    return (mixed ^ (mixed >>> 15)) & this.mask;
  }

  private grow(): void {
    const keys = this.keys;
    const values = this.values;
    this.keys = new Float64Array(keys.length * 2);
    this.values = new Int32Array(keys.length * 2);
    this.mask = this.keys.length - 1;
    for (let i = 0; i < keys.length; i++) {
      const key = keys[i]!;
      if (key === 0) continue;
      let at = this.home(key);
      while (this.keys[at] !== 0) at = (at + 1) & this.mask;
      this.keys[at] = key;
      this.values[at] = values[i]!;
    }
  }
}
