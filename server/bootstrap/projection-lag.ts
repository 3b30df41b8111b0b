/**
 * Watches how far the tables are behind the log, and what keeps the projector from writing them. New orders are refused with
 * 50300 before the lag is too long for a restart, until the projector has caught up; cancels never are. Never touches the
 * tables.
 */
import { type LogProgress, Obstacle } from "../../engine/log/progress.ts";
import { systemClock } from "../../engine/util/clock.ts";
import { overloaded } from "../errors.ts";
import type { Logger } from "../logger.ts";
import type { TradingGate } from "../writes/trading-gate.ts";
import { type LagBounds, MAX_LAG, MAX_LAG_MARKS } from "./limits.ts";

const BEHIND = overloaded("the tables are too far behind the log: retry later");

const OBSTACLES: Readonly<Record<Exclude<Obstacle, typeof Obstacle.none>, string>> = {
  [Obstacle.lock]: "another program holds a lock on exchange.db: end its transaction",
  [Obstacle.disk]: "the disk of exchange.db is full, or refuses to write",
};

interface ProjectionLagOptions {
  readonly progress: LogProgress;
  readonly gate: TradingGate;
  readonly logger: Pick<Logger, "error" | "info">;
  readonly bounds?: LagBounds;
  /** ms, monotonic */
  readonly now?: () => number;
}

/** When a batch was the last one committed. */
interface Mark {
  readonly batch: number;
  /** ms, monotonic */
  readonly at: number;
}

export class ProjectionLag {
  private readonly options: ProjectionLagOptions;
  private readonly bounds: LagBounds;
  private readonly now: () => number;
  /** Batches that the tables lack, oldest first; several between two marks count from the later one. */
  private readonly marks: Mark[] = [];
  private obstacle: Obstacle = Obstacle.none;
  private hasCheckpointFailed = false;
  private isPaused = false;

  constructor(options: ProjectionLagOptions) {
    this.options = options;
    this.bounds = options.bounds ?? MAX_LAG;
    this.now = options.now ?? systemClock.elapsed;
  }

  /** Pauses or resumes trading by the lag. Called every few hundred milliseconds. */
  check(): void {
    const { gate, logger } = this.options;
    this.mark();
    this.reportObstacle();
    if (!this.isPaused && this.isBeyond(1)) {
      this.isPaused = true;
      gate.pause(BEHIND);
      logger.error({ events: this.events, ms: this.ageMs }, "trading pauses: the tables are too far behind the log");
    } else if (this.isPaused && !this.isBeyond(0.5)) {
      this.isPaused = false;
      gate.resume(BEHIND);
      logger.info("trading goes on: the tables have caught up");
    }
  }

  /** Events that the tables lack. */
  get events(): number {
    const { committed, projected } = this.options.progress;
    return projected.batch >= committed.batch ? 0 : Math.max(0, committed.records - projected.records);
  }

  /** How long the oldest batch that the tables lack has been committed, ms: 0 if they lack none. */
  get ageMs(): number {
    const projected = this.options.progress.projectedBatch;
    const oldest = this.marks.find(({ batch }) => batch > projected);
    return oldest === undefined ? 0 : this.now() - oldest.at;
  }

  private mark(): void {
    const { committedBatch, projectedBatch } = this.options.progress;
    const { marks } = this;
    while (marks[0] !== undefined && marks[0].batch <= projectedBatch) marks.shift();
    const last = marks.at(-1)?.batch ?? projectedBatch;
    // At the bound the lag is long past the one at which trading pauses.
    if (committedBatch > last && marks.length < MAX_LAG_MARKS) marks.push({ batch: committedBatch, at: this.now() });
  }

  private isBeyond(share: number): boolean {
    return this.events > share * this.bounds.events || this.ageMs > share * this.bounds.ms;
  }

  /** Once for each time that something keeps the projector from writing. */
  private reportObstacle(): void {
    const { progress, logger } = this.options;
    const { obstacle, hasCheckpointFailed } = progress;
    if (obstacle !== this.obstacle) {
      if (obstacle === Obstacle.none) logger.info("exchange.db can be written again");
      else logger.error({ reason: OBSTACLES[obstacle] }, "exchange.db can't be written: trading goes on without it");
      this.obstacle = obstacle;
    }
    if (hasCheckpointFailed !== this.hasCheckpointFailed) {
      if (hasCheckpointFailed) logger.error("a checkpoint of exchange.db fails: its WAL grows");
      else logger.info("checkpoints of exchange.db succeed again");
      this.hasCheckpointFailed = hasCheckpointFailed;
    }
  }
}
