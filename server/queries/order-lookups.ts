/**
 * Look-ups of orders that memory no longer knows, many in one read: a burst of cancels of orders of last week is a few
 * reads, not thousands. One read is under way at a time; what comes meanwhile goes with the next, users in turn.
 */

import { overloaded } from "../errors.ts";
import { FairQueue } from "../util/fair-queue.ts";
import { MAX_LOOKUPS_PER_READ, MAX_LOOKUPS_PER_USER, MAX_WAITING_LOOKUPS } from "./limits.ts";

interface Lookup<T> {
  readonly orderId: number;
  readonly found: (value: T) => void;
  readonly failed: (error: unknown) => void;
}

export class OrderLookups<T> {
  private readonly read: (orderIds: readonly number[]) => Promise<readonly T[]>;
  private readonly waiting = new FairQueue<Lookup<T>>(MAX_LOOKUPS_PER_USER, MAX_WAITING_LOOKUPS);
  private isReading = false;

  /** @param read answers one value for each id, in their order */
  constructor(read: (orderIds: readonly number[]) => Promise<readonly T[]>) {
    this.read = read;
  }

  /** @throws ApiError 50300 where too many wait, or as the read does */
  find(userId: number, orderId: number): Promise<T> {
    return new Promise((found, failed) => {
      if (!this.waiting.push(String(userId), { orderId, found, failed })) {
        failed(overloaded("too many look-ups of orders in flight: try again"));
      } else if (!this.isReading) {
        this.isReading = true;
        // With whatever else this turn brings.
        setImmediate(() => void this.readNext());
      }
    });
  }

  private async readNext(): Promise<void> {
    while (this.waiting.size > 0) {
      const taken: Lookup<T>[] = [];
      while (taken.length < MAX_LOOKUPS_PER_READ && this.waiting.size > 0) taken.push(this.waiting.pop()!);
      try {
        const values = await this.read(taken.map(({ orderId }) => orderId));
        taken.forEach(({ found }, i) => {
          found(values[i]!);
        });
      } catch (error) {
        for (const { failed } of taken) failed(error);
      }
    }
    this.isReading = false;
  }
}
