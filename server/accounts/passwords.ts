/**
 * Password hashes, made and verified in the pool of server/accounts/password-worker.ts, off the gateway's thread. What waits for
 * the pool waits here in two lanes. Strangers wait fairly by client address: a flood of sign-ins from one address delays
 * others by a job each turn, one from thousands by thousands. Those who are known (an address from which the account
 * signed in lately, a session, a mailed link) have every second job to themselves, fairly by account.
 * Lengths are the caller's to check. No password is ever in an error, a log or a file.
 */
import { availableParallelism } from "node:os";
import { ApiError, badRequest, overloaded, STOPPING } from "../errors.ts";
import { FairQueue } from "../util/fair-queue.ts";
import { ThreadPool } from "../util/thread-pool.ts";
import type { HashJob, VerifyJob } from "./password-worker.ts";

/** One, so that a core stays with trading on a small machine; a quarter of a large one. */
export const PASSWORD_THREADS = availableParallelism() > 8 ? Math.floor(availableParallelism() / 4) : 1;
/** Jobs under way count against neither. */
export const MAX_WAITING_OF_ADDRESS = 256;
export const MAX_WAITING = 16_384;
export const MAX_WAITING_OF_ACCOUNT = 16;
const MAX_WAITING_KNOWN = 4_096;
/** What waited longer is refused: whoever asked is about to give up. */
const MAX_WAIT_MS = 8_000;

/** Stands in the lane of accounts for commands of the machine's own shell. */
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
  /** Whose turn it is where both wait. */
  private isKnownNext = true;
  private running = 0;
  private isClosing = false;

  /** @param onLost gets what a thread of the pool died of */
  constructor(onLost: (error: Error) => void, workerFile: URL = new URL("./password-worker.js", import.meta.url)) {
    this.pool = new ThreadPool({ file: workerFile, threads: PASSWORD_THREADS, onLost });
  }

  /**
   * @param address the client's, whose turn it takes
   * @param field what the caller calls the password
   * @param knownAs the account's id, where whoever asks is known to it; null for a stranger
   * @returns a PHC string of argon2id
   * @throws ApiError 40000 naming the field where the password is too common; 50300 where too many wait
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
   * True where it is the password of `hash`. A null hash (no such account, or none set) costs the same and is false, as
   * is one that can't be read: neither the answer nor its time tells.
   * @param knownAs as of `hash`
   * @throws ApiError 50300 where too many wait
   */
  verify(hash: string | null, password: string, address: string, knownAs: number | null = null): Promise<boolean> {
    return this.run("verify", { hash, password }, address, knownAs);
  }

  /** Refuses what waits; resolves when the jobs under way are answered and the threads ended. */
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
      const since = performance.now();
      const next: QueuedJob = { name, job, since, resolve: resolve as QueuedJob["resolve"], reject };
      const isKnown = knownAs !== null && this.known.push(String(knownAs), next);
      if (isKnown || this.strangers.push(address, next)) this.startJobs();
      else reject(tooMany());
    });
  }

  private next(): QueuedJob | undefined {
    const [first, second] = this.isKnownNext ? [this.known, this.strangers] : [this.strangers, this.known];
    // An empty lane leaves its turn to the other.
    this.isKnownNext = !this.isKnownNext;
    return first.pop() ?? second.pop();
  }

  /** Hands the pool no more than it has threads: its own queue is first come, first served. */
  private startJobs(): void {
    while (this.running < PASSWORD_THREADS) {
      const next = this.next();
      if (next === undefined) return;
      if (performance.now() - next.since > MAX_WAIT_MS) {
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
      // Of what was thrown only the code: a message could quote the password.
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
