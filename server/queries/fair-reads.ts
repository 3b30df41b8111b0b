/**
 * Reads of many readers on a few threads. Each reader's wait in a line of their own and the lines take turns; no reader is
 * on all threads at one time, however much it asks for, so that one is free within a read's time for anybody else.
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
  /** By reader, those on a thread. */
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

  /** Resolves as `job` does, which is called in the reader's turn. @throws ApiError 50300 where too many wait */
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
      const left = this.running.get(reader)! - 1;
      if (left === 0) this.running.delete(reader);
      else this.running.set(reader, left);
      this.advance();
    });
  }
}
