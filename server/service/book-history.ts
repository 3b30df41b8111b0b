/**
 * Decides when files of book history are made (book-history-worker.ts): once an hour is over, on the active box and on one
 * that follows it. A run that fails is logged, counted and repeated: trading goes on. Owned by the gateway thread.
 */
import { systemClock } from "../../engine/util/clock.ts";
import type { HistoryResult, HistoryRun } from "../book-history/make-days.ts";
import type { Logger } from "../logger.ts";
import { runAlone, type SingleRun } from "../util/thread-pool.ts";

const HOUR_MS = 3_600_000;
const RETRY_MS = 600_000;

/** What metrics of both roles say. */
export const BOOK_HISTORY_BEHIND = "How long book history has lacked an hour that is over";
export const BOOK_HISTORY_FAILURES = "Runs that failed to make book history";

export interface BookHistoryOptions {
  /** The run without the moment until which it goes; null: no history is made. */
  readonly job: Omit<HistoryRun, "until"> | null;
  readonly logger: Pick<Logger, "error" | "info">;
  /** When the log's first batch was committed, or earlier, ms; null if it has none. */
  readonly since: number | null;
  /** How long after an hour's end it is made, ms. */
  readonly lateMs: number;
  /** Runs the job in a thread; another one in tests. */
  readonly start?: (job: HistoryRun) => SingleRun<HistoryResult>;
  /** Wall clock, ms; another one in tests. */
  readonly now?: () => number;
}

export class BookHistory {
  private readonly options: BookHistoryOptions;
  private readonly now: () => number;
  /** The start of the hour up to which history is made, ms; 0 if nobody knows yet. */
  private madeUntil: number;
  private retryAt = 0;
  /** When a check first found an hour that is over and not made; null while there is none. */
  private dueAt: number | null = null;
  private running: SingleRun<HistoryResult> | null = null;
  private isClosed = false;
  private failed = 0;
  private size = 0;

  constructor(options: BookHistoryOptions) {
    this.options = options;
    this.now = options.now ?? systemClock.now;
    const { since } = options;
    const hour = this.endedHour(this.now());
    // A log that begins in this hour has nothing to make yet.
    this.madeUntil = since === null || since >= hour ? hour : 0;
  }

  /** Runs that failed since the start. */
  get failures(): number {
    return this.failed;
  }

  /** The files' size after the last run since the start. */
  get bytes(): number {
    return this.size;
  }

  /** How long an hour that is over has waited for its history, s: since the start at most. */
  get behindSeconds(): number {
    return this.dueAt === null ? 0 : Math.max(0, this.now() - this.dueAt) / 1_000;
  }

  /** Starts a run if an hour is over. Called at the start, and every minute. */
  check(): void {
    const now = this.now();
    const until = this.endedHour(now);
    const { job } = this.options;
    if (job === null || until <= this.madeUntil) return;
    this.dueAt ??= now;
    if (this.running !== null || this.isClosed || now < this.retryAt) return;
    void this.run({ ...job, until });
  }

  /** Ends a run in the middle; the next one goes on from what it stored. */
  async close(): Promise<void> {
    this.isClosed = true;
    await this.running?.stop();
  }

  /** The end of the last hour that is to be made. */
  private endedHour(now: number): number {
    const at = now - this.options.lateMs;
    return at - (at % HOUR_MS);
  }

  private async run(job: HistoryRun): Promise<void> {
    const { logger, start = startThread } = this.options;
    const running = start(job);
    this.running = running;
    try {
      const { bytes, isWhole } = await running.result;
      this.size = bytes;
      this.retryAt = 0;
      // Nothing says yet that the day before is over: the next check asks again.
      if (!isWhole) return;
      this.madeUntil = job.until;
      this.dueAt = null;
      logger.info({ until: job.until }, "book history is made");
    } catch (error) {
      if (this.isClosed) return;
      this.failed++;
      this.retryAt = this.now() + RETRY_MS;
      logger.error({ error: (error as Error).message }, "making book history failed: retrying in 10 min");
    } finally {
      this.running = null;
      await running.stop();
    }
  }
}

const startThread = (job: HistoryRun): SingleRun<HistoryResult> =>
  runAlone(new URL("./book-history-worker.js", import.meta.url), "makeHistory", job);
