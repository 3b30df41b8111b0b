/**
 * A pool of threads for finite jobs. A thread that dies is replaced; only its own job is lost and fails with 50300, so the
 * client may retry. Not for work that trading depends on.
 */
import { Piscina } from "piscina";
import { overloaded } from "../errors.ts";

interface PoolOptions {
  readonly file: URL;
  readonly threads: number;
  /** Threads that start at once; the others start when a job would wait for one. */
  readonly startsWith: number;
  /** Gets the error that an idle thread died of. Where no thread lives long enough for a job, the process ends. */
  readonly onLost: (error: Error) => void;
  readonly maxQueue?: number;
  /** A thread ends after this long without a job; by default never. */
  readonly idleMs?: number;
  readonly workerData?: object;
}

/** A job in a thread that lives for it alone. */
export interface SingleRun<T> {
  /** Rejects with the job's error, also where its thread dies. */
  readonly result: Promise<T>;
  /** Ends it wherever it is. */
  stop(): Promise<void>;
}

export function runAlone<T>(file: URL, name: string, job: object): SingleRun<T> {
  const pool = new ThreadPool({ file, threads: 1, startsWith: 1, onLost: () => {} });
  return { result: pool.run<T>(name, job), stop: () => pool.destroy() };
}

export class ThreadPool {
  private readonly pool: Piscina;
  private lost = 0;
  private readonly jobs = new Set<Promise<unknown>>();

  constructor({ file, threads, startsWith, idleMs = Infinity, onLost, ...options }: PoolOptions) {
    const bounds = { minThreads: startsWith, maxThreads: threads, idleTimeout: idleMs };
    this.pool = new Piscina({ filename: file.href, ...bounds, ...options });
    this.pool.on("workerDestroy", () => {
      this.lost++;
    });
    let [completed, idle] = [0, 0];
    this.pool.on("error", (error: Error) => {
      idle = this.pool.completed === completed ? idle + 1 : 1;
      completed = this.pool.completed;
      // The threads die as they start. Soon none would be left, and jobs would wait for ever.
      if (idle > threads) throw error;
      onLost(error);
    });
  }

  /** Jobs that wait for a thread. */
  get queued(): number {
    return this.pool.queueSize;
  }

  /** @throws the job's error; ApiError 50300 where its thread died during the job */
  async run<T>(name: string, job: object): Promise<T> {
    const { lost } = this;
    const result = this.pool.run(job, { name });
    this.jobs.add(result);
    try {
      return await result;
    } catch (error) {
      if (this.lost === lost) throw error;
      throw overloaded("the thread of this request was lost: try again");
    } finally {
      this.jobs.delete(result);
    }
  }

  /** Ends the threads in the middle of their jobs, which are rejected. */
  async destroy(): Promise<void> {
    await this.pool.destroy();
  }

  /** Resolves when running jobs are done and the threads have ended. */
  async close(): Promise<void> {
    // The pool's own close fails a job whose thread still starts.
    await Promise.allSettled(this.jobs);
    await this.pool.close();
  }
}
