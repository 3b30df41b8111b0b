/** Counts each user's writes in flight to the database, so that a bound also holds for concurrent requests. */
export class InFlightCounter {
  private readonly counts = new Map<number, number>();

  of(userId: number): number {
    return this.counts.get(userId) ?? 0;
  }

  /** Runs `work` and counts it as one of the user's until it is done. */
  async during<T>(userId: number, work: () => Promise<T>): Promise<T> {
    this.counts.set(userId, this.of(userId) + 1);
    try {
      return await work();
    } finally {
      const left = this.of(userId) - 1;
      if (left === 0) this.counts.delete(userId);
      else this.counts.set(userId, left);
    }
  }
}
