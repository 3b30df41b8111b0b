/**
 * Decides when the log's upkeep runs (log-upkeep-worker.ts) and tells the log what it may delete. A run that fails is
 * logged, counted and repeated an hour later: trading goes on, and journal.db grows. Owned by the gateway thread.
 */
import { dayOf } from "../../engine/log/archive-format.ts";
import type { LogProgress } from "../../engine/log/progress.ts";
import { systemClock } from "../../engine/util/clock.ts";
import type { Logger } from "../logger.ts";
import { runAlone, type SingleRun } from "../util/thread-pool.ts";
import type { LogWriter } from "../writes/log-writer.ts";
import type { UpkeepJob, UpkeepResult } from "./log-upkeep-job.ts";

const RETRY_MS = 3_600_000;

export interface LogUpkeepOptions {
  readonly job: UpkeepJob;
  readonly progress: LogProgress;
  readonly writer: Pick<LogWriter, "trimLog" | "write">;
  readonly logger: Pick<Logger, "error" | "info">;
  /** When the journal's first batch was committed, ms; null if it has none. */
  readonly since: number | null;
  /** Runs the job in a thread; another one in tests. */
  readonly start?: (job: UpkeepJob) => SingleRun<UpkeepResult>;
  /** A clock that nobody sets, ms; another one in tests. */
  readonly now?: () => number;
}

export class LogUpkeep {
  private readonly options: LogUpkeepOptions;
  /** The day of the first batch that no archive has; null if there is no batch yet. */
  private openDay: string | null;
  /** When a check first found a finished day that no archive has; null while there is none. */
  private dueAt: number | null = null;
  /** The next run is a repeat, not before this time. */
  private retryAt: number | null = null;
  private readonly now: () => number;
  private running: SingleRun<UpkeepResult> | null = null;
  private isClosed = false;
  private failed = 0;

  constructor(options: LogUpkeepOptions) {
    this.options = options;
    this.now = options.now ?? systemClock.elapsed;
    this.openDay = options.since === null ? null : dayOf(options.since);
  }

  /** Runs that failed since the start. */
  get failures(): number {
    return this.failed;
  }

  /** How long a finished day has waited for its archive, ms: since the start at most, whatever the clock says. */
  get unarchivedMs(): number {
    return this.dueAt === null ? 0 : this.now() - this.dueAt;
  }

  /** True while a finished day waits for its archive, as far as the last check knows, or a run is in progress. */
  get isBehind(): boolean {
    return this.dueAt !== null || this.running !== null;
  }

  /**
   * Starts a run if a day is over, or the last run failed an hour ago. A day ends with the first commit of a later one.
   * Called at the start, and every minute.
   */
  check(): void {
    const { batch, at } = this.options.progress.projected;
    if (this.running !== null || this.isClosed || batch === 0) return;
    this.openDay ??= dayOf(at);
    const now = this.now();
    if (this.openDay !== dayOf(at)) this.dueAt ??= now;
    else if (this.retryAt === null) return;
    if (this.retryAt !== null && now < this.retryAt) return;
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
      this.dueAt = null;
      // Archives that are outdated now are deleted by the next run.
      this.retryAt = result.forgetBefore === null ? null : this.now() + RETRY_MS;
      this.finish(result);
    } catch (error) {
      if (this.isClosed) return;
      this.failed++;
      this.retryAt = this.now() + RETRY_MS;
      logger.error({ error: (error as Error).message }, "archiving the log failed: retrying in 1 h");
    } finally {
      this.running = null;
      await running.stop();
    }
  }

  private finish(result: UpkeepResult): void {
    const { writer, logger } = this.options;
    const { archived, forgetBefore } = result;
    if (archived > 0) writer.trimLog(archived);
    logger.info({ archived }, "the log's finished days are archived");
    if (forgetBefore === null) return;
    // A write fails only where the log has failed, which reports that itself.
    writer.write([{ kind: "forgetLog", before: forgetBefore }]).catch(() => {});
  }
}

const startThread = (job: UpkeepJob): SingleRun<UpkeepResult> =>
  runAlone(new URL("./log-upkeep-worker.js", import.meta.url), "keepLog", job);
