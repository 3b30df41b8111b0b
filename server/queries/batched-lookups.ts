/**
 * Lookups of single rows, many in one read: a burst of cancels of last week's orders takes a few reads instead of
 * thousands. One read runs at a time; lookups that arrive meanwhile go with the next, users in turn.
 */

import { overloaded } from "../errors.ts";
import { FairQueue } from "../util/fair-queue.ts";
import { MAX_LOOKUPS_PER_READ, MAX_LOOKUPS_PER_USER, MAX_WAITING_LOOKUPS } from "./limits.ts";

interface Lookup<K, T> {
  readonly key: K;
  readonly found: (value: T) => void;
  readonly failed: (error: unknown) => void;
}

export class BatchedLookups<K, T> {
  private readonly read: (keys: readonly K[]) => Promise<readonly T[]>;
  private readonly waiting = new FairQueue<Lookup<K, T>>(MAX_LOOKUPS_PER_USER, MAX_WAITING_LOOKUPS);
  private isReading = false;

  /** @param read resolves with one value for each key, in their order */
  constructor(read: (keys: readonly K[]) => Promise<readonly T[]>) {
    this.read = read;
  }

  /** @throws ApiError 50300 where too many lookups wait, and the errors of the read */
  find(reader: string, key: K): Promise<T> {
    return new Promise((found, failed) => {
      if (!this.waiting.push(reader, { key, found, failed })) {
        failed(overloaded("too many lookups in flight: try again"));
      } else if (!this.isReading) {
        this.isReading = true;
        // At the end of the turn, so that its other lookups go with this one.
        setImmediate(() => void this.readNext());
      }
    });
  }

  private async readNext(): Promise<void> {
    while (this.waiting.size > 0) {
      const batch = this.nextBatch();
      try {
        const values = await this.read(batch.map(({ key }) => key));
        for (const [i, { found }] of batch.entries()) found(values[i] as T);
      } catch (error) {
        for (const { failed } of batch) failed(error);
      }
    }
    this.isReading = false;
  }

  private nextBatch(): Lookup<K, T>[] {
    const batch: Lookup<K, T>[] = [];
    while (batch.length < MAX_LOOKUPS_PER_READ) {
      const lookup = this.waiting.pop();
      if (lookup === undefined) break;
      batch.push(lookup);
    }
    return batch;
  }
}
