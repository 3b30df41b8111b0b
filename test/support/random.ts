/** Random choices from one printed seed: the same seed makes the same choices. TEST_SEED=n repeats a run. */

/** A fresh seed. */
export const freshSeed = (): number => Date.now() % 1_000_000_007;

export class Random {
  readonly seed: number;
  private state: number;

  constructor(seed: number) {
    this.seed = seed;
    this.state = seed >>> 0;
  }

  /** From TEST_SEED or the clock; printed under `name`, so that a failure can be repeated. */
  static printed(name: string): Random {
    const seed = Number(process.env["TEST_SEED"] ?? freshSeed());
    process.stdout.write(`${name}: TEST_SEED=${seed}\n`);
    return new Random(seed);
  }

  /** 0 <= x < 1 (mulberry32). */
  next(): number {
    this.state = (this.state + 0x6d2b79f5) >>> 0;
    let x = this.state;
    x = Math.imul(x ^ (x >>> 15), x | 1);
    x ^= x + Math.imul(x ^ (x >>> 7), x | 61);
    return ((x ^ (x >>> 14)) >>> 0) / 4_294_967_296;
  }

  /** An integer from min to max, both inclusive. */
  integer(min: number, max: number): number {
    return min + Math.floor(this.next() * (max - min + 1));
  }

  chance(probability: number): boolean {
    return this.next() < probability;
  }

  pick<T>(list: readonly T[]): T {
    return list[this.integer(0, list.length - 1)]!;
  }
}
