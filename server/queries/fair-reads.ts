/**
 * Schedules the reads of many readers on a few threads. Each reader has a queue of its own, and the queues take turns. No
 * reader occupies all threads at once, however much it asks for: another reader's wait is at most the time of one read.
 */

import { overloaded } from "../errors.ts";
import { FairQueue } from "../util/fair-queue.ts";
import { MAX_READS_PER_READER, MAX_WAITING_READS } from "./limits.ts";

interface Read {
  readonly reader: string;
  readonly start: () => Promise<unknown>;
}

export class FairReads {
  private readonly threads: number;
  private readonly waiting = new FairQueue<Read>(MAX_READS_PER_READER, MAX_WAITING_READS);
  /** By reader: how many of its reads are on a thread. */
  private readonly running = new Map<string, number>();
  private count = 0;

  /** @param threads two or more */
  constructor(threads: number) {
    this.threads = threads;
  }

  /** Reads that wait for a thread. */
  get queued(): number {
    return this.waiting.size;
  }

  /** Runs `job` in the reader's turn and resolves as it does. @throws ApiError 50300 where too many reads wait */
  run<T>(reader: string, job: () => Promise<T>): Promise<T> {
    return new Promise((resolve, reject) => {
      const start = (): Promise<unknown> => job().then(resolve, reject);
      if (!this.waiting.push(reader, { reader, start })) reject(overloaded("too many reads in flight: try again"));
      else this.advance();
    });
  }

  private readonly mayRun = (reader: string): boolean => (this.running.get(reader) ?? 0) < this.threads - 1;

  private advance(): void {
    while (this.count < this.threads) {
      const read = this.waiting.popWhere(this.mayRun);
      if (read === undefined) return;
      this.begin(read);
    }
  }

  private begin({ reader, start }: Read): void {
    this.count++;
    this.running.set(reader, (this.running.get(reader) ?? 0) + 1);
    void start().then(() => {
      this.count--;
      const left = (this.running.get(reader) ?? 0) - 1;
      if (left === 0) this.running.delete(reader);
      else this.running.set(reader, left);
      this.advance();
    });
  }
}
