/**
 * Watches the batches that are durable on this box and that other boxes don't have yet. Once the oldest has waited too long,
 * requests that change something get 50300 instead of waiting for an acknowledgement that may not come; reads go on. Cancels
 * and orders accepted before stay in the log, and happen.
 */
import type { LogProgress } from "../../engine/log/progress.ts";
import { systemClock } from "../../engine/util/clock.ts";
import { overloaded } from "../errors.ts";
import type { Logger } from "../logger.ts";
import { MAX_HELD_MS } from "../replication/limits.ts";
import { holdsLog } from "../replication/settings.ts";
import type { Lifecycle } from "./lifecycle.ts";
import type { Threads } from "./threads.ts";

const HELD = overloaded(
  "the nodes or the standby that keep a copy of the log don't respond: nothing can be acknowledged, retry later",
);

interface HeldLogOptions {
  readonly progress: LogProgress;
  readonly lifecycle: Lifecycle;
  readonly logger: Pick<Logger, "error" | "info">;
  /** False where acknowledgements don't wait for other boxes. */
  readonly refuses: boolean;
  /** ms, monotonic */
  readonly now?: () => number;
}

export class HeldLog {
  private readonly options: HeldLogOptions;
  private readonly now: () => number;
  /** The oldest batch that waited at a check, and when it was first seen; null while none waits. */
  private oldest: { readonly batch: number; readonly at: number } | null = null;

  constructor(options: HeldLogOptions) {
    this.options = options;
    this.now = options.now ?? systemClock.elapsed;
  }

  /** Refuses or admits requests by how long the oldest batch waits. Called every few hundred milliseconds. */
  check(): void {
    const { lifecycle, logger } = this.options;
    this.mark();
    const { isTooLong } = this;
    if (isTooLong === (lifecycle.writeRejection !== null)) return;
    lifecycle.writeRejection = isTooLong ? HELD : null;
    if (isTooLong) logger.error("the copy of the log is behind: requests that change something get 50300");
    else logger.info("the copy of the log has caught up: requests are accepted again");
  }

  /** True while requests that change something are refused. */
  get isTooLong(): boolean {
    return this.options.refuses && this.ageMs > MAX_HELD_MS;
  }

  /** Batches that other boxes don't have yet. */
  get batches(): number {
    const { appendedBatch, releasedBatch } = this.options.progress;
    return Math.max(0, appendedBatch - releasedBatch);
  }

  /** How long the oldest of them has waited, ms. */
  get ageMs(): number {
    return this.oldest === null ? 0 : this.now() - this.oldest.at;
  }

  private mark(): void {
    const { releasedBatch } = this.options.progress;
    if (this.batches === 0) this.oldest = null;
    else if (this.oldest === null || this.oldest.batch <= releasedBatch) {
      this.oldest = { batch: releasedBatch + 1, at: this.now() };
    }
  }
}

/** Null on a single box. */
export function createHeldLog(options: {
  readonly threads: Pick<Threads, "progress" | "replication">;
  readonly lifecycle: Lifecycle;
  readonly logger: Logger;
}): HeldLog | null {
  const { progress, replication } = options.threads;
  return replication === null ? null : new HeldLog({ ...options, progress, refuses: holdsLog(replication.settings) });
}
