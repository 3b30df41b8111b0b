/**
 * Makes reads of the tables wait until these include everything that was committed when the read began, and so everything
 * that its caller was told. Owned by the gateway, whose turn calls `resolveDue`. Never reads the tables.
 */
import type { LogProgress } from "../../engine/log/progress.ts";
import type { Waker } from "../../engine/ring/waker.ts";
import { type ApiError, overloaded } from "../errors.ts";
import { MAX_PROJECTION_WAIT_MS, MAX_WAITING_READS } from "./limits.ts";

interface WaitingRead {
  readonly batch: number;
  /** ms */
  readonly since: number;
  readonly resolve: () => void;
  readonly reject: (error: ApiError) => void;
}

const BEHIND = "the tables are behind: retry later";

export class ProjectedReads {
  private readonly progress: LogProgress;
  private readonly projector: Waker;
  private readonly now: () => number;
  /** By batch, which rises. */
  private waiting: WaitingRead[] = [];
  private hasEnded = false;

  /** @param projector wakes the projector @param now ms */
  constructor(progress: LogProgress, projector: Waker, now: () => number) {
    this.progress = progress;
    this.projector = projector;
    this.now = now;
  }

  /**
   * Resolves once the tables include everything committed so far; undefined if they do.
   * Rejects with an ApiError 50300 if too many reads wait, if one waits too long, and once the projector has ended.
   */
  caughtUp(): Promise<void> | undefined {
    const batch = this.progress.committedBatch;
    if (this.progress.projectedBatch >= batch) return undefined;
    if (this.hasEnded || this.waiting.length >= MAX_WAITING_READS) return Promise.reject(overloaded(BEHIND));
    return new Promise((resolve, reject) => {
      this.waiting.push({ batch, since: this.now(), resolve, reject });
      this.progress.want(batch);
      this.projector.wake();
    });
  }

  /** True if `resolveDue` would resolve a read. */
  get isDue(): boolean {
    const [first] = this.waiting;
    return first !== undefined && first.batch <= this.progress.projectedBatch;
  }

  /** Releases the reads whose batch is projected. */
  resolveDue(): void {
    if (!this.isDue) return;
    const projected = this.progress.projectedBatch;
    const end = this.waiting.findIndex(({ batch }) => batch > projected);
    for (const { resolve } of this.waiting.splice(0, end < 0 ? this.waiting.length : end)) resolve();
  }

  /** Rejects reads that wait too long. Called every few hundred milliseconds. */
  expire(): void {
    const oldest = this.now() - MAX_PROJECTION_WAIT_MS;
    while (this.waiting[0] !== undefined && this.waiting[0].since < oldest) {
      this.waiting.shift()?.reject(overloaded(BEHIND));
    }
  }

  /** The projector has ended: rejects all reads from now on that would wait for it. */
  end(): void {
    this.hasEnded = true;
    for (const { reject } of this.waiting.splice(0)) reject(overloaded(BEHIND));
  }
}
