/** Counts what is on its way to the database, by user, so that bounds hold for many requests at one time too. */
export class InFlightCounter {
  private readonly counts = new Map<number, number>();

  of(userId: number): number {
    return this.counts.get(userId) ?? 0;
  }

  /** Counts one of the user's until `work` is done. */
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
