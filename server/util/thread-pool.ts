/**
 * Pools of threads for finite jobs. A thread that dies is replaced, and takes nothing with it but its own job, which is
 * answered 50300: whoever asked may ask again. Not for what trading can't do without.
 */
import { Piscina } from "piscina";
import { overloaded } from "../errors.ts";

interface PoolOptions {
  readonly file: URL;
  readonly threads: number;
  /** Gets what a thread died of in between its jobs. Where none gets as far as a job, the process ends. */
  readonly onLost: (error: Error) => void;
  readonly maxQueue?: number;
  readonly workerData?: object;
}

export class ThreadPool {
  private readonly pool: Piscina;
  private lost = 0;

  constructor({ file, threads, onLost, ...options }: PoolOptions) {
    // All from the start: a job would have to wait for one that first has to open what it needs.
    this.pool = new Piscina({ filename: file.href, minThreads: threads, maxThreads: threads, ...options });
    this.pool.on("workerDestroy", () => {
      this.lost++;
    });
    let [completed, idle] = [0, 0];
    this.pool.on("error", (error: Error) => {
      idle = this.pool.completed === completed ? idle + 1 : 1;
      completed = this.pool.completed;
      // They die at their start, and soon none would be left: jobs would wait for ever.
      if (idle > threads) throw error;
      onLost(error);
    });
  }

  /** Jobs that wait for a thread. */
  get queued(): number {
    return this.pool.queueSize;
  }

  /** @throws what the job threw; ApiError 50300 where its thread died under it */
  async run<T>(name: string, job: object): Promise<T> {
    const { lost } = this;
    try {
      return await this.pool.run(job, { name });
    } catch (error) {
      if (this.lost === lost) throw error;
      throw overloaded("the thread at work on it was lost: try again");
    }
  }

  /** Resolves when the jobs under way are done and the threads ended. */
  close(): Promise<void> {
    return this.pool.close();
  }
}
