/**
 * Hashes and verifies passwords in the pool of password-worker.ts, off the gateway's thread. Jobs queue here in two
 * lanes. Strangers share one lane fairly by client address: a flood of sign-ins from one address delays others by one
 * job per turn, a flood from thousands of addresses by thousands. Known clients (an address from which the account
 * signed in recently, a session, a mailed link) have every second job to themselves, fairly by account.
 * The caller checks lengths. No password ever appears in an error, a log or a file.
 */
import { availableParallelism } from "node:os";
import { systemClock } from "../../engine/util/clock.ts";
import { ApiError, badRequest, overloaded, STOPPING } from "../errors.ts";
import { FairQueue } from "../util/fair-queue.ts";
import { ThreadPool } from "../util/thread-pool.ts";
import type { HashJob, VerifyJob } from "./password-worker.ts";

/** One on a small machine, so that trading keeps a core; a quarter of the cores on a large one. */
export const PASSWORD_THREADS = availableParallelism() > 8 ? Math.floor(availableParallelism() / 4) : 1;
/** Bounds on queued jobs; running jobs count against none of them. */
export const MAX_WAITING_OF_ADDRESS = 256;
export const MAX_WAITING = 16_384;
export const MAX_WAITING_OF_ACCOUNT = 16;
const MAX_WAITING_KNOWN = 4_096;
/** A job that waited longer is rejected: its client is about to time out. */
const MAX_WAIT_MS = 8_000;

/** The account id that commands of the machine's own shell queue under. */
const OPERATOR = 0;

interface QueuedJob {
  readonly name: "hash" | "verify";
  readonly job: HashJob | VerifyJob;
  /** ms of the monotonic clock */
  readonly since: number;
  readonly resolve: (result: unknown) => void;
  readonly reject: (error: Error) => void;
}

export class Passwords {
  private readonly pool: ThreadPool;
  private readonly strangers = new FairQueue<QueuedJob>(MAX_WAITING_OF_ADDRESS, MAX_WAITING);
  private readonly known = new FairQueue<QueuedJob>(MAX_WAITING_OF_ACCOUNT, MAX_WAITING_KNOWN);
  /** Which lane is next when both have jobs. */
  private isKnownNext = true;
  private running = 0;
  private isClosing = false;

  /** @param onLost receives the error that killed a pool thread */
  constructor(onLost: (error: Error) => void, workerFile: URL = new URL("./password-worker.js", import.meta.url)) {
    this.pool = new ThreadPool({ file: workerFile, threads: PASSWORD_THREADS, startsWith: 0, onLost });
  }

  /**
   * @param address of the client, by which strangers share the lane
   * @param field the name of the password in error messages
   * @param knownAs the account's id when the client is known to it; null for a stranger
   * @returns a PHC string of argon2id
   * @throws ApiError 40000 naming the field when the password is too common; 50300 when the queue is full
   */
  async hash(password: string, address: string, field = "password", knownAs: number | null = null): Promise<string> {
    const phc = await this.run<string | null>("hash", { password, isChosen: false }, address, knownAs);
    if (phc === null) throw badRequest(`${field}: too common: choose one that is harder to guess`);
    return phc;
  }

  /** As `hash`, for a password that an operator chose: it may be a common one. */
  hashChosen(password: string): Promise<string> {
    return this.run("hash", { password, isChosen: true }, "", OPERATOR);
  }

  /**
   * True if it is the password of `hash`. A null hash (no such account, or no password) and an unreadable one cost the
   * same and return false: neither the result nor its time reveals which.
   * @param knownAs as in `hash`
   * @throws ApiError 50300 when the queue is full
   */
  verify(hash: string | null, password: string, address: string, knownAs: number | null = null): Promise<boolean> {
    return this.run("verify", { hash, password }, address, knownAs);
  }

  /** Rejects queued jobs; resolves once running jobs are done and the threads have ended. */
  async close(): Promise<void> {
    this.isClosing = true;
    for (let next = this.next(); next !== undefined; next = this.next()) next.reject(shuttingDown());
    await this.pool.close();
  }

  private run<T>(
    name: QueuedJob["name"],
    job: HashJob | VerifyJob,
    address: string,
    knownAs: number | null,
  ): Promise<T> {
    if (this.isClosing) return Promise.reject(shuttingDown());
    return new Promise((resolve, reject) => {
      const since = systemClock.elapsed();
      const next: QueuedJob = { name, job, since, resolve: resolve as QueuedJob["resolve"], reject };
      const isKnown = knownAs !== null && this.known.push(String(knownAs), next);
      if (isKnown || this.strangers.push(address, next)) this.startJobs();
      else reject(tooMany());
    });
  }

  private next(): QueuedJob | undefined {
    const [first, second] = this.isKnownNext ? [this.known, this.strangers] : [this.strangers, this.known];
    // An empty lane passes its turn to the other.
    this.isKnownNext = !this.isKnownNext;
    return first.pop() ?? second.pop();
  }

  /** Gives the pool one job per thread only: its own queue is not fair, but first come, first served. */
  private startJobs(): void {
    while (this.running < PASSWORD_THREADS) {
      const next = this.next();
      if (next === undefined) return;
      if (systemClock.elapsed() - next.since > MAX_WAIT_MS) {
        next.reject(tooMany());
        continue;
      }
      this.running++;
      void this.runJob(next);
    }
  }

  private async runJob({ name, job, resolve, reject }: QueuedJob): Promise<void> {
    try {
      resolve(await this.pool.run(name, job));
    } catch (error) {
      // Only the code of the error: its message could quote the password.
      const failed = `the password worker failed: ${String((error as { code?: unknown } | null)?.code)}`;
      reject(error instanceof ApiError ? error : new Error(failed));
    }
    this.running--;
    this.startJobs();
  }
}

function tooMany(): Error {
  return overloaded("too many sign-ins in flight: try again");
}

function shuttingDown(): Error {
  return overloaded(STOPPING);
}
