/**
 * Decides when the log's upkeep runs (log-upkeep-worker.ts) and tells the log what it may delete. A run that fails is
 * logged, counted and repeated an hour later: trading goes on, and journal.db grows. Owned by the gateway thread.
 */
import { dayOf } from "../../engine/log/archive-format.ts";
import type { LogProgress } from "../../engine/log/progress.ts";
import type { AccountWriter } from "../accounts/account-writer.ts";
import type { Logger } from "../logger.ts";
import { ThreadPool } from "../util/thread-pool.ts";
import type { UpkeepJob, UpkeepResult } from "./log-upkeep-job.ts";

export interface LogUpkeepOptions {
  readonly job: UpkeepJob;
  readonly progress: LogProgress;
  readonly writer: Pick<AccountWriter, "trimLog" | "write">;
  readonly logger: Pick<Logger, "error" | "info">;
  /** When the journal's first batch was committed, ms; null if it has none. */
  readonly since: number | null;
  /** Runs the job in a thread; another one in tests. */
  readonly start?: (job: UpkeepJob) => UpkeepRun;
}

export interface UpkeepRun {
  readonly result: Promise<UpkeepResult>;
  /** Ends it wherever it is. */
  stop(): Promise<void>;
}

export class LogUpkeep {
  private readonly options: LogUpkeepOptions;
  /** The day of the first batch that no archive has; null if there is no batch yet. */
  private openDay: string | null;
  private since: number | null;
  private running: UpkeepRun | null = null;
  private isRetry = false;
  private isClosed = false;
  private failed = 0;

  constructor(options: LogUpkeepOptions) {
    this.options = options;
    this.since = options.since;
    this.openDay = options.since === null ? null : dayOf(options.since);
  }

  /** Runs that failed since the start. */
  get failures(): number {
    return this.failed;
  }

  /** The time from the first batch that no archive has to the last one, ms. */
  get unarchivedMs(): number {
    return this.since === null ? 0 : Math.max(0, this.options.progress.committed.at - this.since);
  }

  /** Starts a run if a day is over or the last run failed. Called at the start, and hourly. */
  check(): void {
    const { batch, at } = this.options.progress.projected;
    if (this.running !== null || this.isClosed || batch === 0) return;
    this.since ??= at;
    this.openDay ??= dayOf(at);
    if (this.openDay === dayOf(at) && !this.isRetry) return;
    void this.run(dayOf(at));
  }

  /** Ends a run in the middle; the next start repeats it. */
  async close(): Promise<void> {
    this.isClosed = true;
    await this.running?.stop();
  }

  private async run(day: string): Promise<void> {
    const { job, logger, start = startThread } = this.options;
    const running = start(job);
    this.running = running;
    try {
      const result = await running.result;
      this.openDay = day;
      // Archives that are outdated now are deleted by the next run.
      this.isRetry = result.forgetBefore !== null;
      this.finish(result);
    } catch (error) {
      if (this.isClosed) return;
      this.failed++;
      this.isRetry = true;
      logger.error({ error: (error as Error).message }, "the log was not archived: the next try is in an hour");
    } finally {
      this.running = null;
      await running.stop();
    }
  }

  private finish(result: UpkeepResult): void {
    const { writer, logger } = this.options;
    const { archived, forgetBefore, since } = result;
    this.since = since;
    if (archived > 0) writer.trimLog(archived);
    logger.info({ archived }, "the log's finished days are archived");
    if (forgetBefore === null) return;
    // A write fails only where the log has failed, which reports that itself.
    writer.write([{ kind: "forgetLog", before: forgetBefore }]).catch(() => {});
  }
}

function startThread(job: UpkeepJob): UpkeepRun {
  const file = new URL("./log-upkeep-worker.js", import.meta.url);
  // A thread that dies rejects its job, which counts as a failure.
  const pool = new ThreadPool({ file, threads: 1, startsWith: 1, onLost: () => {} });
  return { result: pool.run<UpkeepResult>("keepLog", job), stop: () => pool.destroy() };
}
